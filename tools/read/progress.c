/* SPDX-License-Identifier: MIT */
/* See progress.h. One listener for the whole program: a terminal has one last line. */
#include <stddef.h>
#include "read/progress.h"

static gt_heard *listener;
static uint64_t expected, added;

void gt_progress_listen(gt_heard *heard)
{
	listener = heard;
	added = 0;
}

void gt_progress_expect(uint64_t bytes)
{
	expected += bytes;
}

void gt_progress_forget(uint64_t bytes)
{
	expected -= bytes < expected ? bytes : expected;
	added = expected ? added : 0;
}

void gt_progress_add(const char *path, uint64_t bytes)
{
	if (listener)
		listener("reading", path, added, expected);
	added += bytes;
}

void gt_progress_part(const char *path, uint64_t done, uint64_t total)
{
	if (listener)
		listener("reading", path, done, total);
}

void gt_progress_names(const char *path)
{
	if (listener)
		listener("names in", path, 0, 0);
}
