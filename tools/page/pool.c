/* SPDX-License-Identifier: MIT */
/* See pool.h. Called from cmd/html_facts.c. */
#include "page/pool.h"

#include <stdlib.h>
#include <string.h>
#include "model/label.h"
#include "model/state.h"
#include "page/text.h"

#define MOST_ROWS   16
#define MOST_PIECES 120

static int by_cached(const void *a, const void *b)
{
	const struct gt_segment *x = a, *y = b;
	bool p = !x->used, q = !y->used; /* whole ones can be given back: they come last */
	uint64_t m = x->size - x->used, n = y->size - y->used;

	if (p != q)
		return p ? 1 : -1;
	if (m != n)
		return m < n ? 1 : -1;
	return x->size < y->size ? 1 : x->size > y->size ? -1 : x->addr < y->addr ? -1 : 1;
}

static bool same(const struct gt_segment *a, const struct gt_segment *b)
{
	if (a->size != b->size || a->used != b->used || a->piece_count != b->piece_count)
		return false;
	for (size_t i = 0; i < a->piece_count; i++)
		if (a->pieces[i].size != b->pieces[i].size ||
		    a->pieces[i].used != b->pieces[i].used ||
		    (a->pieces[i].used && a->pieces[i].site != b->pieces[i].site))
			return false;
	return true;
}

/* The line that holds most of it. */
static json_t *pin_of(const struct gt_trace *trace, struct gt_symbols *symbols,
		      const struct gt_trace_lane *lane, const struct gt_segment *segment)
{
	const struct gt_piece *most = NULL;
	struct gt_label label;
	json_t *text;

	for (size_t i = 0; i < segment->piece_count; i++)
		if (segment->pieces[i].used && (!most || segment->pieces[i].size > most->size))
			most = &segment->pieces[i];
	if (!most || most->site >= lane->site_count)
		return json_string("");
	gt_label_make(symbols, trace, &lane->site_defs[most->site], GT_STREAM_UNKNOWN, GT_BY_LINE,
		      &label);
	text = gt_page_string(label.text);
	gt_label_clear(&label);
	return text;
}

static int kind_of(const struct gt_segment *segment, const struct gt_piece *piece)
{
	return piece->used ? 0 : segment->used ? 1 : 2;
}

/* Where there are many, neighbours of a kind become one. */
static json_t *json_pieces(const struct gt_segment *segment)
{
	bool join = segment->piece_count > MOST_PIECES;
	json_t *pieces = json_array();
	uint64_t size = 0;

	for (size_t i = 0; i < segment->piece_count; i++) {
		const struct gt_piece *piece = &segment->pieces[i];

		size += piece->size;
		if (join && i + 1 < segment->piece_count && piece[1].used == piece->used)
			continue;
		json_array_append_new(
			pieces, json_pack("[I, i]", (json_int_t)size, kind_of(segment, piece)));
		size = 0;
	}
	return pieces;
}

static json_t *sums_of(const struct gt_segment_list *list)
{
	uint64_t used = 0, stuck = 0, empty = 0, largest = 0;

	for (size_t i = 0; i < list->count; i++) {
		const struct gt_segment *segment = &list->segments[i];

		used += segment->used;
		*(segment->used ? &stuck : &empty) += segment->size - segment->used;
		for (size_t k = 0; k < segment->piece_count; k++)
			if (!segment->pieces[k].used && segment->pieces[k].size > largest)
				largest = segment->pieces[k].size;
	}
	return json_pack("{s:I, s:I, s:I, s:I, s:I}", "count", (json_int_t)list->count, "used",
			 (json_int_t)used, "stuck", (json_int_t)stuck, "empty", (json_int_t)empty,
			 "largest", (json_int_t)largest);
}

json_t *gt_page_pool(const struct gt_trace *trace, struct gt_symbols *symbols,
		     const struct gt_trace_lane *lane, const struct gt_segment_list *list)
{
	json_t *result = sums_of(list), *rows = json_array();
	uint64_t rest = 0, rest_size = 0, rest_used = 0;

	if (list->count)
		qsort(list->segments, list->count, sizeof(*list->segments), by_cached);
	for (size_t i = 0, n; i < list->count; i += n) {
		const struct gt_segment *segment = &list->segments[i];

		for (n = 1; i + n < list->count && same(segment, segment + n);)
			n++;
		if (json_array_size(rows) < MOST_ROWS) {
			json_array_append_new(rows, json_pack("{s:I, s:I, s:I, s:b, s:o, s:o}", "n",
							      (json_int_t)n, "size",
							      (json_int_t)segment->size, "used",
							      (json_int_t)segment->used, "pool",
							      segment->pool, "pin",
							      pin_of(trace, symbols, lane, segment),
							      "pieces", json_pieces(segment)));
			continue;
		}
		rest += n;
		rest_size += n * segment->size;
		rest_used += n * segment->used;
	}
	json_object_set_new(result, "rows", rows);
	json_object_set_new(result, "rest",
			    json_pack("{s:I, s:I, s:I}", "n", (json_int_t)rest, "size",
				      (json_int_t)rest_size, "used", (json_int_t)rest_used));
	return result;
}
