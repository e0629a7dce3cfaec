/* SPDX-License-Identifier: MIT */
/* See answers.h. Called by commands, once per trace and only when an answer needs it. */
#define _GNU_SOURCE
#include "model/answers.h"

#include <stdlib.h>
#include <string.h>
#include <uthash.h>
#include "model/keyed.h"
#include "model/xalloc.h"
#include "symbols/library.h"

bool gt_has_torch(const struct gt_trace *trace)
{
	for (size_t i = 1; i < trace->module_count; i++)
		if (trace->modules[i].path.length &&
		    gt_library_of_object(trace->modules[i].path.text) == GT_LIBRARY_TORCH)
			return true;
	return false;
}

/* ---- lives by address ------------------------------------------------------------------------ */

struct at_address {
	uint64_t key;
	const struct gt_life *life;
};

struct gt_alive { /* the lives at one moment of a lane */
	struct gt_keyed lives;
	size_t lane_index;
	uint64_t seq;
};

/* Of lives at one address, the last that was born. */
static void find_alive(const struct gt_story *story, size_t lane_index, uint64_t seq,
		       struct gt_alive *ret)
{
	gt_keyed_clear(&ret->lives);
	ret->lane_index = lane_index;
	ret->seq = seq;
	for (size_t i = 0; i < story->life_count; i++) {
		const struct gt_life *life = &story->lives[i];
		struct at_address *at;

		if (life->lane != lane_index || life->born_seq > seq || life->died_seq <= seq)
			continue;
		at = gt_keyed_put(&ret->lives, life->addr);
		at->life = life;
	}
}

const struct gt_life *gt_answers_life(const struct gt_answers *answers, size_t lane_index,
				      uint64_t addr, uint64_t seq)
{
	struct gt_alive *alive = answers->alive;
	const struct at_address *at;

	if (alive->lane_index != lane_index || alive->seq != seq)
		find_alive(answers->story, lane_index, seq, alive);
	at = gt_keyed_find(&alive->lives, addr);
	return at ? at->life : NULL;
}

const struct gt_life *gt_answers_next(const struct gt_answers *answers, size_t lane_index,
				      uint64_t seq, size_t *at)
{
	const struct gt_story *story = answers->story;

	for (; *at < story->life_count; ++*at) {
		const struct gt_life *life = &story->lives[*at];

		if (life->lane == lane_index && life->born_seq >= seq)
			return life->born_seq == seq ? life : NULL;
	}
	return NULL;
}

/* ---- making ---------------------------------------------------------------------------------- */

#define TELLING 5 /* steps that would show a pattern, were there one */

/*
 * A run that ended early has steps although nothing could repeat yet. Of one that went on and showed no
 * pattern nobody may name a step, or compare what is in one with what is in another.
 */
static void forget_doubtful(struct gt_boundaries *steps)
{
	if (steps->source == GT_STEPS_NONE && steps->count >= TELLING)
		steps->count = 0;
}

int gt_answers_make(const struct gt_trace *trace, struct gt_symbols *symbols,
		    struct gt_answers **ret, struct gt_error *err)
{
	struct gt_answers *answers = gt_xcalloc(1, sizeof(*answers));

	if (gt_story_make(trace, symbols, &answers->story, err)) {
		free(answers);
		return -1;
	}
	answers->passes = gt_passes_of(answers->story);
	answers->steps = gt_boundaries_of(answers->story, &answers->passes);
	gt_categorize(answers->story, &answers->passes, &answers->steps);
	forget_doubtful(&answers->steps);
	answers->alive = gt_xcalloc(1, sizeof(*answers->alive));
	answers->alive->lives.size = sizeof(struct at_address);
	answers->alive->lane_index = SIZE_MAX; /* none yet */
	*ret = answers;
	return 0;
}

struct gt_answers *gt_answers_free(struct gt_answers *answers)
{
	if (!answers)
		return NULL;
	gt_keyed_clear(&answers->alive->lives);
	free(answers->alive);
	gt_boundaries_clear(&answers->steps);
	gt_passes_clear(&answers->passes);
	gt_story_free(answers->story);
	free(answers);
	return NULL;
}

/* ---- phases ---------------------------------------------------------------------------------- */

const char *gt_phase_name(enum gt_phase phase)
{
	static const char *const names[] = {
		[GT_PHASE_NONE] = "",
		[GT_PHASE_FORWARD] = "forward",
		[GT_PHASE_BACKWARD] = "backward",
		[GT_PHASE_OPTIMIZER] = "optimizer",
		[GT_PHASE_AFTER] = "after",
	};

	return names[phase];
}

/* next: pass that begins after the position; step: the position's. */
static enum gt_phase phase_of(const struct gt_answers *answers, uint32_t position, size_t next,
			      size_t step)
{
	const struct gt_passes *passes = &answers->passes;

	if (!position || position >= answers->story->position_count)
		return GT_PHASE_NONE;
	if (gt_pass_before(passes, position, next) < passes->count)
		return GT_PHASE_BACKWARD;
	if (gt_story_at(answers->story, position)->bits & GT_IN_OPTIMIZER)
		return GT_PHASE_OPTIMIZER;
	if (!step)
		return GT_PHASE_NONE;
	if (next < passes->count && (step == answers->steps.count ||
				     passes->passes[next].first < answers->steps.starts[step]))
		return GT_PHASE_FORWARD;
	return GT_PHASE_AFTER;
}

enum gt_phase gt_answers_phase(const struct gt_answers *answers, uint32_t position)
{
	return phase_of(answers, position, gt_pass_after(&answers->passes, position),
			gt_boundary_step(&answers->steps, position));
}

enum gt_phase gt_answers_phase_next(const struct gt_answers *answers, uint32_t position,
				    size_t *pass, size_t *step)
{
	while (*pass < answers->passes.count && answers->passes.passes[*pass].first <= position)
		++*pass;
	while (*step < answers->steps.count && answers->steps.starts[*step] <= position)
		++*step;
	return phase_of(answers, position, *pass, *step);
}

/* ---- holds with categories ------------------------------------------------------------------- */

struct split_key {
	const struct gt_site_def *call;
	uint32_t site, category;
	uint32_t step, phase; /* only of gt_answers_births */
};

struct bucket {
	struct split_key key;
	size_t hold;
	UT_hash_handle hh;
};

struct split {
	const struct gt_answers *answers;
	struct bucket *buckets;
	struct gt_hold *holds;
	size_t count;
	size_t lane_index;
	uint64_t seq; /* of the state */
	bool births;
};

#define NO_STEP UINT32_MAX

static struct gt_hold *hold_for(struct split *split, struct split_key key)
{
	struct bucket *bucket;
	struct gt_hold *hold;

	HASH_FIND(hh, split->buckets, &key, sizeof(key), bucket);
	if (bucket)
		return &split->holds[bucket->hold];
	bucket = gt_xcalloc(1, sizeof(*bucket));
	bucket->key = key;
	bucket->hold = split->count;
	HASH_ADD(hh, split->buckets, key, sizeof(key), bucket);
	hold = GT_PUSH(split->holds, split->count);
	hold->site = key.site;
	hold->category = (uint8_t)key.category;
	hold->call = key.call;
	hold->timed = split->births && key.step != NO_STEP;
	hold->step = hold->timed ? key.step : 0;
	hold->phase = (uint8_t)key.phase;
	return hold;
}

const struct gt_site_def *gt_answers_call(const struct gt_answers *answers,
					  const struct gt_life *life)
{
	size_t pass;

	if (!life->born || (gt_story_birth(answers->story, life)->bits &
			    (GT_HAS_ENGINE | GT_HAS_PYTHON)) != GT_HAS_ENGINE)
		return NULL;
	pass = gt_pass_at(&answers->passes, life->born);
	return pass < answers->passes.count ? answers->passes.passes[pass].call : NULL;
}

/* The last position at or before the time. */
static uint32_t position_at(const struct gt_story *story, uint64_t us)
{
	uint32_t low = 0, high = story->position_count;

	while (low + 1 < high) {
		uint32_t middle = low + (high - low) / 2;

		if (gt_story_us(story, middle) <= us)
			low = middle;
		else
			high = middle;
	}
	return low;
}

/* A segment has no life in the story: its time says when it was made. */
static void add_birth(const struct split *split, const struct gt_block *block,
		      const struct gt_life *life, struct split_key *key)
{
	const struct gt_answers *answers = split->answers;
	uint32_t position = life ? life->born : position_at(answers->story, block->birth_us);

	if (!answers->steps.count || (!position && !answers->story->whole)) {
		key->step = NO_STEP;
		return;
	}
	key->step = (uint32_t)gt_boundary_step(&answers->steps, position);
	key->phase = gt_answers_phase(answers, position);
}

static void add_block(struct split *split, const struct gt_block *block)
{
	const struct gt_life *life =
		gt_answers_life(split->answers, split->lane_index, block->addr, split->seq);
	struct split_key key;

	memset(&key, 0, sizeof(key)); /* its padding is compared too */
	key.site = block->site;
	key.category = life ? life->category : GT_CATEGORY_NONE;
	key.call = life ? gt_answers_call(split->answers, life) : NULL;
	if (split->births)
		add_birth(split, block, life, &key);
	gt_hold_add(hold_for(split, key), block);
}

/* The category of most bytes that a site ever allocated. */
static void add_sites(const struct gt_answers *answers, struct gt_state *state)
{
	const struct gt_story *story = answers->story;
	size_t sites = story->trace->lanes[state->lane_index].site_count;
	uint64_t(*bytes)[GT_CATEGORIES] = gt_xcalloc(sites, sizeof(*bytes));

	for (size_t i = 0; i < story->life_count; i++) {
		const struct gt_life *life = &story->lives[i];

		if (life->lane == state->lane_index && life->site < sites)
			bytes[life->site][life->category] += life->size;
	}
	for (size_t i = 0; i < state->hold_count; i++) {
		struct gt_hold *hold = &state->holds[i];

		hold->category = GT_CATEGORY_UNKNOWN;
		for (unsigned int c = 1; c < GT_CATEGORIES; c++)
			if (bytes[hold->site][c] > bytes[hold->site][hold->category])
				hold->category = (uint8_t)c;
	}
	free(bytes);
}

static int by_bytes(const void *a, const void *b)
{
	const struct gt_hold *x = a, *y = b;

	if (x->bytes != y->bytes)
		return x->bytes < y->bytes ? 1 : -1;
	if (x->site != y->site)
		return x->site < y->site ? -1 : 1;
	return x->category < y->category ? -1 : x->category > y->category;
}

static void split_blocks(const struct gt_answers *answers, struct gt_state *state, bool births)
{
	struct split split = {
		.answers = answers,
		.lane_index = state->lane_index,
		.seq = state->seq,
		.births = births,
	};
	struct bucket *bucket, *next;

	for (size_t i = 0; i < state->block_count; i++)
		add_block(&split, &state->blocks[i]);
	HASH_ITER(hh, split.buckets, bucket, next) {
		HASH_DEL(split.buckets, bucket);
		free(bucket);
	}
	free(state->holds);
	state->holds = split.holds;
	state->hold_count = split.count;
	if (split.count)
		qsort(state->holds, split.count, sizeof(*state->holds), by_bytes);
}

void gt_answers_split(const struct gt_answers *answers, struct gt_state *state)
{
	if (state->total == GT_TOTAL_RESERVED)
		return;
	if (state->blocks_known)
		split_blocks(answers, state, false);
	else
		add_sites(answers, state);
}

void gt_answers_births(const struct gt_answers *answers, struct gt_state *state)
{
	if (state->blocks_known)
		split_blocks(answers, state, true);
}
