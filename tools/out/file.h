/* SPDX-License-Identifier: MIT */
/*
 * A file that takes the place of what was there once it is whole, and not before: whoever looks meanwhile
 * finds the old one, and so does whoever comes after an error. It is written beside it, under the name
 * with ".PID.new" behind. Where that cannot be made, or what is there is a device or a pipe, it is
 * written in place. A link in its place is not followed.
 */
#ifndef GT_OUT_FILE_H
#define GT_OUT_FILE_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

#define GT_MODE_OURS 0600 /* not for other users' eyes: it names files and functions */

struct gt_file {
	FILE *file;
	const char *path; /* that it gets, the caller's; NULL: standard output */
	char *now;	  /* that it has until then, or path */
};

/* path NULL or "-": standard output. 0, or -1 with errno set. */
int gt_file_create(struct gt_file *ret, const char *path, mode_t mode);

/*
 * Puts the file into its place. What was not written whole, or is not to be kept, is removed, and what
 * was there stays. 0, or -1 with errno set when not everything was written.
 */
int gt_file_finish(struct gt_file *file, bool keep);

#endif
