/* SPDX-License-Identifier: MIT */
/*
 * Is a trace sound? Everything that is in the file twice is compared: live bytes and counts of
 * sites and of lanes from the blocks, the totals at their peaks from the sites, and every event of
 * the history is decoded. Blocks of site 0 belong to totals that are not known; with those a total
 * can only be bounded.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "read/reader.h"

struct check {
	const struct gt_trace *trace;
	const struct gt_trace_lane *lane;
	size_t index;
	gt_say *say;
	void *ctx;
	size_t differences;
};

static const char *const total_names[GT_TOTALS] = {"reserved", "torch", "in use"};

__attribute__((format(printf, 2, 3))) static void differ(struct check *c, const char *format, ...)
{
	char line[256];
	va_list args;
	int n = snprintf(line, sizeof(line), "lane %u: ", c->lane->lane);

	va_start(args, format);
	vsnprintf(line + n, sizeof(line) - (size_t)n, format, args);
	va_end(args);
	c->say(c->ctx, line);
	c->differences++;
}

static void same(struct check *c, const char *what, uint64_t derived, uint64_t stored)
{
	if (derived != stored)
		differ(c, "%s is %llu, stored %llu", what, (unsigned long long)derived,
		       (unsigned long long)stored);
}

/* Blocks are the truth: each site's line must be what its live blocks add up to. */
static void check_sites(struct check *c)
{
	const struct gt_trace_lane *lane = c->lane;
	struct gt_site *derived = calloc(lane->site_count, sizeof(*derived));
	char what[64];

	if (!derived) {
		differ(c, "not checked: not enough memory");
		return;
	}
	for (size_t i = 0; i < lane->block_count; i++) {
		derived[lane->blocks[i].site].live += lane->blocks[i].size;
		derived[lane->blocks[i].site].live_count++;
	}
	for (size_t i = 0; i < lane->site_count; i++) {
		snprintf(what, sizeof(what), "live bytes of site %zu", i);
		same(c, what, derived[i].live, lane->sites[i].live);
		snprintf(what, sizeof(what), "live blocks of site %zu", i);
		same(c, what, derived[i].live_count, lane->sites[i].live_count);
	}
	free(derived);
}

/* What the sites of total k add up to now and at its peak; site 0's may or may not be part of it.
 */
static void check_total(struct check *c, int k)
{
	const struct gt_trace_lane *lane = c->lane;
	const struct gt_ctr *ctr = &lane->ctr;
	uint64_t now = 0, peak = 0;

	for (size_t i = 0; i < lane->site_count; i++) {
		if (lane->site_defs[i].mask >> k & 1)
			now += lane->sites[i].live;
		peak += gt_site_at_peak(lane, i, k);
	}
	if (now != ctr->cur[k])
		differ(c, "bytes %s are %llu, stored %llu", total_names[k], (unsigned long long)now,
		       (unsigned long long)ctr->cur[k]);
	if (peak != ctr->peak[k])
		differ(c, "bytes %s at the peak are %llu, stored %llu", total_names[k],
		       (unsigned long long)peak, (unsigned long long)ctr->peak[k]);
}

/* One key, one block; the count is kept with every event. */
static void check_blocks(struct check *c)
{
	const struct gt_trace_lane *lane = c->lane;

	for (size_t i = 1; i < lane->block_count; i++) {
		if (lane->blocks[i].addr == lane->blocks[i - 1].addr &&
		    lane->blocks[i].space == lane->blocks[i - 1].space)
			differ(c, "block %#llx is alive twice",
			       (unsigned long long)lane->blocks[i].addr);
	}
	same(c, "number of live blocks", lane->block_count, lane->ctr.live_count);
}

static void count(struct gt_ctr *seen, const struct gt_event *e)
{
	const bool freed = e->op == GT_OP_FREE || e->op == GT_OP_IMPLICIT_FREE;
	const bool back = e->op == GT_OP_UNFREE; /* as if it had never been freed */

	seen->allocs += e->op == GT_OP_ALLOC;
	seen->alloc_bytes += e->op == GT_OP_ALLOC ? e->size : 0;
	seen->frees += (uint64_t)freed - back;
	seen->free_bytes += freed ? e->size : back ? 0 - e->size : 0;
	seen->failed += e->op == GT_OP_FAILED;
}

/* Walks the whole history; where it begins at event 1, counts must be those of the counters. */
static void check_history(struct check *c)
{
	struct gt_cursor *cursor = gt_cursor_new(c->trace, c->index);
	const struct gt_event *event;
	struct gt_error err = {0};
	struct gt_ctr seen = {0};

	while (cursor && (event = gt_cursor_next(cursor, &err)))
		count(&seen, event);
	if (!cursor || err.status)
		differ(c, "%s", cursor ? err.text : "not checked: not enough memory");
	gt_cursor_free(cursor);
	if (err.status || c->lane->history_first > 1)
		return;
	same(c, "number of allocations", seen.allocs, c->lane->ctr.allocs);
	same(c, "number of frees", seen.frees, c->lane->ctr.frees);
	same(c, "number of bytes allocated ever", seen.alloc_bytes, c->lane->ctr.alloc_bytes);
	same(c, "number of bytes freed ever", seen.free_bytes, c->lane->ctr.free_bytes);
	same(c, "number of failed requests", seen.failed, c->lane->ctr.failed);
}

size_t gt_trace_check(const struct gt_trace *trace, bool history, gt_say *say, void *ctx)
{
	struct check c = {.trace = trace, .say = say, .ctx = ctx};

	for (c.index = 0; c.index < trace->lane_count; c.index++) {
		c.lane = &trace->lanes[c.index];
		check_blocks(&c);
		check_sites(&c);
		for (int k = 0; k < GT_TOTALS; k++)
			check_total(&c, k);
		if (history)
			check_history(&c);
	}
	return c.differences;
}
