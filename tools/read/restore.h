/* SPDX-License-Identifier: MIT */
/*
 * A trace taken apart into rows, and put together again from them: for files of other kinds that hold
 * all of a trace, definition by definition. Unlike build.h, which makes a state from what happened,
 * here the state is given too, so that it is exact where the history is not whole. Whoever restores
 * may have read anything: what refers to something that is not there is found at the end.
 */
#ifndef GT_RESTORE_H
#define GT_RESTORE_H

#include "read/trace.h"

/* The tables of a gt_trace; an element is the structure of that name. */
enum gt_trace_part {
	GT_PART_INFO,
	GT_PART_STRING,
	GT_PART_MODULE,
	GT_PART_NODE,
	GT_PART_PYCODE,
	GT_PART_PYNODE,
	GT_PART_THREAD,
	GT_PART_STREAM,
	GT_PART_DEVICE,
	GT_PART_CONTEXT,
	GT_PART_NAME,
	GT_PART_SOURCE,
	GT_PART_POOL,
	GT_PART_REPORT,
	GT_TRACE_PARTS,
};

/* Elements from first to count - 1: where [0] is the zero entry first is 1. */
size_t gt_part_first(enum gt_trace_part part);
size_t gt_part_count(const struct gt_trace *trace, enum gt_trace_part part);
const void *gt_part_at(const struct gt_trace *trace, enum gt_trace_part part, size_t index);

struct gt_restore;

struct gt_restore *gt_restore_new(const char *path); /* NULL = no memory */
struct gt_restore *gt_restore_free(struct gt_restore *restore);

/* For the header and the flags. */
struct gt_trace *gt_restore_trace(struct gt_restore *restore);

/* The next element, zeroed: its texts are the caller's to set. NULL = no memory. */
void *gt_restore_add(struct gt_restore *restore, enum gt_trace_part part);
int gt_restore_text(struct gt_restore *restore, const void *text, size_t length,
		    struct gt_bytes *ret);

/*
 * A lane with its state; arrays become the restored trace's, also after a failure. site_defs and
 * sites have site_count elements, [0] included. The events are those from history_first to seq; one
 * whose op is 0 was not there. 0, or -1: no memory, or not such a lane.
 */
int gt_restore_lane(struct gt_restore *restore, const struct gt_trace_lane *lane,
		    struct gt_event *events);

/* Frees the restorer in any case. 0, or -1 with err. */
int gt_restore_end(struct gt_restore *restore, struct gt_trace **ret, struct gt_error *err);

#endif
