/* SPDX-License-Identifier: MIT */
/*
 * A walk over the history of one lane in either direction. The position is a sequence number; the
 * event of a number lies in the chunk that is decoded now, in another chunk of the extent that is
 * decompressed now, in another extent, or in what was staging. Walking in either direction touches
 * each chunk once and each extent once; nothing else is kept.
 */
#include <stdlib.h>
#include <string.h>
#include "read/reader.h"

void gt_cursor_init(struct gt_cursor *c, const struct gt_source *source,
		    const struct gt_history *history, const struct gt_limits *limits)
{
	memset(c, 0, sizeof(*c));
	c->source = source;
	c->history = history;
	c->limits = *limits;
}

void gt_cursor_release(struct gt_cursor *c)
{
	gt_frame_free(&c->frame);
	free(c->events);
	free(c->scratch);
}

/* Binary searches: a seek into the middle costs no more than the next step of a walk. */
static const struct gt_stretch *stretch_of(const struct gt_history *h, uint64_t seq)
{
	size_t low = 0, high = h->stretch_count, middle;

	while (low < high) {
		middle = low + (high - low) / 2;
		if (h->stretches[middle].last_seq < seq)
			low = middle + 1;
		else
			high = middle;
	}
	return low < h->stretch_count && h->stretches[low].first_seq <= seq ? &h->stretches[low]
									    : NULL;
}

static const struct gt_chunk_at *chunk_of(const struct gt_frame *frame, uint64_t seq)
{
	size_t low = 0, high = frame->chunk_count, middle;
	const struct gt_chunk_at *chunk;

	while (low < high) {
		middle = low + (high - low) / 2;
		chunk = &frame->chunks[middle];
		if (chunk->first_seq + chunk->events <= seq)
			low = middle + 1;
		else
			high = middle;
	}
	return low < frame->chunk_count && frame->chunks[low].first_seq <= seq ? &frame->chunks[low]
									       : NULL;
}

static int make_room(struct gt_cursor *c, size_t count)
{
	if (count <= c->events_capacity)
		return 0;
	free(c->events);
	free(c->scratch);
	c->events_capacity = 0;
	c->events = malloc(count * sizeof(*c->events));
	c->scratch = malloc(GT_SCRATCH(count) * sizeof(*c->scratch));
	if (!c->events || !c->scratch)
		return -1;
	c->events_capacity = count;
	return 0;
}

/*
 * events_count is 0 while the buffer is not whole, so that a failure leaves nothing to be taken for
 * an event later.
 */
static int decode_chunk(struct gt_cursor *c, const struct gt_chunk_at *chunk, struct gt_error *err)
{
	const char *bad;

	c->events_count = 0;
	if (make_room(c, chunk->events))
		return gt_fail_memory(err, c->source->path);
	bad = gt_columns_decode(c->frame.raw + chunk->raw, chunk->raw_length, &c->limits, c->events,
				chunk->events, c->scratch);
	if (bad)
		return gt_damaged(err, c->source->path, chunk->offset, "%s", bad);
	for (size_t i = 0; i < chunk->events; i++) {
		c->events[i].seq = chunk->first_seq + i;
		c->events[i].lane = c->history->lane;
	}
	c->events_first = chunk->first_seq;
	c->events_count = chunk->events;
	return 0;
}

/* Walks reach here once per chunk, and the frame once per extent. */
static int load_chunk(struct gt_cursor *c, uint64_t seq, struct gt_error *err)
{
	const struct gt_stretch *stretch = stretch_of(c->history, seq);
	const struct gt_chunk_at *chunk;
	int rc;

	if (!stretch)
		return gt_fail(err, c->source->path, "event %llu is not in the history",
			       (unsigned long long)seq);
	rc = gt_frame_load(&c->frame, c->source, &stretch->extent, err);
	if (rc)
		return rc;
	chunk = chunk_of(&c->frame, seq);
	if (!chunk)
		return gt_damaged(err, c->source->path, stretch->extent.offset,
				  "event %llu is not where it must be", (unsigned long long)seq);
	return decode_chunk(c, chunk, err);
}

int gt_cursor_at(struct gt_cursor *c, uint64_t seq, const struct gt_event **ret,
		 struct gt_error *err)
{
	const struct gt_history *h = c->history;
	struct gt_event *staged;
	int rc;

	if (h->tail_count && seq >= h->tail_first && seq - h->tail_first < h->tail_count) {
		staged = &h->tail[seq - h->tail_first];
		if (!gt_event_within(staged, &c->limits))
			return gt_damaged(err, c->source->path, 0,
					  "event %llu of lane %u, in staging, names something that "
					  "is not defined",
					  (unsigned long long)seq, h->lane);
		*ret = staged;
		return 0;
	}
	if (seq - c->events_first >= c->events_count) {
		rc = load_chunk(c, seq, err);
		if (rc)
			return rc;
	}
	*ret = &c->events[seq - c->events_first];
	return 0;
}

struct gt_cursor *gt_cursor_new(const struct gt_trace *trace, size_t lane_index)
{
	struct gt_cursor *c = malloc(sizeof(*c));
	struct gt_limits limits;

	if (!c)
		return NULL;
	gt_limits_of(trace, trace->lanes[lane_index].lane, &limits);
	gt_cursor_init(c, &trace->reader->source, &trace->reader->histories[lane_index], &limits);
	return c;
}

struct gt_cursor *gt_cursor_free(struct gt_cursor *c)
{
	if (c)
		gt_cursor_release(c);
	free(c);
	return NULL;
}

/* Callers of the walk cannot retry: for them a recycled extent is an error that says what to do. */
static const struct gt_event *step(struct gt_cursor *c, uint64_t seq, struct gt_error *err)
{
	const struct gt_event *event;
	int rc = gt_cursor_at(c, seq, &event, err);

	if (rc == GT_RECYCLED)
		gt_fail(err, c->source->path,
			"its process has overwritten this history while it was read: try again");
	return rc ? NULL : event;
}

/* The event if it is in the chunk that is decoded now, as nearly all are. */
static inline const struct gt_event *at_hand(const struct gt_cursor *c, uint64_t seq)
{
	return seq - c->events_first < c->events_count ? &c->events[seq - c->events_first] : NULL;
}

const struct gt_event *gt_cursor_next(struct gt_cursor *c, struct gt_error *err)
{
	const struct gt_event *event;

	if (err)
		err->status = 0;
	if (!c->position)
		c->position = c->history->first_seq;
	if (c->position > c->history->last_seq)
		return NULL;
	event = at_hand(c, c->position);
	if (!event)
		event = step(c, c->position, err);
	c->position += event != NULL;
	return event;
}

const struct gt_event *gt_cursor_prev(struct gt_cursor *c, struct gt_error *err)
{
	const struct gt_event *event;

	if (err)
		err->status = 0;
	if (!c->position)
		c->position = c->history->last_seq + 1;
	if (c->position <= c->history->first_seq)
		return NULL;
	event = at_hand(c, c->position - 1);
	if (!event)
		event = step(c, c->position - 1, err);
	c->position -= event != NULL;
	return event;
}
