/* SPDX-License-Identifier: MIT */
/*
 * What can be known of interpreters that are not here: which versions are accepted, how the table
 * of offsets is compared, line tables by hand, and a walk over a free-threaded 3.14 whose thread
 * state, frames and code objects are laid out in memory by this test, from numbers of its own.
 */
#include <criterion/criterion.h>
#include <pthread.h>
#include <string.h>

#include "../../preload/py.h"

extern uint32_t pylib_node(uint32_t id, uint32_t *code, int32_t *line);
extern int pylib_calls(uint32_t id);
extern int32_t pylib_code(uint32_t id, uint32_t *file, uint32_t *name, uint32_t *qualname);
extern const char *pylib_string(uint32_t id, size_t *length);

static const char *reason_for(const char *version)
{
	const char *reason;

	return gt_py_layout_find(version, &reason) ? NULL : reason;
}

Test(layout, versions)
{
	static const char *const good[] = {"3.8.0 (default, ...)",
					   "3.9.18 (main)",
					   "3.10.13+ (main)",
					   "3.11.2",
					   "3.12.1 (main)",
					   "3.13.0rc2 (main)",
					   "3.14.0 (tags/v3.14.0)",
					   "3.13.1 experimental free-threading build (main)",
					   "3.14.2 free-threading build (main)"};
	static const char *const unknown[] = {"3.7.16 (default)",
					      "3.15.0 (main)",
					      "2.7.18",
					      "4.0.0",
					      "3.1.4",
					      "3.80.1",
					      "3.",
					      "",
					      "pypy",
					      "3.12.0 free-threading build"};
	size_t i;

	for (i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		cr_expect_null(reason_for(good[i]), "%s", good[i]);
	for (i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++)
		cr_expect_str_eq(reason_for(unknown[i]), "unknown version", "%s", unknown[i]);
	cr_expect_str_eq(reason_for("3.13.0a6 (main)"), "pre-release version");
	cr_expect_str_eq(reason_for("3.14.0b1+ (main)"), "pre-release version");
}

/* ---- the interpreter's own table of offsets -------------------------------------------------- */

struct at {
	uint16_t at;
	uint64_t value;
};

static const struct at table_14t[] = {
	{16, 1},    {208, 72},	{216, 152}, {256, 8},	{264, 0},   {272, 56}, {288, 78},
	{304, 72},  {320, 128}, {328, 136}, {336, 144}, {344, 152}, {352, 84}, {384, 232},
	{392, 224}, {408, 24},	{600, 32},  {608, 48},	{624, 48},  {632, 32}, {640, 56},
};
static const struct at table_13[] = {
	{184, 72},  {192, 152}, {232, 8},   {240, 0},	{248, 56}, {264, 70},
	{280, 112}, {288, 120}, {296, 128}, {304, 136}, {312, 68}, {344, 200},
	{360, 8},   {520, 16},	{528, 32},  {544, 32},	{552, 16}, {560, 40},
};

static void fill(uint64_t *runtime, uint64_t hex, const struct at *table, size_t n)
{
	memset(runtime, 0, 760);
	memcpy(runtime, "xdebugpy", 8);
	runtime[1] = hex;
	while (n--)
		runtime[table[n].at / 8] = table[n].value;
}

static void check_table(const char *version, uint64_t hex, const struct at *table, size_t n)
{
	const char *reason;
	const struct gt_py_layout *l = gt_py_layout_find(version, &reason);
	uint64_t runtime[95];
	size_t i;

	fill(runtime, hex, table, n);
	cr_assert_null(gt_py_layout_compare(l, runtime), "%s", version);
	for (i = 0; i < n; i++) {
		runtime[table[i].at / 8] += 8;
		cr_expect_not_null(gt_py_layout_compare(l, runtime), "%s at %d", version,
				   table[i].at);
		runtime[table[i].at / 8] -= 8;
	}
	runtime[1] += 1 << 16;
	cr_expect_not_null(gt_py_layout_compare(l, runtime));
	runtime[1] -= 1 << 16;
	runtime[0]++;
	cr_expect_not_null(gt_py_layout_compare(l, runtime));
	cr_expect_not_null(gt_py_layout_compare(l, NULL));
}

Test(layout, tables_of_offsets)
{
	check_table("3.14.2 free-threading build", 0x030e02f0, table_14t,
		    sizeof(table_14t) / sizeof(table_14t[0]));
	check_table("3.13.0 (main)", 0x030d00f0, table_13, sizeof(table_13) / sizeof(table_13[0]));
}

/* ---- line tables ----------------------------------------------------------------------------- */

struct line_case {
	enum gt_py_lines coding;
	const char *table;
	size_t size;
	int32_t addr, line;
};

#define TABLE(bytes) bytes, sizeof(bytes) - 1

/* First line 10 throughout. */
static const struct line_case line_cases[] = {
	{GT_PY_LNOTAB, TABLE(""), 4, 10},
	{GT_PY_LNOTAB, TABLE("\x06\x02"), 4, 10},
	{GT_PY_LNOTAB, TABLE("\x06\x02"), 6, 12},
	{GT_PY_LNOTAB, TABLE("\x06\x02\x04\xff"), 10, 11},
	{GT_PY_LNOTAB, TABLE("\xff\x00\x2d\x7f\x00\x7f"), 300, 10 + 254},
	{GT_PY_LNOTAB, TABLE("\x06\x02"), -1, 10},
	{GT_PY_RANGES, TABLE("\x04\x01\x06\x80\x02\x02"), 2, 11},
	{GT_PY_RANGES, TABLE("\x04\x01\x06\x80\x02\x02"), 4, 0},
	{GT_PY_RANGES, TABLE("\x04\x01\x06\x80\x02\x02"), 10, 13},
	{GT_PY_RANGES, TABLE("\x04\x01"), 4, 0},
	/* no columns: kind 13, delta +1 (2), two units; then one line, delta 2: kind 12, one unit
	 */
	{GT_PY_LOCATIONS, TABLE("\xe9\x02\xe0\x00\x00"), 2, 11},
	{GT_PY_LOCATIONS, TABLE("\xe9\x02\xe0\x00\x00"), 4, 13},
	/* long form: kind 14, delta +100 in two bytes, end line, columns */
	{GT_PY_LOCATIONS, TABLE("\xf0\x48\x03\x00\x01\x01"), 0, 110},
	{GT_PY_LOCATIONS, TABLE("\xe8\x03"), 0, 9},
	{GT_PY_LOCATIONS, TABLE("\xf8"), 0, 0},
	{GT_PY_LOCATIONS, TABLE("\xe8"), 0, 10}, /* cut */
	{GT_PY_LOCATIONS, TABLE("\xe8\x7f\x7f\x7f\x7f\x7f\x7f\x7f"), 8, 0},
};

Test(lines, tables_by_hand)
{
	size_t i;

	for (i = 0; i < sizeof(line_cases) / sizeof(line_cases[0]); i++) {
		const struct line_case *c = &line_cases[i];

		cr_expect_eq(
			gt_py_line(c->coding, (const uint8_t *)c->table, c->size, 10, c->addr),
			c->line, "case %zu: %d", i,
			gt_py_line(c->coding, (const uint8_t *)c->table, c->size, 10, c->addr));
	}
}

/* ---- a free-threaded 3.14 in memory ---------------------------------------------------------- */

struct memory {
	uint64_t words[4096];
	size_t used;
};

static struct memory memory;
static uint64_t code_type[64], str_type[64], bytes_type[64];

static char *take(size_t bytes)
{
	char *p = (char *)&memory.words[memory.used];

	memory.used += (bytes + 7) / 8;
	return p;
}

static void put(char *object, int offset, uint64_t value)
{
	memcpy(object + offset, &value, 8);
}

static void put32(char *object, int offset, uint32_t value)
{
	memcpy(object + offset, &value, 4);
}

static void put_ptr(char *object, int offset, const void *value)
{
	put(object, offset, (uint64_t)value);
}

/* kind 1, compact, ascii: bits 8, 11 and 12 here */
static char *make_str(const char *text)
{
	char *s = take(64 + strlen(text));

	put_ptr(s, 24, str_type);
	put(s, 32, strlen(text));
	put32(s, 48, 1u << 2 | 1u << 11 | 1u << 12);
	memcpy(s + 56, text, strlen(text));
	return s;
}

/* U+4F8B U+5B50: kind 2, compact, not ascii */
static char *make_wide_str(void)
{
	static const uint16_t text[] = {0x4f8b, 0x5b50};
	char *s = take(80);

	put_ptr(s, 24, str_type);
	put(s, 32, 2);
	put32(s, 48, 2u << 2 | 1u << 11);
	memcpy(s + 72, text, sizeof(text));
	return s;
}

static char *make_bytes(const char *data, size_t n)
{
	char *b = take(56 + n);

	put_ptr(b, 24, bytes_type);
	put(b, 32, n);
	memcpy(b + 48, data, n);
	return b;
}

/* Four units on lines 11, 12, 13, 14 of a function that starts at line 10. */
static char *make_code(const char *name, uint32_t version)
{
	static const char lines[] = "\xe8\x02\xe8\x02\xe8\x02\xe8\x02";
	char *code = take(256 + 16);

	put_ptr(code, 24, code_type);
	put(code, 32, 4);
	put32(code, 84, 10);
	put32(code, 108, version);
	put_ptr(code, 128, make_wide_str());
	put_ptr(code, 136, make_str(name));
	put_ptr(code, 144, make_str(name));
	put_ptr(code, 152, make_bytes(lines, sizeof(lines) - 1));
	put32(code, 208, 1);
	return code;
}

static void set_copies(char *code, char *const *copies, int n)
{
	char *array = take(8 + 8 * (size_t)n);
	int i;

	put(array, 0, (uint64_t)n);
	for (i = 0; i < n; i++)
		put_ptr(array, 8 + 8 * i, copies[i]);
	put_ptr(code, 224, array);
}

static char *make_frame(char *previous, const char *code, const char *instr, uint8_t owner,
			uint32_t tlbc)
{
	char *f = take(88);

	put(f, 0, (uint64_t)code | 1); /* a tagged reference */
	put_ptr(f, 8, previous);
	put_ptr(f, 56, instr);
	put32(f, 72, tlbc);
	f[78] = (char)owner;
	return f;
}

static void expect(uint32_t node, const char *want, int32_t want_line, uint32_t *ret_parent)
{
	uint32_t code, file, name, qualname;
	int32_t line;
	size_t n;

	*ret_parent = pylib_node(node, &code, &line);
	cr_assert_neq(node, 0);
	pylib_code(code, &file, &name, &qualname);
	cr_expect_str_eq(pylib_string(name, &n), want);
	cr_expect_str_eq(pylib_string(file, &n), "\xe4\xbe\x8b\xe5\xad\x90");
	cr_expect_eq(line, want_line, "%s: %d", want, line);
}

/*
 * main, entered from C, is in its third unit of its own bytecode; f, in a copy of this thread, in
 * its fourth; a frame that is being set up does not count; a generator in its first unit does.
 */
static char *make_stack(void)
{
	char *ts = take(832), *copy = take(8), *outer = make_code("main", 7),
	     *inner = make_code("f", 8), *generator = make_code("g", 9), *f;

	set_copies(inner, (char *[]){inner + 232, copy}, 2);
	set_copies(outer, (char *[]){outer + 232}, 1);
	f = make_frame(NULL, NULL, NULL, 3, 0);
	f = make_frame(f, outer, outer + 232 + 4, 0, 0);
	f = make_frame(f, inner, copy + 6, 0, 1);
	f = make_frame(f, generator, generator + 232, 1, 0);
	f = make_frame(f, inner, inner + 232, 0, 0);
	f = make_frame(f, NULL, NULL, 3, 0);
	put_ptr(ts, 72, f);
	put(ts, 152, (uint64_t)pthread_self());
	return ts;
}

Test(walk, free_threaded_3_14)
{
	const char *reason;
	const struct gt_py_layout *l = gt_py_layout_find("3.14.2 free-threading build", &reason);
	uint32_t node, again, code;
	int32_t line;
	char *ts = make_stack();

	cr_assert(gt_py_walk(l, (const char *)code_type, ts, &node));
	cr_assert(gt_py_walk(l, (const char *)code_type, ts, &again));
	cr_expect_eq(node, again);
	cr_expect_eq(pylib_calls(node), 1, "the innermost call executes no frame that counts");
	node = pylib_node(node, &code, &line);
	cr_expect_eq(code, 0);
	cr_expect_eq(pylib_calls(node), 0);
	expect(node, "g", 11, &node);
	expect(node, "f", 14, &node);
	cr_expect_eq(pylib_calls(node), 1);
	expect(node, "main", 13, &node);
	cr_expect_eq(node, 0);
	put(ts, 152, 1);
	cr_expect_not(gt_py_walk(l, (const char *)code_type, ts, &node), "another thread's");
}

Test(walk, frames_that_make_no_sense)
{
	const char *reason;
	const struct gt_py_layout *l = gt_py_layout_find("3.14.2 free-threading build", &reason);
	char *ts = make_stack(), *f;
	uint32_t node;

	memcpy(&f, ts + 72, 8);
	f[78] = 9;
	cr_expect_not(gt_py_walk(l, (const char *)code_type, ts, &node), "unknown owner");
	f[78] = 3;
	put_ptr(f, 8, f);
	cr_expect_not(gt_py_walk(l, (const char *)code_type, ts, &node), "a circle");
	put(f, 8, 0x1234567890abcdefull);
	cr_expect_not(gt_py_walk(l, (const char *)code_type, ts, &node), "no address");
	put(ts, 72, 0);
	cr_expect(gt_py_walk(l, (const char *)code_type, ts, &node));
	cr_expect_eq(node, 0);
}
