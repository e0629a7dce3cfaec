/* SPDX-License-Identifier: MIT */
/* Holders put together by what people ask for: rows that add up to the state's bytes. */
#ifndef GT_GROUP_H
#define GT_GROUP_H

#include "model/label.h"
#include "model/state.h"

struct gt_row {
	struct gt_label label;
	uint64_t bytes;
	uint64_t count, largest, oldest_us; /* only if the state's blocks are known */
	uint32_t site;			    /* the largest of its sites, in the state's lane */
	const struct gt_site_def *named;    /* the site that the label is made from */
	uint64_t requested, requested_of;   /* as of gt_hold */
	uint32_t pool;
	int32_t stream;
	uint8_t category; /* enum gt_category; 0 = not asked, or of several */
	bool torch;	  /* level: blocks of torch, not driver allocations */
};

struct gt_rows { /* largest first */
	struct gt_row *rows;
	size_t count;
};

struct gt_rows gt_rows_of(const struct gt_state *state, struct gt_symbols *symbols, enum gt_by by);

/* The same from bytes and counts per site, where there is no state: an out-of-memory report. */
struct gt_rows gt_rows_of_report(const struct gt_trace *trace, size_t lane_index,
				 const struct gt_report *report, struct gt_symbols *symbols,
				 enum gt_by by);
void gt_rows_clear(struct gt_rows *rows);

#endif
