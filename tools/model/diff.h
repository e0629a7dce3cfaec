/* SPDX-License-Identifier: MIT */
/*
 * Two sets of rows side by side: what each key held in A and in B. Stacks of two builds, checkouts
 * or versions of a library differ in lines and offsets, so what has no partner by its exact key
 * looks for one by ever coarser ones.
 */
#ifndef GT_DIFF_H
#define GT_DIFF_H

#include "model/group.h"

struct gt_diff_row {
	const struct gt_row *a, *b; /* either may be NULL, not both */
	uint64_t bytes_a, bytes_b;
	int loosened; /* level of the key that made the pair; 0 = the exact one */
};

struct gt_diff { /* largest difference first; sums are those of the row sets */
	struct gt_diff_row *rows;
	size_t count;
	uint64_t bytes_a, bytes_b;
};

struct gt_diff_side {
	const struct gt_rows *rows; /* must outlive the result */
	const struct gt_trace *trace;
	struct gt_symbols *symbols;
};

struct gt_diff gt_diff_rows(const struct gt_diff_side *a, const struct gt_diff_side *b,
			    enum gt_by by);
void gt_diff_clear(struct gt_diff *diff);

#endif
