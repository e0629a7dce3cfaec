/* SPDX-License-Identifier: MIT */
/*
 * See number.h. Nothing here prints or allocates for longer than a call. Rounding is by largest
 * remainder, the rule of parliaments: of all roundings that keep the sum it moves each part least.
 */
#include "out/number.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "model/xalloc.h"

#define KIB (1ll << 10)
#define MIB (1ll << 20)
#define GIB (1ll << 30)

int64_t gt_unit_bytes(enum gt_unit unit)
{
	return unit == GT_UNIT_MIB ? MIB : unit == GT_UNIT_KIB ? KIB : 1;
}

const char *gt_unit_name(enum gt_unit unit)
{
	return unit == GT_UNIT_MIB ? "MiB" : unit == GT_UNIT_KIB ? "KiB" : "bytes";
}

enum gt_unit gt_unit_for(uint64_t total)
{
	return total < 64 * MIB ? GT_UNIT_KIB : GT_UNIT_MIB;
}

/* Division that rounds towards minus infinity: remainders are never negative. */
static int64_t floor_div(int64_t value, int64_t divisor)
{
	int64_t quotient = value / divisor;

	return value % divisor < 0 ? quotient - 1 : quotient;
}

int64_t gt_round_to(int64_t value, int64_t divisor)
{
	int64_t low = floor_div(value, divisor);

	return value - low * divisor >= divisor - (value - low * divisor) ? low + 1 : low;
}

long long gt_in_unit(int64_t bytes, enum gt_unit unit)
{
	return gt_round_to(bytes, gt_unit_bytes(unit));
}

struct share {
	int64_t remainder;
	size_t index;
};

static int by_remainder(const void *a, const void *b)
{
	const struct share *x = a, *y = b;

	if (x->remainder != y->remainder)
		return x->remainder < y->remainder ? 1 : -1;
	return x->index < y->index ? -1 : x->index > y->index;
}

void gt_apportion(const int64_t *parts, size_t count, int64_t divisor, int64_t total, int64_t *ret)
{
	struct share *shares = gt_xcalloc(count + 1, sizeof(*shares));
	int64_t rest = total, each;

	for (size_t i = 0; i < count; i++) {
		ret[i] = floor_div(parts[i], divisor);
		rest -= ret[i];
		shares[i] = (struct share){parts[i] - ret[i] * divisor, i};
	}
	qsort(shares, count, sizeof(*shares), by_remainder);
	/* Whole rounds only if the caller's total is not the sum of its parts: of a damaged trace it may be any. */
	each = count ? rest / (int64_t)count : 0;
	rest -= each * (int64_t)count;
	for (size_t i = 0; i < count; i++)
		ret[shares[i].index] += each + ((int64_t)i < rest) - ((int64_t)i < -rest);
	free(shares);
}

const char *gt_size_text(uint64_t bytes, char buffer[GT_SIZE_TEXT])
{
	if (bytes >= GIB)
		snprintf(buffer, GT_SIZE_TEXT, "%.2f GiB", (double)bytes / GIB);
	else if (bytes >= 10 * MIB)
		snprintf(buffer, GT_SIZE_TEXT, "%.0f MiB", (double)bytes / MIB);
	else if (bytes >= 10 * KIB)
		snprintf(buffer, GT_SIZE_TEXT, "%.0f KiB", (double)bytes / KIB);
	else
		snprintf(buffer, GT_SIZE_TEXT, "%llu B", (unsigned long long)bytes);
	return buffer;
}

/* A decimal number without sign, exponent or locale, and where it ended. */
static int parse_decimal(const char *text, double *ret, const char **ret_end)
{
	size_t length = strspn(text, "0123456789.");
	char digits[64], *end;

	if (!length || length >= sizeof(digits) || !isdigit((unsigned char)text[0]))
		return -1;
	memcpy(digits, text, length);
	digits[length] = '\0';
	*ret = strtod(digits, &end);
	if (*end)
		return -1;
	*ret_end = text + length + strspn(text + length, " ");
	return 0;
}

struct suffix {
	const char *text;
	double factor;
};

static int scale(const char *text, const struct suffix *suffixes, double *value)
{
	for (const struct suffix *s = suffixes; s->text; s++)
		if (strcasecmp(text, s->text) == 0) {
			*value *= s->factor;
			return 0;
		}
	return -1;
}

static int parse_scaled(const char *text, const struct suffix *suffixes, uint64_t *ret)
{
	const char *end;
	double value;

	if (parse_decimal(text, &value, &end) || scale(end, suffixes, &value) ||
	    !(value < 9007199254740992.0))
		return -1;
	*ret = (uint64_t)(value + 0.5);
	return 0;
}

int gt_parse_size(const char *text, uint64_t *ret)
{
	static const struct suffix suffixes[] = {
		{"", 1},
		{"B", 1},
		{"K", KIB},
		{"KB", KIB},
		{"KiB", KIB},
		{"M", MIB},
		{"MB", MIB},
		{"MiB", MIB},
		{"G", GIB},
		{"GB", GIB},
		{"GiB", GIB},
		{"T", 1024.0 * GIB},
		{"TiB", 1024.0 * GIB},
		{NULL, 0},
	};

	return parse_scaled(text, suffixes, ret);
}

int gt_parse_time(const char *text, uint64_t *ret_us)
{
	static const struct suffix suffixes[] = {
		{"", 1e6}, {"s", 1e6}, {"ms", 1e3}, {"us", 1}, {NULL, 0},
	};

	return parse_scaled(text, suffixes, ret_us);
}

int gt_parse_number(const char *text, long min, long max, long *ret)
{
	char *end;
	long value;

	errno = 0;
	value = strtol(text, &end, 10);
	if (errno || end == text || *end || value < min || value > max)
		return -1;
	*ret = value;
	return 0;
}
