/* SPDX-License-Identifier: MIT */
/*
 * See live.h. Sites become rows by the line that people know; a site keeps its row for good, since
 * definitions are never changed, so a look adds numbers and asks for no text. New sites are named
 * before it for as long as the caller allows: opening a library for the first time takes long, and a
 * screen that stands still looks like a program that hangs.
 *
 * Memory of a training goes up and down within a step, and looks come at no particular moment of
 * it. What grows is what does not come down again: the least bytes of each of four windows of looks.
 */
#define _GNU_SOURCE
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include "live/live.h"
#include "model/callers.h"
#include "model/label.h"
#include "model/xalloc.h"

#define WINDOWS 4u

static const char *const unnamed = "(not named yet)";

/* ---- a site's row ---------------------------------------------------------------------------- */

static struct gt_live_row *new_row(struct gt_live_process *process, char *key)
{
	struct gt_live_row *row = gt_xcalloc(1, sizeof(*row));

	row->key = key;
	HASH_ADD_KEYPTR(hh, process->rows, row->key, strlen(row->key), row);
	return row;
}

static struct gt_live_row *find_row(struct gt_live_process *process, int device, uint32_t mask,
				    const char *name, bool *ret_new)
{
	char *key = gt_xasprintf("%d %u %s", device, mask, name);
	struct gt_live_row *row;

	HASH_FIND_STR(process->rows, key, row);
	*ret_new = !row;
	if (!row)
		return new_row(process, key);
	free(key);
	return row;
}

static void name_row(struct gt_live_row *row, const struct gt_label *label)
{
	row->text = gt_xstrdup(label->text);
	row->full = gt_xstrdup(label->full);
	row->file = gt_xstrdup(label->file);
	row->line = label->line;
	row->named = true;
}

static struct gt_symbols *symbols_of(struct gt_live_process *process)
{
	if (!process->symbols) {
		process->symbols = gt_xchecked(gt_symbols_new(process->trace));
		gt_callers_link(process->symbols, process->trace);
	}
	return process->symbols;
}

/* def NULL: the row of all that has no name yet. */
static struct gt_live_row *row_of(struct gt_live *live, size_t number,
				  const struct gt_trace_lane *lane, const struct gt_site_def *site,
				  bool named)
{
	struct gt_live_process *process = &live->processes[number];
	struct gt_label label = {.text = (char *)unnamed, .full = (char *)unnamed, .file = ""};
	struct gt_live_row *row;
	bool new;

	if (named)
		gt_label_make(symbols_of(process), process->trace, site, 0, GT_BY_LINE, &label);
	row = find_row(process, lane->device, site->mask, named ? label.key : "", &new);
	if (new) {
		name_row(row, &label);
		row->process = number;
		row->device = lane->device;
		row->lane = lane->lane;
		row->mask = site->mask;
		row->torch = site->space == GT_SPACE_TORCH;
		row->named = named;
	}
	if (named)
		gt_label_clear(&label);
	return row;
}

static struct gt_live_sites *sites_of(struct gt_live_process *process, uint32_t lane, size_t count)
{
	struct gt_live_sites *sites = NULL;

	for (size_t i = 0; i < process->site_lanes && !sites; i++)
		if (process->sites[i].lane == lane)
			sites = &process->sites[i];
	if (!sites) {
		sites = GT_PUSH(process->sites, process->site_lanes);
		sites->lane = lane;
	}
	if (count > sites->count) {
		sites->rows = gt_xrealloc(sites->rows, count, sizeof(*sites->rows));
		memset(sites->rows + sites->count, 0,
		       (count - sites->count) * sizeof(*sites->rows));
		sites->count = count;
	}
	return sites;
}

static void name_sites(struct gt_live *live, size_t number, const struct gt_trace_lane *lane,
		       struct gt_live_sites *sites, double until)
{
	for (; sites->next < lane->site_count && gt_live_now() < until; sites->next++)
		sites->rows[sites->next] =
			row_of(live, number, lane, &lane->site_defs[sites->next], true);
}

/* ---- numbers --------------------------------------------------------------------------------- */

static void add_site(struct gt_live_row *row, const struct gt_trace_lane *lane, size_t site)
{
	const struct gt_site *line = &lane->sites[site];

	row->bytes += line->live;
	row->count += line->live_count;
	row->ever += line->ever;
	row->ever_count += line->ever_count;
	if (line->live >= row->most) {
		row->most = line->live;
		row->site = (uint32_t)site;
	}
}

static void add_lane(struct gt_live *live, size_t number, const struct gt_trace_lane *lane,
		     double until)
{
	struct gt_live_sites *sites =
		sites_of(&live->processes[number], lane->lane, lane->site_count);

	name_sites(live, number, lane, sites, until);
	for (size_t i = 0; i < lane->site_count; i++) {
		struct gt_live_row *row = sites->rows[i];

		if (!lane->sites[i].ever_count)
			continue;
		if (!row)
			row = row_of(live, number, lane, &lane->site_defs[i], false);
		add_site(row, lane, i);
	}
}

/* The least bytes in each window, oldest first; looks = those that there are, at most all. */
static void lows(const struct gt_live *live, const struct gt_live_row *row, unsigned int looks,
		 uint64_t low[WINDOWS])
{
	const unsigned int length = looks / WINDOWS;

	for (unsigned int w = 0; w < WINDOWS; w++) {
		low[w] = UINT64_MAX;
		for (unsigned int i = 0; i < length; i++) {
			unsigned int back = (WINDOWS - w) * length - i - 1;
			uint64_t bytes = row->past[(live->looks - back) % GT_LIVE_PAST];

			low[w] = bytes < low[w] ? bytes : low[w];
		}
	}
}

static void find_trend(const struct gt_live *live, struct gt_live_row *row)
{
	const unsigned int have = live->looks + 1 < GT_LIVE_PAST ? live->looks + 1 : GT_LIVE_PAST;
	const unsigned int length = have / WINDOWS;
	uint64_t low[WINDOWS];
	double seconds;
	int up = 0, down = 0;

	row->trend = 0;
	row->growth = 0;
	if (!length)
		return;
	lows(live, row, have, low);
	for (unsigned int w = 1; w < WINDOWS; w++) {
		up += low[w] > low[w - 1];
		down += low[w] < low[w - 1];
	}
	row->trend = up == WINDOWS - 1 ? 1 : down == WINDOWS - 1 ? -1 : 0;
	seconds = live->times[live->looks % GT_LIVE_PAST] -
		  live->times[(live->looks - (WINDOWS - 1) * length) % GT_LIVE_PAST];
	if (row->trend && seconds > 0)
		row->growth = ((double)low[WINDOWS - 1] - (double)low[0]) / seconds;
}

static void forget_numbers(struct gt_live_process *process)
{
	for (struct gt_live_row *row = process->rows; row; row = row->hh.next) {
		row->ever_before = row->ever_count;
		row->bytes = row->count = row->ever = row->ever_count = row->most = 0;
	}
}

static void take_rates(struct gt_live *live, struct gt_live_process *process, double seconds)
{
	for (struct gt_live_row *row = process->rows; row; row = row->hh.next) {
		uint64_t before = row->ever_before;

		row->past[live->looks % GT_LIVE_PAST] = row->bytes;
		/* What was in the unnamed row before is not new. */
		row->allocs_per_second =
			seconds > 0 && row->named && before && row->ever_count > before
				? (double)(row->ever_count - before) / seconds
				: 0;
		find_trend(live, row);
	}
}

void gt_live_fill(struct gt_live *live, size_t number, double seconds)
{
	struct gt_live_process *process = &live->processes[number];
	const struct gt_trace *trace = process->trace;
	const double until = gt_live_now() + live->naming;

	forget_numbers(process);
	for (size_t i = 0; i < trace->lane_count; i++)
		if (trace->lanes[i].device != GT_DEVICE_HOST && trace->lanes[i].seq)
			add_lane(live, number, &trace->lanes[i], until);
	take_rates(live, process, seconds);
}

void gt_live_rows_free(struct gt_live_process *process)
{
	struct gt_live_row *row, *next;

	HASH_ITER(hh, process->rows, row, next) {
		HASH_DEL(process->rows, row);
		free(row->key);
		free(row->text);
		free(row->full);
		free((char *)row->file);
		free(row);
	}
	for (size_t i = 0; i < process->site_lanes; i++)
		free(process->sites[i].rows);
	free(process->sites);
}

/* ---- for the screen -------------------------------------------------------------------------- */

static int compare(double a, double b)
{
	return a < b ? 1 : a > b ? -1 : 0;
}

static double sort_value(const struct gt_live_row *row, enum gt_live_sort sort)
{
	switch (sort) {
	case GT_LIVE_BY_GROWTH:
		return row->growth;
	case GT_LIVE_BY_COUNT:
		return (double)row->count;
	case GT_LIVE_BY_RATE:
		return row->allocs_per_second;
	default:
		return (double)row->bytes;
	}
}

struct order {
	const struct gt_live *live;
	enum gt_live_sort sort;
};

static int ended(const struct order *order, const struct gt_live_row *row)
{
	return !order->live->processes[row->process].trace->running;
}

/* What ended comes last, it holds nothing now. Ends in what never changes: equal rows do not dance. */
static int by_value(const void *a, const void *b, void *ctx)
{
	const struct gt_live_row *x = *(struct gt_live_row *const *)a;
	const struct gt_live_row *y = *(struct gt_live_row *const *)b;
	const struct order *order = ctx;
	int result = ended(order, x) - ended(order, y);

	if (!result)
		result = compare(sort_value(x, order->sort), sort_value(y, order->sort));
	if (!result)
		result = compare((double)x->bytes, (double)y->bytes);
	if (!result)
		result = x->process < y->process ? -1 : x->process > y->process;
	return result ? result : strcmp(x->key, y->key);
}

static bool is_wanted(const struct gt_live *live, const struct gt_live_row *row, uint32_t total)
{
	return row->ever_count && (row->mask >> total & 1) &&
	       (live->device == INT_MIN || live->device == row->device);
}

struct gt_live_row **gt_live_sorted(const struct gt_live *live, size_t process, uint32_t total,
				    enum gt_live_sort sort, size_t *ret_count)
{
	struct order order = {live, sort};
	struct gt_live_row **rows = NULL;
	size_t count = 0;

	for (size_t i = 0; i < live->count; i++) {
		struct gt_live_row *row = live->processes[i].rows;

		for (; row && (process == SIZE_MAX || process == i); row = row->hh.next)
			if (is_wanted(live, row, total))
				*GT_PUSH(rows, count) = row;
	}
	if (count)
		qsort_r(rows, count, sizeof(struct gt_live_row *), by_value, &order);
	*ret_count = count;
	return rows;
}

static const struct gt_site_def *site_def(const struct gt_trace *trace,
					  const struct gt_live_row *row)
{
	for (size_t i = 0; i < trace->lane_count; i++)
		if (trace->lanes[i].lane == row->lane && row->site < trace->lanes[i].site_count)
			return &trace->lanes[i].site_defs[row->site];
	return NULL;
}

char **gt_live_stack(struct gt_live *live, const struct gt_live_row *row, size_t *ret_count)
{
	struct gt_live_process *process = &live->processes[row->process];
	const struct gt_site_def *site = site_def(process->trace, row);
	struct gt_stack stack = {0};
	char **lines = NULL;
	size_t count = 0;

	if (site)
		stack = gt_symbols_stack(symbols_of(process), site->native, site->python);
	for (size_t i = stack.count; i-- > 0;)
		*GT_PUSH(lines, count) = gt_label_frame(&stack.frames[i], true);
	*ret_count = count;
	return lines;
}
