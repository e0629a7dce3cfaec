/* SPDX-License-Identifier: MIT */
/* The decoder of columns: each coding by hand, limits, and everything that must be refused. */
#include <stdlib.h>
#include <string.h>
#include <criterion/criterion.h>
#include "read/reader.h"

#define COUNT 3

struct column_bytes {
	uint8_t bytes[128];
	size_t length;
};

static struct column_bytes column(uint8_t id, uint8_t coding, const void *values, uint32_t length)
{
	const struct gt_column head = {.id = id, .coding = coding, .length = length};
	struct column_bytes c = {.length = sizeof(head) + length};

	memcpy(c.bytes, &head, sizeof(head));
	memcpy(c.bytes + sizeof(head), values, length);
	return c;
}

/* On the heap, so that a read behind the end is seen. */
static const char *decode_into(const struct column_bytes *c, struct gt_window *w)
{
	uint8_t *raw = malloc(c->length);
	uint64_t scratch[GT_SCRATCH(COUNT)];
	struct gt_limits limits;
	const char *bad;

	memcpy(raw, c->bytes, c->length);
	gt_limits_widths(&limits);
	bad = gt_columns_decode(raw, c->length, &limits, w, COUNT, scratch);
	free(raw);
	return bad;
}

/* As the first of an extent. */
static const char *decode(const struct column_bytes *c, struct gt_event *events)
{
	struct gt_event room[4];
	struct gt_window w = {.events = room, .capacity = 4};
	const char *bad = decode_into(c, &w);

	memcpy(events, room, COUNT * sizeof(*events));
	return bad;
}

static void add(struct column_bytes *c, uint8_t id, uint8_t coding, const void *values,
		uint32_t length)
{
	struct column_bytes more = column(id, coding, values, length);

	memcpy(c->bytes + c->length, more.bytes, more.length);
	c->length += more.length;
}

static void gives(const struct column_bytes *c, uint64_t a, uint64_t b, uint64_t third)
{
	struct gt_event events[COUNT];
	const char *bad = decode(c, events);

	cr_assert_null(bad, "%s", bad);
	cr_assert_eq(events[0].extra, a);
	cr_assert_eq(events[1].extra, b);
	cr_assert_eq(events[2].extra, third);
}

static void refuses(const struct column_bytes *c, const char *why)
{
	struct gt_event events[COUNT];
	const char *bad = decode(c, events);

	cr_assert_not_null(bad);
	cr_assert_str_eq(bad, why);
}

Test(columns, const_is_for_all)
{
	struct column_bytes c = column(GT_COL_EXTRA, GT_CODE_CONST, "\xac\x02", 2);

	gives(&c, 300, 300, 300);
}

Test(columns, bytes)
{
	struct column_bytes c = column(GT_COL_EXTRA, GT_CODE_BYTES, "\x00\x7f\xff", 3);

	gives(&c, 0, 127, 255);
}

Test(columns, plain)
{
	struct column_bytes c = column(GT_COL_EXTRA, GT_CODE_PLAIN,
				       "\x7f\x80\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 13);

	gives(&c, 127, 128, UINT64_MAX);
}

/* 5, then -3, then + 2^63: zigzag 10, 5, all ones. */
Test(columns, delta)
{
	struct column_bytes c = column(GT_COL_EXTRA, GT_CODE_DELTA,
				       "\x0a\x05\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 12);

	gives(&c, 5, 2, 2 + (1ull << 63));
}

/* 512 rotated is 1; 513 is 1 and the top bit down; back to 512. */
Test(columns, rotated)
{
	struct column_bytes c = column(GT_COL_EXTRA, GT_CODE_ROTATED, "\x02\x02\x03", 3);

	gives(&c, 512, 1024, 0);
}

Test(columns, missing_is_zero)
{
	struct column_bytes c = {.length = 0};

	gives(&c, 0, 0, 0);
}

Test(columns, unknown_is_skipped)
{
	struct column_bytes c = column(99, 99, "abc", 3);

	add(&c, GT_COL_EXTRA, GT_CODE_CONST, "\x09", 1);
	gives(&c, 9, 9, 9);
}

Test(columns, age_counts_back_from_time)
{
	struct column_bytes c = column(GT_COL_AGE, GT_CODE_BYTES, "\x00\x05\x0a", 3);
	struct gt_event events[COUNT];

	add(&c, GT_COL_TIME, GT_CODE_CONST, "\x64", 1);
	cr_assert_null(decode(&c, events));
	cr_assert_eq(events[0].birth_us, 100);
	cr_assert_eq(events[1].birth_us, 95);
	cr_assert_eq(events[2].birth_us, 90);
}

/* Two allocs and the end of the first: nothing of the block is there twice. */
static struct column_bytes two_and_back(const char *back)
{
	struct column_bytes c = column(GT_COL_OP, GT_CODE_BYTES, "\x01\x01\x02", 3);

	add(&c, GT_COL_BACK, GT_CODE_PLAIN, back, 1);
	add(&c, GT_COL_TIME, GT_CODE_BYTES, "\x05\x06\x09", 3);
	add(&c, GT_COL_THREAD, GT_CODE_BYTES, "\x01\x02\x03", 3);
	return c;
}

Test(columns, back_takes_what_is_there)
{
	struct column_bytes c = two_and_back("\x02");
	struct gt_event e[COUNT];

	add(&c, GT_COL_SIZE, GT_CODE_BYTES, "\x40\x50", 2);
	add(&c, GT_COL_ADDR, GT_CODE_BYTES, "\x10\x20", 2);
	add(&c, GT_COL_SITE, GT_CODE_BYTES, "\x07\x08", 2);
	add(&c, GT_COL_SPACE, GT_CODE_CONST, "\x02", 1);
	cr_assert_null(decode(&c, e));
	cr_assert(e[2].size == 0x40 && e[2].addr == 0x10 && e[2].site == 7 && e[2].space == 2);
	cr_assert(e[2].us == 9 && e[2].birth_us == 5 && e[2].thread == 3 && e[2].birth_thread == 1);
	cr_assert(e[1].size == 0x50 && e[1].addr == 0x20 && e[1].birth_us == 6);
}

/* Into the chunk before, across the end of the window's memory. */
Test(columns, back_into_the_chunk_before)
{
	struct gt_event room[8];
	struct gt_window w = {.events = room, .capacity = 8, .from = 4, .to = 4};
	struct column_bytes c = two_and_back("\x00");

	add(&c, GT_COL_ADDR, GT_CODE_BYTES, "\x10\x20\x10", 3);
	cr_assert_null(decode_into(&c, &w));
	c = column(GT_COL_OP, GT_CODE_CONST, "\x02", 1);
	add(&c, GT_COL_BACK, GT_CODE_BYTES, "\x02\x00\x00", 3);
	add(&c, GT_COL_ADDR, GT_CODE_BYTES, "\x30\x40", 2);
	cr_assert_null(decode_into(&c, &w));
	cr_assert(w.from == 4 && w.to == 10);
	cr_assert_eq(gt_window_at(&w, 7)->addr, 0x20);
	cr_assert_eq(gt_window_at(&w, 8)->addr, 0x30);
	cr_assert_eq(gt_window_at(&w, 9)->addr, 0x40);
}

Test(columns, back_refused)
{
	static const char *const there = "the end of a block refers to what is not there";
	struct column_bytes c = two_and_back("\x03");

	refuses(&c, there); /* before the first */
	c = column(GT_COL_OP, GT_CODE_BYTES, "\x04\x01\x02", 3);
	add(&c, GT_COL_BACK, GT_CODE_PLAIN, "\x02", 1);
	refuses(&c, there); /* what is no alloc */
	c = two_and_back("\x01");
	add(&c, GT_COL_ADDR, GT_CODE_BYTES, "\x10\x20\x10", 3);
	refuses(&c, "a column does not decode"); /* one value too many */
	c = column(GT_COL_OP, GT_CODE_BYTES, "\x01\x01\x02", 3);
	add(&c, GT_COL_SIZE, GT_CODE_CONST, "\x01", 1);
	add(&c, GT_COL_BACK, GT_CODE_PLAIN, "\x01", 1);
	refuses(&c, "a column stands before those that say of which events it is");
}

Test(columns, refused)
{
	static const char *const decodes = "a column does not decode";
	struct column_bytes c;

	c = column(GT_COL_EXTRA, GT_CODE_PLAIN, "\x01\x02", 2);
	refuses(&c, decodes); /* too few values */
	c = column(GT_COL_EXTRA, GT_CODE_PLAIN, "\x01\x02\x03\x04", 4);
	refuses(&c, decodes); /* too many */
	c = column(GT_COL_EXTRA, GT_CODE_PLAIN, "\x01\x02\x80", 3);
	refuses(&c, decodes); /* a varint is cut */
	c = column(GT_COL_EXTRA, GT_CODE_CONST, "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00", 11);
	refuses(&c, decodes); /* eleven bytes */
	c = column(GT_COL_EXTRA, GT_CODE_CONST, "", 0);
	refuses(&c, decodes);
	c = column(GT_COL_EXTRA, GT_CODE_BYTES, "\x01\x02", 2);
	refuses(&c, decodes);
	c = column(GT_COL_EXTRA, 6, "\x01\x02\x03", 3);
	refuses(&c, decodes); /* no such coding */
	c = column(GT_COL_EXTRA, GT_CODE_BYTES, "\x01\x02\x03", 3);
	c.length -= 1;
	refuses(&c, "a column is longer than its chunk");
	c.length = 5;
	refuses(&c, "a column's head is cut");
	c = column(GT_COL_THREAD, GT_CODE_CONST, "\x80\x80\x04", 3);
	refuses(&c, "an event names something that is not defined"); /* 65536 */
	c = column(GT_COL_EXTRA, GT_CODE_CONST, "\x01", 1);
	memcpy(c.bytes + c.length, c.bytes, c.length);
	c.length *= 2;
	refuses(&c, "a column stands twice in a chunk");
}

Test(columns, partial_takes_zero_instead)
{
	struct column_bytes c = column(GT_COL_SITE, GT_CODE_BYTES, "\x01\x05\x02", 3);
	struct gt_event events[4];
	struct gt_window w = {.events = events, .capacity = 4};
	uint64_t scratch[GT_SCRATCH(COUNT)];
	struct gt_limits limits;

	gt_limits_widths(&limits);
	limits.max[GT_COL_SITE] = 4;
	limits.clamp = true;
	cr_assert_null(gt_columns_decode(c.bytes, c.length, &limits, &w, COUNT, scratch));
	cr_assert_eq(events[0].site, 1);
	cr_assert_eq(events[1].site, 0);
	cr_assert_eq(events[2].site, 2);
}
