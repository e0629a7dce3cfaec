/* SPDX-License-Identifier: MIT */
/*
 * See window.h. Many spans that nest and overlap share one pass: their ends cut the history into
 * segments, each segment's largest value is found in the pass, and a span's peak is the largest of
 * its segments, through a tree of maxima, so that a thousand nested ranges cost no more than one.
 */
#include "model/window.h"

#include <stdlib.h>
#include <string.h>
#include "model/walk.h"
#include "model/xalloc.h"

/* ---- spans ----------------------------------------------------------------------------------- */

/* The state before the first event held. */
static uint64_t reach_of(const struct gt_trace_lane *lane)
{
	return lane->history_first > 1 ? lane->history_first - 1 : 0;
}

struct gt_span gt_span_of_notes(const struct gt_marks *marks, size_t lane_index, size_t begin,
				size_t end)
{
	const struct gt_trace_lane *lane = &marks->trace->lanes[lane_index];
	const uint64_t reach = reach_of(lane);
	struct gt_span span = {.to = lane->seq};

	if (begin != GT_NO_NOTE) {
		span.from = marks->notes[begin].seqs[lane_index];
		span.from_us = marks->notes[begin].us;
	}
	if (!span.from) { /* before the lane's first event, or lost */
		span.from = reach;
		span.cut = reach > 0;
	}
	if (end == GT_NO_NOTE)
		return span;
	span.to = marks->notes[end].seqs[lane_index];
	if (!span.to) {
		span.none = true;
		span.cut = reach > 0;
	}
	return span;
}

int gt_seq_at(const struct gt_trace *trace, size_t lane_index, uint64_t us, uint64_t *ret_seq,
	      bool *ret_cut, struct gt_error *err)
{
	const struct gt_trace_lane *lane = &trace->lanes[lane_index];
	struct gt_cursor *cursor = gt_cursor_new(trace, lane_index);
	const struct gt_event *event;
	uint64_t seq = reach_of(lane);

	err->status = 0;
	*ret_cut = seq > 0 && us < lane->history_us;
	while ((event = gt_cursor_next(cursor, err)) && event->us <= us)
		seq = event->seq;
	gt_cursor_free(cursor);
	*ret_seq = seq;
	return err->status ? -1 : 0;
}

/* ---- segments -------------------------------------------------------------------------------- */

struct best { /* the largest value of some states, relative to the start of the history */
	int64_t value;
	uint64_t seq, us;
	bool used;
};

struct pass {
	const struct gt_trace_lane *lane;
	uint64_t *points; /* segment i: states points[i] .. points[i + 1] - 1 */
	size_t count;	  /* of points, so one more than segments */
	size_t leaves;	  /* a power of two */
	struct best *tree[GT_TOTALS];
	int64_t sum[GT_TOTALS];
};

static int by_value(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static void make_points(struct pass *pass, const struct gt_span *spans, size_t count)
{
	size_t kept = 0;

	pass->points = gt_xcalloc(2 * count + 1, sizeof(*pass->points));
	for (size_t i = 0; i < count; i++) {
		if (spans[i].none)
			continue;
		pass->points[pass->count++] = spans[i].from;
		pass->points[pass->count++] = spans[i].to + 1;
	}
	qsort(pass->points, pass->count, sizeof(*pass->points), by_value);
	for (size_t i = 0; i < pass->count; i++)
		if (!i || pass->points[i] != pass->points[kept - 1])
			pass->points[kept++] = pass->points[i];
	pass->count = kept;
}

static void raise_to(struct best *best, const struct best *by)
{
	if (by->used && (!best->used || by->value > best->value ||
			 (by->value == best->value && by->seq < best->seq)))
		*best = *by;
}

static void make_trees(struct pass *pass)
{
	for (pass->leaves = 1; pass->leaves < pass->count; pass->leaves *= 2)
		continue;
	for (int k = 0; k < GT_TOTALS; k++)
		pass->tree[k] = gt_xcalloc(2 * pass->leaves, sizeof(*pass->tree[k]));
}

static void fill_trees(struct pass *pass)
{
	for (int k = 0; k < GT_TOTALS; k++)
		for (size_t i = pass->leaves; i-- > 1;) {
			pass->tree[k][i] = pass->tree[k][2 * i];
			raise_to(&pass->tree[k][i], &pass->tree[k][2 * i + 1]);
		}
}

/* Of the segments first .. last - 1. */
static struct best best_of(const struct pass *pass, int k, size_t first, size_t last)
{
	const struct best *tree = pass->tree[k];
	struct best best = {0};

	for (first += pass->leaves, last += pass->leaves; first < last; first /= 2, last /= 2) {
		if (first & 1)
			raise_to(&best, &tree[first++]);
		if (last & 1)
			raise_to(&best, &tree[--last]);
	}
	return best;
}

/* ---- the pass -------------------------------------------------------------------------------- */

/* segment: the one that held the state before; SIZE_MAX = none did yet. */
static size_t add_state(struct pass *pass, size_t segment, uint64_t seq, uint64_t us)
{
	while (segment + 1 < pass->count && pass->points[segment + 1] <= seq)
		segment++;
	if (segment == SIZE_MAX || segment + 1 >= pass->count)
		return segment;
	for (int k = 0; k < GT_TOTALS; k++)
		raise_to(&pass->tree[k][pass->leaves + segment],
			 &(struct best){pass->sum[k], seq, us, true});
	return segment;
}

static int read_events(struct pass *pass, const struct gt_trace *trace, size_t lane_index,
		       struct gt_error *err)
{
	struct gt_cursor *cursor = gt_cursor_new(trace, lane_index);
	const struct gt_event *event;
	size_t segment = SIZE_MAX;

	err->status = 0;
	segment = add_state(pass, segment, reach_of(pass->lane), pass->lane->history_us);
	while ((event = gt_cursor_next(cursor, err))) {
		gt_totals_add(pass->sum, pass->lane, event, 1);
		segment = add_state(pass, segment, event->seq, event->us);
	}
	gt_cursor_free(cursor);
	return err->status ? -1 : 0;
}

/* ---- results --------------------------------------------------------------------------------- */

static size_t index_of(const struct pass *pass, uint64_t point)
{
	const uint64_t *found = bsearch(&point, pass->points, pass->count, sizeof(point), by_value);

	return found ? (size_t)(found - pass->points) : 0;
}

static void fill_top(const struct pass *pass, const struct gt_span *span, int k, struct gt_top *ret)
{
	const struct gt_ctr *ctr = &pass->lane->ctr;
	struct best best = {0};

	if (!span->none)
		best = best_of(pass, k, index_of(pass, span->from), index_of(pass, span->to + 1));
	if (best.used) {
		ret->bytes[k] = (uint64_t)((int64_t)ctr->cur[k] - pass->sum[k] + best.value);
		ret->seq[k] = best.seq;
		ret->us[k] = best.us;
	}
	ret->at_least[k] = span->cut;
	if (!span->cut || span->none || ctr->peak_seq[k] > span->to ||
	    ctr->peak_us[k] <= span->from_us)
		return;
	ret->bytes[k] = ctr->peak[k]; /* the lifetime peak was in it */
	ret->seq[k] = ctr->peak_seq[k];
	ret->us[k] = ctr->peak_us[k];
	ret->at_least[k] = false;
}

int gt_tops_get(const struct gt_trace *trace, size_t lane_index, const struct gt_span *spans,
		size_t count, struct gt_top *ret, struct gt_error *err)
{
	struct pass pass = {.lane = &trace->lanes[lane_index]};
	int status;

	make_points(&pass, spans, count);
	make_trees(&pass);
	status = read_events(&pass, trace, lane_index, err);
	if (!status)
		fill_trees(&pass);
	for (size_t i = 0; !status && i < count; i++) {
		ret[i] = (struct gt_top){0};
		for (int k = 0; k < GT_TOTALS; k++)
			fill_top(&pass, &spans[i], k, &ret[i]);
	}
	for (int k = 0; k < GT_TOTALS; k++)
		free(pass.tree[k]);
	free(pass.points);
	return status;
}
