/* SPDX-License-Identifier: MIT */
/* The processes of a job in the order in which one wants to look at them. */
#ifndef GT_CMD_RANKS_H
#define GT_CMD_RANKS_H

#include "cmd/session.h"

struct gt_ranked {
	const struct gt_place *place;
	const char *state; /* how the process ended */
	bool failed;	   /* by want of memory, or killed */
	uint64_t off;	   /* how far its peak is from the median; 0: like the others */
	uint64_t rank;	   /* UINT64_MAX: none */
};

/* RANK as the process had it in its environment, or "-". */
const char *gt_rank_text(const struct gt_trace *trace);

/*
 * Failed ones first, then those whose peak is unlike the others', farthest first, then by rank. One
 * per place, to be freed. ret_median: of the peaks.
 */
struct gt_ranked *gt_rank_places(const struct gt_places *places, enum gt_total total,
				 uint64_t *ret_median);

#endif
