/* SPDX-License-Identifier: MIT */
/* See walk.h. Called from state.c and from whoever needs single blocks at an earlier time. */
#include "model/walk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>
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

uint64_t gt_pool_reserved(const struct gt_trace_lane *lane)
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
	UT_hash_handle hh;
};

struct walk {
	const struct gt_trace_lane *lane;
	struct entry *blocks;
	int64_t cur[GT_TOTALS];
};

static void set_add(struct walk *walk, const struct gt_block *block)
{
	uint64_t key = GT_KEY(block->addr, block->space);
	struct entry *entry;

	HASH_FIND(hh, walk->blocks, &key, sizeof(key), entry);
	if (!entry) {
		entry = gt_xcalloc(1, sizeof(*entry));
		entry->key = key;
		HASH_ADD(hh, walk->blocks, key, sizeof(key), entry);
	}
	entry->block = *block;
}

static void set_remove(struct walk *walk, uint64_t key)
{
	struct entry *entry;

	HASH_FIND(hh, walk->blocks, &key, sizeof(key), entry);
	if (!entry)
		return;
	HASH_DEL(walk->blocks, entry);
	free(entry);
}

static void set_clear(struct walk *walk)
{
	struct entry *entry, *next;

	HASH_ITER(hh, walk->blocks, entry, next) {
		HASH_DEL(walk->blocks, entry);
		free(entry);
	}
}

static void undo(struct walk *walk, const struct gt_event *event)
{
	int sign = gt_op_effect(event->op);
	struct gt_block block = gt_block_of(event);

	if (sign > 0)
		set_remove(walk, GT_KEY(event->addr, event->space));
	else if (sign < 0)
		set_add(walk, &block);
	gt_totals_add(walk->cur, walk->lane, event, -1);
}

/* ---- the walk ------------------------------------------------------------------------------ */

static void start_at_end(struct walk *walk, const struct gt_trace_lane *lane)
{
	walk->lane = lane;
	for (int k = 0; k < GT_TOTALS; k++)
		walk->cur[k] = (int64_t)lane->ctr.cur[k];
	for (size_t i = 0; i < lane->block_count; i++)
		set_add(walk, &lane->blocks[i]);
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
		undo(walk, event);
	}
	return err->status ? -1 : 1;
}

static void copy_out(struct walk *walk, struct gt_moment *ret)
{
	struct entry *entry, *next;

	ret->block_count = 0;
	ret->blocks = gt_xcalloc(HASH_COUNT(walk->blocks), sizeof(*ret->blocks));
	HASH_ITER(hh, walk->blocks, entry, next)
		ret->blocks[ret->block_count++] = entry->block;
	for (int k = 0; k < GT_TOTALS; k++)
		ret->cur[k] = (uint64_t)walk->cur[k];
}

int gt_moment_get(const struct gt_trace *trace, size_t lane_index, uint64_t seq, uint64_t us,
		  struct gt_moment *ret, struct gt_error *err)
{
	const struct gt_trace_lane *lane = &trace->lanes[lane_index];
	struct gt_cursor *cursor = gt_cursor_new(trace, lane_index);
	struct gt_moment moment = {0};
	struct walk walk = {0};
	int status;

	start_at_end(&walk, lane);
	status = walk_back(&walk, cursor, seq, us, &moment, err);
	/* At the first event held: what is left is the state before it. */
	if (status > 0 && (lane->history_first <= 1 || lane->history_first == seq + 1)) {
		moment.seq = lane->history_first - 1;
		moment.us = lane->history_us;
		status = 0;
	} else if (status > 0) {
		status = no_history(trace, lane, err);
	}
	if (!status) {
		copy_out(&walk, &moment);
		*ret = moment;
	}
	set_clear(&walk);
	gt_cursor_free(cursor);
	return status;
}

void gt_moment_clear(struct gt_moment *moment)
{
	free(moment->blocks);
	*moment = (struct gt_moment){0};
}
