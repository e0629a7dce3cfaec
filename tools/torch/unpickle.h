/* SPDX-License-Identifier: MIT */
/*
 * A reader of Python pickles, protocols 0 to 5, for plain data: None, bool, int, float, text, bytes,
 * list, tuple, dict, set. A pickle is a program for a stack machine; what would import, call or
 * build something is refused, so that nothing in a file can run. The values are a graph, not a tree:
 * the same list may stand in several places. The bytes are the caller's and outlive the values.
 */
#ifndef GT_UNPICKLE_H
#define GT_UNPICKLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum gt_value_kind {
	GT_VALUE_NONE,
	GT_VALUE_BOOL,
	GT_VALUE_INT,
	GT_VALUE_BIG, /* an int of more than 64 bits */
	GT_VALUE_FLOAT,
	GT_VALUE_TEXT, /* of Python 2's str too */
	GT_VALUE_BYTES,
	GT_VALUE_LIST,
	GT_VALUE_TUPLE,
	GT_VALUE_DICT, /* items are key, value, key, value ... */
	GT_VALUE_SET,
};

struct gt_value {
	uint8_t kind;	/* enum gt_value_kind */
	bool negative;	/* of an int: below 0 */
	bool met;	/* the caller's: it was here before */
	uint8_t word;	/* the caller's: number of a text it knows; 0 = not looked up */
	uint32_t count; /* bytes of a text, items of a list, both of a dict's pairs */
	union {
		uint64_t integer; /* two's complement */
		double real;
		const char *text; /* not terminated */
		uint32_t *items;  /* numbers of values */
	};
};

struct gt_values {
	struct gt_value *at; /* by number; [0] is None */
	size_t count;
	uint32_t root;
	struct gt_arena *arena;
};

struct gt_unpickle_error {
	uint64_t offset; /* of the opcode */
	char text[400];	 /* what is wrong, without file or place */
	bool code;	 /* it wants to run something */
	bool memory;
};

/* 0, or -1 with err. Memory taken is at most some 50 times the length. */
int gt_unpickle(const uint8_t *bytes, size_t length, struct gt_values *ret,
		struct gt_unpickle_error *err);
void gt_values_clear(struct gt_values *values);

/* Does a file that begins so look like a pickle? Those of protocol 2 on cannot be anything else. */
bool gt_looks_pickled(const uint8_t *bytes, size_t length);

#endif
