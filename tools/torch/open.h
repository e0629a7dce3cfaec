/* SPDX-License-Identifier: MIT */
/*
 * The one door for commands: a trace file, or a snapshot that torch wrote. Both are a gt_trace behind
 * it, and nobody needs to know which, but for what a snapshot cannot tell (gt_trace.snapshot).
 */
#ifndef GT_TORCH_OPEN_H
#define GT_TORCH_OPEN_H

#include "read/trace.h"

/* As gt_trace_open. */
int gt_open(const char *path, unsigned int flags, struct gt_trace **ret, struct gt_error *err);

#endif
