/* SPDX-License-Identifier: MIT */
/* gputrace steps: one row per training step, and which of them sets the peak. */
#include "cmd/summary.h"
#include "cmd/chart.h"

#include <stdlib.h>
#include <string.h>
#include "model/categories.h"
#include "model/growth.h"
#include "model/steps.h"
#include "model/xalloc.h"
#include "out/json.h"
#include "out/plot.h"
#include "out/table.h"

#define PLOT_ROWS     6
#define MOST_WIDE     6 /* columns of a step in the plot */
#define LEAST_PLOTTED 8 /* steps */

struct view {
	const struct gt_place *place;
	const struct gt_answers *answers;
	struct gt_steps steps;
	struct gt_growth growth;
};

static int open_view(const struct gt_args *args, const struct gt_place *place, struct view *ret)
{
	struct gt_error err = {0};

	*ret = (struct view){.place = place, .answers = gt_input_answers(place->input)};
	if (!ret->answers)
		return 0;
	if (gt_steps_get(ret->answers, place->lane_index, args->total, &ret->steps, &err))
		return gt_message_error(&err);
	ret->growth = gt_growth_of(ret->answers, place->lane_index);
	return 0;
}

static void close_view(struct view *view)
{
	gt_growth_clear(&view->growth);
	gt_steps_clear(&view->steps);
}

/* ---- where the steps come from --------------------------------------------------------------- */

/* "inferred from train.py:27", the call of backward(). To be freed. */
static char *source_text(const struct view *view)
{
	static const char *const texts[] = {
		[GT_STEPS_NONE] = "not found",
		[GT_STEPS_MARKS] = "taken from the program's marks",
		[GT_STEPS_NVTX] = "taken from the program's ranges",
		[GT_STEPS_INFERRED] = "inferred from backward passes",
		[GT_STEPS_LOOP] = "inferred from a loop's jumps back",
		[GT_STEPS_PERIOD] = "inferred from what repeats",
	};
	const struct gt_passes *passes = &view->answers->passes;
	char *anchor, *text;

	if (view->steps.source != GT_STEPS_INFERRED || !passes->count || !passes->passes[0].call)
		return gt_xstrdup(texts[view->steps.source]);
	anchor = gt_where_text(view->place->input, passes->passes[0].call);
	text = gt_xasprintf("inferred from %s", anchor);
	free(anchor);
	return text;
}

static void print_source(struct gt_out *out, const struct view *view, enum gt_unit unit)
{
	char device[GT_DEVICE_TEXT];
	char *source = source_text(view);

	gt_line(out, GT_PLAIN, "%zu%s steps, %s, count from 1. %s, %s.", view->steps.count,
		view->steps.count < 5 ? " (few)" : "", source,
		gt_device_text(view->place->lane->device, device), gt_unit_name(unit));
	free(source);
}

/* ---- text ------------------------------------------------------------------------------------ */

/* Remainders that the allocator leaves in blocks make no input larger. */
static bool largest_input(const struct gt_steps *steps, size_t index)
{
	uint64_t inputs = steps->steps[index].inputs;
	bool other = false;

	for (size_t i = 0; i < steps->count; i++) {
		if (gt_same_size(steps->steps[i].inputs, inputs))
			continue;
		if (steps->steps[i].inputs > inputs)
			return false;
		other = true;
	}
	return other && inputs;
}

static bool stands_out(const struct gt_steps *steps)
{
	return steps->steps[steps->worst].peak > steps->steps[steps->usual].peak;
}

static void print_answer(struct gt_out *out, const struct view *view, enum gt_unit unit)
{
	const struct gt_steps *steps = &view->steps;
	char slope[GT_SIZE_TEXT];
	char *grows = gt_xstrdup(view->growth.enough ? " No growth." : "");

	if (view->growth.slope > 0) {
		free(grows);
		grows = gt_xasprintf(" Grows %s per step.",
				     gt_size_text((uint64_t)view->growth.slope, slope));
	}
	if (!stands_out(steps)) {
		gt_line(out, GT_BOLD, "Peak %lld %s in each step.%s",
			gt_in_unit(steps->steps[steps->usual].peak, unit), gt_unit_name(unit),
			grows);
		free(grows);
		return;
	}
	gt_line(out, GT_BOLD, "Usual peak %lld %s; worst %lld in step %zu%s.%s",
		gt_in_unit(steps->steps[steps->usual].peak, unit), gt_unit_name(unit),
		gt_in_unit(steps->steps[steps->worst].peak, unit), steps->worst + 1,
		largest_input(steps, steps->worst) ? " (largest input)" : "", grows);
	free(grows);
}

static const struct gt_field fields[] = {
	{"step", "step", GT_FIELD_TEXT, GT_SHOW_ALWAYS},
	{"peak_allocated", "peak", GT_FIELD_BYTES, GT_SHOW_ALWAYS},
	{"peak_phase", "peak in", GT_FIELD_TEXT, GT_SHOW_ALWAYS},
	{"forward", "forward", GT_FIELD_BYTES, GT_SHOW_WIDE},
	{"backward", "backward", GT_FIELD_BYTES, GT_SHOW_WIDE},
	{"optimizer", "optimizer", GT_FIELD_BYTES, GT_SHOW_WIDE},
	{"peak_reserved", "held", GT_FIELD_BYTES, GT_SHOW_ALWAYS},
	{"end_allocated", "end", GT_FIELD_BYTES, GT_SHOW_ALWAYS},
	{"carried_in", "carried in", GT_FIELD_BYTES, GT_SHOW_ALWAYS},
	{"allocations", "allocs", GT_FIELD_COUNT, GT_SHOW_ALWAYS},
	{"frees", NULL, GT_FIELD_COUNT, GT_SHOW_WIDE},
	{"moved", "moved", GT_FIELD_BYTES, GT_SHOW_WIDE},
	{"input", "input", GT_FIELD_BYTES, GT_SHOW_WIDE},
	{"milliseconds", "ms", GT_FIELD_COUNT, GT_SHOW_ALWAYS},
	{"note", "note", GT_FIELD_TEXT, GT_SHOW_ALWAYS},
};

static const char *note_of(const struct view *view, size_t index)
{
	if (index == view->steps.worst && stands_out(&view->steps))
		return largest_input(&view->steps, index) ? "largest input" : "largest";
	if (view->steps.steps[index].cut && view->place->input->trace->header.exit_us)
		return "then exit";
	return index == 0 ? "warm-up" : "";
}

/* Rows [first, last] as one: the most of each. */
static void add_row(struct gt_table *table, const struct view *view, size_t first, size_t last)
{
	struct gt_step step = view->steps.steps[first];
	char *name = first == last ? gt_xasprintf("%zu", first + 1)
				   : gt_xasprintf("%zu-%zu", first + 1, last + 1);
	char *alike = gt_xasprintf("%zu alike", last - first + 1);

	for (size_t i = first + 1; i <= last; i++)
		if (view->steps.steps[i].peak > step.peak)
			step = view->steps.steps[i];
	gt_table_row(table, 0, 0,
		     first == view->steps.worst && first == last && stands_out(&view->steps)
			     ? GT_ROW_ACT
			     : 0);
	gt_table_text(table, name);
	gt_table_number(table, (int64_t)step.peak);
	gt_table_text(table, gt_phase_name(step.peak_phase));
	for (int phase = GT_PHASE_FORWARD; phase <= GT_PHASE_OPTIMIZER; phase++)
		gt_table_known(table, (int64_t)step.phase_peaks[phase], step.phase_peaks[phase]);
	gt_table_number(table, (int64_t)step.peak_reserved);
	gt_table_known(table, (int64_t)step.end_bytes, !step.cut);
	gt_table_number(table, (int64_t)step.carried_in);
	gt_table_number(table, (int64_t)step.allocs);
	gt_table_number(table, (int64_t)step.frees);
	gt_table_number(table, (int64_t)step.alloc_bytes);
	gt_table_known(table, (int64_t)step.inputs, step.inputs);
	gt_table_number(table, (int64_t)((step.to_us - step.from_us + 500) / 1000));
	gt_table_text(table, first == last ? note_of(view, first) : alike);
	free(alike);
	free(name);
}

/* The first, the worst and the last two steps always stand for themselves. */
static bool stands_alone(const struct gt_steps *steps, size_t index)
{
	return index < 2 || index == steps->worst || index + 2 >= steps->count;
}

/* Consecutive steps are one row where there is no room for all: peaks within 1 % first, then more. */
static size_t run_end(const struct gt_steps *steps, size_t from, unsigned int percent)
{
	uint64_t low = steps->steps[from].peak, high = low;
	size_t to = from;

	if (stands_alone(steps, from))
		return from;
	while (to + 1 < steps->count && !stands_alone(steps, to + 1)) {
		uint64_t peak = steps->steps[to + 1].peak;

		low = peak < low ? peak : low;
		high = peak > high ? peak : high;
		if (high - low > high * percent / 100)
			break;
		to++;
	}
	return to;
}

static size_t count_rows(const struct gt_steps *steps, unsigned int percent)
{
	size_t rows = 0;

	for (size_t i = 0; i < steps->count; rows++)
		i = run_end(steps, i, percent) + 1;
	return rows;
}

/* A few steps are read more quickly in the table. */
static bool shows_plot(const struct gt_out *out, const struct view *view)
{
	return out->terminal && !out->all && view->steps.count >= LEAST_PLOTTED;
}

static void print_table(struct gt_out *out, const struct view *view, enum gt_unit unit, bool cut)
{
	struct gt_table *table = gt_table_new(fields, sizeof(fields) / sizeof(fields[0]));
	const struct gt_steps *steps = &view->steps;
	size_t room = gt_screen_rows(out, shows_plot(out, view) ? 8 + PLOT_ROWS : 6);
	bool fold = cut && room && steps->count > room;
	unsigned int percent = 0;

	while (fold && percent < 100 && count_rows(steps, percent) > room)
		percent = percent ? 2 * percent : 1;
	gt_table_unit(table, unit);
	for (size_t i = 0; i < steps->count;) {
		size_t last = fold ? run_end(steps, i, percent) : i;

		add_row(table, view, i, last);
		i = last + 1;
	}
	gt_table_print(table, out, 0);
	gt_table_free(table);
}

/* Steps behind the first: their spread and speed. */
static void print_spread(struct gt_out *out, const struct view *view, enum gt_unit unit)
{
	const struct gt_steps *steps = &view->steps;
	uint64_t low = UINT64_MAX, high = 0;
	double speed = gt_steps_per_second(steps);
	char words[40] = "";

	for (size_t i = 1; i < steps->count; i++) {
		low = steps->steps[i].peak < low ? steps->steps[i].peak : low;
		high = steps->steps[i].peak > high ? steps->steps[i].peak : high;
	}
	if (steps->count < 2)
		return;
	if (speed > 0)
		snprintf(words, sizeof(words), ", %.3g steps/s", speed);
	gt_line(out, GT_PLAIN, "2-%zu: peak %lld to %lld%s.", steps->count, gt_in_unit(low, unit),
		gt_in_unit(high, unit), words);
	gt_line(out, GT_PLAIN,
		"Carried in: made in the step before, freed in this one. Peaks: most in use.");
}

static void print_none(struct gt_out *out, const struct view *view)
{
	gt_line(out, GT_BOLD, "No steps found%s.",
		!view->answers		       ? ": no torch in this trace"
		: !view->answers->passes.count ? ": no marks, no backward pass, and no loop shows"
		: view->answers->passes.count < 3 ? ": fewer than three backward passes"
						  : ": backward passes follow no regular pattern");
	if (view->answers && view->answers->passes.count)
		gt_line(out, GT_PLAIN, "Backward passes: %zu.", view->answers->passes.count);
}

/* Each step as wide as fits, or the highest of several in a column. */
static void print_plot(struct gt_out *out, const struct view *view)
{
	size_t room = gt_plot_columns(out), count = view->steps.count;
	size_t wide = room / count < MOST_WIDE ? room / count : MOST_WIDE;
	struct gt_plot plot = {.rows = PLOT_ROWS, .top = view->place->device_total, .from = "1"};
	uint64_t *used, *held;
	char *to = gt_xasprintf("step %zu", count);

	plot.columns = wide ? wide * count : room;
	plot.to = to;
	plot.used = used = gt_xcalloc(plot.columns, sizeof(*used));
	plot.held = held = gt_xcalloc(plot.columns, sizeof(*held));
	for (size_t i = 0; i < count; i++) {
		const struct gt_step *step = &view->steps.steps[i];

		for (size_t k = i * plot.columns / count; k <= ((i + 1) * plot.columns - 1) / count;
		     k++) {
			used[k] = step->peak > used[k] ? step->peak : used[k];
			held[k] = step->peak_reserved > held[k] ? step->peak_reserved : held[k];
		}
	}
	gt_plot_print(out, &plot);
	free(used);
	free(held);
	free(to);
}

static void print_text(struct gt_out *out, const struct view *view)
{
	const struct gt_steps *steps = &view->steps;
	enum gt_unit unit;

	if (!steps->count) {
		print_none(out, view);
		gt_print_loss(out, view->place->input->trace);
		return;
	}
	unit = gt_unit_for(steps->steps[steps->worst].peak);
	print_answer(out, view, unit);
	print_source(out, view, unit);
	if (shows_plot(out, view))
		print_plot(out, view);
	print_table(out, view, unit, out->terminal && !out->all);
	print_spread(out, view, unit);
	gt_print_loss(out, view->place->input->trace);
	gt_next(out, "next: gputrace at step:%zu FILE     gputrace growth FILE", steps->worst + 1);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static json_t *json_moments(const struct gt_step *step)
{
	return json_pack("{s:o, s:o, s:o, s:o}", "forward",
			 gt_json_category_bytes(step->categories[GT_STEP_FORWARD]), "backward",
			 gt_json_category_bytes(step->categories[GT_STEP_BACKWARD]), "end",
			 gt_json_category_bytes(step->categories[GT_STEP_END]), "peak",
			 gt_json_category_bytes(step->categories[GT_STEP_PEAK]));
}

static json_t *json_step(const struct gt_step *step, size_t number)
{
	return json_pack("{s:I, s:b, s:I, s:I, s:o, s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:s, s:o}",
			 "step", (json_int_t)number, "warm_up", number == 1, "peak_allocated",
			 (json_int_t)step->peak, "peak_reserved", (json_int_t)step->peak_reserved,
			 "end_allocated", gt_json_number(step->end_bytes, !step->cut), "carried_in",
			 (json_int_t)step->carried_in, "allocations", (json_int_t)step->allocs,
			 "frees", (json_int_t)step->frees, "moved", (json_int_t)step->alloc_bytes,
			 "input", (json_int_t)step->inputs, "starts",
			 gt_json_seconds(step->from_us, true), "seconds",
			 gt_json_seconds(step->to_us - step->from_us, true), "peak_phase",
			 gt_phase_name(step->peak_phase), "phases",
			 json_pack("{s:I, s:I, s:I, s:I}", "forward",
				   (json_int_t)step->phase_peaks[GT_PHASE_FORWARD], "backward",
				   (json_int_t)step->phase_peaks[GT_PHASE_BACKWARD], "optimizer",
				   (json_int_t)step->phase_peaks[GT_PHASE_OPTIMIZER], "after",
				   (json_int_t)step->phase_peaks[GT_PHASE_AFTER]));
}

static json_t *json_with_moments(const struct gt_step *step, size_t number)
{
	json_t *object = json_step(step, number);

	json_object_set_new(object, "categories", json_moments(step));
	return object;
}

static json_t *json_place(const struct view *view)
{
	json_t *steps = json_array();

	for (size_t i = 0; i < view->steps.count; i++)
		json_array_append_new(steps, json_with_moments(&view->steps.steps[i], i + 1));
	return json_pack("{s:o, s:o, s:s, s:f, s:i, s:I, s:o}", "pid",
			 gt_json_pid(view->place->input->trace), "device",
			 gt_json_ordinal(view->place->lane->device), "source",
			 gt_step_source_name(view->steps.source), "confidence",
			 view->steps.confidence, "first_step", 1, "backward_passes",
			 (json_int_t)(view->answers ? view->answers->passes.count : 0), "steps",
			 steps);
}

/* The keys of the first device stand at the top too: most runs have one. */
static int json(struct gt_out *out, const struct gt_args *args, const struct gt_places *places)
{
	json_t *answer = gt_json_answer("steps"), *devices = json_array(), *first;
	int status = 0;

	for (size_t i = 0; !status && i < places->count; i++) {
		struct view view;

		status = open_view(args, &places->places[i], &view);
		if (!status)
			json_array_append_new(devices, json_place(&view));
		close_view(&view);
	}
	first = json_array_get(devices, 0);
	json_object_set(answer, "source", first ? json_object_get(first, "source") : json_null());
	json_object_set(answer, "confidence",
			first ? json_object_get(first, "confidence") : json_null());
	json_object_set_new(answer, "first_step", json_integer(1));
	json_object_set(answer, "steps", first ? json_object_get(first, "steps") : json_array());
	json_object_set_new(answer, "devices", devices);
	gt_json_print(out, answer);
	return status;
}

static int picture(struct gt_out *out, const struct gt_args *args, const struct gt_places *places)
{
	struct gt_chart_of of = {args, gt_tightest(places, args->total), places->count};
	struct view view;
	int status;

	if (!of.place)
		return gt_message(GT_EXIT_USAGE,
				  "steps: none were found: there is nothing to draw");
	status = open_view(args, of.place, &view);
	if (!status)
		status = gt_chart_steps(out, &of, &view.steps);
	close_view(&view);
	return status;
}

static int print(struct gt_out *out, const struct gt_args *args, const struct gt_places *places)
{
	bool one = out->terminal && !args->all && out->format == GT_FORMAT_TEXT;
	const struct gt_place *only = one ? gt_tightest(places, args->total) : NULL;
	int status = 0;

	if (out->picture)
		return picture(out, args, places);
	if (args->format == GT_FORMAT_JSON)
		return json(out, args, places);
	for (size_t i = 0; !status && i < places->count; i++) {
		struct view view;

		if (only && only != &places->places[i])
			continue;
		gt_print_which(out, places, &places->places[i], only);
		status = open_view(args, &places->places[i], &view);
		if (!status && out->format == GT_FORMAT_TEXT)
			print_text(out, &view);
		else if (!status && view.steps.count)
			print_table(out, &view, GT_UNIT_MIB, false);
		close_view(&view);
	}
	return status;
}

void gt_steps_head(struct gt_out *out, const struct gt_place *place, const struct gt_steps *steps)
{
	struct view view = {
		.place = place,
		.answers = gt_input_answers(place->input),
		.steps = *steps,
	};

	if (!view.answers || !steps->count)
		return;
	view.growth = gt_growth_of(view.answers, place->lane_index);
	print_answer(out, &view, gt_unit_for(steps->steps[steps->worst].peak));
	gt_growth_clear(&view.growth);
}

int gt_cmd_steps(struct gt_args *args)
{
	return gt_run_places(args, print);
}
