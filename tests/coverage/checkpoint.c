/* SPDX-License-Identifier: MIT */
/*
 * checkpoint.c - a library to preload into the random program: at each of its checkpoints the
 * program tells whoever runs it and waits, so that the trace can be read while nothing happens.
 *
 * GT_CHECKPOINT="OUT IN": descriptors; the checkpoint's name goes to OUT, a byte comes from IN.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int gputrace_mark(const char *name);

int gputrace_mark(const char *name)
{
	const char *fds = getenv("GT_CHECKPOINT");
	int out, in;
	char byte;

	if (!fds || sscanf(fds, "%d %d", &out, &in) != 2)
		return 0;
	if (write(out, name, strlen(name)) < 0 || write(out, "\n", 1) < 0)
		_exit(3);
	return read(in, &byte, 1) == 1 ? 0 : -1;
}
