/* SPDX-License-Identifier: MIT */
/* Two sets of rows side by side: what each key held in A and in B. */
#ifndef GT_DIFF_H
#define GT_DIFF_H

#include "model/group.h"

struct gt_diff_row {
	const struct gt_row *a, *b; /* either may be NULL, not both */
	uint64_t bytes_a, bytes_b;
};

struct gt_diff { /* largest difference first; sums are those of the row sets */
	struct gt_diff_row *rows;
	size_t count;
	uint64_t bytes_a, bytes_b;
};

/* The row sets must outlive the result. */
struct gt_diff gt_diff_rows(const struct gt_rows *a, const struct gt_rows *b);
void gt_diff_clear(struct gt_diff *diff);

#endif
