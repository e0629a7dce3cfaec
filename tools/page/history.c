/* SPDX-License-Identifier: MIT */
/*
 * See history.h. Slices have equal numbers of events, not equal times, because training is bursty:
 * a step of a thousand allocations gets as many slices wherever it lies. The level of any stretch of
 * time is then the maximum of its slices' maxima, so no peak can be lost at any zoom. Called from
 * build.c.
 */
#include "page/history.h"

#include <stdlib.h>
#include <string.h>
#include "model/failure.h"
#include "model/xalloc.h"
#include "page/spots.h"

#define MOST_PAUSES	   2000 /* a pause longer than this part of the run is told */
#define MOST_WINDOW_EVENTS 2500

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Steps of which the ring has lost every event say nothing. */
static void find_first_step(struct gt_page_history *history)
{
	struct gt_steps *steps = &history->steps;

	while (history->first_step < steps->count &&
	       steps->steps[history->first_step].seq_end < history->lane->history_first)
		history->first_step++;
	if (steps->usual < history->first_step)
		steps->usual = history->first_step;
	if (steps->worst < history->first_step)
		steps->worst = history->first_step;
}

/* ---- detail windows ---------------------------------------------------------------------------- */

static bool have_window(const struct gt_page_history *history, uint64_t seq)
{
	for (size_t i = 0; i < history->window_count; i++)
		if (seq >= history->windows[i].from_seq && seq <= history->windows[i].to_seq)
			return true;
	return history->window_count == GT_WINDOWS;
}

/* The events of [from, to], but not more than can be told, with the one at `around` among them. */
static void add_window(struct gt_page_history *history, uint64_t from, uint64_t to, uint64_t around,
		       size_t step)
{
	struct gt_page_window *window;

	if (have_window(history, around))
		return;
	if (to - from >= history->window_events && around - from > history->window_events / 2)
		from = around - history->window_events / 2;
	if (to - from >= history->window_events)
		to = from + history->window_events - 1;
	window = &history->windows[history->window_count++];
	*window = (struct gt_page_window){.from_seq = from, .to_seq = to, .step = step};
}

static void add_step_window(struct gt_page_history *history, size_t index)
{
	const struct gt_step *steps = history->steps.steps;
	uint64_t from;

	if (index >= history->steps.count)
		return;
	from = index ? steps[index - 1].seq_end + 1
		     : gt_seq_before(history->answers, history->lane_index, steps[0].first) + 1;
	if (steps[index].peak_seq >= from && steps[index].seq_end >= from)
		add_window(history, from, steps[index].seq_end, steps[index].peak_seq, index + 1);
}

static void add_window_at(struct gt_page_history *history, uint64_t seq)
{
	const struct gt_steps *steps = &history->steps;

	for (size_t i = 0; i < steps->count; i++)
		if (seq <= steps->steps[i].seq_end && (!i || seq > steps->steps[i - 1].seq_end) &&
		    steps->steps[i].peak_seq <= seq + history->window_events)
			add_step_window(history, i);
	if (!have_window(history, seq))
		add_window(history,
			   seq > history->window_events / 2 ? seq - history->window_events / 2 : 1,
			   seq + history->window_events / 2, seq, 0);
}

static int by_from(const void *a, const void *b)
{
	const struct gt_page_window *x = a, *y = b;

	return x->from_seq < y->from_seq ? -1 : x->from_seq > y->from_seq;
}

/* The steps of the peak and the failure, the first, a usual and the last one. */
static void choose_windows(struct gt_page_history *history)
{
	const struct gt_report *report = gt_headline(history->trace);
	struct gt_page_window *windows = history->windows;

	add_window_at(history, history->lane->ctr.peak_seq[GT_TOTAL_IN_USE]);
	if (report && report->lane == history->lane->lane)
		add_window_at(history, report->seq);
	if (history->first_step < history->steps.count) {
		add_step_window(history, history->first_step);
		add_step_window(history, history->steps.usual);
		add_step_window(history, history->steps.count - 1);
	}
	qsort(windows, history->window_count, sizeof(*windows), by_from);
	for (size_t i = 1; i < history->window_count; i++)
		if (windows[i].from_seq <= windows[i - 1].to_seq)
			windows[i].from_seq = windows[i - 1].to_seq + 1;
}

/* ---- slices ------------------------------------------------------------------------------------ */

struct scan {
	struct gt_page_history *history;
	struct gt_spotter *spotter;
	uint64_t stride, inside; /* events of a slice; of the present one so far */
	size_t window;		 /* the present or next one */
	int64_t cur[GT_TOTALS];
	uint64_t pause; /* a longer one ends a slice: what lives in it has a row */
	struct level {
		uint64_t seq, us, used, held;
		bool single, pause;
	} before; /* the event whose slice depends on when the next one comes */
};

static bool in_window(struct scan *scan, uint64_t seq)
{
	struct gt_page_history *history = scan->history;

	while (scan->window < history->window_count && seq > history->windows[scan->window].to_seq)
		scan->window++;
	return scan->window < history->window_count &&
	       seq >= history->windows[scan->window].from_seq;
}

/* The one that a level goes into: the present one, or a new one. */
static struct gt_page_slice *slice_of(struct scan *scan, const struct level *level)
{
	struct gt_page_history *history = scan->history;
	struct gt_page_slice *slice;

	if (history->slice_count) {
		slice = &history->slices[history->slice_count - 1];
		if (!level->single && !slice->single && scan->inside < scan->stride)
			return slice;
	}
	slice = GT_PUSH(history->slices, history->slice_count);
	*slice = (struct gt_page_slice){
		.first_us = level->us,
		.min = UINT64_MAX,
		.single = level->single,
		.pause = level->pause,
	};
	scan->inside = 0;
	return slice;
}

static void add_to_slice(struct scan *scan, const struct level *level)
{
	struct gt_page_slice *slice = slice_of(scan, level);

	if (!scan->inside++ || level->used > slice->max) {
		slice->max = level->used;
		slice->top_us = level->us;
		slice->top_seq = level->seq;
	}
	slice->min = level->used < slice->min ? level->used : slice->min;
	slice->held = level->held > slice->held ? level->held : slice->held;
	slice->last = level->used;
	slice->last_us = level->us;
}

/*
 * What is in use while nothing happens for long, as in a data loader, is seen for long: the event
 * before such a pause is a slice of its own, so that its row is in the page.
 */
static void finish_before(struct scan *scan, uint64_t next_us)
{
	struct level *before = &scan->before;

	if (!before->seq)
		return;
	before->pause = !in_window(scan, before->seq) && next_us - before->us > scan->pause;
	before->single = before->pause || in_window(scan, before->seq);
	add_to_slice(scan, before);
}

/* A spot touched for the first time in a group of slices is one more change in that group's row. */
static void count_shift(struct scan *scan, uint32_t number)
{
	struct gt_page_history *history = scan->history;
	uint32_t *stamps = history->spots[number].stamps;
	uint32_t slice = (uint32_t)history->slice_count + 1;

	for (unsigned int group = 0; group < GT_PAGE_GROUPS; group++) {
		if (stamps[group] == (slice >> group) + 1)
			return;
		stamps[group] = (slice >> group) + 1;
		history->shifts[group]++;
	}
}

static void count_spot(struct gt_page_history *history, uint32_t number, int64_t change)
{
	struct gt_spot *spot = &history->spots[number];

	spot->live += (uint64_t)change;
	if (spot->live > spot->most)
		spot->most = spot->live;
}

static void add_mark(struct gt_page_history *history, const struct gt_event *event)
{
	if (history->mark_count < GT_PAGE_MARKS)
		*GT_PUSH(history->marks, history->mark_count) =
			(struct gt_page_mark){event->us, event->aux};
}

static void scan_used(struct scan *scan, const struct gt_event *event, int64_t change)
{
	struct gt_page_history *history = scan->history;
	uint32_t spot = gt_spotter_event(scan->spotter, event);
	size_t at = event->seq - history->lane->history_first;

	history->which[at] = spot + 1;
	history->changes[at] = change;
	if (event->us > history->end_us && history->end_seq == UINT64_MAX)
		history->end_seq = event->seq - 1;
	count_spot(history, spot, change);
	count_shift(scan, spot);
}

static void scan_event(struct scan *scan, const struct gt_event *event)
{
	struct gt_page_history *history = scan->history;
	unsigned int mask = gt_site_mask(history->lane, event->site);
	int64_t change = gt_op_effect(event->op) * (int64_t)event->size;

	if (event->op == GT_OP_MARK)
		add_mark(history, event);
	if (!change || !mask)
		return;
	gt_totals_add(scan->cur, history->lane, event, 1);
	if (mask & GT_MASK_IN_USE)
		scan_used(scan, event, change);
	history->events++;
	finish_before(scan, event->us);
	scan->before = (struct level){
		.seq = event->seq,
		.us = event->us,
		.used = (uint64_t)scan->cur[GT_TOTAL_IN_USE],
		.held = (uint64_t)scan->cur[GT_TOTAL_RESERVED],
	};
}

static void find_window_times(struct gt_page_history *history)
{
	size_t s = 0;

	for (size_t i = 0; i < history->window_count; i++) {
		struct gt_page_window *window = &history->windows[i];

		while (s < history->slice_count && history->slices[s].top_seq < window->from_seq)
			s++;
		if (s == history->slice_count)
			continue;
		window->from_us = history->slices[s].first_us;
		for (; s < history->slice_count && history->slices[s].top_seq <= window->to_seq;
		     s++)
			window->to_us = history->slices[s].last_us;
	}
}

/* ---- where the history begins ------------------------------------------------------------------- */

static int load_start(struct gt_page_history *history, struct gt_spotter *spotter,
		      struct gt_error *err)
{
	const struct gt_trace_lane *lane = history->lane;
	struct gt_moment moment;

	history->from_us = lane->history_us;
	if (lane->history_first <= 1)
		return 0;
	if (gt_moment_get(history->trace, history->lane_index, lane->history_first - 1, UINT64_MAX,
			  &moment, err))
		return -1;
	for (int k = 0; k < GT_TOTALS; k++)
		history->start_cur[k] = (int64_t)moment.cur[k];
	for (size_t i = 0; i < moment.block_count; i++) {
		const struct gt_block *block = &moment.blocks[i];

		if (!(gt_site_mask(lane, block->site) & GT_MASK_IN_USE))
			continue;
		count_spot(history, gt_spotter_load(spotter, block), (int64_t)block->size);
	}
	gt_moment_clear(&moment);
	history->start_count = history->spot_count;
	history->start = gt_xcalloc(history->start_count, sizeof(*history->start));
	for (size_t i = 0; i < history->start_count; i++)
		history->start[i] = (int64_t)history->spots[i].live;
	return 0;
}

/* What each spot held at the peak, from the totals that outlive the history. */
static int load_peak(struct gt_page_history *history, struct gt_spotter *spotter,
		     struct gt_error *err)
{
	struct gt_when when = {.kind = GT_WHEN_PEAK};
	struct gt_state state;

	if (gt_history_reaches(history->lane, history->lane->ctr.peak_seq[GT_TOTAL_IN_USE]))
		return 0;
	if (gt_state_get(history->trace, history->lane_index, GT_TOTAL_IN_USE, when, &state, err))
		return -1;
	if (history->answers)
		gt_answers_split(history->answers, &state);
	for (size_t i = 0; i < state.hold_count; i++)
		gt_spotter_hold(spotter, &state.holds[i]);
	history->kept_peak = gt_xcalloc(history->spot_count, sizeof(*history->kept_peak));
	for (size_t i = 0; i < state.hold_count; i++) {
		uint32_t spot = gt_spotter_hold(spotter, &state.holds[i]);

		history->kept_peak[spot] += (int64_t)state.holds[i].bytes;
		if (state.holds[i].bytes > history->spots[spot].most)
			history->spots[spot].most = state.holds[i].bytes;
	}
	gt_state_clear(&state);
	return 0;
}

/* ---- the pass ------------------------------------------------------------------------------------ */

static int read_events(struct scan *scan, struct gt_error *err)
{
	struct gt_page_history *history = scan->history;
	struct gt_cursor *cursor = gt_cursor_new(history->trace, history->lane_index);
	const struct gt_event *event;

	err->status = 0;
	while ((event = gt_cursor_next(cursor, err)))
		scan_event(scan, event);
	finish_before(scan, UINT64_MAX);
	gt_cursor_free(cursor);
	return err->status ? -1 : 0;
}

int gt_page_scan(const struct gt_trace *trace, const struct gt_answers *answers, size_t lane_index,
		 size_t slices, struct gt_page_history *ret, struct gt_error *err)
{
	struct gt_page_history history = {
		.trace = trace,
		.answers = answers,
		.lane_index = lane_index,
		.step_every = 1,
		.lane = &trace->lanes[lane_index],
		.end_us = trace->header.exit_us ? trace->header.exit_us - 1 : trace->last_us,
		.end_seq = UINT64_MAX,
	};
	struct scan scan = {.history = &history};
	uint64_t events = history.lane->seq + 1 - history.lane->history_first;
	int status =
		answers ? gt_steps_get(answers, lane_index, GT_TOTAL_IN_USE, &history.steps, err)
			: 0;

	if (status)
		return status;
	history.which = gt_xcalloc(events, sizeof(*history.which));
	history.changes = gt_xcalloc(events, sizeof(*history.changes));
	scan.stride = events / slices + 1;
	scan.pause = (trace->last_us - history.lane->history_us) / least(slices / 8, MOST_PAUSES);
	scan.spotter = gt_spotter_new(&history);
	history.window_events = least(slices / 24, MOST_WINDOW_EVENTS);
	find_first_step(&history);
	choose_windows(&history);
	status = load_start(&history, scan.spotter, err);
	memcpy(scan.cur, history.start_cur, sizeof(scan.cur));
	if (!status)
		status = read_events(&scan, err);
	if (!status)
		status = load_peak(&history, scan.spotter, err);
	find_window_times(&history);
	gt_spotter_free(scan.spotter);
	if (status)
		gt_page_history_clear(&history);
	else
		*ret = history;
	return status;
}

void gt_chain_clear(struct gt_chain *chain)
{
	free(chain->instants);
	free(chain->counts);
	free(chain->shifts);
	*chain = (struct gt_chain){0};
}

void gt_page_history_clear(struct gt_page_history *history)
{
	for (int i = 0; i < GT_CHAINS; i++)
		gt_chain_clear(&history->chains[i]);
	gt_steps_clear(&history->steps);
	free(history->spots);
	free(history->slices);
	free(history->marks);
	free(history->kept_peak);
	free(history->start);
	free(history->which);
	free(history->changes);
	*history = (struct gt_page_history){0};
}
