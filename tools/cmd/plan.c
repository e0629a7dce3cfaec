/* SPDX-License-Identifier: MIT */
/*
 * gputrace plan: the largest batch that fits, from the peaks of one run or of several with different
 * batch sizes, or from a number of parameters alone. A step does the same things whatever its batch, so
 * each slice of it has a line of its own over the batch size: a small batch peaks in the optimizer, where
 * it does not matter, a large one where backward begins, and the peak is the highest of the lines.
 */
#include "cmd/plan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "cmd/contrast.h"
#include "model/xalloc.h"

#define RESERVE (1ull << 30) /* unless --reserve says it: context, libraries, fragmentation */

/* ---- a run ----------------------------------------------------------------------------------- */

static void raise_lines(struct gt_plan_point *point, const struct gt_step *step, size_t first)
{
	for (size_t s = 0; s < GT_STEP_SLICES; s++)
		if ((double)step->slice_peaks[s] > point->lines[first + s]) {
			point->lines[first + s] = (double)step->slice_peaks[s];
			point->phases[first + s] = step->slice_phases[s];
		}
}

static void read_steps(struct gt_plan_point *point, const struct gt_steps *steps)
{
	const struct gt_step *usual = &steps->steps[steps->usual];

	for (size_t i = 0; i < steps->count; i++) {
		raise_lines(point, &steps->steps[i], i ? GT_STEP_SLICES : 0);
		for (int p = GT_PHASE_FORWARD; p <= GT_PHASE_AFTER; p++)
			point->by_phase[p] =
				fmax(point->by_phase[p], (double)steps->steps[i].phase_peaks[p]);
		point->held = fmax(point->held, (double)steps->steps[i].peak_reserved);
	}
	point->peak = (double)steps->steps[steps->worst].peak;
	point->worst = steps->worst + 1;
	point->phase = steps->steps[steps->worst].peak_phase;
	point->events = usual->end - usual->first;
	for (int c = 0; c < GT_CATEGORIES; c++)
		point->categories[c] = (double)usual->categories[GT_STEP_BACKWARD][c];
}

static int read_peak(const struct gt_place *place, struct gt_plan_point *point, uint64_t seq)
{
	const struct gt_when when = {.kind = GT_WHEN_EVENT, .seq = seq};
	struct gt_state state;
	int status = gt_input_state(place->input, place->lane_index, GT_TOTAL_IN_USE, when, &state);

	if (status)
		return status;
	for (size_t i = 0; i < state.hold_count; i++)
		point->at_peak[state.holds[i].category] += (double)state.holds[i].bytes;
	gt_state_clear(&state);
	return 0;
}

static int read_point(const struct gt_place *place, struct gt_plan_point *point)
{
	const struct gt_trace *trace = place->input->trace;
	const struct gt_answers *answers = gt_input_answers(place->input);
	struct gt_steps steps = {0};
	struct gt_error err;
	int status;

	if (gt_headline(trace))
		return gt_message(
			GT_EXIT_USAGE,
			"plan: %s ran out of memory: its peak says too little; leave it out",
			trace->path);
	if (answers && gt_steps_get(answers, place->lane_index, GT_TOTAL_IN_USE, &steps, &err))
		return gt_message_error(&err);
	if (!steps.count)
		return gt_message(GT_EXIT_USAGE,
				  "plan: %s: no steps found: plan needs a training's steps; see: "
				  "gputrace steps %s",
				  trace->path, trace->path);
	read_steps(point, &steps);
	point->device_total = place->device_total;
	status = read_peak(place, point, steps.steps[steps.worst].peak_seq);
	gt_steps_clear(&steps);
	return status;
}

/* Of each trace the device that is closest to its limit. */
static int read_points(const struct gt_args *args, struct gt_session *session,
		       struct gt_plan_view *view)
{
	struct gt_places places = gt_places_of(args, session);
	int status = gt_check_places(args, &places);

	view->points = gt_xcalloc(session->count, sizeof(*view->points));
	for (size_t i = 0; i < session->count && !status; i++) {
		struct gt_places own = {.session = session};
		const struct gt_place *tightest;

		for (size_t p = 0; p < places.count; p++)
			if (places.places[p].input == &session->inputs[i])
				*GT_PUSH(own.places, own.count) = places.places[p];
		tightest = gt_tightest(&own, GT_TOTAL_IN_USE);
		view->points[view->count++].path = session->paths[i];
		if (tightest)
			status = read_point(tightest, &view->points[i]);
		else
			status = gt_message(GT_EXIT_USAGE, "plan: %s: no GPU memory was asked for",
					    session->paths[i]);
		free(own.places);
	}
	free(places.places);
	return status;
}

/* ---- batch sizes ----------------------------------------------------------------------------- */

static int no_batch(const struct gt_plan_view *view, const char *path)
{
	return gt_message(GT_EXIT_USAGE,
			  "plan: %s: its batch size is not in its arguments: say --batch N%s", path,
			  view->count > 1 ? ",M in the order of the traces" : "");
}

static int find_batches(const struct gt_args *args, struct gt_session *session,
			struct gt_plan_view *view)
{
	struct gt_contrast contrast = gt_contrast_of(session);
	int status = 0;

	if (args->plan.batch_count && args->plan.batch_count != view->count)
		status = gt_message(GT_EXIT_USAGE, "plan: --batch has %zu number%s for %zu traces",
				    args->plan.batch_count, args->plan.batch_count == 1 ? "" : "s",
				    view->count);
	for (size_t i = 0; i < view->count && !status; i++) {
		double *batch = &view->points[i].batch;

		if (args->plan.batch_count)
			*batch = args->plan.batches[i];
		else if (!gt_batch_argument(session->inputs[i].trace, batch))
			*batch = contrast.numbers ? contrast.numbers[i] : 0;
		if (*batch <= 0)
			status = no_batch(view, view->points[i].path);
	}
	gt_contrast_clear(&contrast);
	return status;
}

/* ---- lines ----------------------------------------------------------------------------------- */

static double part_of(const double categories[GT_CATEGORIES])
{
	return categories[GT_CATEGORY_WEIGHTS] + categories[GT_CATEGORY_GRADIENTS] +
	       categories[GT_CATEGORY_OPTIMIZER];
}

static bool fit(const struct gt_plan_view *view, const double *values, struct gt_line_fit *ret)
{
	double *batches = gt_xcalloc(view->count, sizeof(*batches));
	bool fitted;

	for (size_t i = 0; i < view->count; i++)
		batches[i] = view->points[i].batch;
	fitted = !gt_fit_line(batches, values, view->count, ret);
	free(batches);
	return fitted;
}

/*
 * Slices are those of the same work only if the steps have equally many events. Otherwise, as when an
 * operation takes another way for another batch, a line per phase is all there is.
 */
static void align_lines(struct gt_plan_view *view)
{
	bool equal = true;

	for (size_t i = 0; i < view->count; i++)
		equal &= view->points[i].events == view->points[0].events;
	for (size_t i = 0; i < view->count && !equal; i++) {
		struct gt_plan_point *point = &view->points[i];

		memset(point->lines, 0, sizeof(point->lines));
		memcpy(point->lines, point->by_phase, sizeof(point->by_phase));
		for (int p = GT_PHASE_FORWARD; p <= GT_PHASE_AFTER; p++)
			point->phases[p] = (uint8_t)p;
	}
}

static int fit_lines(struct gt_plan_view *view)
{
	double *values = gt_xcalloc(view->count, sizeof(*values));
	bool any = false;

	align_lines(view);
	for (size_t l = 0; l < GT_PLAN_LINES; l++) {
		bool there = true;

		for (size_t i = 0; i < view->count; i++) {
			values[i] = view->points[i].lines[l];
			there &= values[i] > 0;
		}
		view->fitted[l] = there && fit(view, values, &view->lines[l]);
		any |= view->fitted[l];
	}
	for (size_t i = 0; i < view->count; i++)
		values[i] = view->points[i].held;
	fit(view, values, &view->held);
	free(values);
	if (any)
		return 0;
	return gt_message(GT_EXIT_USAGE,
			  "plan: %s and %s have the same batch size: two different "
			  "ones are needed",
			  view->points[0].path, view->points[1].path);
}

/* One run: what is static at its peak is static, the rest grows with the batch. */
static void line_of_one(struct gt_plan_view *view)
{
	struct gt_plan_point *point = &view->points[0];
	double fixed = part_of(point->at_peak) + point->at_peak[GT_CATEGORY_WORKSPACES];

	point->phases[0] = (uint8_t)point->phase;
	view->fitted[0] = true;
	view->lines[0] = (struct gt_line_fit){
		.at_zero = fixed,
		.slope = (point->peak - fixed) / point->batch,
	};
}

static double value_at(const struct gt_plan_view *view, size_t line, double batch)
{
	return view->lines[line].at_zero + view->lines[line].slope * batch;
}

size_t gt_plan_highest(const struct gt_plan_view *view, double batch)
{
	size_t best = GT_PLAN_LINES;

	for (size_t l = 0; l < GT_PLAN_LINES; l++)
		if (view->fitted[l] && (best == GT_PLAN_LINES ||
					value_at(view, l, batch) > value_at(view, best, batch)))
			best = l;
	return best;
}

double gt_plan_predict(const struct gt_plan_view *view, double batch)
{
	return value_at(view, gt_plan_highest(view, batch), batch);
}

size_t gt_plan_next(const struct gt_plan_view *view, size_t line)
{
	const struct gt_line_fit *now = &view->lines[line];
	size_t best = GT_PLAN_LINES;
	double nearest = INFINITY;

	for (size_t l = 0; l < GT_PLAN_LINES; l++) {
		const struct gt_line_fit *other = &view->lines[l];
		double crossing;

		if (!view->fitted[l] || other->slope <= now->slope)
			continue;
		crossing = (now->at_zero - other->at_zero) / (other->slope - now->slope);
		if (crossing < nearest) {
			nearest = crossing;
			best = l;
		}
	}
	return best;
}

const char *gt_plan_phase(const struct gt_plan_view *view, size_t line)
{
	return gt_phase_name(view->points[view->count - 1].phases[line]);
}

/* The largest batch whose peak fits: the least that any line allows. */
static void find_limit(struct gt_plan_view *view)
{
	double room = view->gpu - view->reserve, best = INFINITY;

	for (size_t l = 0; l < GT_PLAN_LINES; l++) {
		const struct gt_line_fit *line = &view->lines[l];
		double batch = line->slope > 0 ? (room - line->at_zero) / line->slope : 0;

		if (!view->fitted[l] || (line->slope <= 0 && line->at_zero <= room))
			continue;
		if (batch < best) {
			best = batch;
			view->line = l;
		}
	}
	view->largest = best < INFINITY ? gt_plan_largest(best, 1) : 0;
	if (view->held.slope > 0)
		view->by_held = gt_plan_largest(room - view->held.at_zero, view->held.slope);
}

static void make_base(const struct gt_args *args, struct gt_plan_view *view)
{
	const struct gt_plan_point *last = &view->points[view->count - 1];
	const struct gt_line_fit *line = &view->lines[view->line];
	struct gt_plan_base *base = &view->base;

	base->weights = last->categories[GT_CATEGORY_WEIGHTS];
	base->gradients = last->categories[GT_CATEGORY_GRADIENTS];
	base->optimizer = last->categories[GT_CATEGORY_OPTIMIZER];
	view->residual = line->at_zero - part_of(last->categories);
	base->other = view->residual;
	base->per_sample = fmax(0, line->slope);
	base->params = args->plan.params > 0 ? args->plan.params : base->weights / 4;
}

static int plan_runs(const struct gt_args *args, struct gt_session *session,
		     struct gt_plan_view *view)
{
	int status = read_points(args, session, view);

	if (!status)
		status = find_batches(args, session, view);
	if (!status && view->count > 1)
		status = fit_lines(view);
	else if (!status)
		line_of_one(view);
	if (status)
		return status;
	view->gpu = (double)args->plan.gpu;
	for (size_t i = 0; i < view->count && !args->plan.gpu; i++)
		view->gpu = fmax(view->gpu, (double)view->points[i].device_total);
	if (view->gpu <= 0)
		return gt_message(GT_EXIT_USAGE,
				  "plan: %s: the card's size is not in it: say --gpu "
				  "24GiB",
				  view->points[0].path);
	find_limit(view);
	make_base(args, view);
	return 0;
}

/* ---- both ------------------------------------------------------------------------------------ */

double gt_plan_room(const struct gt_plan_view *view, const struct gt_plan_row *row)
{
	return view->gpu - view->reserve - gt_plan_static(row);
}

uint64_t gt_plan_row_largest(const struct gt_plan_view *view, const struct gt_plan_row *row)
{
	if (view->count && row == view->rows)
		return view->largest;
	return gt_plan_largest(gt_plan_room(view, row), row->per_sample);
}

/* Several --sample: the same static bytes with each of them, as measured elsewhere. */
static void rows_of_samples(const struct gt_args *args, struct gt_plan_view *view)
{
	view->rows = gt_xcalloc(args->plan.sample_count, sizeof(*view->rows));
	view->row_count = args->plan.sample_count;
	for (size_t i = 0; i < view->row_count; i++)
		view->rows[i] = (struct gt_plan_row){
			.id = "sample",
			.name = "per sample as given",
			.formula = "--sample",
			.known = true,
			.weights = view->base.weights,
			.gradients = view->base.gradients,
			.optimizer = view->base.optimizer,
			.other = view->base.other,
			.per_sample = args->plan.samples[i],
		};
}

static void make_rows(const struct gt_args *args, struct gt_plan_view *view)
{
	view->base.layers = (double)args->plan.layers;
	view->base.rank = (double)args->plan.rank;
	view->base.devices = (double)args->plan.gpus;
	if (args->plan.sample_count > 1)
		rows_of_samples(args, view);
	else
		view->rows = gt_plan_rows(&view->base, &view->row_count);
}

static void plan_params(const struct gt_args *args, struct gt_plan_view *view)
{
	struct gt_plan_row row = {0};

	view->base = gt_plan_of_params(args->plan.params);
	view->gpu = (double)args->plan.gpu;
	view->base.per_sample = args->plan.sample_count ? args->plan.samples[0] : 0;
	row.weights = view->base.weights;
	row.gradients = view->base.gradients;
	row.optimizer = view->base.optimizer;
	view->largest = gt_plan_largest(gt_plan_room(view, &row), view->base.per_sample);
}

static int check_args(const struct gt_args *args)
{
	if (!args->operand_count && !(args->plan.params > 0))
		return gt_message(GT_EXIT_USAGE, "plan: usage: gputrace plan TRACE..., or gputrace "
						 "plan --params 350M");
	if (args->operand_count && args->plan.sample_count)
		return gt_message(
			GT_EXIT_USAGE,
			"plan: --sample goes with --params alone: a trace says it itself");
	if (!args->operand_count && args->plan.batch_count)
		return gt_message(GT_EXIT_USAGE,
				  "plan: --batch says the batch sizes of traces, and "
				  "there is none");
	if (args->plan.sample_count && !args->plan.gpu)
		return gt_message(GT_EXIT_USAGE,
				  "plan: --sample needs the card's size: --gpu 24GiB");
	return 0;
}

int gt_cmd_plan(struct gt_args *args)
{
	struct gt_plan_view view = {
		.reserve = args->plan.reserve_set ? (double)args->plan.reserve : (double)RESERVE,
	};
	struct gt_session session = {0};
	struct gt_out out;
	int status = check_args(args);

	if (!status && !args->operand_count)
		plan_params(args, &view);
	else if (!status)
		status = gt_session_open(args, &session);
	if (!status && session.count)
		status = plan_runs(args, &session, &view);
	if (!status)
		status = gt_args_out(args, &out);
	if (!status) {
		make_rows(args, &view);
		if (args->format == GT_FORMAT_JSON)
			gt_plan_json(&out, args, &view);
		else
			gt_plan_print(&out, args, &view);
		status = gt_args_done(args, &out, 0);
	}
	free(view.points);
	free(view.rows);
	gt_session_close(&session);
	return status;
}
