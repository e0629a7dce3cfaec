/* SPDX-License-Identifier: MIT */
/*
 * Numbers as people write and read them: sizes, times, and rounding in which the printed parts of a
 * sum add up to the printed sum. The one place for all of it.
 */
#ifndef GT_NUMBER_H
#define GT_NUMBER_H

#include <stddef.h>
#include <stdint.h>

enum gt_unit {
	GT_UNIT_BYTE,
	GT_UNIT_KIB,
	GT_UNIT_MIB,
};

int64_t gt_unit_bytes(enum gt_unit unit);
const char *gt_unit_name(enum gt_unit unit);

/* The unit of a table whose largest total is this: KiB below 64 MiB, else MiB. */
enum gt_unit gt_unit_for(uint64_t total);

/* Nearest whole number of divisors, halves upwards. */
int64_t gt_round_to(int64_t value, int64_t divisor);

/* The same of bytes, in a unit: a number for %lld. */
long long gt_in_unit(int64_t bytes, enum gt_unit unit);

/*
 * Round parts to whole divisors so that they add up to total (in divisors): each is rounded down,
 * the rest goes to the largest remainders, the first of equals first.
 */
void gt_apportion(const int64_t *parts, size_t count, int64_t divisor, int64_t total, int64_t *ret);

/* "5.23 GiB", "149 MiB", "24 KiB", "512 B": for sentences. Returns buffer. */
#define GT_SIZE_TEXT 32
const char *gt_size_text(uint64_t bytes, char buffer[GT_SIZE_TEXT]);

/* "64M", "1.5 GiB", "4096": powers of 1024. 0, or -1 when the text is none of these. */
int gt_parse_size(const char *text, uint64_t *ret);

/* "2.75", "2.75s", "300ms", "40us" to microseconds. */
int gt_parse_time(const char *text, uint64_t *ret_us);

/* Whole number in [min, max]. */
int gt_parse_number(const char *text, long min, long max, long *ret);

#endif
