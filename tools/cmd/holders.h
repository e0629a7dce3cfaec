/* SPDX-License-Identifier: MIT */
/* The table of holders that summary, at and oom print. */
#ifndef GT_HOLDERS_H
#define GT_HOLDERS_H

#include "cmd/session.h"
#include "out/table.h"

#define GT_HOLDERS_FIELDS 12

/* Parts of sum 1 in a table of gt_holders_fields. counted: counts of blocks are known. */
void gt_holders_rows(struct gt_table *table, struct gt_out *out, const struct gt_place *place,
		     const struct gt_rows *rows, bool counted);

/* The row that they add up to; asked: what was asked of torch for all of them, 0 = not known. */
void gt_holders_total(struct gt_table *table, unsigned int part_of, const char *name,
		      uint64_t bytes, uint64_t count, uint64_t asked, bool counted);

/*
 * Columns: name, bytes, percent, category, blocks, largest, requested, pool, level, owner, and for programs
 * device and pid.
 * title must outlive the table.
 */
void gt_holders_fields(struct gt_field fields[GT_HOLDERS_FIELDS], const char *title, bool percent);

/* "by your lines", "by library": how a --by reads in a sentence. */
const char *gt_by_text(enum gt_by by);

#endif
