/* SPDX-License-Identifier: MIT */
/*
 * See tree.h. The rows inside a row, and what it holds itself, add up to it as printed: each level is
 * rounded to what the level outside it shows.
 */
#include "cmd/tree.h"

#include <stdlib.h>
#include "model/tree.h"
#include "model/xalloc.h"
#include "out/json.h"
#include "out/table.h"

struct printing {
	struct gt_table *table;
	enum gt_unit unit;
	bool counted;
	uint64_t least; /* bytes of a call that is shown */
	size_t hidden;	/* calls that are not */
};

static void print_inside(struct printing *printing, const struct gt_tree *tree, int64_t shown,
			 unsigned int depth);

static size_t count_calls(const struct gt_tree *tree)
{
	size_t count = tree->inside_count;

	for (size_t i = 0; i < tree->inside_count; i++)
		count += count_calls(&tree->inside[i]);
	return count;
}

static void print_row(struct printing *printing, const struct gt_tree *tree, int64_t shown,
		      unsigned int depth)
{
	char *text = gt_xasprintf("%*s%s", (int)(2 * depth), "", tree->text);

	gt_table_row(printing->table, 0, 0, 0);
	gt_table_text(printing->table, text);
	gt_table_number(printing->table, shown * gt_unit_bytes(printing->unit));
	gt_table_known(printing->table, (int64_t)tree->count, printing->counted);
	free(text);
	print_inside(printing, tree, shown, depth + 1);
}

static void print_inside(struct printing *printing, const struct gt_tree *tree, int64_t shown,
			 unsigned int depth)
{
	size_t count = tree->inside_count + 1;
	int64_t *parts = gt_xcalloc(2 * count, sizeof(*parts));

	parts[count - 1] = (int64_t)tree->bytes;
	for (size_t i = 0; i < tree->inside_count; i++) {
		parts[i] = (int64_t)tree->inside[i].bytes;
		parts[count - 1] -= parts[i];
	}
	gt_apportion(parts, count, gt_unit_bytes(printing->unit), shown, parts + count);
	for (size_t i = 0; i < tree->inside_count; i++)
		if (tree->inside[i].bytes >= printing->least)
			print_row(printing, &tree->inside[i], parts[count + i], depth);
		else
			printing->hidden += 1 + count_calls(&tree->inside[i]);
	free(parts);
}

/* ---- what fits a screen ---------------------------------------------------------------------- */

static uint64_t *list_bytes(const struct gt_tree *tree, uint64_t *to)
{
	for (size_t i = 0; i < tree->inside_count; i++) {
		*to++ = tree->inside[i].bytes;
		to = list_bytes(&tree->inside[i], to);
	}
	return to;
}

static int largest_first(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? 1 : *x > *y ? -1 : 0;
}

/* So that at most rows calls are shown; a call is never larger than the one around it. 0: all. */
static uint64_t least_shown(const struct gt_tree *tree, size_t rows)
{
	size_t count = count_calls(tree);
	uint64_t *bytes = gt_xcalloc(count, sizeof(*bytes)), least = 0;

	list_bytes(tree, bytes);
	if (rows && count > rows) {
		qsort(bytes, count, sizeof(*bytes), largest_first);
		least = bytes[rows] + 1;
	}
	free(bytes);
	return least;
}

static void print_hidden(const struct printing *printing)
{
	char *text = gt_xasprintf("... %zu smaller calls (--all)", printing->hidden);

	gt_table_row(printing->table, 0, 0, GT_ROW_SCREEN);
	gt_table_text(printing->table, text);
	free(text);
}

void gt_print_tree(struct gt_out *out, const struct gt_args *args, const struct gt_place *place,
		   const struct gt_state *state, size_t other_lines)
{
	static const struct gt_field fields[] = {
		{"call", "In use, by call, outermost first", GT_FIELD_TEXT, GT_SHOW_ALWAYS},
		{"bytes", NULL, GT_FIELD_BYTES, GT_SHOW_ALWAYS},
		{"blocks", NULL, GT_FIELD_COUNT, GT_SHOW_ALWAYS},
	};
	struct gt_tree_style style = {args->frames, args->full, out->terminal};
	struct gt_tree tree = gt_tree_of(state, gt_input_symbols(place->input), style);
	struct printing printing = {
		.table = gt_table_new(fields, 3),
		.unit = out->format == GT_FORMAT_CSV ? GT_UNIT_BYTE : gt_unit_for(tree.bytes),
		.counted = state->blocks_known,
		.least = least_shown(&tree, gt_screen_rows(out, other_lines + 3)),
	};

	gt_table_unit(printing.table, printing.unit);
	print_inside(&printing, &tree, gt_in_unit((int64_t)tree.bytes, printing.unit), 0);
	if (printing.hidden)
		print_hidden(&printing);
	gt_table_row(printing.table, 0, 0, GT_ROW_SCREEN);
	gt_table_text(printing.table, "in use");
	gt_table_number(printing.table, (int64_t)tree.bytes);
	if (printing.counted)
		gt_table_number(printing.table, (int64_t)tree.count);
	gt_table_print(printing.table, out, 0);
	gt_table_free(printing.table);
	gt_tree_clear(&tree);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static json_t *json_call(const struct gt_tree *tree, bool counted)
{
	static const struct gt_frame nowhere = {"", "", "", 0, GT_FRAME_MARKER, false};
	const struct gt_frame *frame = tree->frame ? tree->frame : &nowhere;
	json_t *inside = json_array();

	for (size_t i = 0; i < tree->inside_count; i++)
		json_array_append_new(inside, json_call(&tree->inside[i], counted));
	return json_pack("{s:o, s:o, s:o, s:o, s:I, s:o, s:o}", "call",
			 gt_json_name(tree->text ? tree->text : ""), "function",
			 gt_json_name(frame->function), "file", gt_json_name(frame->file), "line",
			 gt_json_number((uint64_t)frame->line, frame->line > 0), "bytes",
			 (json_int_t)tree->bytes, "count", gt_json_number(tree->count, counted),
			 "inside", inside);
}

json_t *gt_json_tree(const struct gt_args *args, const struct gt_place *place,
		     const struct gt_state *state)
{
	struct gt_tree_style style = {args->frames, args->full, false};
	struct gt_tree tree = gt_tree_of(state, gt_input_symbols(place->input), style);
	json_t *json = json_call(&tree, state->blocks_known);

	json_object_set_new(json, "pid", json_integer(state->trace->header.pid));
	json_object_set_new(json, "device", gt_json_ordinal(place->lane->device));
	gt_tree_clear(&tree);
	return json;
}
