/* SPDX-License-Identifier: MIT */
/*
 * The numbers of torch.cuda.memory_stats(), from events: for each of torch's measures, of its pool for
 * large blocks, of that for small ones, and of both, what it is, was at most, and the sums of all that
 * was added and taken away.
 */
#ifndef GT_TORCH_STATS_H
#define GT_TORCH_STATS_H

#include "read/trace.h"

enum gt_torch_stat {
	GT_STAT_ALLOCATED, /* bytes of blocks, until they are freed */
	GT_STAT_ACTIVE,	   /* ... until no stream uses them */
	GT_STAT_REQUESTED, /* as active, before rounding up */
	GT_STAT_RESERVED,
	GT_STAT_INACTIVE, /* free pieces of segments that are in use otherwise */
	GT_STAT_ALLOCATIONS,
	GT_STAT_ACTIVES,
	GT_STAT_SEGMENTS, /* but for expandable ones */
	GT_STAT_INACTIVES,
	GT_STATS,
};

#define GT_STATS_BYTES GT_STAT_ALLOCATIONS /* those before it are bytes, the others numbers */

enum gt_torch_pool { GT_POOL_ALL, GT_POOL_LARGE, GT_POOL_SMALL, GT_POOLS };

struct gt_stat {
	uint64_t current, peak, added, taken;
};

struct gt_torch_stats {
	struct gt_stat stats[GT_STATS][GT_POOLS];
	uint64_t ooms;
	bool requested; /* it is known of every block */
	bool whole;	/* else peaks and sums are those since the history begins */
};

/* torch's own word: "allocated_bytes". */
const char *gt_torch_stat_name(enum gt_torch_stat stat);

/* 0, or -1 with err. */
int gt_torch_stats_get(const struct gt_trace *trace, size_t lane_index, struct gt_torch_stats *ret,
		       struct gt_error *err);

#endif
