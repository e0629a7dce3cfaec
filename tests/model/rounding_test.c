/* SPDX-License-Identifier: MIT */
/* Numbers and tables: what is printed adds up, whatever the parts are. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "out/number.h"
#include "out/table.h"

static uint64_t state = 88172645463325252ull;

static uint64_t next_random(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

Test(rounding, parts_add_up_and_move_less_than_one)
{
	for (int round = 0; round < 2000; round++) {
		int64_t parts[40], shown[40], sum = 0, total = 0, divisor = 1 << 20;
		size_t count = 1 + next_random() % 40;

		for (size_t i = 0; i < count; i++) {
			parts[i] = (int64_t)(next_random() % (64 << 20));
			parts[i] = next_random() % 8 ? parts[i] : -parts[i] / 16;
			sum += parts[i];
		}
		gt_apportion(parts, count, divisor, gt_round_to(sum, divisor), shown);
		for (size_t i = 0; i < count; i++) {
			total += shown[i];
			cr_assert_lt(llabs(shown[i] * divisor - parts[i]), divisor);
		}
		cr_assert_eq(total, gt_round_to(sum, divisor));
	}
}

Test(rounding, equal_remainders_go_to_the_first)
{
	const int64_t parts[] = {15, 15, 15, 15};
	int64_t shown[4];

	gt_apportion(parts, 4, 10, 6, shown);
	cr_assert_eq(shown[0], 2);
	cr_assert_eq(shown[1], 2);
	cr_assert_eq(shown[2], 1);
	cr_assert_eq(shown[3], 1);
}

/* In two rounds and a part of a third, either way; and in no time when it is far off, as of a damaged trace. */
Test(rounding, a_total_that_is_not_the_sum_is_spread_in_rounds)
{
	const int64_t parts[] = {10, 15, 10};
	int64_t shown[3];

	gt_apportion(parts, 3, 10, 10, shown);
	cr_assert(shown[0] == 3 && shown[1] == 4 && shown[2] == 3);
	gt_apportion(parts, 3, 10, -4, shown);
	cr_assert(shown[0] == -1 && shown[1] == -2 && shown[2] == -1);
	gt_apportion(parts, 3, 10, INT64_MAX - 7, shown);
	cr_assert_eq(shown[0] + shown[1] + shown[2], INT64_MAX - 7);
}

Test(rounding, nearest_also_below_zero)
{
	cr_assert_eq(gt_round_to(15, 10), 2);
	cr_assert_eq(gt_round_to(14, 10), 1);
	cr_assert_eq(gt_round_to(-14, 10), -1);
	cr_assert_eq(gt_round_to(-16, 10), -2);
	cr_assert_eq(gt_round_to(0, 10), 0);
}

Test(numbers, sizes_are_read_in_powers_of_1024)
{
	static const struct {
		const char *text;
		uint64_t bytes;
	} cases[] = {
		{"0", 0},	    {"4096", 4096},	{"64M", 64 << 20}, {"1.5G", 3ull << 29},
		{"2 MiB", 2 << 20}, {"1t", 1ull << 40},
	};
	static const char *const bad[] = {"", "M", "-1", "1.5.2", "5X", "0x10", "1e5", "1 M B"};
	uint64_t bytes;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		cr_assert_eq(gt_parse_size(cases[i].text, &bytes), 0, "%s", cases[i].text);
		cr_assert_eq(bytes, cases[i].bytes, "%s", cases[i].text);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		cr_assert_eq(gt_parse_size(bad[i], &bytes), -1, "%s", bad[i]);
}

Test(numbers, times_are_seconds_unless_said)
{
	uint64_t us;

	cr_assert(gt_parse_time("2.75", &us) == 0 && us == 2750000);
	cr_assert(gt_parse_time("300ms", &us) == 0 && us == 300000);
	cr_assert(gt_parse_time("40us", &us) == 0 && us == 40);
	cr_assert_eq(gt_parse_time("end", &us), -1);
	cr_assert_eq(gt_parse_time("1h", &us), -1);
}

Test(numbers, sizes_in_sentences)
{
	char text[GT_SIZE_TEXT];

	cr_assert_str_eq(gt_size_text(5620465664ull, text), "5.23 GiB");
	cr_assert_str_eq(gt_size_text(1 << 30, text), "1.00 GiB");
	cr_assert_str_eq(gt_size_text((1 << 30) - 1, text), "1024 MiB");
	cr_assert_str_eq(gt_size_text(149ull << 20, text), "149 MiB");
	cr_assert_str_eq(gt_size_text(10 << 20, text), "10 MiB");
	cr_assert_str_eq(gt_size_text((10 << 20) - 1, text), "10240 KiB");
	cr_assert_str_eq(gt_size_text(10 << 10, text), "10 KiB");
	cr_assert_str_eq(gt_size_text((10 << 10) - 1, text), "10239 B");
	cr_assert_str_eq(gt_size_text(512, text), "512 B");
}

/* ---- tables ---------------------------------------------------------------------------------- */

static const struct gt_field fields[] = {
	{"name", "Name", GT_FIELD_TEXT, GT_SHOW_ALWAYS},
	{"a", "A", GT_FIELD_BYTES, GT_SHOW_ALWAYS},
	{"b", "B", GT_FIELD_BYTES, GT_SHOW_ALWAYS},
	{"delta", NULL, GT_FIELD_DELTA, GT_SHOW_ALWAYS},
	{"percent", "%", GT_FIELD_PERCENT, GT_SHOW_ALWAYS},
};

static void add_row(struct gt_table *table, const char *name, unsigned int part_of,
		    unsigned int sum_of, int64_t a, int64_t b)
{
	gt_table_row(table, part_of, sum_of, 0);
	gt_table_text(table, name);
	gt_table_number(table, a);
	gt_table_number(table, b);
	gt_table_number(table, b - a);
	gt_table_number(table, a);
}

/* Rows of random size, their sum, something else, and the sum of both. */
static struct gt_table *random_table(size_t rows)
{
	struct gt_table *table = gt_table_new(fields, 5);
	int64_t a = 0, b = 0;

	for (size_t i = 0; i < rows; i++) {
		int64_t x = (int64_t)(next_random() % (300 << 20));
		int64_t y = (int64_t)(next_random() % (300 << 20));

		add_row(table, "row", 1, 0, x, y);
		a += x;
		b += y;
	}
	add_row(table, "sum", 2, 1, a, b);
	add_row(table, "free", 2, 0, 12345678, 87654321);
	add_row(table, "device", 0, 2, a + 12345678, b + 87654321);
	return table;
}

static char *printed(struct gt_table *table, struct gt_out *out, size_t max_rows)
{
	char *text;
	size_t length;

	out->file = open_memstream(&text, &length);
	gt_table_print(table, out, max_rows);
	fclose(out->file);
	return text;
}

/* Sums of the four number columns over the lines that begin with "row" or "...". */
static size_t add_lines(char *text, long sums[4], long sum_row[4], long rest[4], long device[4])
{
	size_t lines = 0;
	char *save;

	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		char *numbers = strpbrk(line, "0123456789+-<");
		bool part = strstr(line, "row") != NULL;
		long *to = part			    ? sums
			   : strstr(line, "sum")    ? sum_row
			   : strstr(line, "free")   ? rest
			   : strstr(line, "device") ? device
						    : NULL;
		long values[4] = {0};

		lines++;
		if (strstr(line, "(--all)"))
			numbers = strstr(line, "(--all)") + 7;
		if (!to)
			continue;
		for (char *less = line; (less = strstr(less, "<1"));)
			memcpy(less, " 0", 2); /* what "<1" adds to a sum */
		sscanf(numbers, "%ld %ld %ld %ld", &values[0], &values[1], &values[2], &values[3]);
		for (int i = 0; i < 4; i++)
			to[i] += values[i];
	}
	return lines;
}

Test(table, printed_rows_add_up_also_when_folded)
{
	for (int round = 0; round < 300; round++) {
		struct gt_table *table = random_table(1 + next_random() % 60);
		struct gt_out out = {.format = GT_FORMAT_TEXT, .width = 80, .terminal = true};
		long sums[4] = {0}, sum_row[4] = {0}, rest[4] = {0}, device[4] = {0};
		size_t limit = round % 2 ? 12 : 0;
		char *text = printed(table, &out, limit);
		size_t lines = add_lines(text, sums, sum_row, rest, device);

		cr_assert(!limit || lines <= limit + 1);
		for (int i = 0; i < 3; i++) {
			cr_assert_eq(sums[i], sum_row[i]);
			cr_assert_eq(sum_row[i] + rest[i], device[i]);
		}
		cr_assert_eq(sums[3], 100);
		free(text);
		gt_table_free(table);
	}
}

Test(table, csv_has_the_bytes_and_quotes)
{
	struct gt_table *table = gt_table_new(fields, 5);
	struct gt_out out = {.format = GT_FORMAT_CSV, .width = 80};
	char *text;

	add_row(table, "f(int, \"x\")", 1, 0, 1234567890, 1);
	text = printed(table, &out, 0);
	cr_assert_str_eq(text, "name,a,b,delta\n\"f(int, \"\"x\"\")\",1234567890,1,-1234567889\n");
	free(text);
	gt_table_free(table);
}

Test(table, nothing_and_next_to_nothing_differ)
{
	struct gt_table *table = gt_table_new(fields, 2);
	struct gt_out out = {.format = GT_FORMAT_TEXT, .width = 80};
	char *text;

	for (int64_t bytes = 0; bytes < 3; bytes++) {
		gt_table_row(table, 1, 0, 0);
		gt_table_text(table, "x");
		gt_table_number(table, bytes == 2 ? 100 << 20 : bytes);
	}
	gt_table_row(table, 0, 1, 0);
	gt_table_text(table, "all");
	gt_table_number(table, (100 << 20) + 1);
	text = printed(table, &out, 0);
	cr_assert_not_null(strstr(text, "x      0\n"), "%s", text);
	cr_assert_not_null(strstr(text, "x     <1\n"), "%s", text);
	free(text);
	gt_table_free(table);
}

Test(table, what_a_terminal_obeys_is_shown)
{
	char *text = gt_escape("a\033[2Jb\xff\n");

	cr_assert_str_eq(text, "a\\x1b[2Jb\\xff\\x0a");
	free(text);
}
