/* SPDX-License-Identifier: MIT */
/*
 * What the program said of itself: marks, ranges, steps, windows. Each note stands on several
 * lanes; here it is one, with its place in each. Ranges are put together per thread and source (the
 * innermost open one ends) or by their number, steps by the one that follows.
 */
#ifndef GT_MARKS_H
#define GT_MARKS_H

#include "read/trace.h"

struct gt_noted { /* a note */
	uint64_t number, us;
	uint64_t source, range;
	uint32_t aux; /* string, or the step's number */
	uint16_t thread;
	uint8_t op;
	uint64_t *seqs; /* by lane index: its event there, 0 = none */
};

#define GT_NO_NOTE ((size_t)-1)

enum gt_stretch_kind {
	GT_STRETCH_MARK,   /* a moment: it begins and ends with its note */
	GT_STRETCH_RANGE,  /* of a thread */
	GT_STRETCH_WINDOW, /* of the process */
	GT_STRETCH_STEP,
};

struct gt_named { /* a mark, range, window or step */
	enum gt_stretch_kind kind;
	size_t begin, end; /* notes; end GT_NO_NOTE = still open at the end of the trace */
	size_t parent;	   /* of a range: the one around it in its thread, GT_NO_NOTE = none */
	uint32_t depth;	   /* of a range: how many are around it */
	uint32_t step;	   /* number of a step */
	const char *name;  /* "" = not kept; of a step too */
};

struct gt_marks {
	const struct gt_trace *trace;
	struct gt_noted *notes; /* in the order of their numbers */
	size_t note_count;
	struct gt_named *named; /* in the order of their begins */
	size_t named_count;
	size_t unmatched; /* ends without a begin: those begins are not in the history */
	uint64_t *seqs;
};

/* One pass over the history of every lane. 0, or -1 with err. */
int gt_marks_get(const struct gt_trace *trace, struct gt_marks *ret, struct gt_error *err);
void gt_marks_clear(struct gt_marks *marks);

/* The nth (from 1) with this name; of any kind if kinds is 0, else bits 1 << kind. NULL = none. */
const struct gt_named *gt_marks_find(const struct gt_marks *marks, const char *name,
				     unsigned int kinds, size_t nth);
const struct gt_named *gt_marks_step(const struct gt_marks *marks, uint32_t number);

const char *gt_stretch_name(enum gt_stretch_kind kind);

#endif
