/* SPDX-License-Identifier: MIT */
/*
 * The raw bytes of a chunk are columns, one per field, each coded by itself. Each is decoded as a
 * batch into words (its coding), turned into values (deltas summed, rotation undone) and checked
 * against its limit, then spread over the events: short loops with one job. Events are put together
 * some at a time, so that they stay in the cache for all columns; what is the same in every event
 * is written once. Works on private memory; called by cursor.c.
 */
#include <string.h>
#include "read/reader.h"

#define IN_CACHE 128 /* events put together at a time: 9 KiB */

void gt_limits_widths(struct gt_limits *ret)
{
	memset(ret->max, 0xff, sizeof(ret->max));
	ret->clamp = false;
	ret->max[GT_COL_OP] = UINT8_MAX;
	ret->max[GT_COL_SPACE] = UINT8_MAX;
	ret->max[GT_COL_THREAD] = UINT16_MAX;
	ret->max[GT_COL_BIRTH_THREAD] = UINT16_MAX;
	ret->max[GT_COL_STREAM] = UINT16_MAX;
	ret->max[GT_COL_SITE] = UINT32_MAX;
	ret->max[GT_COL_FREE_SITE] = UINT32_MAX;
	ret->max[GT_COL_AUX] = UINT32_MAX;
}

/* LEB128 of at most ten bytes; the position behind it, or NULL when there is none. */
static const uint8_t *varint_long(const uint8_t *p, const uint8_t *end, uint64_t *ret)
{
	uint64_t value = 0;

	for (unsigned int shift = 0; p < end && shift < 70; shift += 7) {
		value |= (uint64_t)(*p & 127) << shift;
		if (!(*p++ & 128)) {
			*ret = value;
			return p;
		}
	}
	return NULL;
}

/* The low seven bits of each of eight bytes, pushed together in pairs. */
static inline uint64_t join_sevens(uint64_t x)
{
	x = (x & 0x7f007f007f007f00) >> 1 | (x & 0x007f007f007f007f);
	x = (x & 0x3fff00003fff0000) >> 2 | (x & 0x00003fff00003fff);
	return (x & 0x0fffffff00000000) >> 4 | (x & 0x000000000fffffff);
}

/* Up to eight bytes at once: addresses take five or six, and a loop over them mispredicts its end.
 */
static inline const uint8_t *varint(const uint8_t *p, const uint8_t *end, uint64_t *ret)
{
	uint64_t word, stops;

	if (p < end && *p < 128) {
		*ret = *p;
		return p + 1;
	}
	if (end - p < 8)
		return varint_long(p, end, ret);
	memcpy(&word, p, 8);
	stops = ~word & 0x8080808080808080;
	if (!stops)
		return varint_long(p, end, ret);
	*ret = join_sevens(word & (stops ^ (stops - 1)));
	return p + __builtin_ctzll(stops) / 8 + 1;
}

/* Exactly count values must use up exactly the column. */
static bool read_varints(const uint8_t *p, const uint8_t *end, uint64_t *values, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		p = varint(p, end, &values[i]);
		if (!p)
			return false;
	}
	return p == end;
}

static bool read_bytes(const uint8_t *p, const uint8_t *end, uint64_t *values, size_t count)
{
	if ((size_t)(end - p) != count)
		return false;
	for (size_t i = 0; i < count; i++)
		values[i] = p[i];
	return true;
}

/* Zigzag undone and summed, modulo 2^64 as the writer subtracted: no overflow is an error. */
static void sum_deltas(uint64_t *values, size_t count)
{
	uint64_t value = 0;

	for (size_t i = 0; i < count; i++) {
		value += values[i] >> 1 ^ (0 - (values[i] & 1));
		values[i] = value;
	}
}

/* Addresses and sizes are multiples of 512 mostly: rotated, their deltas are small. */
static void rotate_back(uint64_t *values, size_t count)
{
	for (size_t i = 0; i < count; i++)
		values[i] = values[i] << 9 | values[i] >> 55;
}

static bool read_values(unsigned int coding, const uint8_t *p, const uint8_t *end, uint64_t *values,
			size_t count)
{
	switch (coding) {
	case GT_CODE_CONST:
		return varint(p, end, values) == end;
	case GT_CODE_BYTES:
		return read_bytes(p, end, values, count);
	case GT_CODE_PLAIN:
		return read_varints(p, end, values, count);
	case GT_CODE_DELTA:
	case GT_CODE_ROTATED:
		if (!read_varints(p, end, values, count))
			return false;
		sum_deltas(values, count);
		if (coding == GT_CODE_ROTATED)
			rotate_back(values, count);
		return true;
	default:
		return false;
	}
}

/* Branch-free, since it nearly always holds; clamp only then looks at each value again. */
static bool within(uint64_t *values, size_t count, uint64_t max, bool clamp)
{
	uint64_t over = 0;

	for (size_t i = 0; i < count; i++)
		over |= values[i] > max;
	for (size_t i = 0; over && clamp && i < count; i++)
		values[i] = values[i] > max ? 0 : values[i];
	return !over || clamp;
}

/* Decoded columns: of one that is the same everywhere the first value, of a missing one NULL. */
struct values {
	const uint64_t *value[GT_COLS];
	bool constant[GT_COLS];
	bool some;    /* of the columns behind op and back */
	size_t count; /* events of the chunk */
	size_t ends;  /* of them end a block: values of back */
	size_t whole; /* of them do not refer to another */
};

/* How many values a column has. */
static size_t values_of(const struct values *v, unsigned int id)
{
	if (id == GT_COL_BACK)
		return v->ends;
	return gt_column_whole(id) ? v->whole : v->count;
}

static size_t count_ends(const struct values *v)
{
	const uint64_t *op = v->value[GT_COL_OP];
	size_t ends = 0;

	if (v->constant[GT_COL_OP])
		return gt_op_effect((unsigned int)op[0]) < 0 ? v->count : 0;
	for (size_t i = 0; i < v->count; i++)
		ends += gt_op_effect((unsigned int)op[i]) < 0;
	return ends;
}

static void count_whole(struct values *v, uint64_t *back)
{
	for (size_t i = 1; v->constant[GT_COL_BACK] && i < v->ends; i++)
		back[i] = back[0];
	v->constant[GT_COL_BACK] = false;
	for (size_t i = 0; i < v->ends; i++)
		v->whole -= back[i] != 0;
}

static const char *read_column(const struct gt_column *column, const uint8_t *p,
			       const struct gt_limits *limits, struct values *v, uint64_t *scratch)
{
	uint64_t *to = scratch + (column->id - 1) * v->count;
	const uint64_t max = limits->max[column->id];
	const bool constant = column->coding == GT_CODE_CONST;
	const size_t count = values_of(v, column->id);
	const bool fits =
		max == UINT64_MAX || (column->coding == GT_CODE_BYTES && max >= UINT8_MAX);

	if (v->value[column->id])
		return "a column stands twice in a chunk";
	if (column->id == GT_COL_BACK && v->some)
		return "a column stands before those that say of which events it is";
	if (!read_values(column->coding, p, p + column->length, to, count))
		return "a column does not decode";
	if (!fits && !within(to, constant ? 1 : count, max, limits->clamp))
		return "an event names something that is not defined";
	v->value[column->id] = to;
	v->constant[column->id] = constant;
	if (column->id == GT_COL_OP)
		v->ends = count_ends(v);
	else if (column->id == GT_COL_BACK)
		count_whole(v, to);
	else
		v->some = true;
	return NULL;
}

/* Columns come in any order; unknown ones belong to later versions. */
static const char *read_columns(const uint8_t *p, size_t length, const struct gt_limits *limits,
				struct values *v, uint64_t *scratch)
{
	const uint8_t *end = p + length;
	struct gt_column column;
	const char *bad;

	while (p < end) {
		if ((size_t)(end - p) < sizeof(column))
			return "a column's head is cut";
		memcpy(&column, p, sizeof(column));
		p += sizeof(column);
		if (column.length > (size_t)(end - p))
			return "a column is longer than its chunk";
		if (column.id > 0 && column.id < GT_COLS) {
			bad = read_column(&column, p, limits, v, scratch);
			if (bad)
				return bad;
		}
		p += column.length;
	}
	return NULL;
}

/*
 * One column into events: value i into that of place at[i], or, without places, into event i. Ages
 * arrive in birth_us and are turned round when times are there.
 */
static inline __attribute__((always_inline)) void spread_to(unsigned int id, const uint64_t *values,
							    struct gt_event *events, size_t count,
							    const uint8_t *at)
{
#define COLUMN(column, field, type)                                     \
	case column:                                                    \
		for (size_t i = 0; i < count; i++)                      \
			events[at ? at[i] : i].field = (type)values[i]; \
		break
	switch (id) {
		COLUMN(GT_COL_OP, op, uint8_t);
		COLUMN(GT_COL_SPACE, space, uint8_t);
		COLUMN(GT_COL_TIME, us, uint64_t);
		COLUMN(GT_COL_THREAD, thread, uint16_t);
		COLUMN(GT_COL_ADDR, addr, uint64_t);
		COLUMN(GT_COL_SIZE, size, uint64_t);
		COLUMN(GT_COL_STREAM, stream, uint16_t);
		COLUMN(GT_COL_AGE, birth_us, uint64_t);
		COLUMN(GT_COL_BIRTH_THREAD, birth_thread, uint16_t);
		COLUMN(GT_COL_SITE, site, uint32_t);
		COLUMN(GT_COL_FREE_SITE, free_site, uint32_t);
		COLUMN(GT_COL_AUX, aux, uint32_t);
		COLUMN(GT_COL_EXTRA, extra, uint64_t);
	}
#undef COLUMN
}

static void spread(unsigned int id, const uint64_t *values, struct gt_event *events, size_t count)
{
	spread_to(id, values, events, count, NULL);
}

static void spread_some(unsigned int id, const uint64_t *values, struct gt_event *events,
			size_t count, const uint8_t *at)
{
	spread_to(id, values, events, count, at);
}

struct build { /* how far the events of a chunk are put together */
	const struct values *v;
	struct gt_window *window;
	struct gt_event all; /* what every event has in common */
	size_t done;	     /* events, and of them ends of blocks and those that do not refer */
	size_t ends, whole;
};

/* Which of the next n events refer back, how far (0: not at all), and the places of those that do not. */
static size_t find_whole(struct build *b, size_t n, uint64_t *back, uint8_t *at)
{
	const struct values *v = b->v;
	const uint64_t *op = v->value[GT_COL_OP], *backs = v->value[GT_COL_BACK];
	const bool constant = v->constant[GT_COL_OP];
	size_t whole = 0;

	for (size_t i = 0; i < n; i++) {
		bool ends = gt_op_effect((unsigned int)op[constant ? 0 : b->done + i]) < 0;

		back[i] = ends ? backs[b->ends++] : 0;
		at[whole] = (uint8_t)i;
		whole += !back[i];
	}
	return whole;
}

/* The alloc that stands so many events before is one of this extent, and kept. */
static const char *take_back(const struct build *b, uint64_t seq, uint64_t back)
{
	const struct gt_window *w = b->window;
	struct gt_event *e = gt_window_at(w, seq);
	const struct gt_event *from = gt_window_at(w, seq - back);

	if (!back || (seq < w->whole && seq - back < w->from))
		return NULL;
	if (back > GT_BACK_MAX || seq - back < w->from || back > seq || from->op != GT_OP_ALLOC)
		return "the end of a block refers to what is not there";
	e->addr = from->addr;
	e->size = from->size;
	e->birth_us = from->us;
	e->site = from->site;
	e->birth_thread = from->thread;
	e->stream = from->stream;
	e->space = from->space;
	return NULL;
}

/* The next n events, at one place of the window. */
static const char *build_some(struct build *b, size_t n)
{
	const struct values *v = b->v;
	const bool refers = v->whole < v->count;
	const uint64_t seq = b->window->to + b->done;
	struct gt_event *events = gt_window_at(b->window, seq);
	uint64_t back[IN_CACHE];
	uint8_t at[IN_CACHE];
	size_t whole = refers ? find_whole(b, n, back, at) : n;
	const char *bad = NULL;

	for (size_t i = 0; i < n; i++) {
		events[i] = b->all;
		events[i].seq = seq + i;
	}
	for (unsigned int id = 1; id < GT_COLS; id++) {
		if (!v->value[id] || v->constant[id])
			continue;
		if (refers && gt_column_whole(id))
			spread_some(id, v->value[id] + b->whole, events, whole, at);
		else
			spread(id, v->value[id] + b->done, events, n);
	}
	for (size_t i = 0; i < n; i++)
		events[i].birth_us = events[i].us - events[i].birth_us;
	for (size_t i = 0; refers && !bad && i < n; i++)
		bad = take_back(b, seq + i, back[i]);
	b->done += n;
	b->whole += whole;
	return bad;
}

/* A fixed number of events at a time stays in the first cache while all columns pass over it. */
static const char *build_events(const struct values *v, struct gt_window *w)
{
	struct build b = {.v = v, .window = w, .all.lane = w->lane};
	const char *bad = NULL;
	size_t n, behind;

	for (unsigned int id = 1; id < GT_COLS; id++) {
		if (v->constant[id])
			spread(id, v->value[id], &b.all, 1);
	}
	while (!bad && b.done < v->count) {
		n = v->count - b.done < IN_CACHE ? v->count - b.done : IN_CACHE;
		behind = w->capacity - ((w->to + b.done) & (w->capacity - 1));
		bad = build_some(&b, n < behind ? n : behind);
	}
	return bad;
}

const char *gt_columns_decode(const uint8_t *raw, size_t length, const struct gt_limits *limits,
			      struct gt_window *window, size_t count, uint64_t *scratch)
{
	struct values v = {.count = count, .whole = count};
	const char *bad = read_columns(raw, length, limits, &v, scratch);

	/* What is overwritten is not there any more, even if this fails. */
	if (!bad && window->to + count > window->from + window->capacity)
		window->from = window->to + count - window->capacity;
	if (window->whole < window->from)
		window->whole = window->from;
	if (!bad)
		bad = build_events(&v, window);
	if (!bad)
		window->to += count;
	return bad;
}

/* Cells need no limits here: whoever hands such an event out asks gt_event_within. */
void gt_event_of_cell(const struct gt_cell *cell, uint32_t lane, struct gt_event *ret)
{
	*ret = (struct gt_event){
		.seq = cell->seq_op >> 8,
		.op = cell->seq_op & 255,
		.us = GT_LOW48(cell->time_thread),
		.thread = (uint16_t)GT_HIGH16(cell->time_thread),
		.addr = GT_KEY_ADDR(cell->key),
		.space = (uint8_t)GT_KEY_SPACE(cell->key),
		.size = GT_LOW48(cell->size_stream),
		.stream = (uint16_t)GT_HIGH16(cell->size_stream),
		.birth_us = GT_LOW48(cell->birth),
		.birth_thread = (uint16_t)GT_HIGH16(cell->birth),
		.site = cell->site,
		.free_site = cell->free_site,
		.aux = cell->aux,
		.extra = cell->extra,
		.lane = lane,
	};
}

bool gt_event_within(struct gt_event *e, const struct gt_limits *limits)
{
	const uint64_t *max = limits->max;
	bool within = e->thread <= max[GT_COL_THREAD] &&
		      e->birth_thread <= max[GT_COL_BIRTH_THREAD] &&
		      e->stream <= max[GT_COL_STREAM] && e->site <= max[GT_COL_SITE] &&
		      e->free_site <= max[GT_COL_FREE_SITE];

	if (!within && limits->clamp) {
		e->thread = e->birth_thread = e->stream = 0;
		e->site = e->free_site = 0;
	}
	return within || limits->clamp;
}
