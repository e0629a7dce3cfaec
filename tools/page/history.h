/* SPDX-License-Identifier: MIT */
/*
 * What the page knows of a device over time, reduced until it fits a file and yet exact: slices of
 * the events with their extremes, and rows of who held what at chosen instants. A row is always the
 * state after one real event; nothing is interpolated or averaged.
 */
#ifndef GT_PAGE_HISTORY_H
#define GT_PAGE_HISTORY_H

#include "model/answers.h"
#include "model/steps.h"

#define GT_PAGE_GROUPS 9 /* rows for 1, 2, 4 ... 256 slices each */

struct gt_spot { /* what rows tell apart, a "place" of the page; a block adds to one of them */
	const struct gt_site_def *call; /* who called backward(), as in gt_hold */
	uint32_t site;
	int32_t stream;
	uint8_t category;
	uint64_t live, most;		 /* while the history is read; the most that it ever held */
	uint32_t stamps[GT_PAGE_GROUPS]; /* the group of slices that it was last touched in, + 1 */
	uint32_t shown; /* its number in the rows: several may be merged into one */
};

struct gt_page_slice { /* consecutive events: equal numbers of them, or one in a detail window */
	uint64_t first_us, top_us, last_us;
	uint64_t top_seq;    /* the event after which most was in use */
	uint64_t max, min;   /* in use */
	uint64_t held, last; /* most held; in use after the last event */
	bool single;
	bool pause; /* alone because nothing follows for long: has a row while there is room */
};

struct gt_shift { /* of one spot, from one row to the next */
	uint32_t shown;
	int64_t bytes;
};

struct gt_page_instant {
	uint64_t seq, us;
	uint64_t tag; /* slice, step or kind of instant */
};

struct gt_chain { /* rows in order of time, each told as what changed since the one before */
	struct gt_page_instant *instants;
	uint32_t *counts; /* of changes */
	size_t count;
	struct gt_shift *shifts;
	size_t shift_count;
};

enum gt_chain_kind {
	GT_CHAIN_HIGH,	/* highest instants of (groups of) slices; tag = slice */
	GT_CHAIN_NAMED, /* peak, failure, end; tag = enum gt_when_kind */
	GT_CHAIN_ENDS,	/* of steps; tag = step, from 0 */
	GT_CHAIN_PEAKS,
	GT_CHAINS,
};

struct gt_page_mark { /* of the program's own */
	uint64_t us;
	uint32_t text; /* string id */
};

#define GT_PAGE_MARKS 500 /* at most */

struct gt_page_window { /* a step of which every event is told */
	uint64_t from_seq, to_seq, from_us, to_us;
	size_t step; /* from 1; 0 = around an instant outside of any step */
};

#define GT_WINDOWS 6

struct gt_page_history {
	const struct gt_trace *trace;
	const struct gt_answers *answers; /* NULL: no categories */
	size_t lane_index;
	const struct gt_trace_lane *lane;
	struct gt_steps steps;
	size_t first_step; /* index of the first of which the history has anything */
	struct gt_page_window windows[GT_WINDOWS];
	size_t window_count;
	struct gt_spot *spots;
	size_t spot_count, shown_count;
	struct gt_page_slice *slices;
	size_t slice_count;
	struct gt_page_mark *marks;
	size_t mark_count;
	uint64_t events; /* that changed something, in the history held */
	uint64_t from_us;
	uint64_t window_events; /* told one by one in a detail window, at most */
	unsigned int group;	/* 2^group slices share a row */
	size_t step_every; /* of the steps every so many have rows, and the usual, worst, last */
	uint64_t shifts[GT_PAGE_GROUPS]; /* about as many would be told with that group */
	struct gt_chain chains[GT_CHAINS];
	int64_t *kept_peak; /* by spot: the peak's row where the history does not reach it */

	int64_t *start; /* by spot: what lived before the history */
	size_t start_count;
	int64_t start_cur[GT_TOTALS];
	/* By event of the history, so that rows need not read it again. */
	uint32_t *which;  /* its spot + 1; 0 = it does not change what is in use */
	int64_t *changes; /* of what is in use */
	uint64_t end_us,
		end_seq; /* the end before exit(); the last event up to it that changes that */
};

/* About so many slices, and the spots: one pass. 0, or -1 with err. */
int gt_page_scan(const struct gt_trace *trace, const struct gt_answers *answers, size_t lane_index,
		 size_t slices, struct gt_page_history *ret, struct gt_error *err);

/* Rows: may be repeated. Spots must have their shown numbers. */
void gt_page_rows(struct gt_page_history *history, unsigned int group);

void gt_chain_clear(struct gt_chain *chain);
void gt_page_history_clear(struct gt_page_history *history);

#endif
