/* SPDX-License-Identifier: MIT */
/*
 * Work that may take long says how far it is to whoever listens; by default nobody does, and nothing
 * here knows how it is shown. History is read once or several times, as the question needs: what is
 * expected is one time.
 */
#ifndef GT_PROGRESS_H
#define GT_PROGRESS_H

#include <stdint.h>

/* done may exceed total: then it is read again. total 0: it is not known how long it takes. */
typedef void gt_heard(const char *what, const char *path, uint64_t done, uint64_t total);

void gt_progress_listen(gt_heard *heard); /* NULL: nobody */

void gt_progress_expect(uint64_t bytes);
void gt_progress_forget(uint64_t bytes); /* expected, but it will not be read any more */
void gt_progress_add(const char *path, uint64_t bytes);			/* these come now */
void gt_progress_part(const char *path, uint64_t done, uint64_t total); /* of something else */
void gt_progress_names(const char *path); /* an object file is opened for its names */

#endif
