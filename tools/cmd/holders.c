/* SPDX-License-Identifier: MIT */
/* See holders.h. */
#include "cmd/holders.h"

#include <stdio.h>
#include <string.h>

const char *gt_by_text(enum gt_by by)
{
	static const char *const texts[] = {
		[GT_BY_LINE] = "by your lines", [GT_BY_FUNCTION] = "by function",
		[GT_BY_STACK] = "by stack",	[GT_BY_SITE] = "by site",
		[GT_BY_OWNER] = "by library",	[GT_BY_STREAM] = "by stream",
		[GT_BY_LEVEL] = "by level",	[GT_BY_CATEGORY] = "by category",
		[GT_BY_INSIDE] = "by function", [GT_BY_STEP] = "by the step that made it",
		[GT_BY_PHASE] = "by phase",
	};

	return texts[by];
}

void gt_holders_fields(struct gt_field fields[GT_HOLDERS_FIELDS], const char *title, bool percent)
{
	const struct gt_field columns[GT_HOLDERS_FIELDS] = {
		{"holder", title, GT_FIELD_TEXT, GT_SHOW_ALWAYS},
		{"bytes", NULL, GT_FIELD_BYTES, GT_SHOW_ALWAYS},
		{"percent", "%", GT_FIELD_PERCENT, percent ? GT_SHOW_ALWAYS : GT_SHOW_WIDE},
		{"category", NULL, GT_FIELD_TEXT, GT_SHOW_ALWAYS},
		{"blocks", NULL, GT_FIELD_COUNT, percent ? GT_SHOW_WIDE : GT_SHOW_ALWAYS},
		{"largest", "largest", GT_FIELD_BYTES, GT_SHOW_WIDE},
		{"requested", "asked", GT_FIELD_BYTES, GT_SHOW_WIDE},
		{"pool", NULL, GT_FIELD_TEXT, GT_SHOW_WIDE},
		{"level", NULL, GT_FIELD_TEXT, GT_SHOW_WIDE},
		{"owner", NULL, GT_FIELD_TEXT, GT_SHOW_WIDE},
		{"device", NULL, GT_FIELD_COUNT, GT_SHOW_DATA},
		{"pid", NULL, GT_FIELD_COUNT, GT_SHOW_DATA},
	};

	memcpy(fields, columns, sizeof(columns));
}

static void add_asked(struct gt_table *table, const struct gt_trace *trace,
		      const struct gt_row *row)
{
	char buffer[GT_POOL_TEXT];
	const char *pool = gt_row_pool_text(trace, row, buffer);
	uint64_t requested = 0;
	bool asked = gt_row_requested(trace, row, &requested);

	gt_table_known(table, (int64_t)requested, asked);
	if (*pool)
		gt_table_text(table, pool);
	else
		gt_table_unknown(table);
}

void gt_holders_rows(struct gt_table *table, struct gt_out *out, const struct gt_place *place,
		     const struct gt_rows *rows, bool counted)
{
	for (size_t i = 0; i < rows->count; i++) {
		const struct gt_row *row = &rows->rows[i];

		gt_table_row(table, 1, 0, 0);
		gt_table_text(table, out->terminal ? row->label.text : row->label.full);
		gt_table_number(table, (int64_t)row->bytes);
		gt_table_number(table, (int64_t)row->bytes);
		if (row->category && strcmp(row->label.text, gt_category_name(row->category)))
			gt_table_text(table, gt_category_name(row->category));
		else
			gt_table_unknown(table);
		gt_table_known(table, (int64_t)row->count, counted);
		gt_table_known(table, (int64_t)row->largest, row->largest);
		add_asked(table, place->input->trace, row);
		gt_table_text(table, row->torch ? "torch" : "driver");
		gt_table_text(table, row->label.owner);
		gt_table_number(table, place->lane->device);
		gt_table_pid(table, place->input->trace);
	}
}

void gt_holders_total(struct gt_table *table, unsigned int part_of, const char *name,
		      uint64_t bytes, uint64_t count, uint64_t asked, bool counted)
{
	gt_table_row(table, part_of, 1, GT_ROW_SCREEN);
	gt_table_text(table, name);
	gt_table_number(table, (int64_t)bytes);
	gt_table_number(table, (int64_t)bytes);
	gt_table_unknown(table);
	gt_table_known(table, (int64_t)count, counted);
	gt_table_unknown(table);
	gt_table_known(table, (int64_t)asked, asked);
}
