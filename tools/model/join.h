/* SPDX-License-Identifier: MIT */
/*
 * One device of a trace beside the same device of a torch snapshot of the same run: which event of one
 * is which of the other, and so what the snapshot knows of the trace's blocks and segments.
 */
#ifndef GT_JOIN_H
#define GT_JOIN_H

#include "read/trace.h"

struct gt_joined { /* of a block of torch's, or of memory that its blocks lie in */
	uint64_t key, size, requested; /* requested, pool: from the snapshot, when matched */
	uint64_t born, died;	       /* events of the trace; 0 = before or after its history */
	uint32_t pool;		       /* of the snapshot's pools */
	bool matched;
};

struct gt_join {
	struct gt_joined *lives; /* of the trace */
	size_t count;
	uint64_t matched;	  /* events of both */
	uint64_t trace, snapshot; /* events that each side has, these included */
	uint64_t older;	      /* of the lives that began before the snapshot's history, matched */
	uint64_t held;	      /* and all of those */
	uint64_t earlier;     /* of the lives that began before the trace's history, matched */
	uint64_t all_earlier; /* and all of those */
};

/* 0, or -1 with err. */
int gt_join_lanes(const struct gt_trace *trace, size_t lane_index, const struct gt_trace *snapshot,
		  size_t snapshot_lane, struct gt_join *ret, struct gt_error *err);
void gt_join_clear(struct gt_join *join);

#endif
