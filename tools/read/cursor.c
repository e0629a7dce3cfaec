/* SPDX-License-Identifier: MIT */
/*
 * A walk over the history of one lane in either direction. The position is a sequence number; the
 * event of a number lies in the chunk that is decoded now, in another chunk of the extent that is
 * decompressed now, in another extent, or in what was staging. Walking in either direction touches
 * each chunk once and each extent once; nothing else is kept. A long walk is cut into units, which
 * ahead.c may decode on other cores.
 */
#include <stdlib.h>
#include <string.h>
#include "read/progress.h"
#include "read/reader.h"

#define WINDOW	  (1ull << 17) /* events of 88 bytes; more than a chunk and what it may refer to */
#define UNIT	  (3ull << 16) /* with what it refers to 23 MB; most extents are one */
#define ROOM_MOST (UNIT + GT_BACK_MAX + 2 * GT_MAX_CHUNK_EVENTS)
_Static_assert(WINDOW > GT_MAX_CHUNK_EVENTS + GT_BACK_MAX, "a chunk beside what it refers to");

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
	gt_zstd_frame_free(&c->frame);
	free(c->window.events);
	free(c->scratch);
	c->ahead = gt_ahead_stop(c->ahead);
}

/* The event if it is decoded now, as nearly all are. */
static inline const struct gt_event *at_hand(const struct gt_cursor *c, uint64_t seq)
{
	const struct gt_window *w = &c->hand;

	return seq - w->whole < w->to - w->whole ? gt_window_at(w, seq) : NULL;
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

static const struct gt_chunk_at *chunk_of(const struct gt_zstd_frame *frame, uint64_t seq)
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

static int make_scratch(struct gt_cursor *c, size_t count)
{
	if (count <= c->scratch_count)
		return 0;
	free(c->scratch);
	c->scratch_count = 0;
	c->scratch = malloc(GT_SCRATCH(count) * sizeof(*c->scratch));
	if (!c->scratch)
		return -1;
	c->scratch_count = count;
	return 0;
}

/* Room for so many events, at most ROOM_MOST. */
static int make_window(struct gt_cursor *c, uint64_t events)
{
	size_t capacity = c->window.capacity ? c->window.capacity : 1;

	while (capacity < events)
		capacity *= 2;
	if (capacity == c->window.capacity)
		return 0;
	free(c->window.events);
	c->window = (struct gt_window){.lane = c->history->lane};
	c->window.events = malloc(capacity * sizeof(*c->window.events));
	if (!c->window.events)
		return -1;
	c->window.capacity = capacity;
	return 0;
}

/* For the events of the extent, up to a number that makes walks backward quick. */
static uint64_t room_for(const struct gt_cursor *c, const struct gt_chunk_at *chunk)
{
	const struct gt_chunk_at *last = &c->frame.chunks[c->frame.chunk_count - 1];
	uint64_t all = last->first_seq + last->events - c->frame.chunks[0].first_seq;

	if (c->source->live || all > WINDOW) /* a live extent may grow */
		return WINDOW;
	return all < chunk->events ? chunk->events : all;
}

static void empty(struct gt_window *w, uint64_t seq)
{
	w->from = w->to = w->whole = seq;
}

/* Behind a gap the window begins anew. */
static int decode_chunk(struct gt_cursor *c, const struct gt_chunk_at *chunk, struct gt_error *err)
{
	const char *bad;

	if (make_scratch(c, chunk->events))
		return gt_fail_memory(err, c->source->path);
	if (chunk->first_seq != c->window.to)
		empty(&c->window, chunk->first_seq);
	bad = gt_columns_decode(c->frame.raw + chunk->raw, chunk->raw_length, &c->limits,
				&c->window, chunk->events, c->scratch);
	if (!bad && c->added)
		gt_added_window(c->added, &c->window, chunk->first_seq);
	if (!bad)
		return 0;
	empty(&c->window, 0);
	return gt_damaged(err, c->source->path, chunk->offset, "%s", bad);
}

/* Events refer to those before them in the extent: are all these in the window? */
static bool has_before(const struct gt_window *w, const struct gt_zstd_frame *frame,
		       const struct gt_chunk_at *chunk)
{
	return w->to == chunk->first_seq &&
	       (w->from + GT_BACK_MAX <= w->to || w->from <= frame->chunks[0].first_seq);
}

/* The chunk to begin with so that so many events before a chunk are there, if the extent has them. */
static const struct gt_chunk_at *start_before(const struct gt_zstd_frame *frame,
					      const struct gt_chunk_at *chunk, uint64_t before)
{
	const struct gt_chunk_at *start = chunk;

	while (start > frame->chunks && start->first_seq + before > chunk->first_seq &&
	       start[-1].first_seq + start[-1].events == start->first_seq)
		start--;
	return start;
}

/* Empties the window for a chunk and those before it from a start on. */
static void begin(struct gt_window *w, const struct gt_chunk_at *start,
		  const struct gt_chunk_at *chunk)
{
	empty(w, start->first_seq);
	if (chunk->first_seq - start->first_seq >= GT_BACK_MAX)
		w->whole += GT_BACK_MAX;
}

/*
 * All must be there that this chunk refers to. A walk backward, which comes to what is just before
 * the window, fills all of it at once: then that happens once in many chunks.
 */
static const struct gt_chunk_at *begin_before(struct gt_cursor *c, const struct gt_chunk_at *chunk)
{
	struct gt_window *w = &c->window;
	uint64_t end = chunk->first_seq + chunk->events, before = GT_BACK_MAX;
	const struct gt_chunk_at *start;

	if (w->whole > chunk->first_seq && w->whole <= end)
		before = WINDOW - chunk->events;
	start = start_before(&c->frame, chunk, before);
	begin(w, start, chunk);
	return start;
}

static int load_chunk(struct gt_cursor *c, uint64_t seq, struct gt_error *err)
{
	const struct gt_extent *extent = &c->history->stretches[c->unit.stretch].extent;
	const struct gt_chunk_at *chunk, *next;
	int rc = gt_zstd_frame_load(&c->frame, c->source, extent, err);

	if (rc)
		return rc;
	chunk = chunk_of(&c->frame, seq);
	if (!chunk)
		return gt_damaged(err, c->source->path, extent->offset,
				  "event %llu is not where it must be", (unsigned long long)seq);
	if (make_window(c, room_for(c, chunk)))
		return gt_fail_memory(err, c->source->path);
	next = has_before(&c->window, &c->frame, chunk) ? chunk : begin_before(c, chunk);
	for (; !rc && next <= chunk; next++)
		rc = decode_chunk(c, next, err);
	return rc;
}

/* ---- units, which others may decode ---------------------------------------------------------- */

bool gt_unit_of(const struct gt_history *history, uint64_t seq, struct gt_unit *ret)
{
	const struct gt_stretch *s = stretch_of(history, seq);
	uint64_t all, each;

	if (!s)
		return false;
	all = s->last_seq - s->first_seq + 1;
	each = (all - 1) / ((all - 1) / UNIT + 1) + 1;
	ret->stretch = (size_t)(s - history->stretches);
	ret->from = seq - (seq - s->first_seq) % each;
	ret->to = s->last_seq - ret->from < each ? s->last_seq + 1 : ret->from + each;
	return true;
}

/* Whoever wants to know what is wrong with a unit decodes it chunk by chunk. */
int gt_cursor_fill(struct gt_cursor *c, const struct gt_unit *unit)
{
	const struct gt_extent *extent = &c->history->stretches[unit->stretch].extent;
	const struct gt_chunk_at *start, *chunk, *last;
	uint64_t room = 0;
	int rc = gt_zstd_frame_load(&c->frame, c->source, extent, NULL);

	if (rc)
		return rc;
	chunk = chunk_of(&c->frame, unit->from);
	last = chunk_of(&c->frame, unit->to - 1);
	if (!chunk || !last)
		return -1;
	start = start_before(&c->frame, chunk, GT_BACK_MAX);
	for (const struct gt_chunk_at *at = start; at <= last; at++)
		room += at->events;
	if (room > ROOM_MOST || make_window(c, room))
		return -1;
	begin(&c->window, start, chunk);
	for (; !rc && start <= last; start++)
		rc = decode_chunk(c, start, NULL);
	return rc;
}

/* From the second unit in one direction on, a walk is taken for a long one. */
static void come_to(struct gt_cursor *c, const struct gt_unit *unit, uint64_t seq)
{
	int direction = unit->from == c->unit.to ? 1 : unit->to == c->unit.from ? -1 : 0;

	if (!c->unit.to || unit->stretch != c->unit.stretch)
		gt_progress_add(c->source->path, c->history->stretches[unit->stretch].extent.used);
	c->unit = *unit;
	if (direction && !c->ahead && !c->source->live)
		c->ahead = gt_ahead_start(c, seq, direction);
}

/* Walks reach here once per chunk, or once per unit. */
static int load(struct gt_cursor *c, uint64_t seq, struct gt_error *err)
{
	struct gt_unit unit;
	int rc;

	if (!gt_unit_of(c->history, seq, &unit))
		return gt_fail(err, c->source->path, "event %llu is not in the history",
			       (unsigned long long)seq);
	come_to(c, &unit, seq);
	if (c->ahead && !gt_ahead_get(c->ahead, seq, &c->hand))
		return 0;
	c->ahead = gt_ahead_stop(c->ahead);
	rc = load_chunk(c, seq, err);
	c->hand = c->window;
	return rc;
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
	if (!at_hand(c, seq)) {
		rc = load(c, seq, err);
		if (rc)
			return rc;
	}
	*ret = gt_window_at(&c->hand, seq);
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
	c->added = &trace->reader->added[trace->lanes[lane_index].lane];
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
	const struct gt_event *event = NULL;
	int rc = gt_cursor_at(c, seq, &event, err);

	if (rc == GT_RECYCLED)
		gt_fail(err, c->source->path,
			"its process has overwritten this history while it was read: try again");
	return rc ? NULL : event;
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

void gt_cursor_seek(struct gt_cursor *c, uint64_t seq)
{
	const struct gt_history *h = c->history;

	c->position = (seq < h->last_seq ? seq : h->last_seq) + 1;
	if (c->position < h->first_seq)
		c->position = h->first_seq;
}
