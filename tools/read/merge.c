/* SPDX-License-Identifier: MIT */
/*
 * All lanes in one order. Inside a lane sequence decides, and its times may step back a little
 * (they are taken by different threads); so lanes are compared by the latest time each has shown so
 * far.
 */
#include <stdlib.h>
#include "read/reader.h"

struct gt_merge {
	const struct gt_trace *trace;
	struct head {
		struct gt_cursor *cursor;
		const struct gt_event *event; /* the next one; NULL = lane has ended */
		uint64_t us;		      /* latest time of the lane up to it */
	} * heads;
	struct head *given; /* whose event is with the caller; NULL = none */
	bool failed;
};

struct gt_merge *gt_merge_free(struct gt_merge *merge)
{
	if (!merge)
		return NULL;
	for (size_t i = 0; merge->heads && i < merge->trace->lane_count; i++)
		gt_cursor_free(merge->heads[i].cursor);
	free(merge->heads);
	free(merge);
	return NULL;
}

/* False: damage, told in err. */
static bool advance(struct head *head, struct gt_error *err)
{
	head->event = gt_cursor_next(head->cursor, err);
	if (head->event && head->event->us > head->us)
		head->us = head->event->us;
	return head->event || !err->status;
}

struct gt_merge *gt_merge_new(const struct gt_trace *trace)
{
	struct gt_merge *merge = calloc(1, sizeof(*merge));

	if (!merge)
		return NULL;
	merge->trace = trace;
	merge->heads = calloc(trace->lane_count + 1, sizeof(*merge->heads));
	for (size_t i = 0; merge->heads && i < trace->lane_count; i++) {
		merge->heads[i].cursor = gt_cursor_new(trace, i);
		if (!merge->heads[i].cursor)
			return gt_merge_free(merge);
	}
	return merge->heads ? merge : gt_merge_free(merge);
}

static bool first_events(struct gt_merge *merge, struct gt_error *err)
{
	for (size_t i = 0; i < merge->trace->lane_count; i++) {
		if (!advance(&merge->heads[i], err))
			return false;
	}
	return true;
}

/* A linear search: a process uses a few lanes, and a heap would be slower below a dozen. */
const struct gt_event *gt_merge_next(struct gt_merge *merge, struct gt_error *err)
{
	struct head *best = NULL;
	struct gt_error unasked;
	bool whole;

	err = err ? err : &unasked;
	err->status = 0;
	whole = !merge->failed &&
		(merge->given ? advance(merge->given, err) : first_events(merge, err));
	merge->failed = !whole;
	if (!whole)
		return NULL;
	for (size_t i = 0; i < merge->trace->lane_count; i++) {
		struct head *head = &merge->heads[i];

		if (head->event && (!best || head->us < best->us))
			best = head;
	}
	merge->given = best ? best : merge->given;
	return best ? best->event : NULL;
}
