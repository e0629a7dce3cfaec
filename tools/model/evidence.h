/* SPDX-License-Identifier: MIT */
/*
 * What the rules of categories.c look at: facts about a life that need the events around it or
 * the sizes of others. Private to categories.c and evidence.c.
 */
#ifndef GT_EVIDENCE_H
#define GT_EVIDENCE_H

#include "model/categories.h"

#define GT_SIZE_SLACK ((uint64_t)1 << 20)

struct gt_sizes {
	uint64_t *sizes; /* sorted */
	size_t count;
};

/* Facts of a life that need the events around it, found in one sweep. */
#define GT_OUTLIVES_RUN 1u /* alive when its thread's optimizer, or recomputation, was left */
#define GT_NO_RUN_END	2u /* ... but the trace ends before that */
#define GT_CLAIMED	4u /* kept from set-up, and backward leaves one more of its size */

struct gt_evidence {
	struct gt_story *story;
	const struct gt_passes *passes;
	const struct gt_boundaries *boundaries;
	uint32_t *calls; /* positions of births in a module's forward */
	size_t call_count;
	uint32_t *optimizer; /* positions of births in an optimizer */
	size_t optimizer_count;
	uint8_t *facts; /* by life */
	size_t near;	/* pass that begins after the birth judged last: the next one is not far */
	struct gt_sizes weights;
	struct gt_sizes zeroed;	 /* of gradients that zero_grad freed */
	uint64_t *gradient_sums; /* by pass: candidates alive at its end */
	uint64_t most_gradients;
	bool has_weights;
};

struct gt_subject { /* the life that is being judged */
	const struct gt_life *life;
	const struct gt_features *birth, *death;
	uint32_t bits;
	size_t pass;	   /* that it was born in; passes->count = none */
	size_t next_pass;  /* that begins after its birth */
	size_t death_pass; /* that it died in */
	uint8_t facts;
	bool dies_on_engine;
};

/* Passes, calls and runs; nothing that needs a category. */
void gt_evidence_make(struct gt_evidence *ev, struct gt_story *story,
		      const struct gt_passes *passes, const struct gt_boundaries *boundaries);
void gt_evidence_clear(struct gt_evidence *ev);

/* Once the rules that need no sizes have run: sums of gradients, and GT_CLAIMED. */
void gt_evidence_claim(struct gt_evidence *ev);

struct gt_subject gt_subject_of(struct gt_evidence *ev, const struct gt_life *life);

bool gt_in_pass(const struct gt_evidence *ev, const struct gt_subject *s);
bool gt_in_setup(const struct gt_evidence *ev, const struct gt_subject *s);
bool gt_outlives_pass(const struct gt_evidence *ev, const struct gt_subject *s);
bool gt_is_candidate(const struct gt_evidence *ev, const struct gt_subject *s);

/* Never freed, or much later than made. Traces of two steps must not turn parameters into
 * activations, so set-up has a rule of its own. */
bool gt_is_kept(const struct gt_evidence *ev, const struct gt_subject *s);

/* A line outside torch asked, and none of the calls whose blocks are known by their name. */
static inline bool gt_is_user(const struct gt_subject *s)
{
	return s->bits & GT_IS_USER;
}

/* A forward pass that a checkpoint computes again during backward. */
static inline bool gt_recomputed(uint32_t bits)
{
	return bits & GT_HAS_CHECKPOINT && bits & GT_IN_CALL;
}

/* Sorts; then whether one is the same size. */
void gt_sizes_sort(struct gt_sizes *sizes);
bool gt_sizes_have(const struct gt_sizes *sizes, uint64_t size);

#endif
