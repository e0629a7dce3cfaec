/* SPDX-License-Identifier: MIT */
/*
 * See rewind.h. Undoing an alloc takes its block away, undoing a free brings one back, of which only
 * the requested size is known. Whatever does not fit is left alone: the segments at the end are what
 * torch is sure of, and a trace is fetched a moment before them. Called by events.c.
 */
#include <stdlib.h>

#include "torch/rewind.h"
#include "torch/sizes.h"

#define SMALL_PIECE ((uint64_t)2 << 20)
#define LARGE_PIECE ((uint64_t)20 << 20)
#define MANY_PIECES ((uint64_t)1 << 20)

static struct gt_held *held_find(const struct gt_start *start, uint64_t addr, enum gt_space space)
{
	const uint64_t key = GT_KEY(addr, space);
	struct gt_held *held;

	HASH_FIND(hh, start->held, &key, sizeof(key), held);
	return held;
}

static int add(struct gt_start *start, uint64_t addr, enum gt_space space,
	       const struct gt_held *value)
{
	struct gt_held *held = held_find(start, addr, space);

	if (held)
		return 0;
	held = malloc(sizeof(*held));
	if (!held)
		return -1;
	*held = *value;
	held->key = GT_KEY(addr, space);
	HASH_ADD(hh, start->held, key, sizeof(held->key), held);
	return 0;
}

static void take_away(struct gt_start *start, struct gt_held *held)
{
	if (!held || !start->held)
		return;
	HASH_DEL(start->held, held);
	free(held);
}

uint64_t gt_piece_size(struct gt_start *start, uint64_t size, bool small)
{
	uint64_t piece = !small && size % LARGE_PIECE == 0 ? LARGE_PIECE : SMALL_PIECE;

	if (size % piece || size / piece > start->pieces)
		return size;
	start->pieces -= size / piece;
	return piece;
}

static int add_pieces(struct gt_start *start, uint64_t addr, bool small,
		      const struct gt_held *value)
{
	struct gt_held piece = *value;
	const uint64_t end = addr + value->size;
	int rc = 0;

	piece.size = gt_piece_size(start, value->size, small);
	for (; !rc && addr < end; addr += piece.size)
		rc = add(start, addr, GT_SPACE_MAPPING, &piece);
	return rc;
}

/* ---- the end ------------------------------------------------------------------------------- */

static int add_segment(const struct gt_torch *torch, const struct gt_torch_segment *segment,
		       struct gt_start *start)
{
	struct gt_held value = {.size = segment->size,
				.stream = segment->stream,
				.stack = segment->stack,
				.pool = segment->pool,
				.exact = true};
	int rc = segment->expandable ? add_pieces(start, segment->addr, segment->small, &value)
				     : add(start, segment->addr, GT_SPACE_DRIVER, &value);

	for (size_t i = 0; !rc && i < segment->count; i++) {
		const struct gt_torch_block *block = &torch->blocks[segment->first + i];

		value.size = block->size;
		value.requested = block->requested;
		value.stack = block->stack;
		value.pending = block->pending;
		rc = add(start, block->addr, GT_SPACE_TORCH, &value);
	}
	return rc;
}

/* ---- undoing ------------------------------------------------------------------------------- */

static int undo_free(const struct gt_torch *torch, const struct gt_torch_event *event,
		     struct gt_start *start)
{
	struct gt_held *held = held_find(start, event->addr, GT_SPACE_TORCH);
	struct gt_held value = {.size = gt_torch_round(&torch->settings, event->size),
				.requested = event->size,
				.stream = event->stream,
				.pool = event->pool,
				.pending = event->action == GT_TORCH_FREE_COMPLETED};

	if (held && event->action == GT_TORCH_FREE_REQUESTED)
		held->pending = false;
	return held ? 0 : add(start, event->addr, GT_SPACE_TORCH, &value);
}

/* What the end knows of what an event made: its whole size, and the pool, which old events lack. */
static void learn(struct gt_torch_event *event, const struct gt_held *held)
{
	event->block = held->exact ? held->size : 0;
	event->pool = event->pool ? event->pool : held->pool;
}

static void undo_map(struct gt_torch_event *event, struct gt_start *start)
{
	const uint64_t end = event->addr + event->size;
	uint64_t addr = event->addr;
	struct gt_held *piece;

	while (addr < end && (piece = held_find(start, addr, GT_SPACE_MAPPING))) {
		addr += piece->size;
		learn(event, piece);
		take_away(start, piece);
	}
}

static void undo_alloc(struct gt_torch_event *event, enum gt_space space, struct gt_start *start)
{
	struct gt_held *held = held_find(start, event->addr, space);

	if (held)
		learn(event, held);
	take_away(start, held);
}

static int undo(const struct gt_torch *torch, struct gt_torch_event *event, struct gt_start *start)
{
	struct gt_held value = {
		.size = event->size, .stream = event->stream, .pool = event->pool, .exact = true};

	switch (event->action) {
	case GT_TORCH_ALLOC:
		undo_alloc(event, GT_SPACE_TORCH, start);
		return 0;
	case GT_TORCH_FREE_REQUESTED:
	case GT_TORCH_FREE_COMPLETED:
		return undo_free(torch, event, start);
	case GT_TORCH_SEGMENT_ALLOC:
		undo_alloc(event, GT_SPACE_DRIVER, start);
		return 0;
	case GT_TORCH_SEGMENT_FREE:
		return add(start, event->addr, GT_SPACE_DRIVER, &value);
	case GT_TORCH_SEGMENT_MAP:
		undo_map(event, start);
		return 0;
	case GT_TORCH_SEGMENT_UNMAP:
		return add_pieces(start, event->addr, false, &value);
	default:
		return 0;
	}
}

int gt_torch_rewind(struct gt_torch *torch, int device, struct gt_start *ret)
{
	struct gt_torch_trace *trace = &torch->traces[device];
	struct gt_start start = {.pieces = MANY_PIECES + trace->count};
	int rc = 0;

	for (size_t i = 0; !rc && i < torch->segment_count; i++)
		if (torch->segments[i].device == device)
			rc = add_segment(torch, &torch->segments[i], &start);
	for (size_t i = trace->count; !rc && i > 0; i--)
		rc = undo(torch, &trace->events[i - 1], &start);
	if (rc)
		gt_start_clear(&start);
	else
		*ret = start;
	return rc;
}

void gt_start_clear(struct gt_start *start)
{
	struct gt_held *held, *next;

	HASH_ITER(hh, start->held, held, next) {
		HASH_DEL(start->held, held);
		free(held);
	}
}
