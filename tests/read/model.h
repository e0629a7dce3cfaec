/* SPDX-License-Identifier: MIT */
/*
 * A lane as the simplest code can keep it, to compare with what the reader says: a table of blocks,
 * and a copy of every site's bytes at each new peak.
 */
#ifndef GT_TEST_MODEL_H
#define GT_TEST_MODEL_H

#include "read/trace.h"

#define MODEL_SITES 512

struct model_block;

struct model {
	struct model_block *blocks;
	size_t block_count;
	uint64_t seq;
	uint64_t cur[GT_TOTALS], peak[GT_TOTALS], peak_seq[GT_TOTALS];
	uint64_t live[MODEL_SITES], at[GT_TOTALS][MODEL_SITES];
	uint64_t ever[MODEL_SITES];
	char why[256];
};

/* Applies the next event; mask: of its site. NULL or what does not fit. */
const char *model_apply(struct model *model, const struct gt_event *event, unsigned int mask);
/* Undoes it: what a backward walk sees. Blocks only. */
const char *model_undo(struct model *model, const struct gt_event *event);
const char *model_add(struct model *model, const struct gt_block *block);
/* NULL, or how the lane differs. */
const char *model_compare_blocks(struct model *model, const struct gt_trace_lane *lane);
const char *model_compare_totals(struct model *model, const struct gt_trace_lane *lane);
const char *model_compare(struct model *model, const struct gt_trace_lane *lane);
bool model_same_blocks(struct model *a, struct model *b);
void model_free(struct model *model);

#endif
