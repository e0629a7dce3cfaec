/* SPDX-License-Identifier: MIT */
/*
 * What events do to the state of a lane, and the walk backwards: the reader gives the state after
 * the last event; going back, an allocation takes its block away and a free brings it back, since a
 * free repeats its block's size, site and birth. So the state at any moment that the history still
 * covers is exact, however much history is gone. What is nearer to the beginning of a whole history is
 * walked to from there.
 */
#ifndef GT_WALK_H
#define GT_WALK_H

#include <stdbool.h>
#include <stdint.h>
#include "read/trace.h"

/* Totals that a block of this site adds to: GT_MASK_*. Site numbers come checked from the reader. */
unsigned int gt_site_mask(const struct gt_trace_lane *lane, uint32_t site);

/* What the event does to the lane's totals; sign -1: as if it had not been. */
void gt_totals_add(int64_t totals[GT_TOTALS], const struct gt_trace_lane *lane,
		   const struct gt_event *event, int sign);

/* What torch holds to subdivide: not in use as such, and not held by the driver's own pools or graphs. */
uint64_t gt_torch_reserved(const struct gt_trace_lane *lane);

/* Whether the state after event seq can be reached by walking back. */
bool gt_history_reaches(const struct gt_trace_lane *lane, uint64_t seq);

struct gt_moment { /* the state of a lane after one of its events */
	uint64_t seq, us;
	uint64_t cur[GT_TOTALS];
	struct gt_block *blocks; /* by birth */
	size_t block_count;
};

/*
 * Walk to the state after the last event with seq <= seq and time <= us. 0, or -1 with err.
 * When the history ends before, err says since when it reaches.
 */
int gt_moment_get(const struct gt_trace *trace, size_t lane_index, uint64_t seq, uint64_t us,
		  struct gt_moment *ret, struct gt_error *err);
void gt_moment_clear(struct gt_moment *moment);

#endif
