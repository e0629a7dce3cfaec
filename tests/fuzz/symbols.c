/* SPDX-License-Identifier: MIT */
/*
 * Fuzz target of the symbols' path: the input is an object file, opened and asked for the names at
 * addresses from all over it, as for a module that a trace names. Built with libFuzzer, or with
 * replay.c to run a corpus.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include "symbols/object.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
const char *__lsan_default_suppressions(void);

/*
 * libdw 0.188 forgets the scopes that dwarf_getscopes had found when one of them has a broken origin:
 * 32 bytes for each look-up in such an object (corpus: broken-origin). What we allocate and lose is
 * still found; what libdw allocates for us and we lose is not.
 */
const char *__lsan_default_suppressions(void)
{
	return "leak:libdw.so";
}

static void ask(struct gt_object *object, uint64_t address)
{
	struct gt_line lines[GT_LINES_MAX];
	size_t count = gt_object_lines(object, address, lines);

	if (count < 1 || count > GT_LINES_MAX)
		abort();
	for (size_t i = 0; i < count; i++) {
		/* Every byte of every text is there to be read. */
		char *text = NULL;

		if (asprintf(&text, "%s %s", lines[i].symbol ? lines[i].symbol : "",
			     lines[i].file ? lines[i].file : "") < 0)
			abort();
		free(text);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = memfd_create("object", MFD_CLOEXEC);
	struct gt_object *object;
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (write(fd, data, size) != (ssize_t)size)
		abort();
	if (!gt_object_open(path, NULL, 0, &object)) {
		for (uint64_t address = 0; address < 0x5000; address += 0x123)
			ask(object, address);
		ask(object, UINT64_MAX);
		gt_object_free(object);
	}
	close(fd);
	return 0;
}
