/* SPDX-License-Identifier: MIT */
/*
 * See story.h. One pass over the merged history. A block whose birth is gone with the beginning of
 * the history is known all the same: its death, or the live set at the end, repeats its size, site
 * and time of birth. Called from answers.c.
 */
#include "model/story.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "model/keyed.h"
#include "model/xalloc.h"

#define MOST_LIVES (UINT32_MAX / 4)

struct alive {
	uint64_t key;
	uint32_t life;
};

struct making {
	struct gt_story *story;
	struct gt_keyed *alive; /* of each lane */
	struct gt_life *older;	/* born before the history */
	size_t older_count;
	uint32_t *order;
	size_t order_count;
};

#define OLDER (1u << 31) /* in a life's number while making: it is one of the older */

static struct gt_life *life_at(struct making *making, uint32_t life)
{
	return life & OLDER ? &making->older[life & ~OLDER] : &making->story->lives[life];
}

static bool counts(const struct gt_trace_lane *lane, uint32_t site)
{
	return gt_site_mask(lane, site) & GT_MASK_IN_USE;
}

static void add_alive(struct making *making, size_t lane, uint64_t key, uint32_t life)
{
	struct alive *alive = gt_keyed_put(&making->alive[lane], key);

	alive->life = life;
}

static uint32_t add_position(struct making *making, uint32_t life, bool death)
{
	*GT_PUSH(making->order, making->order_count) =
		(life & OLDER) | (life & ~OLDER) << 1 | (uint32_t)death;
	return (uint32_t)making->order_count - 1;
}

/* The life that an entry of the order names while the older ones are apart. */
static uint32_t life_of_entry(uint32_t entry)
{
	return (entry & OLDER) | (entry & ~OLDER) >> 1;
}

static void birth(struct making *making, size_t lane, const struct gt_event *event)
{
	struct gt_story *story = making->story;
	uint32_t number = (uint32_t)story->life_count;
	struct gt_life *life = GT_PUSH(story->lives, story->life_count);

	*life = (struct gt_life){
		.addr = event->addr,
		.size = event->size,
		.born_seq = event->seq,
		.died_seq = UINT64_MAX,
		.born_us = event->us,
		.died_us = UINT64_MAX,
		.born = add_position(making, number, false),
		.died = GT_NEVER,
		.site = event->site,
		.thread = event->thread,
		.stream = event->stream,
		.lane = (uint8_t)lane,
		.space = event->space,
	};
	add_alive(making, lane, GT_KEY(event->addr, event->space), number);
}

static uint32_t add_older(struct making *making, size_t lane, const struct gt_block *block)
{
	uint32_t number = (uint32_t)making->older_count | OLDER;
	struct gt_life *life = GT_PUSH(making->older, making->older_count);

	*life = (struct gt_life){
		.addr = block->addr,
		.size = block->size,
		.died_seq = UINT64_MAX,
		.born_us = block->birth_us,
		.died_us = UINT64_MAX,
		.died = GT_NEVER,
		.site = block->site,
		.thread = block->thread,
		.stream = block->stream,
		.lane = (uint8_t)lane,
		.space = block->space,
	};
	return number;
}

static void death(struct making *making, size_t lane, const struct gt_event *event)
{
	struct alive *alive =
		gt_keyed_find(&making->alive[lane], GT_KEY(event->addr, event->space));
	struct gt_block block = gt_block_of(event);
	uint32_t number = alive ? alive->life : add_older(making, lane, &block);
	struct gt_life *life = life_at(making, number);

	life->died_seq = event->seq;
	life->died_us = event->us;
	life->free_site = event->free_site;
	life->free_thread = event->thread;
	life->died = add_position(making, number, true);
	if (alive)
		gt_keyed_remove(&making->alive[lane], alive);
}

/* A refused free is taken back: the newest life at the address goes on. */
static void undeath(struct making *making, size_t lane, const struct gt_event *event)
{
	for (size_t i = making->order_count; i-- > 1;) {
		uint32_t entry = making->order[i];
		uint32_t number = life_of_entry(entry);
		struct gt_life *life = life_at(making, number);

		if (!(entry & 1) || life->died != i || life->lane != lane ||
		    life->addr != event->addr || life->space != event->space)
			continue;
		life->died_seq = life->died_us = UINT64_MAX;
		life->died = GT_NEVER;
		add_alive(making, lane, GT_KEY(event->addr, event->space), number);
		return;
	}
}

static void tick(struct making *making, const struct gt_event *event)
{
	struct gt_story *story = making->story;

	*GT_PUSH(story->ticks, story->tick_count) = (struct gt_tick){
		.us = event->us,
		.source = event->addr,
		.position = (uint32_t)making->order_count - 1,
		.text = event->aux,
		.thread = event->thread,
		.op = event->op,
	};
}

/*
 * What the program said stands on each lane and counts once: on that of the first device, since
 * order is exact only within a lane.
 */
static bool is_tick(const struct gt_trace *trace, size_t lane, const struct gt_event *event)
{
	size_t first = 0;

	if (event->op < GT_OP_MARK || event->op > GT_OP_STEP)
		return false;
	while (first < trace->lane_count && trace->lanes[first].device == GT_DEVICE_HOST)
		first++;
	return first == trace->lane_count || lane == first;
}

static void add_event(struct making *making, const struct gt_event *event)
{
	const struct gt_trace *trace = making->story->trace;
	size_t lane = 0;

	while (lane < trace->lane_count && trace->lanes[lane].lane != event->lane)
		lane++;
	if (lane == trace->lane_count)
		return;
	if (is_tick(trace, lane, event))
		tick(making, event);
	if (!counts(&trace->lanes[lane], event->site))
		return;
	if (event->op == GT_OP_ALLOC)
		birth(making, lane, event);
	else if (event->op == GT_OP_UNFREE)
		undeath(making, lane, event);
	else if (gt_op_effect(event->op) < 0)
		death(making, lane, event);
}

static int read_events(struct making *making, struct gt_error *err)
{
	struct gt_merge *merge = gt_xchecked(gt_merge_new(making->story->trace));
	const struct gt_event *event;

	GT_PUSH(making->order, making->order_count);
	err->status = 0;
	while ((event = gt_merge_next(merge, err)) && making->story->life_count < MOST_LIVES)
		add_event(making, event);
	gt_merge_free(merge);
	if (event) {
		err->status = 3;
		snprintf(err->text, sizeof(err->text),
			 "%s: more than %u blocks in its history: too many for this command",
			 making->story->trace->path, MOST_LIVES);
	}
	return err->status ? -1 : 0;
}

/* ---- what was there before ----------------------------------------------------------------- */

static void add_survivors(struct making *making)
{
	const struct gt_trace *trace = making->story->trace;

	for (size_t i = 0; i < trace->lane_count; i++) {
		const struct gt_trace_lane *lane = &trace->lanes[i];

		for (size_t b = 0; b < lane->block_count; b++) {
			const struct gt_block *block = &lane->blocks[b];
			uint64_t key = GT_KEY(block->addr, block->space);

			if (counts(lane, block->site) && !gt_keyed_find(&making->alive[i], key))
				add_older(making, i, block);
		}
	}
}

struct ranked {
	uint64_t us;
	uint32_t old;
};

static int by_us(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;

	if (x->us != y->us)
		return x->us < y->us ? -1 : 1;
	return x->old < y->old ? -1 : 1;
}

/* Older lives go before the others, in order of birth; the order gets their final numbers. */
static void put_older_first(struct making *making)
{
	struct gt_story *story = making->story;
	size_t older = making->older_count;
	struct ranked *ranks = gt_xcalloc(older, sizeof(*ranks));
	uint32_t *place = gt_xcalloc(older, sizeof(*place));
	struct gt_life *lives = gt_xcalloc(older + story->life_count, sizeof(*lives));

	for (size_t i = 0; i < older; i++)
		ranks[i] = (struct ranked){making->older[i].born_us, (uint32_t)i};
	qsort(ranks, older, sizeof(*ranks), by_us);
	for (size_t i = 0; i < older; i++) {
		lives[i] = making->older[ranks[i].old];
		place[ranks[i].old] = (uint32_t)i;
	}
	if (story->life_count)
		memcpy(lives + older, story->lives, story->life_count * sizeof(*lives));
	for (size_t i = 1; i < making->order_count; i++) {
		uint32_t entry = making->order[i];
		uint32_t life = (entry & ~OLDER) >> 1;

		life = entry & OLDER ? place[life] : life + (uint32_t)older;
		making->order[i] = life << 1 | (entry & 1);
	}
	free(story->lives);
	story->lives = lives;
	story->life_count += older;
	free(ranks);
	free(place);
}

static void join(struct making *making)
{
	struct gt_story *story = making->story;

	if (making->older_count)
		put_older_first(making);
	story->order = making->order;
	story->position_count = (uint32_t)making->order_count;
}

static void make_alive(struct making *making)
{
	const size_t lanes = making->story->trace->lane_count;

	making->alive = gt_xcalloc(lanes, sizeof(*making->alive));
	for (size_t i = 0; i < lanes; i++)
		making->alive[i].size = sizeof(struct alive);
}

static void forget_alive(struct making *making)
{
	for (size_t i = 0; i < making->story->trace->lane_count; i++)
		gt_keyed_clear(&making->alive[i]);
	free(making->alive);
	free(making->older);
}

/* ---- sites and threads ---------------------------------------------------------------------- */

static void find_features(struct gt_story *story)
{
	const struct gt_trace *trace = story->trace;
	size_t count = 0;

	story->first_site = gt_xcalloc(trace->lane_count, sizeof(*story->first_site));
	for (size_t i = 0; i < trace->lane_count; i++) {
		story->first_site[i] = count;
		count += trace->lanes[i].site_count;
	}
	story->features = gt_xcalloc(count, sizeof(*story->features));
	for (size_t i = 0; i < trace->lane_count; i++)
		for (size_t s = 0; s < trace->lanes[i].site_count; s++) {
			const struct gt_site_def *def = &trace->lanes[i].site_defs[s];

			story->features[story->first_site[i] + s] =
				gt_features_of(story->table, def->native, def->python);
		}
}

/*
 * Without native stacks: autograd's threads are others than those that call it, and Python frames
 * are seen there only below a checkpoint. A replica's thread has frames of its own.
 */
static void guess_engine(struct gt_story *story)
{
	for (size_t i = 1; i < story->thread_count; i++)
		story->engine[i] = !story->caller[i];
	for (size_t i = 0; i < story->life_count; i++) {
		const struct gt_life *life = &story->lives[i];
		uint32_t bits = gt_story_birth(story, life)->bits;

		if (life->thread < story->thread_count && bits & GT_HAS_PYTHON &&
		    !(bits & (GT_HAS_CHECKPOINT | GT_IN_OPTIMIZER)))
			story->engine[life->thread] = false;
	}
}

static void find_threads(struct gt_story *story)
{
	const struct gt_trace *trace = story->trace;

	story->thread_count = trace->thread_count + 1;
	story->engine = gt_xcalloc(story->thread_count, sizeof(*story->engine));
	story->caller = gt_xcalloc(story->thread_count, sizeof(*story->caller));
	for (size_t i = 1; i < trace->thread_count; i++) {
		story->caller[i] = trace->threads[i].tid == trace->header.pid;
		/* of a snapshot with Python's frames alone nothing else tells */
		story->engine[i] =
			trace->snapshot && !strncmp(trace->threads[i].name.text, "pt_autograd", 11);
	}
	for (size_t i = 0; i < story->life_count; i++) {
		const struct gt_life *life = &story->lives[i];
		uint32_t bits = gt_story_birth(story, life)->bits;

		story->python |= !!(bits & GT_HAS_PYTHON);
		story->native |= !!gt_story_site(story, life)->native;
		if (life->thread >= story->thread_count)
			continue;
		if (bits & GT_HAS_MAIN)
			story->engine[life->thread] = true;
		else if (bits & (GT_IN_ROOT | GT_IN_BACKWARD) && !(bits & GT_HAS_ENGINE))
			story->caller[life->thread] = true;
	}
	if (!story->native)
		guess_engine(story);
}

/* What exit handlers free was kept: it dies with the process. */
static void cut_exit(struct gt_story *story)
{
	uint64_t exit_us = story->trace->header.exit_us;

	story->exit = story->position_count;
	if (!exit_us)
		return;
	while (story->exit > 1 && gt_story_us(story, story->exit - 1) >= exit_us - 1)
		story->exit--;
	for (uint32_t i = story->exit; i < story->position_count; i++)
		if (gt_story_is_death(story, i))
			gt_story_life(story, i)->died = GT_NEVER;
}

int gt_story_make(const struct gt_trace *trace, struct gt_symbols *symbols, struct gt_story **ret,
		  struct gt_error *err)
{
	struct gt_story *story = gt_xcalloc(1, sizeof(*story));
	struct making making = {.story = story};
	int status;

	story->trace = trace;
	story->whole = true;
	story->free_stacks = trace->header.stacks & GT_STACKS_FREE;
	for (size_t i = 0; i < trace->lane_count; i++)
		story->whole &= trace->lanes[i].history_first <= 1;
	make_alive(&making);
	status = read_events(&making, err);
	add_survivors(&making);
	join(&making);
	forget_alive(&making);
	if (status) {
		gt_story_free(story);
		return status;
	}
	story->table = gt_xchecked(gt_feature_table_new(symbols));
	find_features(story);
	find_threads(story);
	cut_exit(story);
	*ret = story;
	return 0;
}

struct gt_story *gt_story_free(struct gt_story *story)
{
	if (!story)
		return NULL;
	gt_feature_table_free(story->table);
	free(story->features);
	free(story->first_site);
	free(story->lives);
	free(story->order);
	free(story->ticks);
	free(story->engine);
	free(story->caller);
	free(story);
	return NULL;
}

/* ---- look-ups ------------------------------------------------------------------------------- */

const struct gt_features *gt_story_features(const struct gt_story *story, size_t lane,
					    uint32_t site)
{
	if (site >= story->trace->lanes[lane].site_count)
		site = 0;
	return story->features[story->first_site[lane] + site];
}

const struct gt_features *gt_story_birth(const struct gt_story *story, const struct gt_life *life)
{
	return gt_story_features(story, life->lane, life->site);
}

const struct gt_features *gt_story_death(const struct gt_story *story, const struct gt_life *life)
{
	return gt_story_features(story, life->lane, life->free_site);
}

const struct gt_features *gt_story_at(const struct gt_story *story, uint32_t position)
{
	const struct gt_life *life = gt_story_life(story, position);

	return gt_story_is_death(story, position) ? gt_story_death(story, life)
						  : gt_story_birth(story, life);
}

uint64_t gt_story_us(const struct gt_story *story, uint32_t position)
{
	const struct gt_life *life;

	if (!position || position >= story->position_count)
		return position ? story->trace->last_us : 0;
	life = gt_story_life(story, position);
	return gt_story_is_death(story, position) ? life->died_us : life->born_us;
}

uint16_t gt_story_thread(const struct gt_story *story, uint32_t position)
{
	const struct gt_life *life = gt_story_life(story, position);
	uint16_t thread = gt_story_is_death(story, position) ? life->free_thread : life->thread;

	return thread < story->thread_count ? thread : 0;
}

uint32_t gt_story_position(const struct gt_story *story, size_t lane, uint64_t seq)
{
	uint32_t last = 0;

	for (uint32_t i = 1; i < story->position_count; i++)
		if (gt_story_life(story, i)->lane == lane && gt_story_seq(story, i) <= seq)
			last = i;
	return last;
}

size_t gt_first_after(const uint32_t *positions, size_t count, uint32_t position)
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (positions[middle] > position)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

uint32_t gt_next_of(const uint32_t *positions, size_t count, uint32_t position)
{
	size_t i = gt_first_after(positions, count, position);

	return i < count ? positions[i] : GT_NEVER;
}
