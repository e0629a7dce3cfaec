/* SPDX-License-Identifier: MIT */
/*
 * The peak of a part of the run, from the history. A span is a run of events of one lane; its
 * states are the one after each of them and the one that it begins with, so memory carried in
 * counts. Where the history of its beginning is gone the peak is a lower bound, unless the lane's
 * lifetime peak, which needs no history, lies inside.
 */
#ifndef GT_WINDOW_H
#define GT_WINDOW_H

#include "model/marks.h"

struct gt_span { /* states after the events from .. to of a lane; 0 is before the first */
	uint64_t from, to;
	uint64_t from_us; /* when the real beginning was, if it is cut */
	bool cut;	  /* the history reaches back only to from */
	bool none;	  /* the lane had no event yet, or is lost altogether (cut too) */
};

struct gt_top { /* of a span */
	uint64_t bytes[GT_TOTALS];
	uint64_t seq[GT_TOTALS], us[GT_TOTALS]; /* the event after which it was so first */
	bool at_least[GT_TOTALS];		/* a lower bound */
};

/* From one note to another (GT_NO_NOTE = to the end). */
struct gt_span gt_span_of_notes(const struct gt_marks *marks, size_t lane_index, size_t begin,
				size_t end);
static inline struct gt_span gt_span_of(const struct gt_marks *marks, size_t lane_index,
					const struct gt_named *named)
{
	return gt_span_of_notes(marks, lane_index, named->begin, named->end);
}

/* The tops of count spans of a lane, in one pass over its history. 0, or -1 with err. */
int gt_tops_get(const struct gt_trace *trace, size_t lane_index, const struct gt_span *spans,
		size_t count, struct gt_top *ret, struct gt_error *err);

/* The last event of a lane with a time <= us; 0 = none, or before the history (then *ret_cut). */
int gt_seq_at(const struct gt_trace *trace, size_t lane_index, uint64_t us, uint64_t *ret_seq,
	      bool *ret_cut, struct gt_error *err);

#endif
