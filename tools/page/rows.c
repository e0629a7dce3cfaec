/* SPDX-License-Identifier: MIT */
/*
 * The rows of history.h. All chains are made in one pass: an event touches one spot, so the rows
 * of a chain are told by the spots touched since its last one. Neighbouring rows differ little, and
 * rows of the same moment of each step hardly at all, which is what makes them small.
 */
#include "page/history.h"

#include <stdlib.h>
#include <string.h>
#include "model/failure.h"
#include "model/xalloc.h"

struct touched { /* spots of a chain since its last row */
	uint32_t *list;
	size_t count;
	uint32_t *stamps; /* by spot: the row for which it is in the list, + 1 */
	int64_t *told;	  /* by spot: its bytes in the last row */
	size_t next;	  /* instant of the chain */
};

struct filling {
	struct gt_page_history *history;
	struct touched touched[GT_CHAINS];
	int64_t *bytes; /* by shown spot */
	uint64_t next;	/* the first instant whose row is not told yet, of all chains */
};

/* ---- instants ---------------------------------------------------------------------------------- */

static void add_instant(struct gt_chain *chain, uint64_t seq, uint64_t us, uint64_t tag)
{
	*GT_PUSH(chain->instants, chain->count) = (struct gt_page_instant){seq, us, tag};
}

#define PAUSES_UP_TO 2 /* groups of 4 slices: with fewer rows, pauses have none of their own */

static bool is_alone(const struct gt_page_slice *slice, unsigned int group)
{
	return slice->single && !(slice->pause && group > PAUSES_UP_TO);
}

/* The highest slice of each group; groups do not reach into detail windows. */
static void list_high(struct gt_page_history *history, unsigned int group)
{
	struct gt_chain *chain = &history->chains[GT_CHAIN_HIGH];
	size_t size = (size_t)1 << group;

	for (size_t i = 0; i < history->slice_count;) {
		const struct gt_page_slice *best = &history->slices[i];
		size_t from = i++;

		while (!is_alone(&history->slices[from], group) && i < history->slice_count &&
		       i - from < size && !is_alone(&history->slices[i], group)) {
			if (history->slices[i].max > best->max)
				best = &history->slices[i];
			i++;
		}
		add_instant(chain, best->top_seq, best->top_us, (uint64_t)(best - history->slices));
	}
}

static bool has_rows(const struct gt_page_history *history, size_t step)
{
	const struct gt_steps *steps = &history->steps;

	return (step - history->first_step) % history->step_every == 0 || step == steps->usual ||
	       step == steps->worst || step + 1 == steps->count;
}

static void list_steps(struct gt_page_history *history)
{
	const struct gt_steps *steps = &history->steps;

	for (size_t i = history->first_step; i < steps->count; i++) {
		const struct gt_step *step = &steps->steps[i];

		if (!has_rows(history, i))
			continue;
		add_instant(&history->chains[GT_CHAIN_ENDS], step->seq_end, step->to_us,
			    i - history->first_step);
		add_instant(&history->chains[GT_CHAIN_PEAKS], step->peak_seq,
			    gt_story_us(history->answers->story, step->peak_at),
			    i - history->first_step);
	}
}

static int by_seq(const void *a, const void *b)
{
	const struct gt_page_instant *x = a, *y = b;

	if (x->seq != y->seq)
		return x->seq < y->seq ? -1 : 1;
	return x->tag < y->tag ? -1 : x->tag > y->tag;
}

/* The other refused requests: who held what then is as exact as at the failure. */
static void add_refused(struct gt_page_history *history, const struct gt_report *failure)
{
	const struct gt_trace_lane *lane = history->lane;

	for (size_t i = 0; i < history->trace->report_count; i++) {
		const struct gt_report *report = &history->trace->reports[i];

		if (report != failure && report->lane == lane->lane && gt_is_memory(report) &&
		    gt_history_reaches(lane, report->seq))
			add_instant(&history->chains[GT_CHAIN_NAMED], report->seq, report->us,
				    GT_WHEN_TIME);
	}
}

static void list_named(struct gt_page_history *history)
{
	struct gt_chain *chain = &history->chains[GT_CHAIN_NAMED];
	const struct gt_trace_lane *lane = history->lane;
	const struct gt_report *report = gt_headline(history->trace);
	uint64_t peak = lane->ctr.peak_seq[GT_TOTAL_IN_USE];

	if (!history->kept_peak)
		add_instant(chain, peak, lane->ctr.peak_us[GT_TOTAL_IN_USE], GT_WHEN_PEAK);
	if (report && report->lane == lane->lane && gt_history_reaches(lane, report->seq))
		add_instant(chain, report->seq, report->us, GT_WHEN_OOM);
	add_refused(history, report);
	if (chain->count)
		qsort(chain->instants, chain->count, sizeof(*chain->instants), by_seq);
	if (history->slice_count && history->end_us >= history->slices[0].first_us)
		add_instant(chain, history->end_seq, history->end_us, GT_WHEN_END);
}

/* ---- rows -------------------------------------------------------------------------------------- */

static void touch(struct touched *touched, uint32_t spot)
{
	if (touched->stamps[spot] == touched->next + 1)
		return;
	touched->stamps[spot] = (uint32_t)touched->next + 1;
	touched->list[touched->count++] = spot;
}

static int by_number(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

/* Most of the spots touched hold as much as before: only the others have to be sorted. */
static void tell_row(struct filling *filling, int kind)
{
	struct gt_chain *chain = &filling->history->chains[kind];
	struct touched *touched = &filling->touched[kind];
	size_t changed = 0;

	for (size_t i = 0; i < touched->count; i++)
		if (filling->bytes[touched->list[i]] != touched->told[touched->list[i]])
			touched->list[changed++] = touched->list[i];
	qsort(touched->list, changed, sizeof(*touched->list), by_number);
	for (size_t i = 0; i < changed; i++) {
		uint32_t spot = touched->list[i];

		*GT_PUSH(chain->shifts, chain->shift_count) =
			(struct gt_shift){spot, filling->bytes[spot] - touched->told[spot]};
		touched->told[spot] = filling->bytes[spot];
	}
	chain->counts[touched->next++] = (uint32_t)changed;
	touched->count = 0;
}

/* The rows of all instants before the event. */
static void tell_before(struct filling *filling, uint64_t seq)
{
	if (seq <= filling->next)
		return;
	filling->next = UINT64_MAX;
	for (int kind = 0; kind < GT_CHAINS; kind++) {
		const struct gt_chain *chain = &filling->history->chains[kind];
		size_t *next = &filling->touched[kind].next;

		while (*next < chain->count && chain->instants[*next].seq < seq)
			tell_row(filling, kind);
		if (*next < chain->count && chain->instants[*next].seq < filling->next)
			filling->next = chain->instants[*next].seq;
	}
}

static void shift(struct filling *filling, uint32_t number, int64_t change)
{
	uint32_t spot = filling->history->spots[number].shown;

	filling->bytes[spot] += change;
	for (int kind = 0; kind < GT_CHAINS; kind++)
		touch(&filling->touched[kind], spot);
}

static void fill(struct filling *filling)
{
	struct gt_page_history *history = filling->history;
	uint64_t first = history->lane->history_first;

	for (size_t i = 0; i < history->start_count; i++)
		if (history->start[i])
			shift(filling, (uint32_t)i, history->start[i]);
	for (uint64_t seq = first; seq <= history->lane->seq; seq++) {
		if (!history->which[seq - first])
			continue;
		tell_before(filling, seq);
		shift(filling, history->which[seq - first] - 1, history->changes[seq - first]);
	}
	for (int kind = 0; kind < GT_CHAINS; kind++)
		while (filling->touched[kind].next < history->chains[kind].count)
			tell_row(filling, kind);
}

static void start_chains(struct filling *filling, unsigned int group)
{
	struct gt_page_history *history = filling->history;
	size_t spots = history->shown_count + 1;

	for (int kind = 0; kind < GT_CHAINS; kind++)
		gt_chain_clear(&history->chains[kind]);
	list_high(history, group);
	list_steps(history);
	list_named(history);
	for (int kind = 0; kind < GT_CHAINS; kind++) {
		struct touched *touched = &filling->touched[kind];

		history->chains[kind].counts =
			gt_xcalloc(history->chains[kind].count + 1, sizeof(uint32_t));
		touched->list = gt_xcalloc(spots, sizeof(*touched->list));
		touched->stamps = gt_xcalloc(spots, sizeof(*touched->stamps));
		touched->told = gt_xcalloc(spots, sizeof(*touched->told));
	}
	filling->bytes = gt_xcalloc(spots, sizeof(*filling->bytes));
}

void gt_page_rows(struct gt_page_history *history, unsigned int group)
{
	struct filling filling = {.history = history};

	history->group = group;
	start_chains(&filling, group);
	fill(&filling);
	for (int kind = 0; kind < GT_CHAINS; kind++) {
		free(filling.touched[kind].list);
		free(filling.touched[kind].stamps);
		free(filling.touched[kind].told);
	}
	free(filling.bytes);
}
