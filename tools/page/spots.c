/* SPDX-License-Identifier: MIT */
/*
 * See spots.h. An event repeats the site of its block but not what the block was for, so frees must
 * find what their allocation was counted under. Called from history.c for every event.
 */
#include "page/spots.h"

#include <stdlib.h>
#include <string.h>
#include <uthash.h>
#include "model/keyed.h"
#include "model/xalloc.h"

struct spot_key { /* compared and hashed as bytes */
	const struct gt_site_def *call;
	uint32_t site;
	int32_t stream;
	uint32_t category, unused;
};

struct bucket {
	struct spot_key key;
	uint32_t spot;
	UT_hash_handle hh;
};

struct live {
	uint64_t key;
	uint32_t spot;
	const struct gt_life *life; /* NULL = not known */
};

struct gt_spotter {
	struct gt_page_history *history;
	const struct gt_answers *answers; /* NULL: no categories */
	struct bucket *buckets;
	struct bucket *last; /* most blocks are like the one before */
	struct gt_keyed live;
	size_t life; /* of the story: those before it were born */
};

struct gt_spotter *gt_spotter_new(struct gt_page_history *history)
{
	struct gt_spotter *spotter = gt_xcalloc(1, sizeof(*spotter));

	spotter->history = history;
	spotter->answers = history->answers;
	spotter->live.size = sizeof(struct live);
	return spotter;
}

struct gt_spotter *gt_spotter_free(struct gt_spotter *spotter)
{
	struct bucket *bucket, *next;

	if (!spotter)
		return NULL;
	HASH_ITER(hh, spotter->buckets, bucket, next) {
		HASH_DEL(spotter->buckets, bucket);
		free(bucket);
	}
	gt_keyed_clear(&spotter->live);
	free(spotter);
	return NULL;
}

/* ---- spots ------------------------------------------------------------------------------------- */

static uint32_t spot_for(struct gt_spotter *spotter, const struct spot_key *key)
{
	struct gt_page_history *history = spotter->history;
	struct bucket *bucket = spotter->last;
	struct gt_spot *spot;

	if (bucket && memcmp(&bucket->key, key, sizeof(*key)) == 0)
		return bucket->spot;
	HASH_FIND(hh, spotter->buckets, key, sizeof(*key), bucket);
	if (!bucket) {
		bucket = gt_xcalloc(1, sizeof(*bucket));
		bucket->key = *key;
		bucket->spot = (uint32_t)history->spot_count;
		HASH_ADD(hh, spotter->buckets, key, sizeof(*key), bucket);
		spot = GT_PUSH(history->spots, history->spot_count);
		*spot = (struct gt_spot){
			.call = key->call,
			.site = key->site,
			.stream = key->stream,
			.category = (uint8_t)key->category,
		};
	}
	spotter->last = bucket;
	return bucket->spot;
}

static uint32_t spot_of(struct gt_spotter *spotter, uint32_t site, int32_t stream,
			const struct gt_life *life)
{
	struct spot_key key;

	memset(&key, 0, sizeof(key));
	key.site = site < spotter->history->lane->site_count ? site : 0;
	key.stream = stream;
	if (life) {
		key.category = life->category;
		key.call = gt_answers_call(spotter->answers, life);
	}
	return spot_for(spotter, &key);
}

/* ---- live blocks ------------------------------------------------------------------------------- */

static const struct gt_life *next_life(struct gt_spotter *spotter, uint64_t seq)
{
	if (!spotter->answers)
		return NULL;
	return gt_answers_next(spotter->answers, spotter->history->lane_index, seq, &spotter->life);
}

static const struct gt_life *life_at(const struct gt_spotter *spotter, uint64_t addr, uint64_t seq)
{
	if (!spotter->answers)
		return NULL;
	return gt_answers_life(spotter->answers, spotter->history->lane_index, addr, seq);
}

static uint32_t begin(struct gt_spotter *spotter, const struct gt_block *block,
		      const struct gt_life *life)
{
	uint32_t spot = spot_of(spotter, block->site, block->stream, life);
	struct live *live = gt_keyed_put(&spotter->live, GT_KEY(block->addr, block->space));

	live->spot = spot;
	live->life = life;
	return spot;
}

/* A free that was refused is taken back later: its life goes on, and what is known of it is kept. */
static uint32_t end(struct gt_spotter *spotter, const struct gt_event *event, struct live *live)
{
	uint32_t spot;

	if (!live)
		return spot_of(spotter, event->site, event->stream, NULL);
	spot = live->spot;
	if (!live->life || live->life->died_seq == event->seq)
		gt_keyed_remove(&spotter->live, live);
	return spot;
}

uint32_t gt_spotter_load(struct gt_spotter *spotter, const struct gt_block *block)
{
	uint64_t before = spotter->history->lane->history_first - 1;

	return begin(spotter, block, life_at(spotter, block->addr, before));
}

uint32_t gt_spotter_event(struct gt_spotter *spotter, const struct gt_event *event)
{
	struct gt_block block = gt_block_of(event);
	struct live *live = gt_keyed_find(&spotter->live, GT_KEY(event->addr, event->space));

	if (gt_op_effect(event->op) < 0)
		return end(spotter, event, live);
	if (event->op != GT_OP_ALLOC)
		return live ? live->spot : begin(spotter, &block, NULL);
	return begin(spotter, &block, next_life(spotter, event->seq));
}

uint32_t gt_spotter_hold(struct gt_spotter *spotter, const struct gt_hold *hold)
{
	struct spot_key key;

	memset(&key, 0, sizeof(key));
	key.site = hold->site;
	key.stream = hold->stream;
	key.category = hold->category;
	key.call = hold->call;
	return spot_for(spotter, &key);
}
