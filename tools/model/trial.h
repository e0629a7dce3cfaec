/* SPDX-License-Identifier: MIT */
/* What verdict.c has found out about a refused request, for remedy.c to try things on. */
#ifndef GT_TRIAL_H
#define GT_TRIAL_H

#include "model/verdict.h"

struct gt_trial {
	const struct gt_trace *trace;
	const struct gt_answers *answers; /* NULL: no torch */
	const struct gt_ledger *ledger;	  /* of the device then; NULL = not known */
	const struct gt_trace_lane *lane;
	size_t lane_index;
	const struct gt_report *report;
	uint32_t position; /* behind the last event before the refusal */
	struct gt_moment moment;
	bool moment_known; /* the history reaches */
	struct gt_verdict *v;
};

/* Blocks that a cause would take away. NULL-safe without answers: no block is a life then. */
bool gt_was_kept(const struct gt_trial *t, const struct gt_block *block);  /* by growth */
bool gt_is_held(const struct gt_trial *t, const struct gt_block *block);   /* since a caught one */
bool gt_is_loaded(const struct gt_trial *t, const struct gt_block *block); /* from a checkpoint */
bool gt_is_old_state(const struct gt_trial *t, const struct gt_block *block);

/* Fills v->remedies. */
void gt_find_remedies(struct gt_trial *t);

#endif
