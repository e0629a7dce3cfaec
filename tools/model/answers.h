/* SPDX-License-Identifier: MIT */
/*
 * All that is inferred about a trace, made once: its story, backward passes, steps, and a category
 * for each block.
 */
#ifndef GT_ANSWERS_H
#define GT_ANSWERS_H

#include "model/categories.h"
#include "model/state.h"

struct gt_answers {
	struct gt_story *story;
	struct gt_passes passes;
	struct gt_boundaries steps;
	struct gt_alive *alive; /* of gt_answers_life */
};

/* Whether torch's libraries were seen: without them there is nothing to infer from. */
bool gt_has_torch(const struct gt_trace *trace);

int gt_answers_make(const struct gt_trace *trace, struct gt_symbols *symbols,
		    struct gt_answers **ret, struct gt_error *err);
struct gt_answers *gt_answers_free(struct gt_answers *answers);

/*
 * The block at an address after event seq of the lane; NULL = none. The first question about a moment
 * goes over all lives, further ones about the same moment are a look-up.
 */
const struct gt_life *gt_answers_life(const struct gt_answers *answers, size_t lane_index,
				      uint64_t addr, uint64_t seq);

/*
 * The block that begins with event seq of the lane; NULL = none. For whoever asks in the order of
 * events: *at, at first 0, is how far the last call has come, so that nothing has to be searched.
 */
const struct gt_life *gt_answers_next(const struct gt_answers *answers, size_t lane_index,
				      uint64_t seq, size_t *at);

/*
 * What autograd's thread made is on the account of the line that called backward(): its site, or
 * NULL.
 */
const struct gt_site_def *gt_answers_call(const struct gt_answers *answers,
					  const struct gt_life *life);

/*
 * Gives the state's holds their categories. A site whose blocks are of several becomes several
 * holds. Where single blocks are not known, each site gets the category of most of its bytes.
 */
void gt_answers_split(const struct gt_answers *answers, struct gt_state *state);

/* Splits the holds further, by the step and phase in which their blocks were made. */
void gt_answers_births(const struct gt_answers *answers, struct gt_state *state);

enum gt_phase {
	GT_PHASE_NONE, /* before the first step */
	GT_PHASE_FORWARD,
	GT_PHASE_BACKWARD,
	GT_PHASE_OPTIMIZER,
	GT_PHASE_AFTER, /* the rest of a step: clipping, metrics, evaluation */
};

const char *gt_phase_name(enum gt_phase phase); /* "" for none */
enum gt_phase gt_answers_phase(const struct gt_answers *answers, uint32_t position);

/* The same for positions in order, without a search: *pass and *step are how far the last call has come. */
enum gt_phase gt_answers_phase_next(const struct gt_answers *answers, uint32_t position,
				    size_t *pass, size_t *step);

#endif
