/* SPDX-License-Identifier: MIT */
/* See walk.h. Called from state.c and from whoever needs single blocks at an earlier time. */
#include "model/walk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "model/keyed.h"
#include "model/xalloc.h"

unsigned int gt_site_mask(const struct gt_trace_lane *lane, uint32_t site)
{
	return site < lane->site_count ? lane->site_defs[site].mask : 0;
}

void gt_totals_add(int64_t totals[GT_TOTALS], const struct gt_trace_lane *lane,
		   const struct gt_event *event, int sign)
{
	const unsigned int mask = gt_site_mask(lane, event->site);
	const int64_t change = sign * gt_op_effect(event->op) * (int64_t)event->size;

	for (int k = 0; k < GT_TOTALS; k++)
		if (mask & 1u << k)
			totals[k] += change;
}

uint64_t gt_torch_reserved(const struct gt_trace_lane *lane)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < lane->site_count; i++)
		if (lane->site_defs[i].mask == GT_MASK_RESERVED &&
		    lane->site_defs[i].space != GT_SPACE_POOL &&
		    lane->site_defs[i].space != GT_SPACE_GRAPH)
			sum += lane->sites[i].live;
	return sum;
}

bool gt_history_reaches(const struct gt_trace_lane *lane, uint64_t seq)
{
	return lane->history_first <= seq + 1 || seq >= lane->seq;
}

/* ---- the set of blocks while walking ------------------------------------------------------- */

struct entry {
	uint64_t key;
	struct gt_block block;
};

struct walk {
	const struct gt_trace_lane *lane;
	struct gt_keyed blocks;
	uint64_t until_us; /* what was born later is gone at the moment: it need not be looked up */
	int64_t cur[GT_TOTALS];
};

static void set_add(struct walk *walk, const struct gt_block *block)
{
	struct entry *entry = gt_keyed_put(&walk->blocks, GT_KEY(block->addr, block->space));

	entry->block = *block;
}

static void set_remove(struct walk *walk, uint64_t key)
{
	struct entry *entry = gt_keyed_find(&walk->blocks, key);

	if (entry)
		gt_keyed_remove(&walk->blocks, entry);
}

/* direction -1 undoes it. */
static void pass(struct walk *walk, const struct gt_event *event, int direction)
{
	int sign = direction * gt_op_effect(event->op);
	struct gt_block block;

	gt_totals_add(walk->cur, walk->lane, event, direction);
	if (event->birth_us > walk->until_us)
		return;
	block = gt_block_of(event);
	if (sign < 0)
		set_remove(walk, GT_KEY(event->addr, event->space));
	else if (sign > 0)
		set_add(walk, &block);
}

/* ---- the walk ------------------------------------------------------------------------------ */

static void start_at_end(struct walk *walk)
{
	const struct gt_trace_lane *lane = walk->lane;

	for (int k = 0; k < GT_TOTALS; k++)
		walk->cur[k] = (int64_t)lane->ctr.cur[k];
	for (size_t i = 0; i < lane->block_count; i++)
		if (lane->blocks[i].birth_us <= walk->until_us)
			set_add(walk, &lane->blocks[i]);
}

/*
 * When the moment is, at the latest: most blocks of a long walk are born and freed behind it. In a trace
 * the end of a block repeats the time of its begin, and times do not step back; what torch or a table
 * says may do both.
 */
static uint64_t latest(const struct gt_trace *trace, const struct gt_trace_lane *lane,
		       struct gt_cursor *cursor, uint64_t seq, uint64_t us)
{
	const struct gt_event *event;

	if (trace->snapshot || trace->merged || trace->database)
		return UINT64_MAX;
	if (seq < lane->history_first)
		return us < lane->history_us ? us : lane->history_us;
	if (seq >= lane->seq)
		return us;
	gt_cursor_seek(cursor, seq);
	event = gt_cursor_prev(cursor, NULL);
	gt_cursor_seek(cursor, lane->seq);
	return event && event->us < us ? event->us : us;
}

static int no_history(const struct gt_trace *trace, const struct gt_trace_lane *lane,
		      struct gt_error *err)
{
	err->status = 2;
	snprintf(err->text, sizeof(err->text),
		 "%s: history starts at %.3f s (the ring was full): ask for a later time, the "
		 "peak or the end; to keep more, record with a larger GPUTRACE_RING",
		 trace->path, (double)lane->history_us / 1e6);
	return -1;
}

/* Undo events until the one to stop after; that event's number and time are the moment's. */
static int walk_back(struct walk *walk, struct gt_cursor *cursor, uint64_t seq, uint64_t us,
		     struct gt_moment *moment, struct gt_error *err)
{
	const struct gt_event *event;

	err->status = 0;
	while ((event = gt_cursor_prev(cursor, err))) {
		if (event->seq <= seq && event->us <= us) {
			moment->seq = event->seq;
			moment->us = event->us;
			return 0;
		}
		pass(walk, event, -1);
	}
	return err->status ? -1 : 1;
}

/*
 * From nothing, where the history has its beginning: peaks of trainings are in their first steps, and then
 * all the rest would be undone. Only to an event: times may step back a little, so that the last event
 * before one is known from behind only.
 */
static bool is_early(const struct gt_trace *trace, const struct gt_trace_lane *lane, uint64_t seq,
		     uint64_t us)
{
	return lane->history_first == 1 && !trace->partial && us == UINT64_MAX && seq &&
	       seq < lane->seq / 2;
}

static int walk_forward(struct walk *walk, struct gt_cursor *cursor, uint64_t seq,
			struct gt_moment *moment, struct gt_error *err)
{
	const struct gt_event *event;

	err->status = 0;
	while (moment->seq < seq && (event = gt_cursor_next(cursor, err))) {
		pass(walk, event, 1);
		moment->seq = event->seq;
		moment->us = event->us;
	}
	return err->status ? -1 : 0;
}

static int by_birth(const void *a, const void *b)
{
	const struct gt_block *x = a, *y = b;

	if (x->birth_us != y->birth_us)
		return x->birth_us < y->birth_us ? -1 : 1;
	if (x->addr != y->addr)
		return x->addr < y->addr ? -1 : 1;
	return x->space < y->space ? -1 : x->space > y->space;
}

static void copy_out(struct walk *walk, struct gt_moment *ret)
{
	ret->block_count = 0;
	ret->blocks = gt_xcalloc(walk->blocks.used, sizeof(*ret->blocks));
	for (struct entry *entry = NULL; (entry = gt_keyed_next(&walk->blocks, entry));)
		ret->blocks[ret->block_count++] = entry->block;
	qsort(ret->blocks, ret->block_count, sizeof(*ret->blocks), by_birth);
	for (int k = 0; k < GT_TOTALS; k++)
		ret->cur[k] = (uint64_t)walk->cur[k];
}

static int walk_to(struct walk *walk, const struct gt_trace *trace, struct gt_cursor *cursor,
		   uint64_t seq, uint64_t us, struct gt_moment *moment, struct gt_error *err)
{
	const struct gt_trace_lane *lane = walk->lane;
	int status;

	if (is_early(trace, lane, seq, us))
		return walk_forward(walk, cursor, seq, moment, err);
	walk->until_us = latest(trace, lane, cursor, seq, us);
	start_at_end(walk);
	status = walk_back(walk, cursor, seq, us, moment, err);
	if (status <= 0)
		return status;
	if (lane->history_first > 1 && lane->history_first != seq + 1)
		return no_history(trace, lane, err);
	/* At the first event held: what is left is the state before it. */
	moment->seq = lane->history_first - 1;
	moment->us = lane->history_us;
	return 0;
}

int gt_moment_get(const struct gt_trace *trace, size_t lane_index, uint64_t seq, uint64_t us,
		  struct gt_moment *ret, struct gt_error *err)
{
	struct walk walk = {
		.lane = &trace->lanes[lane_index],
		.blocks.size = sizeof(struct entry),
		.until_us = UINT64_MAX,
	};
	struct gt_cursor *cursor = gt_xchecked(gt_cursor_new(trace, lane_index));
	struct gt_moment moment = {0};
	int status = walk_to(&walk, trace, cursor, seq, us, &moment, err);

	if (!status) {
		copy_out(&walk, &moment);
		*ret = moment;
	}
	gt_keyed_clear(&walk.blocks);
	gt_cursor_free(cursor);
	return status;
}

void gt_moment_clear(struct gt_moment *moment)
{
	free(moment->blocks);
	*moment = (struct gt_moment){0};
}
