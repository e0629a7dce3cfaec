/* SPDX-License-Identifier: MIT */
/* See state.h. */
#include "model/state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "model/failure.h"
#include "model/xalloc.h"

static const struct gt_trace_lane *state_lane(const struct gt_state *state)
{
	return &state->trace->lanes[state->lane_index];
}

static int by_bytes(const void *a, const void *b)
{
	const struct gt_hold *x = a, *y = b;

	if (x->bytes != y->bytes)
		return x->bytes < y->bytes ? 1 : -1;
	return x->site < y->site ? -1 : x->site > y->site;
}

/* Drop the sites that hold nothing, largest first. */
static void finish(struct gt_state *state)
{
	size_t kept = 0;

	for (size_t i = 0; i < state->hold_count; i++)
		if (state->holds[i].bytes)
			state->holds[kept++] = state->holds[i];
	state->hold_count = kept;
	qsort(state->holds, kept, sizeof(*state->holds), by_bytes);
}

static void make_holds(struct gt_state *state)
{
	const struct gt_trace_lane *lane = state_lane(state);

	state->hold_count = lane->site_count;
	state->holds = gt_xcalloc(lane->site_count, sizeof(*state->holds));
	for (size_t i = 0; i < lane->site_count; i++) {
		state->holds[i].site = (uint32_t)i;
		state->holds[i].stream = GT_STREAM_UNKNOWN;
		state->holds[i].pool = GT_POOL_UNKNOWN;
	}
}

/* ---- from site lines: the peak, with or without history ------------------------------------- */

static void from_sites(struct gt_state *state)
{
	const struct gt_trace_lane *lane = state_lane(state);

	make_holds(state);
	for (size_t i = 0; i < lane->site_count; i++)
		state->holds[i].bytes = gt_site_at_peak(lane, i, (int)state->total);
	state->seq = lane->ctr.peak_seq[state->total];
	state->us = lane->ctr.peak_us[state->total];
	state->bytes = lane->ctr.peak[state->total];
}

/* ---- from single blocks ---------------------------------------------------------------------- */

void gt_hold_add(struct gt_hold *hold, const struct gt_block *block)
{
	if (!hold->count) {
		hold->stream = block->stream;
		hold->pool = block->pool;
	}
	if (hold->stream != block->stream)
		hold->stream = GT_STREAM_MIXED;
	if (hold->pool != block->pool)
		hold->pool = GT_POOL_MIXED;
	hold->requested += block->requested;
	hold->requested_of += block->requested ? block->size : 0;
	if (!hold->count || block->birth_us < hold->oldest_us)
		hold->oldest_us = block->birth_us;
	if (block->size > hold->largest)
		hold->largest = block->size;
	hold->bytes += block->size;
	hold->count++;
}

static void from_moment(struct gt_state *state, struct gt_moment *moment)
{
	const struct gt_trace_lane *lane = state_lane(state);
	size_t kept = 0;

	make_holds(state);
	for (size_t i = 0; i < moment->block_count; i++) {
		struct gt_block block = moment->blocks[i];

		if (!(gt_site_mask(lane, block.site) & 1u << state->total))
			continue;
		gt_hold_add(&state->holds[block.site], &block);
		moment->blocks[i] = moment->blocks[kept];
		moment->blocks[kept++] = block;
	}
	state->blocks = moment->blocks;
	state->block_count = kept;
	state->all_count = moment->block_count;
	state->blocks_known = true;
	state->seq = moment->seq;
	state->us = moment->us;
	state->bytes = moment->cur[state->total];
	memcpy(state->cur, moment->cur, sizeof(state->cur));
}

static int by_walk(struct gt_state *state, uint64_t seq, uint64_t us, struct gt_error *err)
{
	struct gt_moment moment;

	if (gt_moment_get(state->trace, state->lane_index, seq, us, &moment, err))
		return -1;
	from_moment(state, &moment);
	return 0;
}

/* ---- moments -------------------------------------------------------------------------------- */

static int at_peak(struct gt_state *state, struct gt_error *err)
{
	const struct gt_trace_lane *lane = state_lane(state);
	uint64_t seq = lane->ctr.peak_seq[state->total];

	if (gt_history_reaches(lane, seq))
		return by_walk(state, seq, UINT64_MAX, err);
	from_sites(state);
	return 0;
}

/* Memory freed by exit handlers says nothing about the run: the end is the moment before exit(). */
static int at_end(struct gt_state *state, struct gt_error *err)
{
	const struct gt_trace_lane *lane = state_lane(state);
	uint64_t exit_us = state->trace->header.exit_us;
	bool reaches = lane->history_first <= 1 || (exit_us && lane->history_us < exit_us);

	if (!exit_us || !reaches) {
		state->teardown = exit_us != 0;
		return by_walk(state, lane->seq, UINT64_MAX, err);
	}
	return by_walk(state, UINT64_MAX, exit_us - 1, err);
}

static int at_oom(struct gt_state *state, struct gt_error *err)
{
	const struct gt_trace_lane *lane = state_lane(state);
	const struct gt_report *report = gt_headline(state->trace);

	if (!report) {
		err->status = 2;
		snprintf(err->text, sizeof(err->text),
			 "%s: no request for memory failed for good: there is no moment \"oom\"",
			 state->trace->path);
		return -1;
	}
	if (report->lane == lane->lane)
		return by_walk(state, report->seq, UINT64_MAX, err);
	return by_walk(state, UINT64_MAX, report->us, err);
}

int gt_state_get(const struct gt_trace *trace, size_t lane_index, enum gt_total total,
		 struct gt_when when, struct gt_state *ret, struct gt_error *err)
{
	struct gt_state state = {.trace = trace, .lane_index = lane_index, .total = total};
	int status;

	if (when.kind == GT_WHEN_PEAK)
		status = at_peak(&state, err);
	else if (when.kind == GT_WHEN_END)
		status = at_end(&state, err);
	else if (when.kind == GT_WHEN_OOM)
		status = at_oom(&state, err);
	else if (when.kind == GT_WHEN_EVENT)
		status = by_walk(&state, when.seq, UINT64_MAX, err);
	else
		status = by_walk(&state, UINT64_MAX, when.us, err);
	if (status)
		return status;
	finish(&state);
	*ret = state;
	return 0;
}

void gt_state_clear(struct gt_state *state)
{
	free(state->holds);
	free(state->blocks);
	*state = (struct gt_state){0};
}
