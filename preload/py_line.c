/* SPDX-License-Identifier: MIT */
/*
 * Line tables of code objects, decoded here: the interpreter's own function may read caches that
 * another thread is filling. Pure functions of bytes, bounded by the table's size.
 */
#include "py.h"

/* Pairs (address delta, line delta); a line holds until the address passes the next pair's. */
static int32_t lnotab(const uint8_t *t, size_t size, int32_t line, int32_t addr)
{
	int32_t at = 0;
	size_t i;

	for (i = 0; i + 1 < size; i += 2) {
		at += t[i];
		if (at > addr)
			break;
		line += (int8_t)t[i + 1];
	}
	return line;
}

/* Pairs (length of the range, line delta); delta -128: the range has no line. */
static int32_t ranges(const uint8_t *t, size_t size, int32_t line, int32_t addr)
{
	int32_t end = 0;
	size_t i;

	for (i = 0; i + 1 < size; i += 2) {
		int8_t delta = (int8_t)t[i + 1];

		end += t[i];
		if (delta != -128)
			line += delta;
		if (end > addr)
			return delta == -128 ? 0 : line;
	}
	return 0;
}

/* Six bits a byte, least first; bit 6: more follow. The lowest bit of the number is its sign. */
static int32_t signed_varint(const uint8_t *t, const uint8_t *end)
{
	uint32_t v = 0, shift = 0;

	while (t < end && shift < 30) {
		v |= (uint32_t)(*t & 63) << shift;
		shift += 6;
		if (!(*t++ & 64))
			break;
	}
	return v & 1 ? -(int32_t)(v >> 1) : (int32_t)(v >> 1);
}

enum { KIND_ONE_LINE_0 = 10, KIND_NO_COLUMNS = 13, KIND_LONG = 14, KIND_NONE = 15 };

/* The line delta of the entry at t. */
static int32_t delta_of(const uint8_t *t, const uint8_t *end)
{
	unsigned kind = *t >> 3 & 15;

	if (kind == KIND_NO_COLUMNS || kind == KIND_LONG)
		return signed_varint(t + 1, end);
	if (kind >= KIND_ONE_LINE_0 && kind < KIND_NO_COLUMNS)
		return (int32_t)(kind - KIND_ONE_LINE_0);
	return 0;
}

/* Entries: head byte 1kkkklll (kind, length - 1 in code units), then bytes below 0x80. */
static int32_t locations(const uint8_t *t, size_t size, int32_t line, int32_t addr)
{
	const uint8_t *stop = t + size;
	int32_t end = 0;

	while (t < stop) {
		unsigned kind = *t >> 3 & 15;

		end += 2 * ((*t & 7) + 1);
		line += delta_of(t, stop);
		if (end > addr)
			return kind == KIND_NONE ? 0 : line;
		while (++t < stop && !(*t & 0x80))
			;
	}
	return 0;
}

int32_t gt_py_line(enum gt_py_lines coding, const uint8_t *table, size_t size, int32_t first_line,
		   int32_t addr)
{
	if (addr < 0)
		return first_line;
	if (coding == GT_PY_LNOTAB)
		return lnotab(table, size, first_line, addr);
	if (coding == GT_PY_RANGES)
		return ranges(table, size, first_line, addr);
	return locations(table, size, first_line, addr);
}
