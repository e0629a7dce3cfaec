/* SPDX-License-Identifier: MIT */
/* See answers.h. Called by commands, once per trace and only when an answer needs it. */
#define _GNU_SOURCE
#include "model/answers.h"

#include <stdlib.h>
#include <string.h>
#include <uthash.h>
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

/* What the search compares lies together: through the lives themselves every step of it would miss twice. */
struct gt_life_key {
	uint64_t addr, born_seq;
	uint32_t life;
	uint8_t lane;
};

static int compare_keys(const void *a, const void *b)
{
	const struct gt_life_key *x = a, *y = b;

	if (x->lane != y->lane)
		return x->lane < y->lane ? -1 : 1;
	if (x->addr != y->addr)
		return x->addr < y->addr ? -1 : 1;
	return x->born_seq < y->born_seq ? -1 : x->born_seq > y->born_seq;
}

static void index_lives(struct gt_answers *answers)
{
	size_t count = answers->story->life_count;

	answers->by_address = gt_xcalloc(count, sizeof(*answers->by_address));
	for (size_t i = 0; i < count; i++) {
		const struct gt_life *life = &answers->story->lives[i];

		answers->by_address[i] = (struct gt_life_key){.addr = life->addr,
							      .born_seq = life->born_seq,
							      .life = (uint32_t)i,
							      .lane = life->lane};
	}
	qsort(answers->by_address, count, sizeof(*answers->by_address), compare_keys);
}

/* The last life in the order that was born at or before (lane, addr, seq). */
const struct gt_life *gt_answers_life(const struct gt_answers *answers, size_t lane_index,
				      uint64_t addr, uint64_t seq)
{
	const struct gt_life_key *keys = answers->by_address;
	const struct gt_life *life;
	struct gt_life_key wanted = {.addr = addr, .born_seq = seq, .lane = (uint8_t)lane_index};
	size_t low = 0, high = answers->story->life_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (compare_keys(&keys[middle], &wanted) <= 0)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low)
		return NULL;
	life = &answers->story->lives[keys[low - 1].life];
	return life->lane == lane_index && life->addr == addr && life->died_seq > seq ? life : NULL;
}

/* ---- making ---------------------------------------------------------------------------------- */

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
	index_lives(answers);
	*ret = answers;
	return 0;
}

struct gt_answers *gt_answers_free(struct gt_answers *answers)
{
	if (!answers)
		return NULL;
	gt_boundaries_clear(&answers->steps);
	gt_passes_clear(&answers->passes);
	gt_story_free(answers->story);
	free(answers->by_address);
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

enum gt_phase gt_answers_phase(const struct gt_answers *answers, uint32_t position)
{
	const struct gt_passes *passes = &answers->passes;
	size_t next = gt_pass_after(passes, position);
	size_t step = gt_boundary_step(&answers->steps, position);

	if (!position || position >= answers->story->position_count)
		return GT_PHASE_NONE;
	if (gt_pass_at(passes, position) < passes->count)
		return GT_PHASE_BACKWARD;
	if (gt_story_at(answers->story, position)->bits & GT_IN_OPTIMIZER)
		return GT_PHASE_OPTIMIZER;
	if (!step)
		return GT_PHASE_NONE;
	if (next < passes->count &&
	    gt_boundary_step(&answers->steps, passes->passes[next].first) == step)
		return GT_PHASE_FORWARD;
	return GT_PHASE_AFTER;
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
		for (uint8_t c = 1; c < GT_CATEGORIES; c++)
			if (bytes[hold->site][c] > bytes[hold->site][hold->category])
				hold->category = c;
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
