/* SPDX-License-Identifier: MIT */
/* gputrace timeline --range: the ranges of a name, each with its own peaks on each device. */
#include <stdlib.h>
#include "cmd/part.h"
#include "model/xalloc.h"
#include "out/json.h"
#include "out/table.h"

struct view { /* one device */
	const struct gt_place *place;
	struct gt_parts parts;
	struct gt_top *tops;
};

static int open_view(const struct gt_args *args, const struct gt_place *place, struct view *ret)
{
	int status = gt_parts_get(args, place->input, &ret->parts);

	ret->place = place;
	if (!status)
		status = gt_parts_tops(&ret->parts, place->lane_index, &ret->tops);
	return status;
}

static void close_view(struct view *view)
{
	gt_parts_clear(&view->parts);
	free(view->tops);
}

static const struct gt_noted *begin_of(const struct view *view, size_t i)
{
	return &view->parts.marks.notes[view->parts.parts[i].begin];
}

/* NULL: still open at the end of the trace. */
static const struct gt_noted *end_of(const struct view *view, size_t i)
{
	size_t end = view->parts.parts[i].end;

	return end == GT_NO_NOTE ? NULL : &view->parts.marks.notes[end];
}

static char *name_of(const struct gt_named *named)
{
	if (named->kind == GT_STRETCH_STEP)
		return gt_xasprintf("step %u", named->step);
	return gt_xasprintf("%*s%s", (int)(named->depth < 20 ? 2 * named->depth : 40), "",
			    *named->name ? named->name : "(name not kept)");
}

/* ---- table ----------------------------------------------------------------------------------- */

static void add_rows(struct gt_table *table, const struct view *view)
{
	for (size_t i = 0; i < view->parts.count; i++) {
		const struct gt_named *named = view->parts.parts[i].named;
		const struct gt_top *top = &view->tops[i];
		const struct gt_noted *end = end_of(view, i);
		char *name = name_of(named);

		gt_table_row(table, 0, 0, 0);
		gt_table_text(table, name);
		gt_table_text(table, gt_stretch_name(named->kind));
		gt_table_number(table, (int64_t)begin_of(view, i)->us);
		gt_table_known(table, end ? (int64_t)end->us : 0, end);
		gt_table_text(table, top->at_least[GT_TOTAL_IN_USE] ? ">=" : "");
		gt_table_number(table, (int64_t)top->bytes[GT_TOTAL_IN_USE]);
		gt_table_number(table, (int64_t)top->bytes[GT_TOTAL_RESERVED]);
		gt_table_number(table, begin_of(view, i)->thread);
		gt_table_number(table, view->place->lane->device);
		gt_table_pid(table, view->place->input->trace);
		free(name);
	}
}

static int print_table(struct gt_out *out, const struct gt_args *args,
		       const struct gt_places *places)
{
	static const struct gt_field fields[] = {
		{"name", "peak in each", GT_FIELD_TEXT, GT_SHOW_ALWAYS},
		{"kind", NULL, GT_FIELD_TEXT, GT_SHOW_ALWAYS},
		{"begin", "from s", GT_FIELD_SECONDS, GT_SHOW_ALWAYS},
		{"end", "to s", GT_FIELD_SECONDS, GT_SHOW_ALWAYS},
		{"at_least", "", GT_FIELD_TEXT, GT_SHOW_ALWAYS},
		{"allocated", "in use MiB", GT_FIELD_BYTES, GT_SHOW_ALWAYS},
		{"reserved", "held", GT_FIELD_BYTES, GT_SHOW_ALWAYS},
		{"thread", NULL, GT_FIELD_COUNT, GT_SHOW_WIDE},
		{"device", "GPU", GT_FIELD_COUNT, GT_SHOW_ALWAYS},
		{"pid", NULL, GT_FIELD_COUNT, GT_SHOW_WIDE},
	};
	struct gt_table *table = gt_table_new(fields, sizeof(fields) / sizeof(fields[0]));
	int status = 0;

	gt_table_unit(table, GT_UNIT_MIB);
	for (size_t i = 0; !status && i < places->count; i++) {
		struct view view = {0};

		status = open_view(args, &places->places[i], &view);
		if (!status)
			add_rows(table, &view);
		close_view(&view);
	}
	if (!status)
		gt_table_print(table, out, 0);
	gt_table_free(table);
	return status;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static json_t *json_range(const struct view *view, size_t i)
{
	const struct gt_named *named = view->parts.parts[i].named;
	const struct gt_top *top = &view->tops[i];
	const struct gt_noted *begin = begin_of(view, i), *end = end_of(view, i);
	const struct gt_trace *trace = view->parts.marks.trace;
	uint32_t tid = begin->thread < trace->thread_count ? trace->threads[begin->thread].tid : 0;
	bool step = named->kind == GT_STRETCH_STEP;
	bool least = top->at_least[GT_TOTAL_IN_USE] || top->at_least[GT_TOTAL_RESERVED] ||
		     top->at_least[GT_TOTAL_TORCH];

	return json_pack("{s:o, s:s, s:o, s:I, s:b, s:o, s:I, s:o, s:o, s:I, s:I, s:I, s:b, s:o}",
			 "name", gt_json_name(named->name), "kind", gt_stretch_name(named->kind),
			 "step", gt_json_number(named->step, step), "depth",
			 (json_int_t)named->depth, "nvtx", begin->source != GT_SOURCE_API, "thread",
			 gt_json_number(tid, tid), "number", (json_int_t)begin->number, "begin",
			 gt_json_seconds(begin->us, true), "end",
			 gt_json_seconds(end ? end->us : 0, end), "allocated",
			 (json_int_t)top->bytes[GT_TOTAL_IN_USE], "reserved",
			 (json_int_t)top->bytes[GT_TOTAL_RESERVED], "torch_allocated",
			 (json_int_t)top->bytes[GT_TOTAL_TORCH], "at_least", least, "peak_seconds",
			 gt_json_seconds(top->us[GT_TOTAL_IN_USE], true));
}

static int print_json(struct gt_out *out, const struct gt_args *args,
		      const struct gt_places *places)
{
	json_t *answer = gt_json_answer("timeline"), *devices = json_array();

	for (size_t i = 0; i < places->count; i++) {
		const struct gt_place *place = &places->places[i];
		struct view view = {0};
		int status = open_view(args, place, &view);
		json_t *ranges = json_array();

		if (status)
			return status;
		for (size_t k = 0; k < view.parts.count; k++)
			json_array_append_new(ranges, json_range(&view, k));
		json_array_append_new(devices, gt_json_timeline(place, json_array(), ranges));
		close_view(&view);
	}
	json_object_set_new(answer, "devices", devices);
	gt_json_print(out, answer);
	return 0;
}

int gt_print_ranges(struct gt_out *out, const struct gt_args *args, const struct gt_places *places)
{
	return (out->format == GT_FORMAT_JSON ? print_json : print_table)(out, args, places);
}
