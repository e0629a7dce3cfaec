/* SPDX-License-Identifier: MIT */
/*
 * The one door for commands: a trace file, a snapshot that torch wrote, or a database that gputrace
 * exported. All are a gt_trace behind it, and nobody needs to know which, but for what a snapshot
 * cannot tell (gt_trace.snapshot) and for copies of the file (gt_trace.database).
 */
#ifndef GT_TORCH_OPEN_H
#define GT_TORCH_OPEN_H

#include "read/trace.h"

/*
 * As gt_trace_open. A database may hold the traces of several processes, parts from 1; every other file
 * is one.
 */
int gt_open(const char *path, unsigned int flags, unsigned int part, unsigned int *ret_parts,
	    struct gt_trace **ret, struct gt_error *err);

#endif
