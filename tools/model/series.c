/* SPDX-License-Identifier: MIT */
/*
 * See series.h. One pass forward with sums relative to the (unknown) start; the start is known at
 * the end of the pass, when the sums must equal the lane's current totals, and is then added
 * everywhere.
 */
#include "model/series.h"

#include <stdlib.h>
#include <string.h>
#include "model/xalloc.h"

struct relative { /* a point whose values still lack the start */
	uint64_t us;
	int64_t max[GT_TOTALS];
	bool used;
};

struct pass {
	const struct gt_trace_lane *lane;
	uint64_t from_us, to_us;
	size_t slices;
	struct relative *points;
	size_t count;
	int64_t sum[GT_TOTALS];
};

static struct relative *slice_at(struct pass *pass, uint64_t us)
{
	unsigned __int128 index = us - pass->from_us;

	index = index * pass->slices / (pass->to_us - pass->from_us + 1);
	return &pass->points[(size_t)index];
}

static void raise_to(struct relative *point, const int64_t *sum)
{
	for (int k = 0; k < GT_TOTALS; k++)
		if (!point->used || sum[k] > point->max[k])
			point->max[k] = sum[k];
	point->used = true;
}

/* The value before an event also belongs to the slices since the event before it. */
static void carry(struct pass *pass, uint64_t until_us)
{
	struct relative *last = slice_at(pass, until_us);
	struct relative *at = &pass->points[pass->count];

	for (; at <= last; at++)
		raise_to(at, pass->sum);
	pass->count = (size_t)(last - pass->points);
}

static bool inside(const struct pass *pass, const struct gt_event *event)
{
	return event->us >= pass->from_us && event->us <= pass->to_us;
}

static void add_event(struct pass *pass, const struct gt_event *event)
{
	struct relative *point;

	if (!gt_op_effect(event->op))
		return;
	if (pass->slices && inside(pass, event))
		carry(pass, event->us);
	gt_totals_add(pass->sum, pass->lane, event, 1);
	if (!inside(pass, event))
		return;
	point = pass->slices ? slice_at(pass, event->us) : GT_PUSH(pass->points, pass->count);
	if (!pass->slices)
		point->us = event->us;
	raise_to(point, pass->sum);
}

static int read_events(struct pass *pass, const struct gt_trace *trace, size_t lane_index,
		       struct gt_error *err)
{
	struct gt_cursor *cursor = gt_cursor_new(trace, lane_index);
	const struct gt_event *event;
	bool filled = false;

	err->status = 0;
	while ((event = gt_cursor_next(cursor, err))) {
		if (pass->slices && event->us > pass->to_us && !filled) {
			carry(pass, pass->to_us);
			filled = true;
		}
		add_event(pass, event);
	}
	if (pass->slices && !filled)
		carry(pass, pass->to_us);
	gt_cursor_free(cursor);
	return err->status ? -1 : 0;
}

static void add_start(const struct pass *pass, struct gt_series *ret)
{
	ret->count = pass->slices ? pass->slices : pass->count;
	ret->points = gt_xcalloc(ret->count, sizeof(*ret->points));
	for (size_t i = 0; i < ret->count; i++) {
		const struct relative *from = &pass->points[i];
		struct gt_point *to = &ret->points[i];

		to->us = pass->slices ? pass->from_us +
						(pass->to_us - pass->from_us + 1) * i / pass->slices
				      : from->us;
		for (int k = 0; k < GT_TOTALS; k++)
			to->max[k] = (uint64_t)((int64_t)pass->lane->ctr.cur[k] - pass->sum[k] +
						from->max[k]);
	}
}

int gt_series_get(const struct gt_trace *trace, size_t lane_index, uint64_t from_us, uint64_t to_us,
		  size_t slices, struct gt_series *ret, struct gt_error *err)
{
	struct pass pass = {
		.lane = &trace->lanes[lane_index],
		.from_us = from_us,
		.to_us = to_us,
		.slices = slices,
	};
	int status;

	if (slices)
		pass.points = gt_xcalloc(slices, sizeof(*pass.points));
	status = read_events(&pass, trace, lane_index, err);
	if (!status)
		add_start(&pass, ret);
	free(pass.points);
	return status;
}

void gt_series_clear(struct gt_series *series)
{
	free(series->points);
	*series = (struct gt_series){0};
}
