/* SPDX-License-Identifier: MIT */
/*
 * A table of typed cells that prints itself as text, csv or markdown. Byte columns share one unit
 * in text; rows that belong to a sum are rounded so that they add up to it as printed.
 */
#ifndef GT_TABLE_H
#define GT_TABLE_H

#include <stdint.h>
#include "out/number.h"
#include "out/out.h"

enum gt_field_kind {
	GT_FIELD_TEXT,
	GT_FIELD_COUNT,
	GT_FIELD_BYTES,
	GT_FIELD_PERCENT, /* a byte count, shown as its share of the sum */
	GT_FIELD_DELTA,	  /* difference of the two byte columns before it, signed */
	GT_FIELD_SECONDS, /* microseconds */
};

enum gt_field_show {
	GT_SHOW_ALWAYS,
	GT_SHOW_WIDE, /* only in the wide layout, csv and markdown */
	GT_SHOW_DATA, /* only in csv and markdown */
};

struct gt_field {
	const char *name;  /* in csv */
	const char *title; /* in text; NULL = the unit of bytes, else name */
	enum gt_field_kind kind;
	enum gt_field_show show;
};

/* A row may be a part of a sum and the sum of parts: sums have numbers from 1, 0 = none. */
#define GT_SUMS 2u

#define GT_ROW_ACT    1u /* the row to act on: red, with an arrow */
#define GT_ROW_SCREEN 2u /* sums and remarks for people: not in csv */

struct gt_table *gt_table_new(const struct gt_field *fields, size_t count);
struct gt_table *gt_table_free(struct gt_table *table); /* accepts NULL, returns NULL */

/* Begin a row, then give its cells in order; those not given stay unknown ("-", empty in csv). */
void gt_table_row(struct gt_table *table, unsigned int part_of, unsigned int sum_of,
		  unsigned int flags);
void gt_table_text(struct gt_table *table, const char *text);
void gt_table_number(struct gt_table *table, int64_t value);
void gt_table_unknown(struct gt_table *table);

/* The number, if it is known. */
void gt_table_known(struct gt_table *table, int64_t value, bool known);

/* Unit of the byte columns in text; otherwise gt_unit_for the largest value. */
void gt_table_unit(struct gt_table *table, enum gt_unit unit);

/*
 * Print in out's format. max_rows > 0: when there are more, the last parts of sum 1 become one row
 * "... N more rows". Text rows must come with the parts of sum 1 in order of importance.
 */
void gt_table_print(struct gt_table *table, struct gt_out *out, size_t max_rows);

/* A cell of csv: quoted where a comma, quote or newline asks for it. */
void gt_put_csv_text(FILE *file, const char *text);

#endif
