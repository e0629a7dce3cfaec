/* SPDX-License-Identifier: MIT */
/* See group.h. A row never mixes levels: what torch subdivides and what the driver handed out. */
#include "model/group.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>
#include "model/answers.h"
#include "model/xalloc.h"

struct bucket {
	char *key; /* the label's key and the level */
	size_t row;
	UT_hash_handle hh;
};

struct grouping {
	const struct gt_trace *trace;
	const struct gt_trace_lane *lane;
	struct gt_symbols *symbols;
	enum gt_by by;
	struct bucket *buckets;
	struct gt_rows rows;
};

static struct gt_label name_label(const char *name)
{
	return (struct gt_label){
		.key = gt_xstrdup(name),
		.text = gt_xstrdup(name),
		.full = gt_xstrdup(name),
		.file = "",
		.function = "",
		.owner = "",
	};
}

static const char *phase_text(const struct gt_hold *hold)
{
	if (!hold->timed)
		return "(not known)";
	return hold->phase == GT_PHASE_NONE ? "before the first step" : gt_phase_name(hold->phase);
}

static struct gt_label step_label(const struct gt_hold *hold)
{
	char name[32];

	if (!hold->timed)
		return name_label("(not known)");
	if (!hold->step)
		return name_label("before the first step");
	snprintf(name, sizeof(name), "step %u", hold->step);
	return name_label(name);
}

/* What is no name of code, of the hold itself. False: the label is made from a stack. */
static bool plain_label(const struct gt_hold *hold, enum gt_by by, struct gt_label *ret)
{
	if (by == GT_BY_CATEGORY)
		*ret = name_label(hold->category ? gt_category_name(hold->category)
						 : "(not of torch)");
	else if (by == GT_BY_STEP)
		*ret = step_label(hold);
	else if (by == GT_BY_PHASE)
		*ret = name_label(phase_text(hold));
	else
		return false;
	return true;
}

static struct gt_row *row_for(struct grouping *grouping, const struct gt_hold *hold)
{
	const struct gt_site_def *site = &grouping->lane->site_defs[hold->site];
	const struct gt_site_def *named =
		hold->call && grouping->by == GT_BY_LINE ? hold->call : site;
	bool torch = site->space == GT_SPACE_TORCH;
	struct gt_label label;
	struct bucket *bucket;
	struct gt_row *row;
	char *key;

	if (!plain_label(hold, grouping->by, &label))
		gt_label_make(grouping->symbols, grouping->trace, named, hold->stream, grouping->by,
			      &label);
	key = gt_xasprintf("%d %d %s", torch, gt_by_code(grouping->by) ? hold->category : 0,
			   label.key);
	HASH_FIND_STR(grouping->buckets, key, bucket);
	if (bucket) {
		free(key);
		gt_label_clear(&label);
		return &grouping->rows.rows[bucket->row];
	}
	bucket = gt_xcalloc(1, sizeof(*bucket));
	bucket->key = key;
	bucket->row = grouping->rows.count;
	HASH_ADD_KEYPTR(hh, grouping->buckets, key, strlen(key), bucket);
	row = GT_PUSH(grouping->rows.rows, grouping->rows.count);
	row->label = label;
	row->site = hold->site;
	row->named = named;
	row->stream = hold->stream;
	row->pool = hold->pool;
	row->oldest_us = hold->oldest_us;
	row->category = hold->category;
	row->torch = torch;
	return row;
}

static void add_hold(struct grouping *grouping, const struct gt_hold *hold)
{
	struct gt_row *row = row_for(grouping, hold);

	row->bytes += hold->bytes;
	row->count += hold->count;
	if (hold->largest > row->largest)
		row->largest = hold->largest;
	if (hold->oldest_us < row->oldest_us)
		row->oldest_us = hold->oldest_us;
	if (hold->category != row->category)
		row->category = GT_CATEGORY_NONE;
	if (hold->stream != row->stream)
		row->stream = GT_STREAM_MIXED;
	if (hold->pool != row->pool)
		row->pool = GT_POOL_MIXED;
	row->requested += hold->requested;
	row->requested_of += hold->requested_of;
}

static int by_bytes(const void *a, const void *b)
{
	const struct gt_row *x = a, *y = b;

	if (x->bytes != y->bytes)
		return x->bytes < y->bytes ? 1 : -1;
	return strcmp(x->label.key, y->label.key);
}

static struct gt_rows finish(struct grouping *grouping)
{
	struct bucket *bucket, *next;

	HASH_ITER(hh, grouping->buckets, bucket, next) {
		HASH_DEL(grouping->buckets, bucket);
		free(bucket->key);
		free(bucket);
	}
	if (grouping->rows.count)
		qsort(grouping->rows.rows, grouping->rows.count, sizeof(struct gt_row), by_bytes);
	return grouping->rows;
}

struct gt_rows gt_rows_of(const struct gt_state *state, struct gt_symbols *symbols, enum gt_by by)
{
	struct grouping grouping = {
		.trace = state->trace,
		.lane = &state->trace->lanes[state->lane_index],
		.symbols = symbols,
		.by = by,
	};

	for (size_t i = 0; i < state->hold_count; i++)
		add_hold(&grouping, &state->holds[i]);
	return finish(&grouping);
}

struct gt_rows gt_rows_of_report(const struct gt_trace *trace, size_t lane_index,
				 const struct gt_report *report, struct gt_symbols *symbols,
				 enum gt_by by)
{
	struct grouping grouping = {
		.trace = trace,
		.lane = &trace->lanes[lane_index],
		.symbols = symbols,
		.by = by,
	};

	for (uint32_t i = 0; i < report->holders; i++) {
		const struct gt_holder *holder = &report->holder[i];
		struct gt_hold hold = {
			.bytes = holder->bytes,
			.count = holder->count,
			.site = holder->site,
			.stream = GT_STREAM_UNKNOWN,
			.pool = GT_POOL_UNKNOWN,
		};

		if (holder->site < grouping.lane->site_count)
			add_hold(&grouping, &hold);
	}
	return finish(&grouping);
}

void gt_rows_clear(struct gt_rows *rows)
{
	for (size_t i = 0; i < rows->count; i++)
		gt_label_clear(&rows->rows[i].label);
	free(rows->rows);
	*rows = (struct gt_rows){0};
}
