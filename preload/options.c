/* SPDX-License-Identifier: MIT */
/*
 * The GPUTRACE_* variables: one table of name, type, default and meaning. Read once, before
 * anything is recorded, and copied, because the program may change its environment later. A value
 * that cannot be understood leaves the default in place and is named once, when recording starts
 * (start.c).
 */
#include <stddef.h>
#include <string.h>
#include "recorder.h"

enum option_type { BOOL, COUNT, SIZE, TEXT, STACKS, UNWINDER };

struct option_def {
	const char *name; /* behind "GPUTRACE" */
	enum option_type type;
	size_t offset;	   /* in struct gt_options */
	const char *value; /* default */
	uint64_t min, max; /* of COUNT and SIZE */
	const char *help;
};

#define FIELD(f) offsetof(struct gt_options, f)
#define MIB	 (1ull << 20)

static const struct option_def table[] = {
	{"", BOOL, FIELD(on), "1", 0, 0, "0 turns the recorder off"},
	{"_QUIET", BOOL, FIELD(quiet), "0", 0, 0, "1 prints nothing on stderr, not even at an OOM"},
	{"_REDACT", BOOL, FIELD(redact), "0", 0, 0,
	 "1 keeps no command line, no environment and no folders"},
	{"_DIR", TEXT, FIELD(dir), ".", 0, 0, "where traces go; a : list, the first that works"},
	{"_RING", SIZE, FIELD(ring), "256M", 0, 1ull << 44, "history kept, the oldest goes first"},
	{"_MAX", SIZE, FIELD(max), "2G", MIB / 16, 1ull << 44, "limit of the whole file"},
	{"_STACKS", STACKS, FIELD(stacks), "both", 0, 0, "both, native, python or none"},
	{"_FREE_STACKS", BOOL, FIELD(free_stacks), "0", 0, 0, "1 captures stacks of frees too"},
	{"_DEPTH", COUNT, FIELD(depth), "256", 1, 4096, "frames kept of a stack"},
	{"_UNWINDER", UNWINDER, FIELD(unwinder), "auto", 0, 0, "auto, own, libunwind or libgcc"},
	{"_EXTENT", SIZE, FIELD(extent), "256K", 4096, 16 * MIB, "for tests: bytes of an extent"},
	{"_SAMPLE_US", COUNT, FIELD(sample_us), "1000", 0, 60000000,
	 "microseconds between samples of memory pools"},
	{"_CELLS", COUNT, FIELD(cells), "1024", 2, 65536, "for tests: events staged per lane"},
};

struct gt_options gt_options;
const char *gt_options_bad;

static char dir_copy[4096];

/* 4096, 64K, 256M, 2G, 1T; a trailing "iB" or "B" is welcome. */
static bool parse_size(const char *s, uint64_t *ret)
{
	static const char units[] = "KMGT";
	const char *unit;
	uint64_t v;

	if (!gt_parse_number(s, &v, &s))
		return false;
	unit = *s ? strchr(units, *s & ~0x20) : NULL;
	if (unit) {
		unsigned shift = 10 * (unsigned)(unit - units + 1);

		if (v > UINT64_MAX >> shift)
			return false;
		v <<= shift;
		s++;
	}
	if (*s == 'i')
		s++;
	if (*s == 'B' || *s == 'b')
		s++;
	*ret = v;
	return !*s;
}

/* Index of s in a list of words, or -1. */
static int parse_word(const char *s, const char *const *words, int count)
{
	for (int i = 0; i < count; i++)
		if (!strcmp(s, words[i]))
			return i;
	return -1;
}

static bool parse_words(enum option_type type, const char *s, uint32_t *ret)
{
	static const char *const stacks[] = {"none", "native", "python", "both"};
	static const char *const unwinders[] = {"auto", "own", "libunwind", "libgcc"};
	int i = parse_word(s, type == STACKS ? stacks : unwinders, 4);

	if (i >= 0)
		*ret = (uint32_t)i;
	return i >= 0;
}

static bool parse_bool(const char *s, bool *ret)
{
	static const char *const words[] = {"0", "1", "no", "yes", "off", "on", "false", "true"};
	int i = parse_word(s, words, 8);

	if (i >= 0)
		*ret = i & 1;
	return i >= 0;
}

static bool parse_text(const char *s, const char **ret)
{
	size_t n = strlen(s);

	if (!n || n >= sizeof(dir_copy))
		return false;
	memcpy(dir_copy, s, n + 1);
	*ret = dir_copy;
	return true;
}

static bool set_number(const struct option_def *o, void *field, const char *s)
{
	const char *end;
	uint64_t v;

	if (o->type == SIZE ? !parse_size(s, &v) : !gt_parse_number(s, &v, &end) || *end)
		return false;
	if (v < o->min || v > o->max)
		return false;
	if (o->type == SIZE)
		*(uint64_t *)field = v;
	else
		*(uint32_t *)field = (uint32_t)v;
	return true;
}

static bool set(const struct option_def *o, const char *s)
{
	void *field = (char *)&gt_options + o->offset;

	switch (o->type) {
	case BOOL:
		return parse_bool(s, field);
	case TEXT:
		return parse_text(s, field);
	case STACKS:
	case UNWINDER:
		return parse_words(o->type, s, field);
	default:
		return set_number(o, field, s);
	}
}

/* Value of the variable GPUTRACE<name>, or NULL. */
static const char *find(char **environ_now, const char *name)
{
	size_t n = strlen(name);

	for (; environ_now && *environ_now; environ_now++) {
		const char *s = *environ_now;

		if (!strncmp(s, "GPUTRACE", 8) && !strncmp(s + 8, name, n) && s[8 + n] == '=')
			return s + 9 + n;
	}
	return NULL;
}

void gt_options_read(char **environ_now)
{
	const size_t count = sizeof(table) / sizeof(*table);
	uint32_t cells;

	for (const struct option_def *o = table; o < table + count; o++) {
		const char *s = find(environ_now, o->name);

		set(o, o->value);
		if (s && *s && !set(o, s))
			gt_options_bad = o->name;
	}
	gt_options.extent &= ~4095ull;
	/* A chunk must fit an extent even if nothing in it can be compressed. */
	cells = 1u << (31 - __builtin_clz(gt_options.cells));
	while (GT_RAW_MAX(cells) * 65 / 64 + 512 > gt_options.extent)
		cells /= 2;
	gt_options.cells = cells;
	if (gt_options.free_stacks)
		gt_options.stacks |= GT_STACKS_FREE;
}
