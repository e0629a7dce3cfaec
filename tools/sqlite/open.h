/* SPDX-License-Identifier: MIT */
/* An SQLite database that gputrace exported, as a trace like any other. */
#ifndef GT_SQLITE_OPEN_H
#define GT_SQLITE_OPEN_H

#include "read/trace.h"

/* By the first bytes of a file, which are left as they are. */
bool gt_looks_like_sqlite(const void *head, size_t length);

/*
 * The trace of one of its processes, which are numbered from 1. *ret_processes: how many there are. 0,
 * or -1 with err. The descriptor stays the caller's.
 */
int gt_sqlite_open(int fd, const char *path, unsigned int process, struct gt_trace **ret,
		   unsigned int *ret_processes, struct gt_error *err);

#endif
