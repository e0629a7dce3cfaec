/* SPDX-License-Identifier: MIT */
/* What was in use over time, by category: the layers of a chart. */
#ifndef GT_PILES_H
#define GT_PILES_H

#include "model/answers.h"

struct gt_pile { /* at the highest instant of a slice of time */
	uint64_t bytes[GT_CATEGORIES];
	uint64_t sum;
};

/* So many slices of [from_us, to_us], to be freed. */
struct gt_pile *gt_piles_get(const struct gt_answers *answers, size_t lane_index, uint64_t from_us,
			     uint64_t to_us, size_t slices);

#endif
