/* SPDX-License-Identifier: MIT */
/*
 * Growth where there are no steps: a call that keeps a block each time it is made, while the rest of
 * the loop gives back what it takes. Plain C programs, and evaluation after the training.
 */
#ifndef GT_CALLS_H
#define GT_CALLS_H

#include "model/answers.h"

struct gt_calls {
	uint32_t site;	   /* with most of the bytes; 0 = nothing grows by calls */
	uint64_t count;	   /* calls of it */
	uint64_t freed;	   /* of its blocks */
	uint64_t bytes;	   /* kept by it, and by those that are called as often */
	uint64_t per_call; /* bytes */
	bool *sites;	   /* by site: one of those */
};

/*
 * Of the lane's events after seq `from` and up to a refused request, which must itself be one of the
 * loop; NULL: up to the end. answers (may be NULL) name what is no growth: weights, gradients, optimizer state.
 */
struct gt_calls gt_calls_of(const struct gt_trace *trace, const struct gt_answers *answers,
			    size_t lane_index, uint64_t from, const struct gt_report *report);
void gt_calls_clear(struct gt_calls *calls);

#endif
