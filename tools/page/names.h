/* SPDX-License-Identifier: MIT */
/*
 * What the spots of a history are called: lines, categories, owners, streams and stacks, each told
 * once. Where there are more spots than a page has room for, the smallest of one line, category,
 * owner and stream become one: sums of any group stay exact, only stacks lose detail.
 */
#ifndef GT_PAGE_NAMES_H
#define GT_PAGE_NAMES_H

#include <jansson.h>
#include "page/history.h"
#include "symbols/symbols.h"

struct gt_paths; /* which part of a path is told */

struct gt_paths *gt_paths_new(bool strip);
struct gt_paths *gt_paths_free(struct gt_paths *paths);
/* Lives as long as paths. */
const char *gt_paths_shown(struct gt_paths *paths, const char *path);

/*
 * Gives every spot its shown number, of at most (about) `most`, and returns the tables as members
 * of the header: cats, lines, owners, streams, frames, nodes, leaf, near, sline, scat, sowner,
 * sstream. *ret_merged: spots that have no number of their own.
 */
json_t *gt_page_names(struct gt_page_history *history, struct gt_symbols *symbols,
		      struct gt_paths *paths, size_t most, size_t *ret_merged);

#endif
