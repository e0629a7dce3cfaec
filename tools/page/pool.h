/* SPDX-License-Identifier: MIT */
/* The segments of a pool as the page draws them: equal ones folded, the rest in a sum. */
#ifndef GT_PAGE_POOL_H
#define GT_PAGE_POOL_H

#include <jansson.h>
#include "model/segments.h"
#include "symbols/symbols.h"

/*
 * {count, used, stuck, empty, largest, rows: [{n, size, used, pin, pieces: [[size, kind]]}],
 * rest: {n, size, used}}; kind 0 = in use, 1 = cached beside a live block, 2 = all of it empty.
 */
json_t *gt_page_pool(const struct gt_trace *trace, struct gt_symbols *symbols,
		     const struct gt_trace_lane *lane, const struct gt_segment_list *list);

#endif
