/* SPDX-License-Identifier: MIT */
/*
 * Fuzz target of the reader of torch snapshots: the input is a file. One that is taken must hold
 * together: what can be derived of the trace equals what is stored in it. Built with libFuzzer, or
 * with replay.c to run a corpus.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include "torch/open.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void say(void *ctx, const char *line)
{
	fprintf(stderr, "%s\n", line);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct gt_trace *trace = NULL;
	struct gt_error err;
	unsigned int parts;
	char path[64];
	int fd = memfd_create("pickle", MFD_CLOEXEC);

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (gt_open(path, 0, 1, &parts, &trace, &err)) {
		if (err.status != 3 || !err.text[0])
			abort();
	} else if (gt_trace_check(trace, true, say, NULL)) {
		abort();
	}
	gt_trace_close(trace);
	close(fd);
	return 0;
}
