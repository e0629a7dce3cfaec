/* SPDX-License-Identifier: MIT */
/*
 * See replay.h. Of expandable segments: one range of addresses per stream and size class, in which
 * each block takes the smallest gap that holds it, or goes to the end; pages of 20 MiB (2 MiB for
 * small blocks) without a block go back to the driver when it refuses. Called from remedy.c.
 */
#include "model/replay.h"

#include <stdlib.h>
#include <string.h>
#include "model/segments.h"
#include "model/xalloc.h"
#include <uthash.h>

#define SMALL_BLOCK (UINT64_C(1) << 20)
#define SMALL_PAGE  (UINT64_C(2) << 20)
#define LARGE_PAGE  (UINT64_C(20) << 20)
#define MOST_WORK   (UINT64_C(400) << 20) /* gaps looked at, in all */

/* ---- the same segments ----------------------------------------------------------------------- */

static bool room_in(const struct gt_segment_list *list, const struct gt_trial *t)
{
	uint64_t asked = t->report->torch_requested, given_back = 0;

	for (size_t i = 0; i < list->count; i++) {
		const struct gt_segment *segment = &list->segments[i];

		if (!segment->pool)
			continue;
		if (!segment->used && !segment->pending)
			given_back += segment->size;
		for (size_t p = 0; p < segment->piece_count; p++)
			if (!segment->pieces[p].used && segment->pieces[p].size >= asked &&
			    segment->small == (asked <= SMALL_BLOCK))
				return true;
	}
	return t->report->device_free + given_back >= t->report->requested;
}

static enum gt_replayed without_of_torch(const struct gt_trial *t, const struct gt_block *blocks,
					 size_t count)
{
	struct gt_segments *segments = gt_xchecked(gt_segments_new(t->lane));
	struct gt_segment_list list;
	bool fits;

	gt_segments_load(segments, blocks, count, NULL, NULL);
	gt_segments_list(segments, &list);
	fits = room_in(&list, t);
	gt_segments_list_clear(&list);
	gt_segments_free(segments);
	return fits ? GT_REPLAY_FITS : GT_REPLAY_FAILS;
}

enum gt_replayed gt_replay_without(const struct gt_trial *t,
				   bool (*drop)(const struct gt_trial *t,
						const struct gt_block *block))
{
	struct gt_block *blocks;
	uint64_t dropped = 0;
	enum gt_replayed result;
	size_t count = 0;

	if (!t->moment_known || t->report->device_free == GT_UNKNOWN_BYTES)
		return GT_REPLAY_NOT;
	blocks = gt_xcalloc(t->moment.block_count + 1, sizeof(*blocks));
	for (size_t i = 0; i < t->moment.block_count; i++) {
		const struct gt_block *block = &t->moment.blocks[i];
		unsigned int mask = gt_site_mask(t->lane, block->site);

		if (!(mask & GT_MASK_IN_USE) || !drop(t, block))
			blocks[count++] = *block;
		else
			dropped += mask & GT_MASK_RESERVED ? block->size : 0;
	}
	if (t->report->torch_requested)
		result = without_of_torch(t, blocks, count);
	else
		result = t->report->device_free + dropped >= t->report->requested ? GT_REPLAY_FITS
										  : GT_REPLAY_FAILS;
	free(blocks);
	return result;
}

/* ---- expandable segments --------------------------------------------------------------------- */

struct gap {
	uint64_t at, size;
};

struct arena { /* of one stream and size class */
	uint16_t stream;
	bool small;
	struct gap *gaps; /* by address */
	size_t count, room;
	uint64_t end;
};

struct placed {	       /* a block alive */
	uint64_t addr; /* in the trace */
	uint64_t at, size;
	size_t arena;
	UT_hash_handle hh;
};

struct layout {
	struct arena *arenas;
	size_t count;
	struct placed *placed;
	uint64_t work;
};

static size_t arena_of(struct layout *layout, uint16_t stream, bool small)
{
	struct arena *arena;

	for (size_t i = 0; i < layout->count; i++)
		if (layout->arenas[i].stream == stream && layout->arenas[i].small == small)
			return i;
	arena = GT_PUSH(layout->arenas, layout->count);
	arena->stream = stream;
	arena->small = small;
	return layout->count - 1;
}

static void remove_gap(struct arena *arena, size_t i)
{
	memmove(&arena->gaps[i], &arena->gaps[i + 1], (--arena->count - i) * sizeof(*arena->gaps));
}

static void insert_gap(struct arena *arena, size_t i, struct gap gap)
{
	if (arena->count == arena->room) {
		arena->room = arena->room ? 2 * arena->room : 16;
		arena->gaps = gt_xrealloc(arena->gaps, arena->room, sizeof(*arena->gaps));
	}
	memmove(&arena->gaps[i + 1], &arena->gaps[i], (arena->count++ - i) * sizeof(*arena->gaps));
	arena->gaps[i] = gap;
}

/* The smallest gap, the first of equals; else the end. */
static uint64_t take(struct layout *layout, struct arena *arena, uint64_t size)
{
	size_t best = SIZE_MAX;
	uint64_t at;

	for (size_t i = 0; i < arena->count; i++)
		if (arena->gaps[i].size >= size &&
		    (best == SIZE_MAX || arena->gaps[i].size < arena->gaps[best].size))
			best = i;
	layout->work += arena->count;
	if (best == SIZE_MAX) {
		struct gap *last = arena->count ? &arena->gaps[arena->count - 1] : NULL;

		if (last && last->at + last->size == arena->end)
			arena->end = arena->gaps[--arena->count].at;
		at = arena->end;
		arena->end += size;
		return at;
	}
	at = arena->gaps[best].at;
	arena->gaps[best].at += size;
	arena->gaps[best].size -= size;
	if (!arena->gaps[best].size)
		remove_gap(arena, best);
	return at;
}

static void give_back(struct arena *arena, uint64_t at, uint64_t size)
{
	size_t low = 0, high = arena->count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (arena->gaps[middle].at < at)
			low = middle + 1;
		else
			high = middle;
	}
	insert_gap(arena, low, (struct gap){at, size});
	if (low + 1 < arena->count && at + size == arena->gaps[low + 1].at) {
		arena->gaps[low].size += arena->gaps[low + 1].size;
		remove_gap(arena, low + 1);
	}
	if (low && arena->gaps[low - 1].at + arena->gaps[low - 1].size == at) {
		arena->gaps[low - 1].size += arena->gaps[low].size;
		remove_gap(arena, low);
	}
}

static void lift(struct layout *layout, uint64_t addr)
{
	struct placed *placed;

	HASH_FIND(hh, layout->placed, &addr, sizeof(addr), placed);
	if (!placed)
		return;
	give_back(&layout->arenas[placed->arena], placed->at, placed->size);
	HASH_DEL(layout->placed, placed);
	free(placed);
}

static void place(struct layout *layout, const struct gt_event *event)
{
	size_t arena = arena_of(layout, event->stream, event->size <= SMALL_BLOCK);
	struct placed *placed = gt_xcalloc(1, sizeof(*placed));

	lift(layout, event->addr);
	*placed = (struct placed){.addr = event->addr, .size = event->size, .arena = arena};
	placed->at = take(layout, &layout->arenas[arena], event->size);
	HASH_ADD(hh, layout->placed, addr, sizeof(placed->addr), placed);
}

static bool lay_out(struct layout *layout, const struct gt_trial *t)
{
	struct gt_cursor *cursor = gt_cursor_new(t->trace, t->lane_index);
	const struct gt_event *event;

	while ((event = gt_cursor_next(cursor, NULL)) && event->seq <= t->report->seq &&
	       layout->work < MOST_WORK) {
		if (event->space != GT_SPACE_TORCH)
			continue;
		if (gt_op_effect(event->op) > 0)
			place(layout, event);
		else if (gt_op_effect(event->op) < 0)
			lift(layout, event->addr);
	}
	gt_cursor_free(cursor);
	return layout->work < MOST_WORK;
}

static int by_place(const void *a, const void *b)
{
	const struct placed *x = *(const void *const *)a, *y = *(const void *const *)b;

	if (x->arena != y->arena)
		return x->arena < y->arena ? -1 : 1;
	return x->at < y->at ? -1 : x->at > y->at;
}

/* Bytes of the pages that have a block in them. */
static uint64_t mapped(const struct layout *layout)
{
	size_t count = HASH_COUNT(layout->placed), i = 0;
	const struct placed **order = gt_xcalloc(count + 1, sizeof(*order));
	uint64_t sum = 0, next = 0; /* first page not counted yet */

	for (const struct placed *p = layout->placed; p; p = p->hh.next)
		order[i++] = p;
	qsort(order, count, sizeof(*order), by_place);
	for (i = 0; i < count; i++) {
		uint64_t page = layout->arenas[order[i]->arena].small ? SMALL_PAGE : LARGE_PAGE;
		uint64_t first = order[i]->at / page;
		uint64_t last = (order[i]->at + order[i]->size - 1) / page;

		if (!i || order[i]->arena != order[i - 1]->arena)
			next = 0;
		first = first < next ? next : first;
		sum += last >= first ? (last - first + 1) * page : 0;
		next = last + 1 > next ? last + 1 : next;
	}
	free(order);
	return sum;
}

static void clear(struct layout *layout)
{
	struct placed *placed, *next;

	HASH_ITER(hh, layout->placed, placed, next) {
		HASH_DEL(layout->placed, placed);
		free(placed);
	}
	for (size_t i = 0; i < layout->count; i++)
		free(layout->arenas[i].gaps);
	free(layout->arenas);
}

enum gt_replayed gt_replay_expandable(const struct gt_trial *t, uint64_t *ret_bytes)
{
	uint64_t asked = t->report->torch_requested, now, segments = 0;
	uint64_t page = asked <= SMALL_BLOCK ? SMALL_PAGE : LARGE_PAGE;
	struct layout layout = {0};
	bool whole;

	if (!asked || !t->moment_known || t->lane->history_first > 1 ||
	    t->report->device_free == GT_UNKNOWN_BYTES)
		return GT_REPLAY_NOT;
	for (size_t i = 0; i < t->moment.block_count; i++)
		if (gt_site_mask(t->lane, t->moment.blocks[i].site) == GT_MASK_RESERVED &&
		    t->moment.blocks[i].space == GT_SPACE_DRIVER)
			segments += t->moment.blocks[i].size;
	whole = lay_out(&layout, t);
	now = mapped(&layout);
	clear(&layout);
	if (!whole || !segments)
		return GT_REPLAY_NOT;
	*ret_bytes = segments > now ? segments - now : 0;
	return t->report->device_free + segments >= now + (asked + page - 1) / page * page
		       ? GT_REPLAY_FITS
		       : GT_REPLAY_FAILS;
}
