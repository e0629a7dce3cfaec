/* SPDX-License-Identifier: MIT */
/*
 * See torch_stats.h. The segments of segments.c tell what changes; sums of free pieces are looked at
 * when an operation of torch is over, since a free that must wait is two events and was no free piece
 * in between. Driver memory of others is not torch's and is left out. Called by cmd/torch_table.c.
 */
#include "model/torch_stats.h"

#include "model/segments.h"
#include "model/walk.h"

struct counting {
	struct gt_torch_stats stats;
	struct gt_segments *segments;
	struct gt_change owed; /* a free whose block may be pending; size 0 = none */
	bool owed_small;
	bool quiet; /* what is told was there before: it has a current value and nothing else */
};

const char *gt_torch_stat_name(enum gt_torch_stat stat)
{
	static const char *const names[] = {
		[GT_STAT_ALLOCATED] = "allocated_bytes",
		[GT_STAT_ACTIVE] = "active_bytes",
		[GT_STAT_REQUESTED] = "requested_bytes",
		[GT_STAT_RESERVED] = "reserved_bytes",
		[GT_STAT_INACTIVE] = "inactive_split_bytes",
		[GT_STAT_ALLOCATIONS] = "allocation",
		[GT_STAT_ACTIVES] = "active",
		[GT_STAT_SEGMENTS] = "segment",
		[GT_STAT_INACTIVES] = "inactive_split",
	};

	return names[stat];
}

static void change_one(struct gt_stat *stat, int64_t delta, bool quiet)
{
	stat->current += (uint64_t)delta;
	if (stat->current > stat->peak)
		stat->peak = stat->current;
	if (quiet)
		return;
	stat->added += delta > 0 ? (uint64_t)delta : 0;
	stat->taken += delta < 0 ? (uint64_t)-delta : 0;
}

static void change(struct counting *c, enum gt_torch_stat stat, bool small, int64_t delta)
{
	if (!delta)
		return;
	change_one(&c->stats.stats[stat][GT_POOL_ALL], delta, c->quiet);
	change_one(&c->stats.stats[stat][small ? GT_POOL_SMALL : GT_POOL_LARGE], delta, c->quiet);
}

static void change_block(struct counting *c, const struct gt_change *block, bool small,
			 bool allocated, bool active, int sign)
{
	const uint64_t requested = block->requested ? block->requested : block->size;

	if (allocated) {
		change(c, GT_STAT_ALLOCATED, small, sign * (int64_t)block->size);
		change(c, GT_STAT_ALLOCATIONS, small, sign);
	}
	if (active) {
		change(c, GT_STAT_ACTIVE, small, sign * (int64_t)block->size);
		change(c, GT_STAT_ACTIVES, small, sign);
		change(c, GT_STAT_REQUESTED, small, sign * (int64_t)requested);
	}
	c->stats.requested &= block->requested != 0;
}

/* The block that was freed is not pending: it is no longer active. */
static void pay(struct counting *c)
{
	if (c->owed.size)
		change_block(c, &c->owed, c->owed_small, false, true, -1);
	c->owed.size = 0;
}

static void watch(void *data, const struct gt_change *told)
{
	struct counting *c = data;
	bool small, expandable;

	if (!gt_segments_pool(c->segments, told->addr, &small, &expandable)) {
		/* an expandable one is told before it is there, and after it is gone */
		if (told->kind != GT_SEGMENT_MAP && told->kind != GT_SEGMENT_UNMAP)
			return;
		expandable = true;
		small = told->size == (uint64_t)2 << 20;
	}
	switch (told->kind) {
	case GT_BLOCK_ALLOC:
		change_block(c, told, small, true, true, 1);
		break;
	case GT_BLOCK_FREE:
		change_block(c, told, small, true, false, -1);
		pay(c);
		c->owed = *told;
		c->owed_small = small;
		break;
	case GT_BLOCK_PENDING: /* its free was the event before: it stays active */
		c->owed.size = 0;
		break;
	case GT_BLOCK_SETTLED:
		change_block(c, told, small, false, true, -1);
		break;
	case GT_SEGMENT_ALLOC:
	case GT_SEGMENT_MAP:
		change(c, GT_STAT_RESERVED, small, (int64_t)told->size);
		change(c, GT_STAT_SEGMENTS, small, !expandable);
		break;
	case GT_SEGMENT_FREE:
	case GT_SEGMENT_UNMAP:
		change(c, GT_STAT_RESERVED, small, -(int64_t)told->size);
		change(c, GT_STAT_SEGMENTS, small, -(int64_t)!expandable);
		break;
	}
}

/* Free pieces as they are now. */
static void settle(struct counting *c)
{
	pay(c);
	for (int small = 0; small < 2; small++) {
		struct gt_inactive now = gt_segments_inactive(c->segments, small);
		enum gt_torch_pool pool = small ? GT_POOL_SMALL : GT_POOL_LARGE;

		change(c, GT_STAT_INACTIVE, small,
		       (int64_t)(now.bytes - c->stats.stats[GT_STAT_INACTIVE][pool].current));
		change(c, GT_STAT_INACTIVES, small,
		       (int64_t)(now.count - c->stats.stats[GT_STAT_INACTIVES][pool].current));
	}
}

static int load_start(struct counting *c, const struct gt_trace *trace, size_t lane_index,
		      struct gt_error *err)
{
	const struct gt_trace_lane *lane = &trace->lanes[lane_index];
	struct gt_moment moment;

	if (lane->history_first <= 1)
		return 0;
	if (gt_moment_get(trace, lane_index, lane->history_first - 1, UINT64_MAX, &moment, err))
		return -1;
	c->quiet = true;
	gt_segments_load(c->segments, moment.blocks, moment.block_count, watch, c);
	gt_moment_clear(&moment);
	return 0;
}

/* Blocks that were pending at the start are told as such first; then it is known what was there. */
static void end_start(struct counting *c, const struct gt_event *event)
{
	if (!c->quiet || event->op == GT_OP_PENDING ||
	    (event->op == GT_OP_FREE && event->aux == GT_FREE_EARLIER))
		return;
	settle(c);
	for (int stat = 0; stat < GT_STATS; stat++)
		for (int pool = 0; pool < GT_POOLS; pool++)
			c->stats.stats[stat][pool].peak = c->stats.stats[stat][pool].current;
	c->quiet = false;
}

static int walk(struct counting *c, const struct gt_trace *trace, size_t lane_index,
		struct gt_error *err)
{
	struct gt_cursor *cursor = gt_cursor_new(trace, lane_index);
	const struct gt_event *event;

	err->status = 0;
	while (cursor && (event = gt_cursor_next(cursor, err))) {
		end_start(c, event);
		if (event->op != GT_OP_PENDING)
			settle(c);
		c->stats.ooms += event->op == GT_OP_OOM;
		gt_segments_apply(c->segments, event, watch, c);
	}
	settle(c);
	gt_cursor_free(cursor);
	return err->status ? -1 : 0;
}

int gt_torch_stats_get(const struct gt_trace *trace, size_t lane_index, struct gt_torch_stats *ret,
		       struct gt_error *err)
{
	const struct gt_trace_lane *lane = &trace->lanes[lane_index];
	struct counting c = {.segments = gt_segments_new(lane)};
	int status;

	c.stats.requested = true;
	c.stats.whole = lane->history_first <= 1;
	status = load_start(&c, trace, lane_index, err);
	if (!status)
		status = walk(&c, trace, lane_index, err);
	gt_segments_free(c.segments);
	if (!status)
		*ret = c.stats;
	return status;
}
