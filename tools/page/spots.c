/* SPDX-License-Identifier: MIT */
/*
 * See spots.h. An event repeats the site of its block but not what the block was for, so frees must
 * find what their allocation was counted under. The lives of the story are in the order of the
 * lane's allocations, so an allocation finds its own by going along, without a search. Called from
 * history.c for every event: open addressing, no allocation per block.
 */
#include "page/spots.h"

#include <stdlib.h>
#include <string.h>
#include <uthash.h>
#include "model/xalloc.h"

struct spot_key {
	const struct gt_site_def *call;
	uint32_t site;
	int32_t stream;
	uint32_t category;
};

struct bucket {
	struct spot_key key;
	uint32_t spot;
	UT_hash_handle hh;
};

struct cell {
	uint64_t key; /* GT_KEY of a live block; 0 = empty */
	uint32_t spot;
};

struct gt_spotter {
	struct gt_page_history *history;
	const struct gt_story *story; /* NULL: no categories */
	struct bucket *buckets;
	struct bucket *last; /* most blocks are like the one before */
	struct cell *cells;
	size_t mask, used;
	size_t life; /* of the story: those before it were born */
};

struct gt_spotter *gt_spotter_new(struct gt_page_history *history)
{
	struct gt_spotter *spotter = gt_xcalloc(1, sizeof(*spotter));

	spotter->history = history;
	spotter->story = history->answers ? history->answers->story : NULL;
	spotter->mask = 4095;
	spotter->cells = gt_xcalloc(spotter->mask + 1, sizeof(*spotter->cells));
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
	free(spotter->cells);
	free(spotter);
	return NULL;
}

/* ---- live blocks ------------------------------------------------------------------------------- */

static size_t place_of(uint64_t key)
{
	return (size_t)((key * 0x9e3779b97f4a7c15ull) >> 24);
}

static struct cell *find(struct gt_spotter *spotter, uint64_t key)
{
	size_t at = place_of(key) & spotter->mask;

	while (spotter->cells[at].key && spotter->cells[at].key != key)
		at = (at + 1) & spotter->mask;
	return &spotter->cells[at];
}

static void grow(struct gt_spotter *spotter)
{
	struct cell *old = spotter->cells;
	size_t count = spotter->mask + 1;

	spotter->mask = 2 * count - 1;
	spotter->cells = gt_xcalloc(2 * count, sizeof(*old));
	for (size_t i = 0; i < count; i++)
		if (old[i].key)
			*find(spotter, old[i].key) = old[i];
	free(old);
}

static void remember(struct gt_spotter *spotter, uint64_t key, uint32_t spot)
{
	struct cell *cell = find(spotter, key);

	spotter->used += !cell->key;
	*cell = (struct cell){key, spot};
	if (2 * spotter->used > spotter->mask)
		grow(spotter);
}

/* Those behind it in its run move up, so that no search ends too early. */
static void forget(struct gt_spotter *spotter, struct cell *cell)
{
	size_t hole = (size_t)(cell - spotter->cells), at = hole;

	spotter->used--;
	spotter->cells[hole].key = 0;
	while (spotter->cells[at = (at + 1) & spotter->mask].key) {
		size_t home = place_of(spotter->cells[at].key) & spotter->mask;

		if (((at - home) & spotter->mask) < ((at - hole) & spotter->mask))
			continue;
		spotter->cells[hole] = spotter->cells[at];
		spotter->cells[at].key = 0;
		hole = at;
	}
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
		key.call = gt_answers_call(spotter->history->answers, life);
	}
	return spot_for(spotter, &key);
}

/* The life that begins with the lane's event seq. */
static const struct gt_life *next_life(struct gt_spotter *spotter, uint64_t seq)
{
	const struct gt_story *story = spotter->story;

	while (story && spotter->life < story->life_count) {
		const struct gt_life *life = &story->lives[spotter->life];

		if (life->lane == spotter->history->lane_index && life->born_seq >= seq)
			return life->born_seq == seq ? life : NULL;
		spotter->life++;
	}
	return NULL;
}

static const struct gt_life *life_at(const struct gt_spotter *spotter, uint64_t addr, uint64_t seq)
{
	if (!spotter->story)
		return NULL;
	return gt_answers_life(spotter->history->answers, spotter->history->lane_index, addr, seq);
}

uint32_t gt_spotter_load(struct gt_spotter *spotter, const struct gt_block *block)
{
	uint64_t before = spotter->history->lane->history_first - 1;
	uint32_t spot =
		spot_of(spotter, block->site, block->stream, life_at(spotter, block->addr, before));

	remember(spotter, GT_KEY(block->addr, block->space), spot);
	return spot;
}

uint32_t gt_spotter_event(struct gt_spotter *spotter, const struct gt_event *event)
{
	uint64_t key = GT_KEY(event->addr, event->space);
	struct cell *cell;
	uint32_t spot;

	if (gt_op_effect(event->op) < 0) {
		cell = find(spotter, key);
		if (!cell->key)
			return spot_of(spotter, event->site, event->stream, NULL);
		spot = cell->spot;
		forget(spotter, cell);
		return spot;
	}
	spot = spot_of(spotter, event->site, event->stream,
		       event->op == GT_OP_ALLOC ? next_life(spotter, event->seq)
						: life_at(spotter, event->addr, event->seq));
	remember(spotter, key, spot);
	return spot;
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
