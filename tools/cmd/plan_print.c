/* SPDX-License-Identifier: MIT */
/* What plan says, for people and as JSON. Called from plan.c with all that was worked out. */
#include "cmd/plan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "model/xalloc.h"
#include "out/json.h"
#include "out/table.h"

static uint64_t whole(double bytes)
{
	return bytes > 0 ? (uint64_t)(bytes + 0.5) : 0;
}

static enum gt_unit unit_of(const struct gt_plan_view *view)
{
	double fixed = gt_plan_static(&view->rows[0]);
	double sample = view->rows[0].per_sample;

	if (sample > 0 && sample < 4 << 20)
		return GT_UNIT_KIB;
	return gt_unit_for(whole(fixed > view->gpu ? fixed : view->gpu));
}

static long long in_unit(double bytes, enum gt_unit unit)
{
	return gt_in_unit((int64_t)bytes, unit);
}

/* ---- text ------------------------------------------------------------------------------------ */

static void print_answer(struct gt_out *out, const struct gt_args *args,
			 const struct gt_plan_view *view)
{
	const struct gt_plan_row *row = &view->rows[0];
	uint64_t largest = gt_plan_row_largest(view, row);
	uint64_t micro = gt_plan_divisor(args->plan.target, largest);
	char gpu[GT_SIZE_TEXT], fixed[GT_SIZE_TEXT];

	gt_size_text(whole(view->gpu), gpu);
	gt_size_text(whole(gt_plan_static(row)), fixed);
	if (view->gpu <= 0 || row->per_sample <= 0)
		gt_line(out, GT_BOLD, "%s do not depend on the batch.", fixed);
	else if (!largest)
		gt_line(out, GT_RED_BOLD,
			"Not one sample fits on %s: %s do not depend on the batch.", gpu, fixed);
	else if (micro)
		gt_line(out, GT_BOLD, "Largest micro-batch %llu on %s; %llu x %llu makes %lu.",
			(unsigned long long)largest, gpu, (unsigned long long)micro,
			(unsigned long long)(args->plan.target / micro), args->plan.target);
	else
		gt_line(out, GT_BOLD, "Largest micro-batch %llu on %s.",
			(unsigned long long)largest, gpu);
}

static void print_line(struct gt_out *out, const struct gt_plan_view *view, enum gt_unit unit)
{
	const struct gt_line_fit *line = &view->lines[view->line];
	char *runs = view->count == 1 ? gt_xasprintf("one run of batch %g", view->points[0].batch)
				      : gt_xasprintf("%zu runs", view->count);

	gt_line(out, GT_PLAIN,
		"peak %s (in use) = %lld + %.1f x batch, in %s, from %s; reserve %lld",
		gt_unit_name(unit), in_unit(line->at_zero, unit),
		line->slope / (double)gt_unit_bytes(unit), gt_plan_phase(view, view->line), runs,
		in_unit(view->reserve, unit));
	gt_line(out, GT_PLAIN,
		"  measured: weights %lld, gradients %lld, optimizer state %lld; all else %+lld",
		in_unit(view->base.weights, unit), in_unit(view->base.gradients, unit),
		in_unit(view->base.optimizer, unit), in_unit(view->residual, unit));
	free(runs);
}

static void print_edge(struct gt_out *out, const struct gt_plan_view *view, enum gt_unit unit)
{
	double room = view->gpu - view->reserve, batch = (double)view->largest;
	double fits = gt_plan_predict(view, batch), over = gt_plan_predict(view, batch + 1);

	if (view->largest && view->largest < 1000000)
		gt_line(out, GT_PLAIN,
			"  batch %g: %lld of %lld, %lld left       batch %g: %lld, over by "
			"%lld",
			batch, in_unit(fits, unit), in_unit(room, unit), in_unit(room - fits, unit),
			batch + 1, in_unit(over, unit), in_unit(over - room, unit));
	if (view->by_held && view->by_held < view->largest)
		gt_line(out, GT_PLAIN,
			"  held grows faster: above %llu, torch has to empty its cache to go on",
			(unsigned long long)view->by_held);
}

static void print_params(struct gt_out *out, const struct gt_args *args,
			 const struct gt_plan_view *view, enum gt_unit unit)
{
	const struct gt_plan_row *row = &view->rows[0];

	gt_line(out, GT_PLAIN,
		"%.4g parameters, fp32, Adam: 4 + 4 + 8 bytes each, %lld %s. Reserve %lld.",
		args->plan.params, in_unit(gt_plan_static(row), unit), gt_unit_name(unit),
		in_unit(view->reserve, unit));
	if (view->gpu > 0)
		gt_line(out, GT_PLAIN, "For samples: %lld of %lld.",
			in_unit(gt_plan_room(view, row), unit), in_unit(view->gpu, unit));
}

static void put_split(struct gt_table *table, unsigned long target, uint64_t micro)
{
	char *text;

	if (!micro) {
		gt_table_unknown(table);
		return;
	}
	text = gt_xasprintf("%llu x %llu", (unsigned long long)micro,
			    (unsigned long long)(target / micro));
	gt_table_text(table, text);
	free(text);
}

static void add_row(struct gt_table *table, const struct gt_args *args,
		    const struct gt_plan_view *view, const struct gt_plan_row *row)
{
	uint64_t largest = gt_plan_row_largest(view, row);

	gt_table_row(table, 0, 0, 0);
	gt_table_text(table, row->name);
	if (!row->known) {
		for (int i = 0; i < 4; i++)
			gt_table_unknown(table);
	} else {
		gt_table_number(table, llround(gt_plan_static(row)));
		gt_table_known(table, (int64_t)whole(row->per_sample), row->per_sample > 0);
		gt_table_known(table, (int64_t)largest, view->gpu > 0 && row->per_sample > 0);
		put_split(table, args->plan.target, gt_plan_divisor(args->plan.target, largest));
	}
	gt_table_text(table, row->same_result ? "same" : "may vary");
	gt_table_text(table, row->formula);
}

static void print_table(struct gt_out *out, const struct gt_args *args,
			const struct gt_plan_view *view, enum gt_unit unit)
{
	char *title = gt_xasprintf("By formula, not by a run, %s", gt_unit_name(unit));
	const struct gt_field fields[] = {
		{"technique", title, GT_FIELD_TEXT, GT_SHOW_ALWAYS},
		{"static_bytes", "static", GT_FIELD_BYTES, GT_SHOW_ALWAYS},
		{"bytes_per_sample", "per sample", GT_FIELD_BYTES, GT_SHOW_ALWAYS},
		{"largest_micro_batch", "batch", GT_FIELD_COUNT, GT_SHOW_ALWAYS},
		{"accumulation", "target", GT_FIELD_TEXT, GT_SHOW_ALWAYS},
		{"result", NULL, GT_FIELD_TEXT, GT_SHOW_ALWAYS},
		{"formula", NULL, GT_FIELD_TEXT, GT_SHOW_WIDE},
	};
	struct gt_table *table = gt_table_new(fields, sizeof(fields) / sizeof(fields[0]));

	gt_table_unit(table, unit);
	for (size_t i = 0; i < view->row_count; i++)
		add_row(table, args, view, &view->rows[i]);
	gt_table_print(table, out, 0);
	gt_table_free(table);
	free(title);
}

void gt_plan_print(struct gt_out *out, const struct gt_args *args, const struct gt_plan_view *view)
{
	enum gt_unit unit = unit_of(view);
	bool text = out->format == GT_FORMAT_TEXT;

	if (text)
		print_answer(out, args, view);
	if (text && view->count) {
		print_line(out, view, unit);
		print_edge(out, view, unit);
	} else if (text) {
		print_params(out, args, view, unit);
	}
	print_table(out, args, view, unit);
	gt_next(out, "next: run it, then gputrace compare A B C");
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static json_t *json_split(json_t *object, unsigned long target, uint64_t largest, bool known)
{
	uint64_t micro = known ? gt_plan_divisor(target, largest) : 0;

	json_object_set_new(object, "largest_micro_batch", gt_json_number(largest, known));
	json_object_set_new(object, "micro_batch", gt_json_number(micro, micro));
	json_object_set_new(object, "accumulation",
			    gt_json_number(micro ? target / micro : 0, micro));
	return object;
}

static json_t *json_row(const struct gt_args *args, const struct gt_plan_view *view,
			const struct gt_plan_row *row)
{
	bool sample = row->known && row->per_sample > 0;
	json_t *object = json_pack(
		"{s:s, s:s, s:s, s:b, s:o, s:o, s:o, s:o, s:o}", "technique", row->id, "name",
		row->name, "formula", row->formula, "same_result", row->same_result, "weights",
		gt_json_number(whole(row->weights), row->known), "gradients",
		gt_json_number(whole(row->gradients), row->known), "optimizer_state",
		gt_json_number(whole(row->optimizer), row->known), "static_bytes",
		row->known ? json_integer(llround(gt_plan_static(row))) : json_null(),
		"bytes_per_sample", gt_json_number(whole(row->per_sample), sample));

	return json_split(object, args->plan.target, gt_plan_row_largest(view, row),
			  sample && view->gpu > 0);
}

static json_t *json_points(const struct gt_plan_view *view)
{
	json_t *points = json_array();

	for (size_t i = 0; i < view->count; i++) {
		const struct gt_plan_point *point = &view->points[i];

		json_array_append_new(points,
				      json_pack("{s:o, s:f, s:I, s:I, s:I}", "file",
						gt_json_name(point->path), "batch", point->batch,
						"peak_allocated", (json_int_t)point->peak,
						"peak_reserved", (json_int_t)point->held, "step",
						(json_int_t)point->worst));
	}
	return points;
}

/* The lines that are the highest for some batch from 1 on, in the order of batch sizes. */
static json_t *json_lines(const struct gt_plan_view *view)
{
	json_t *lines = json_array();

	for (size_t l = view->count ? gt_plan_highest(view, 1) : GT_PLAN_LINES; l < GT_PLAN_LINES;
	     l = gt_plan_next(view, l))
		json_array_append_new(
			lines, json_pack("{s:s, s:I, s:I, s:I}", "phase", gt_plan_phase(view, l),
					 "static_bytes", (json_int_t)view->lines[l].at_zero,
					 "bytes_per_sample", (json_int_t)view->lines[l].slope,
					 "residual_bytes", (json_int_t)view->lines[l].residual));
	return lines;
}

void gt_plan_json(struct gt_out *out, const struct gt_args *args, const struct gt_plan_view *view)
{
	json_t *answer = gt_json_answer("plan"), *rows = json_array();
	const struct gt_plan_row *base = &view->rows[0];
	bool known = view->gpu > 0 && base->per_sample > 0;

	for (size_t i = 0; i < view->row_count; i++)
		json_array_append_new(rows, json_row(args, view, &view->rows[i]));
	json_object_set_new(answer, "device_total",
			    gt_json_number(whole(view->gpu), view->gpu > 0));
	json_object_set_new(answer, "reserve_bytes", json_integer((json_int_t)view->reserve));
	json_object_set_new(answer, "static_bytes", json_integer(llround(gt_plan_static(base))));
	json_object_set_new(answer, "bytes_per_sample",
			    gt_json_number(whole(base->per_sample), base->per_sample > 0));
	json_object_set_new(answer, "residual_bytes",
			    view->count ? json_integer((json_int_t)view->residual) : json_null());
	json_object_set_new(answer, "phase",
			    view->count ? json_string(gt_plan_phase(view, view->line))
					: json_null());
	json_object_set_new(answer, "lines", json_lines(view));
	json_object_set_new(answer, "points", json_points(view));
	json_object_set_new(answer, "largest_by_held",
			    gt_json_number(view->by_held, view->by_held));
	json_object_set_new(answer, "target", gt_json_number(args->plan.target, args->plan.target));
	json_split(answer, args->plan.target, gt_plan_row_largest(view, base), known);
	json_object_set_new(answer, "rows", rows);
	gt_json_print(out, answer);
}
