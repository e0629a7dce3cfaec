/* SPDX-License-Identifier: MIT */
/*
 * The totals of a lane over time, as far back as the history reaches. Where the history begins its
 * values are the current totals less everything that the history adds, so they are right even when
 * the beginning of the run is gone.
 */
#ifndef GT_SERIES_H
#define GT_SERIES_H

#include "model/walk.h"

struct gt_point {
	uint64_t us; /* begin of the slice, or the event's time */
	uint64_t max[GT_TOTALS];
};

struct gt_series {
	struct gt_point *points;
	size_t count;
};

/*
 * The time [from_us, to_us] in slices, each with the largest value in it; slices = 0: one point per
 * event that changes a total. 0, or -1 with err.
 */
int gt_series_get(const struct gt_trace *trace, size_t lane_index, uint64_t from_us, uint64_t to_us,
		  size_t slices, struct gt_series *ret, struct gt_error *err);
void gt_series_clear(struct gt_series *series);

#endif
