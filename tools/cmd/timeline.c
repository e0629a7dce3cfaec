/* SPDX-License-Identifier: MIT */
/* gputrace timeline: what was in use and held over time. */
#include <stdlib.h>
#include "cmd/chart.h"
#include "cmd/part.h"
#include "model/series.h"
#include "model/xalloc.h"
#include "out/json.h"
#include "out/number.h"
#include "out/plot.h"
#include "out/table.h"

#define DEFAULT_POINTS 1000
#define PLOT_ROWS      16

struct span {
	uint64_t from_us, to_us;
};

/* What was asked for, as far as the history reaches. 0, or the exit status. */
static int span_of(const struct gt_args *args, const struct gt_place *place, struct span *ret)
{
	struct span span = {0, place->input->trace->last_us};
	struct gt_parts parts;

	if (gt_part_asked(args)) {
		int status = gt_parts_get(args, place->input, &parts);

		if (status)
			return status;
		span.from_us = parts.parts[0].from_us;
		if (parts.parts[0].to_us < span.to_us)
			span.to_us = parts.parts[0].to_us;
		gt_parts_clear(&parts);
	}
	if (place->lane->history_us > span.from_us)
		span.from_us = place->lane->history_us;
	if (span.from_us > span.to_us)
		span.from_us = span.to_us;
	*ret = span;
	return 0;
}

static int get_series(const struct gt_args *args, const struct gt_place *place, size_t slices,
		      struct span *ret_span, struct gt_series *ret)
{
	struct gt_error err = {0};
	int status = span_of(args, place, ret_span);

	if (status)
		return status;
	if (gt_series_get(place->input->trace, place->lane_index, ret_span->from_us,
			  ret_span->to_us, slices, ret, &err))
		return gt_message_error(&err);
	return 0;
}

static size_t slices_of(const struct gt_args *args)
{
	return args->points ? args->points : args->all ? 0 : DEFAULT_POINTS;
}

/* ---- plot ------------------------------------------------------------------------------------ */

static void draw(struct gt_out *out, const struct gt_place *place, const struct gt_series *series,
		 struct span span)
{
	uint64_t *used = gt_xcalloc(series->count, sizeof(*used));
	uint64_t *held = gt_xcalloc(series->count, sizeof(*held));
	struct gt_plot plot = {
		.used = used,
		.held = held,
		.columns = series->count,
		.top = place->device_total,
		.rows = PLOT_ROWS,
	};
	char *from = gt_xasprintf("%.3f", (double)span.from_us / 1e6);
	char *to = gt_xasprintf("%.3f s", (double)span.to_us / 1e6);

	plot.from = from;
	plot.to = to;
	for (size_t i = 0; i < series->count; i++) {
		used[i] = series->points[i].max[GT_TOTAL_IN_USE];
		held[i] = series->points[i].max[GT_TOTAL_RESERVED];
	}
	gt_plot_print(out, &plot);
	free(from);
	free(to);
	free(held);
	free(used);
}

static int plot(struct gt_out *out, const struct gt_args *args, const struct gt_places *places)
{
	const struct gt_place *place = gt_tightest(places, GT_TOTAL_IN_USE);
	const struct gt_ctr *ctr = &place->lane->ctr;
	struct span span;
	char device[GT_DEVICE_TEXT], used[GT_SIZE_TEXT], held[GT_SIZE_TEXT];
	struct gt_series series;
	int status = get_series(args, place, gt_plot_columns(out), &span, &series);

	if (status)
		return status;
	gt_line(out, GT_BOLD, "%s: peak %s in use at %.3f s; most held %s.",
		gt_device_text(place->lane->device, device),
		gt_size_text(ctr->peak[GT_TOTAL_IN_USE], used),
		(double)ctr->peak_us[GT_TOTAL_IN_USE] / 1e6,
		gt_size_text(ctr->peak[GT_TOTAL_RESERVED], held));
	draw(out, place, &series, span);
	gt_print_loss(out, place->input->trace);
	if (places->count > 1)
		gt_line(out, GT_PLAIN, "%zu more GPU%s: --device N", places->count - 1,
			places->count > 2 ? "s" : "");
	gt_next(out, "next: gputrace at TIME FILE     gputrace timeline FILE --format csv");
	gt_series_clear(&series);
	return 0;
}

/* ---- table and JSON -------------------------------------------------------------------------- */

static void add_points(struct gt_table *table, const struct gt_place *place,
		       const struct gt_series *series)
{
	for (size_t i = 0; i < series->count; i++) {
		const struct gt_point *point = &series->points[i];

		gt_table_row(table, 0, 0, 0);
		gt_table_number(table, (int64_t)point->us);
		gt_table_number(table, (int64_t)point->max[GT_TOTAL_IN_USE]);
		gt_table_number(table, (int64_t)point->max[GT_TOTAL_RESERVED]);
		gt_table_number(table, place->lane->device);
		gt_table_pid(table, place->input->trace);
	}
}

static int table(struct gt_out *out, const struct gt_args *args, const struct gt_places *places)
{
	static const struct gt_field fields[] = {
		{"seconds", NULL, GT_FIELD_SECONDS, GT_SHOW_ALWAYS},
		{"allocated", "in use, bytes", GT_FIELD_BYTES, GT_SHOW_ALWAYS},
		{"reserved", "held, bytes", GT_FIELD_BYTES, GT_SHOW_ALWAYS},
		{"device", "GPU", GT_FIELD_COUNT, GT_SHOW_ALWAYS},
		{"pid", NULL, GT_FIELD_COUNT, GT_SHOW_ALWAYS},
	};
	struct gt_table *result = gt_table_new(fields, sizeof(fields) / sizeof(fields[0]));
	int status = 0;

	gt_table_unit(result, GT_UNIT_BYTE);
	for (size_t i = 0; !status && i < places->count; i++) {
		const struct gt_place *place = &places->places[i];
		struct gt_series series;
		struct span span;

		status = get_series(args, place, slices_of(args), &span, &series);
		if (status)
			break;
		add_points(result, place, &series);
		gt_series_clear(&series);
	}
	if (!status)
		gt_table_print(result, out, 0);
	gt_table_free(result);
	return status;
}

static json_t *json_points(const struct gt_series *series)
{
	json_t *points = json_array();

	for (size_t i = 0; i < series->count; i++)
		json_array_append_new(
			points,
			json_pack("{s:f, s:I, s:I, s:I}", "seconds",
				  (double)series->points[i].us / 1e6, "allocated",
				  (json_int_t)series->points[i].max[GT_TOTAL_IN_USE], "reserved",
				  (json_int_t)series->points[i].max[GT_TOTAL_RESERVED],
				  "torch_allocated",
				  (json_int_t)series->points[i].max[GT_TOTAL_TORCH]));
	return points;
}

json_t *gt_json_timeline(const struct gt_place *place, json_t *points, json_t *ranges)
{
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "pid", gt_json_pid(place->input->trace),
			 "ordinal", gt_json_ordinal(place->lane->device), "device_total",
			 gt_json_number(place->device_total, place->device_total), "history_starts",
			 gt_json_seconds(place->lane->history_us, true), "points", points, "ranges",
			 ranges);
}

static int json(struct gt_out *out, const struct gt_args *args, const struct gt_places *places)
{
	json_t *answer = gt_json_answer("timeline"), *devices = json_array();

	for (size_t i = 0; i < places->count; i++) {
		const struct gt_place *place = &places->places[i];
		struct gt_series series;
		struct span span;
		int status = get_series(args, place, slices_of(args), &span, &series);

		if (status)
			return status;
		json_array_append_new(devices,
				      gt_json_timeline(place, json_points(&series), json_array()));
		gt_series_clear(&series);
	}
	json_object_set_new(answer, "devices", devices);
	gt_json_print(out, answer);
	return 0;
}

static int picture(struct gt_out *out, const struct gt_args *args, const struct gt_places *places)
{
	struct gt_chart_of of = {args, gt_tightest(places, GT_TOTAL_IN_USE), places->count};
	struct span span;
	int status;

	if (!of.place)
		return gt_message(
			GT_EXIT_USAGE,
			"timeline: no GPU memory was asked for: there is nothing to draw");
	status = span_of(args, of.place, &span);
	return status ? status : gt_chart_timeline(out, &of, span.from_us, span.to_us);
}

static int print(struct gt_out *out, const struct gt_args *args, const struct gt_places *places)
{
	if (out->picture)
		return picture(out, args, places);
	if (args->range)
		return gt_print_ranges(out, args, places);
	if (out->format == GT_FORMAT_JSON)
		return json(out, args, places);
	if (out->format == GT_FORMAT_TEXT && out->terminal && !args->points && !args->all &&
	    places->count)
		return plot(out, args, places);
	return table(out, args, places);
}

int gt_cmd_timeline(struct gt_args *args)
{
	return gt_run_places(args, print);
}
