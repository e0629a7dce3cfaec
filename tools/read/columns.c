/* SPDX-License-Identifier: MIT */
/*
 * The raw bytes of a chunk are columns, one per field, each coded by itself. A column is decoded as
 * a batch into words (its coding), turned into values (deltas summed, rotation undone), checked
 * against its limit, and only then spread over the events: short loops with one job that the
 * compiler can unroll, at a few ns per event for all of them. Works on private memory; called by
 * cursor.c.
 */
#include <string.h>
#include "read/reader.h"

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

static inline const uint8_t *varint(const uint8_t *p, const uint8_t *end, uint64_t *ret)
{
	if (p < end && *p < 128) {
		*ret = *p;
		return p + 1;
	}
	return varint_long(p, end, ret);
}

static bool read_varints(const uint8_t *p, const uint8_t *end, uint64_t *values, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		p = varint(p, end, &values[i]);
		if (!p)
			return false;
	}
	return p == end;
}

static bool read_const(const uint8_t *p, const uint8_t *end, uint64_t *values, size_t count)
{
	uint64_t value;

	if (varint(p, end, &value) != end)
		return false;
	for (size_t i = 0; i < count; i++)
		values[i] = value;
	return true;
}

static bool read_bytes(const uint8_t *p, const uint8_t *end, uint64_t *values, size_t count)
{
	if ((size_t)(end - p) != count)
		return false;
	for (size_t i = 0; i < count; i++)
		values[i] = p[i];
	return true;
}

static void sum_deltas(uint64_t *values, size_t count)
{
	uint64_t value = 0;

	for (size_t i = 0; i < count; i++) {
		value += values[i] >> 1 ^ (0 - (values[i] & 1));
		values[i] = value;
	}
}

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
		return read_const(p, end, values, count);
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

static bool within(uint64_t *values, size_t count, uint64_t max, bool clamp)
{
	uint64_t over = 0;

	for (size_t i = 0; i < count; i++)
		over |= values[i] > max;
	for (size_t i = 0; over && clamp && i < count; i++)
		values[i] = values[i] > max ? 0 : values[i];
	return !over || clamp;
}

static void spread(unsigned int id, const uint64_t *values, struct gt_event *events, size_t count)
{
#define COLUMN(column, field, type)                        \
	case column:                                       \
		for (size_t i = 0; i < count; i++)         \
			events[i].field = (type)values[i]; \
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

const char *gt_columns_decode(const uint8_t *raw, size_t length, const struct gt_limits *limits,
			      struct gt_event *events, size_t count, uint64_t *scratch)
{
	const uint8_t *p = raw, *end = raw + length;
	struct gt_column column;
	uint32_t seen = 0;

	memset(events, 0, count * sizeof(*events));
	while (p < end) {
		if ((size_t)(end - p) < sizeof(column))
			return "a column's head is cut";
		memcpy(&column, p, sizeof(column));
		p += sizeof(column);
		if (column.length > (size_t)(end - p))
			return "a column is longer than its chunk";
		if (column.id > 0 && column.id < GT_COLS) {
			if (seen & 1u << column.id)
				return "a column stands twice in a chunk";
			seen |= 1u << column.id;
			if (!read_values(column.coding, p, p + column.length, scratch, count))
				return "a column does not decode";
			if (!within(scratch, count, limits->max[column.id], limits->clamp))
				return "an event names something that is not defined";
			spread(column.id, scratch, events, count);
		}
		p += column.length;
	}
	for (size_t i = 0; i < count; i++)
		events[i].birth_us = events[i].us - events[i].birth_us;
	return NULL;
}

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
