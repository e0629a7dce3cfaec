/* SPDX-License-Identifier: MIT */
/*
 * Fuzz target of the reader. The input is a trace behind one byte: bit 0 reads what is whole of it
 * (--partial), bit 1 makes it look like the file of a process that may be running, which is mapped
 * and read with retries. Built with libFuzzer, or with replay.c to run a corpus.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "../read/follow.h"
#include "../read/swallow.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void look_alive(uint8_t *bytes, size_t size)
{
	struct gt_header *h = (void *)bytes;
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);

	if (fd < 0 || size < sizeof(*h))
		return;
	memset(h->boot_id, 0, sizeof(h->boot_id));
	if (read(fd, h->boot_id, 36) != 36)
		abort();
	close(fd);
	h->pid_ns = 1;
}

static void follow(const char *path)
{
	struct gt_follow *f;
	struct gt_error err;

	if (gt_follow_open(path, &f, &err))
		return;
	while (gt_follow_next(f, &err))
		;
	gt_follow_close(f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct gt_error err;
	uint8_t *bytes;
	char path[64];
	int fd;

	if (!size)
		return 0;
	fd = memfd_create("trace", MFD_CLOEXEC);
	bytes = malloc(size);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	memcpy(bytes, data + 1, size - 1);
	if (data[0] & 2)
		look_alive(bytes, size - 1);
	if (write(fd, bytes, size - 1) != (ssize_t)size - 1)
		abort();
	if (swallow(path, data[0] & 1 ? GT_OPEN_PARTIAL : 0, &err) == SWALLOWED_BAD) {
		fprintf(stderr, "%s\n", err.text);
		abort();
	}
	follow(path);
	free(bytes);
	close(fd);
	return 0;
}
