/* SPDX-License-Identifier: MIT */
/*
 * See pickle.h. Only opcodes of the subset that memory_viz implements; lists grow in batches,
 * because a browser cannot push 150,000 items in one call; memo numbers are explicit (BINPUT),
 * since the viewer and CPython count implicit ones differently.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/xalloc.h"
#include "out/pickle.h"

#include <uthash.h>

#define BATCH 1000u /* items per MARK; even, for keys come with values */
#define DEPTH 16u   /* of nested lists and dicts */

enum opcode {
	OP_PROTO = 0x80,
	OP_STOP = '.',
	OP_MARK = '(',
	OP_TRUE = 0x88,
	OP_FALSE = 0x89,
	OP_BININT = 'J',
	OP_BININT1 = 'K',
	OP_BININT2 = 'M',
	OP_LONG1 = 0x8a,
	OP_BINUNICODE = 'X',
	OP_EMPTY_LIST = ']',
	OP_APPENDS = 'e',
	OP_EMPTY_DICT = '}',
	OP_SETITEMS = 'u',
	OP_TUPLE2 = 0x86,
	OP_BINPUT = 'q',
	OP_LONG_BINPUT = 'r',
	OP_BINGET = 'h',
	OP_LONG_BINGET = 'j',
};

struct text {
	uint32_t memo;
	UT_hash_handle hh;
	char bytes[];
};

struct container {
	enum opcode grow; /* OP_APPENDS or OP_SETITEMS */
	uint32_t items;	  /* since the last MARK; 0 = no MARK open */
};

struct gt_pickle {
	FILE *file;
	uint32_t memos; /* given out */
	struct text *texts;
	struct container open[DEPTH];
	unsigned int depth;
};

static void put(struct gt_pickle *pickle, enum opcode opcode)
{
	putc_unlocked(opcode, pickle->file);
}

/* Little-endian, length bytes. */
static void put_number(struct gt_pickle *pickle, enum opcode opcode, uint64_t value,
		       unsigned int length)
{
	put(pickle, opcode);
	for (; length; length--, value >>= 8)
		putc_unlocked((int)(value & 0xff), pickle->file);
}

struct gt_pickle *gt_pickle_new(FILE *file)
{
	struct gt_pickle *pickle = gt_xcalloc(1, sizeof(*pickle));

	pickle->file = file;
	put_number(pickle, OP_PROTO, 2, 1);
	return pickle;
}

int gt_pickle_end(struct gt_pickle *pickle)
{
	struct text *text, *next;
	int rc = 0;

	put(pickle, OP_STOP);
	errno = 0;
	if (fflush(pickle->file) || ferror(pickle->file))
		rc = errno ? -errno : -EIO;
	HASH_ITER(hh, pickle->texts, text, next) {
		HASH_DEL(pickle->texts, text);
		free(text);
	}
	free(pickle);
	return rc;
}

/* ---- containers ---------------------------------------------------------------------------- */

/* Before each value: it may be the first of a batch. */
static void begin_value(struct gt_pickle *pickle)
{
	struct container *container;

	if (!pickle->depth)
		return;
	container = &pickle->open[pickle->depth - 1];
	if (container->items == BATCH) {
		put(pickle, container->grow);
		container->items = 0;
	}
	if (!container->items++)
		put(pickle, OP_MARK);
}

static void open_container(struct gt_pickle *pickle, enum opcode empty, enum opcode grow)
{
	begin_value(pickle);
	put(pickle, empty);
	if (pickle->depth == DEPTH)
		abort(); /* the caller's mistake: depth does not depend on data */
	pickle->open[pickle->depth++] = (struct container){.grow = grow};
}

void gt_pickle_list(struct gt_pickle *pickle)
{
	open_container(pickle, OP_EMPTY_LIST, OP_APPENDS);
}

void gt_pickle_dict(struct gt_pickle *pickle)
{
	open_container(pickle, OP_EMPTY_DICT, OP_SETITEMS);
}

void gt_pickle_close(struct gt_pickle *pickle)
{
	struct container *container = &pickle->open[--pickle->depth];

	if (container->items)
		put(pickle, container->grow);
}

/* ---- memo ---------------------------------------------------------------------------------- */

uint32_t gt_pickle_keep(struct gt_pickle *pickle)
{
	uint32_t memo = pickle->memos++;

	if (memo < 256)
		put_number(pickle, OP_BINPUT, memo, 1);
	else
		put_number(pickle, OP_LONG_BINPUT, memo, 4);
	return memo + 1;
}

void gt_pickle_again(struct gt_pickle *pickle, uint32_t kept)
{
	uint32_t memo = kept - 1;

	begin_value(pickle);
	if (memo < 256)
		put_number(pickle, OP_BINGET, memo, 1);
	else
		put_number(pickle, OP_LONG_BINGET, memo, 4);
}

/* ---- values -------------------------------------------------------------------------------- */

void gt_pickle_bool(struct gt_pickle *pickle, bool value)
{
	begin_value(pickle);
	put(pickle, value ? OP_TRUE : OP_FALSE);
}

/* Bytes of the shortest two's complement. */
static unsigned int long_length(int64_t value)
{
	unsigned int length = 1;

	while (length < 8 && (value < -(INT64_C(1) << (8 * length - 1)) ||
			      value >= INT64_C(1) << (8 * length - 1)))
		length++;
	return length;
}

static void put_long(struct gt_pickle *pickle, int64_t value)
{
	unsigned int length = long_length(value);
	uint64_t bits = (uint64_t)value;

	put_number(pickle, OP_LONG1, length, 1);
	for (; length; length--, bits >>= 8)
		putc_unlocked((int)(bits & 0xff), pickle->file);
}

static void put_int(struct gt_pickle *pickle, int64_t value)
{
	if (value >= 0 && value < 1 << 8)
		put_number(pickle, OP_BININT1, (uint64_t)value, 1);
	else if (value >= 0 && value < 1 << 16)
		put_number(pickle, OP_BININT2, (uint64_t)value, 2);
	else if (value >= INT32_MIN && value <= INT32_MAX)
		put_number(pickle, OP_BININT, (uint64_t)value, 4);
	else
		put_long(pickle, value);
}

void gt_pickle_int(struct gt_pickle *pickle, int64_t value)
{
	begin_value(pickle);
	put_int(pickle, value);
}

void gt_pickle_pair(struct gt_pickle *pickle, int64_t first, int64_t second)
{
	begin_value(pickle);
	put_int(pickle, first);
	put_int(pickle, second);
	put(pickle, OP_TUPLE2);
}

static void put_text(struct gt_pickle *pickle, const char *text, size_t length)
{
	begin_value(pickle);
	put_number(pickle, OP_BINUNICODE, length, 4);
	fwrite_unlocked(text, 1, length, pickle->file);
}

void gt_pickle_text(struct gt_pickle *pickle, const char *text)
{
	size_t length = strlen(text);
	struct text *known;

	HASH_FIND(hh, pickle->texts, text, length, known);
	if (known) {
		gt_pickle_again(pickle, known->memo);
		return;
	}
	put_text(pickle, text, length);
	known = gt_xcalloc(1, sizeof(*known) + length + 1);
	memcpy(known->bytes, text, length);
	known->memo = gt_pickle_keep(pickle);
	HASH_ADD(hh, pickle->texts, bytes, length, known);
}

void gt_pickle_word(struct gt_pickle *pickle, uint32_t *memo, const char *text)
{
	if (*memo) {
		gt_pickle_again(pickle, *memo);
		return;
	}
	put_text(pickle, text, strlen(text));
	*memo = gt_pickle_keep(pickle);
}
