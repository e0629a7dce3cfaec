/* SPDX-License-Identifier: MIT */
/*
 * The history of one lane: which ring extents hold its sealed chunks, in order, and behind them the
 * events that were still in staging. Only chunk headers are read here. Events can be missing in the
 * middle (there was no extent to seal them into); state can be carried back only to there, so
 * history begins behind the last gap. A kill between the two stores of a seal leaves events both in
 * a chunk and in staging: chunks are believed.
 */
#include <stdlib.h>
#include <string.h>
#include "read/reader.h"

/* Follows the chunk headers of one extent; keeps the last gapless run. False: nothing usable. */
static int walk_chunks(struct gt_stretch *s, struct gt_source *source, bool partial,
		       struct gt_error *err)
{
	struct gt_extent *e = &s->extent;
	uint64_t at = sizeof(*e), next = 0;
	struct gt_chunk chunk;
	const char *bad = NULL;

	for (; at < e->used; at += gt_chunk_span(&chunk)) {
		bad = e->used - at < sizeof(chunk) ||
				      gt_source_copy(source, e->offset + at, &chunk, sizeof(chunk))
			      ? "a chunk's header is cut"
			      : gt_chunk_bad(&chunk, e->lane, e->used - at);
		if (!bad && chunk.first_seq < next)
			bad = "chunks are not in order";
		if (bad)
			break;
		if (chunk.first_seq != next) {
			s->first_seq = chunk.first_seq;
			s->first_us = chunk.first_us;
		}
		next = chunk.first_seq + chunk.events;
		s->last_us = chunk.last_us;
	}
	if (gt_source_word(source, e->offset + offsetof(struct gt_extent, gen)) != e->gen)
		return GT_RECYCLED;
	if (bad && !partial)
		return gt_damaged(err, source->path, e->offset + at, "%s", bad);
	e->used = at;
	s->last_seq = next - 1;
	return next ? 0 : GT_RECYCLED;
}

/* By sequence, not by serial: the same order, and this one the chunks themselves vouch for. */
static int by_sequence(const void *a, const void *b)
{
	const struct gt_stretch *x = a, *y = b;

	return x->first_seq < y->first_seq ? -1 : x->first_seq > y->first_seq;
}

/* Every ring extent of the lane that has chunks; one that was recycled meanwhile is not there. */
static int collect(struct gt_history *h, struct gt_source *source, const struct gt_extents *list,
		   bool partial, struct gt_error *err)
{
	const struct gt_extent *e;
	struct gt_stretch s;
	int rc;

	h->stretch_count = 0;
	for (size_t i = 0; i < list->count; i++) {
		e = &list->at[i];
		if (e->kind != GT_EXTENT_RING || e->lane != h->lane || e->used <= sizeof(*e))
			continue;
		memset(&s, 0, sizeof(s));
		s.extent = *e;
		rc = walk_chunks(&s, source, partial, err);
		if (rc < 0)
			return rc;
		if (rc == GT_RECYCLED)
			continue;
		if (gt_grow(&h->stretches, &h->stretch_capacity, h->stretch_count, sizeof(s)))
			return gt_fail_memory(err, source->path);
		h->stretches[h->stretch_count++] = s;
	}
	if (h->stretch_count)
		qsort(h->stretches, h->stretch_count, sizeof(s), by_sequence);
	return 0;
}

/* Drops what chunks hold already from the tail, and what lies behind last_seq from the chunks. */
static uint64_t trim_tail(struct gt_history *h)
{
	uint64_t sealed = 0, drop = 0;

	if (h->stretch_count)
		sealed = h->stretches[h->stretch_count - 1].last_seq;
	if (sealed > h->last_seq)
		sealed = h->last_seq;
	if (h->tail_count && sealed >= h->tail_first) {
		drop = sealed - h->tail_first + 1;
		drop = drop < h->tail_count ? drop : h->tail_count;
		memmove(h->tail, h->tail + drop, (h->tail_count - drop) * sizeof(*h->tail));
		h->tail_count -= drop;
		h->tail_first += drop;
	}
	return h->tail_count ? h->tail_first : h->last_seq + 1;
}

/* Keeps the newest stretches that join up to next, the first event that is not in a chunk. */
static void keep_joined(struct gt_history *h, uint64_t next)
{
	size_t i = h->stretch_count;

	while (i > 0) {
		struct gt_stretch *s = &h->stretches[i - 1];
		bool joins = s->last_seq + 1 == next ||
			     (i == h->stretch_count && s->first_seq < next && s->last_seq >= next);

		if (!joins)
			break;
		next = s->first_seq;
		h->first_us = s->first_us;
		i--;
	}
	if (i == h->stretch_count && h->tail_count)
		h->first_us = h->tail[0].us;
	if (i)
		memmove(h->stretches, h->stretches + i,
			(h->stretch_count - i) * sizeof(*h->stretches));
	h->stretch_count -= i;
	h->first_seq = next;
}

/* tail, tail_first, tail_count and last_seq are set by the caller, who knows which cells hold. */
int gt_history_build(struct gt_history *h, struct gt_source *source, const struct gt_extents *list,
		     bool partial, struct gt_error *err)
{
	int rc = collect(h, source, list, partial, err);

	if (rc)
		return rc;
	/* Stretches that begin behind the last event of interest: sealed since it was read. */
	while (h->stretch_count && h->stretches[h->stretch_count - 1].first_seq > h->last_seq)
		h->stretch_count--;
	keep_joined(h, trim_tail(h));
	if (h->tail_count)
		h->last_us = h->tail[h->tail_count - 1].us;
	else if (h->stretch_count)
		h->last_us = h->stretches[h->stretch_count - 1].last_us;
	return 0;
}

void gt_history_free(struct gt_history *h)
{
	free(h->stretches);
	free(h->tail);
	memset(h, 0, sizeof(*h));
}
