/* SPDX-License-Identifier: MIT */
/*
 * Why a request for memory was refused: a counterfactual. Each cause that could be taken away has
 * a margin, the bytes that would have been free without it; the largest that is enough is the
 * cause, the others that would have been enough too are named.
 */
#ifndef GT_VERDICT_H
#define GT_VERDICT_H

#include "model/calls.h"
#include "model/growth.h"
#include "model/ledger.h"

enum gt_cause {
	GT_CAUSE_NONE,	      /* nothing that can be named */
	GT_CAUSE_HOST_MEMORY, /* pinned memory */
	GT_CAUSE_SINGLE_REQUEST,
	GT_CAUSE_TOO_LARGE, /* weights, gradients and state alone exceed the card */
	GT_CAUSE_FIRST_STEP,
	GT_CAUSE_LOAD_PEAK,
	GT_CAUSE_DUPLICATE_STATE,
	GT_CAUSE_HELD_AFTER_OOM, /* of an attempt that ran out of memory and was caught */
	GT_CAUSE_GROWTH,
	GT_CAUSE_POOL_CACHE, /* a pool keeps what this request can not have */
	GT_CAUSE_IDLE_CONTEXTS,
	GT_CAUSE_FRAGMENTATION,
	GT_CAUSE_OTHER_PROCESS,
	GT_CAUSE_ACTIVATIONS,
	GT_CAUSES,
};

const char *gt_cause_name(enum gt_cause cause); /* "first-step-too-large" */

enum gt_pool {			/* whose cache is of no use to the request */
	       GT_POOL_PRIVATE, /* of a CUDA graph, in torch */
	       GT_POOL_TORCH,	/* torch's, to a request from elsewhere */
	       GT_POOL_DRIVER,
};

struct gt_remedy {
	const char *id, *text;
	uint64_t bytes;	  /* that it frees or saves */
	bool enough;	  /* by this trace's own numbers */
	bool checked;	  /* the blocks of the trace show it; else a formula, or a bound */
	bool same_result; /* of the computation */
	int64_t steps;	  /* how many more steps it gives; -1 = for good */
	const char *formula;
};

#define GT_REMEDIES 16

struct gt_verdict {
	enum gt_cause cause;
	uint32_t pid;			/* that was refused */
	uint64_t margins[GT_CAUSES];	/* 0 = does not apply, or not enough */
	const struct gt_frame *frame;	/* of the line to look at; NULL: that of the request */
	const struct gt_frame *result;	/* of growth: gt_growth_result() */
	const struct gt_site_def *site; /* whose chain that line ends; NULL likewise */
	bool steps_known;
	bool large_input; /* larger than half as much again as in any step before */
	size_t step;	  /* that it happened in; 0 = before the first */
	enum gt_phase phase;
	uint64_t categories[GT_CATEGORIES]; /* in use then */
	bool categories_known;
	uint64_t short_by, cached, largest_piece;
	size_t pieces;	/* of what is cached */
	uint64_t empty; /* segments of torch with nothing in use: empty_cache() returns them */
	enum gt_pool pool;
	uint64_t pool_cached;
	uint64_t idle; /* contexts of others without any allocation */
	size_t idle_count;
	const struct gt_ledger_row *idle_row; /* the first of those */
	/* The largest of what was caught, of the step's inputs, of the pool's segments. */
	const struct gt_site_def *held_site, *input_site, *pool_site;
	size_t state_step; /* in which the optimizer state in use was made */
	struct gt_calls calls;
	bool pieces_known;
	bool expandable;  /* segments of torch grow by pages already */
	uint64_t to_come; /* still to be asked for in the first step, the request included */
	uint64_t over;	  /* by how much the first step exceeds the card */
	bool to_come_known;
	uint64_t state_to_come, temporaries_to_come;
	struct gt_growth growth;
	struct gt_remedy remedies[GT_REMEDIES];
	size_t remedy_count;
};

/* answers and ledger may be NULL; the verdict points into the ledger. */
struct gt_verdict gt_verdict_of(const struct gt_trace *trace, const struct gt_answers *answers,
				size_t lane_index, const struct gt_report *report,
				const struct gt_ledger *ledger);
void gt_verdict_clear(struct gt_verdict *verdict);

#endif
