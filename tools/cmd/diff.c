/* SPDX-License-Identifier: MIT */
/*
 * gputrace diff A B: what changed between the peaks (or another moment) of two traces, or of two
 * windows of one, by device. Reads and checks; diff_print.c prints.
 */
#include "cmd/diff.h"

#include <stdlib.h>
#include <string.h>
#include "cmd/chart.h"
#include "cmd/part.h"
#include "model/walk.h"
#include "model/xalloc.h"
#include "out/number.h"

/* ---- one side -------------------------------------------------------------------------------- */

/* What --at, --from and --to mean for a side: of one run's windows each has its own. */
static int side_args(const struct gt_args *args, const char *window, struct gt_args *ret)
{
	struct gt_when when;

	*ret = *args;
	if (!window)
		return 0;
	if (gt_parse_when(window, &when))
		return gt_message(GT_EXIT_USAGE, "diff: %s: no such moment or part of the run",
				  window);
	ret->from = ret->to = NULL;
	if (when.kind <= GT_WHEN_END ||
	    (when.kind == GT_WHEN_STEP && (when.phase || args->at.kind == GT_WHEN_END)))
		ret->at = when;
	else
		ret->from = ret->to = window;
	return 0;
}

static int when_of(const struct gt_args *args, const struct gt_place *place, struct gt_when *ret,
		   bool *ret_at_least)
{
	if (args->at.kind == GT_WHEN_END && gt_part_asked(args))
		return gt_part_end(args, place, ret);
	return gt_part_when(args, place, ret, ret_at_least);
}

static void find_lane(struct gt_diff_view *view, int device)
{
	const struct gt_trace *trace = view->input->trace;

	for (size_t i = 0; i < trace->lane_count; i++)
		if (trace->lanes[i].device == device) {
			view->lane = &trace->lanes[i];
			view->lane_index = i;
		}
}

static int read_moment(const struct gt_args *args, struct gt_diff_view *view)
{
	struct gt_place place = {
		.input = view->input,
		.lane = view->lane,
		.lane_index = view->lane_index,
	};
	struct gt_when when;
	int status = when_of(args, &place, &when, &view->at_least);

	if (!status)
		status = gt_input_state(view->input, view->lane_index, args->total, when,
					&view->state);
	if (!status)
		status = gt_input_rows(view->input, &view->state, args->by, &view->rows);
	if (!status && !args->by_set)
		status = gt_input_rows(view->input, &view->state, GT_BY_INSIDE, &view->inside);
	return status;
}

/* What stands beside the rows: the end, steps, growth. A gone history leaves them unknown. */
static void read_run(const struct gt_args *args, struct gt_diff_view *view)
{
	const struct gt_answers *answers = gt_input_answers(view->input);
	struct gt_when end = {.kind = GT_WHEN_END};
	struct gt_state state;
	struct gt_error err = {0};
	uint32_t position;

	if (!gt_state_get(view->input->trace, view->lane_index, args->total, end, &state, &err)) {
		view->end_bytes = state.bytes;
		view->end_known = true;
		gt_state_clear(&state);
	}
	if (!answers || gt_steps_get(answers, view->lane_index, args->total, &view->steps, &err))
		return;
	view->growth = gt_growth_of(answers, view->lane_index);
	if (!gt_history_reaches(view->lane, view->state.seq))
		return;
	position = gt_story_position(answers->story, view->lane_index, view->state.seq);
	view->phase = gt_answers_phase(answers, position);
	view->step = view->steps.count ? gt_boundary_step(&answers->steps, position) : 0;
}

static int open_view(const struct gt_args *args, struct gt_input *input, const char *window,
		     int device, struct gt_diff_view *ret)
{
	struct gt_args own;
	int status = side_args(args, window, &own);

	*ret = (struct gt_diff_view){.input = input, .window = window};
	find_lane(ret, device);
	if (status || !ret->lane)
		return status;
	status = read_moment(&own, ret);
	if (status)
		return status;
	ret->peak = window ? ret->state.bytes : ret->lane->ctr.peak[args->total];
	read_run(args, ret);
	return 0;
}

static void close_view(struct gt_diff_view *view)
{
	gt_rows_clear(&view->rows);
	gt_rows_clear(&view->inside);
	gt_state_clear(&view->state);
	gt_steps_clear(&view->steps);
	gt_growth_clear(&view->growth);
}

/* ---- both ------------------------------------------------------------------------------------ */

static struct gt_diff join(const struct gt_diff_view *a, const struct gt_rows *rows_a,
			   const struct gt_diff_view *b, const struct gt_rows *rows_b,
			   enum gt_by by)
{
	const struct gt_diff_side sides[] = {
		{rows_a, a->input->trace, gt_input_symbols(a->input)},
		{rows_b, b->input->trace, gt_input_symbols(b->input)},
	};

	return gt_diff_rows(&sides[0], &sides[1], by);
}

/* Is 99 % of all change behind one line, so that the table by lines would say nothing more? */
static bool one_line(const struct gt_diff *diff)
{
	uint64_t first = 0, all = 0;

	for (size_t i = 0; i < diff->count; i++) {
		const struct gt_diff_row *row = &diff->rows[i];
		uint64_t change = row->bytes_b > row->bytes_a ? row->bytes_b - row->bytes_a
							      : row->bytes_a - row->bytes_b;

		all += change;
		if (!strcmp((row->b ? row->b : row->a)->label.key,
			    (diff->rows[0].b ? diff->rows[0].b : diff->rows[0].a)->label.key))
			first += change;
	}
	return diff->count > 1 && all && first >= all - all / 100;
}

static int open_pair(const struct gt_args *args, struct gt_session *session,
		     struct gt_diff_pair *pair)
{
	bool windows = session->count == 1;
	struct gt_input *second = &session->inputs[windows ? 0 : 1];
	int status = open_view(args, &session->inputs[0], windows ? args->from : NULL, pair->device,
			       &pair->a);

	if (!status)
		status = open_view(args, second, windows ? args->to : NULL, pair->device, &pair->b);
	if (status)
		return status;
	pair->diff = join(&pair->a, &pair->a.rows, &pair->b, &pair->b.rows, args->by);
	pair->one_line = !args->by_set && one_line(&pair->diff);
	if (pair->one_line)
		pair->inside =
			join(&pair->a, &pair->a.inside, &pair->b, &pair->b.inside, GT_BY_INSIDE);
	return 0;
}

static bool has_device(const struct gt_diff_pairs *pairs, int device)
{
	for (size_t i = 0; i < pairs->count; i++)
		if (pairs->pairs[i].device == device)
			return true;
	return false;
}

static int by_device(const void *a, const void *b)
{
	const struct gt_diff_pair *x = a, *y = b;

	return x->device < y->device ? -1 : x->device > y->device;
}

static struct gt_diff_pairs list_devices(const struct gt_places *places)
{
	struct gt_diff_pairs pairs = {0};

	for (size_t i = 0; i < places->count; i++)
		if (!has_device(&pairs, places->places[i].lane->device))
			GT_PUSH(pairs.pairs, pairs.count)->device = places->places[i].lane->device;
	if (pairs.count)
		qsort(pairs.pairs, pairs.count, sizeof(*pairs.pairs), by_device);
	pairs.session = places->session;
	pairs.windows = places->session->count == 1;
	pairs.contrast = gt_contrast_of(places->session);
	return pairs;
}

static int open_pairs(const struct gt_args *args, struct gt_session *session,
		      struct gt_diff_pairs *pairs)
{
	int status = gt_check_levels(args, session);

	for (size_t i = 0; !status && i < pairs->count; i++)
		status = open_pair(args, session, &pairs->pairs[i]);
	return status;
}

static void close_pairs(struct gt_diff_pairs *pairs)
{
	for (size_t i = 0; i < pairs->count; i++) {
		gt_diff_clear(&pairs->pairs[i].diff);
		gt_diff_clear(&pairs->pairs[i].inside);
		close_view(&pairs->pairs[i].a);
		close_view(&pairs->pairs[i].b);
	}
	gt_contrast_clear(&pairs->contrast);
	free(pairs->pairs);
}

/* ---- the check ------------------------------------------------------------------------------- */

/* Growth is judged at the lifetime peaks, whatever moment the rows show; of windows at theirs. */
static bool grows_too_much(const struct gt_args *args, const struct gt_diff_pair *pair)
{
	double limit = args->fail_percent ? (double)pair->a.peak * args->fail_limit / 100
					  : args->fail_limit;

	return args->fail_set && (double)pair->b.peak - (double)pair->a.peak > limit;
}

static void limit_text(const struct gt_args *args, char ret[static GT_SIZE_TEXT])
{
	if (args->fail_percent)
		snprintf(ret, GT_SIZE_TEXT, "%g %%", args->fail_limit);
	else
		gt_size_text((uint64_t)args->fail_limit, ret);
}

static int check(const struct gt_args *args, const struct gt_diff_pairs *pairs)
{
	int status = GT_EXIT_FINE;
	char a[GT_SIZE_TEXT], b[GT_SIZE_TEXT], device[GT_DEVICE_TEXT], limit[GT_SIZE_TEXT];

	limit_text(args, limit);
	for (size_t i = 0; i < pairs->count; i++) {
		const struct gt_diff_pair *pair = &pairs->pairs[i];

		if (!grows_too_much(args, pair))
			continue;
		status = gt_message(
			GT_EXIT_CHECK, "diff: peak on %s grew from %s to %s: by more than %s",
			gt_device_text(pair->device, device), gt_size_text(pair->a.peak, a),
			gt_size_text(pair->b.peak, b), limit);
	}
	return status;
}

static int answer(struct gt_out *out, const struct gt_args *args, const struct gt_diff_pairs *pairs)
{
	int status = 0;

	if (out->picture)
		status = gt_chart_diff(out, args, pairs);
	else if (args->format == GT_FORMAT_JSON)
		gt_diff_json(out, args, pairs);
	else
		gt_diff_print(out, args, pairs);
	return status ? status : check(args, pairs);
}

static int print(const struct gt_args *args, struct gt_session *session)
{
	struct gt_places places = gt_places_of(args, session);
	struct gt_diff_pairs pairs = list_devices(&places);
	struct gt_out out;
	int status = gt_check_places(args, &places);

	if (!status)
		status = open_pairs(args, session, &pairs);
	if (!status)
		status = gt_args_out(args, &out);
	if (!status)
		status = gt_args_done(args, &out, answer(&out, args, &pairs));
	close_pairs(&pairs);
	free(places.places);
	return status;
}

int gt_diff_head(struct gt_out *out, const struct gt_args *args, struct gt_session *session)
{
	struct gt_places places = gt_places_of(args, session);
	struct gt_diff_pairs pairs = list_devices(&places);
	int status = open_pairs(args, session, &pairs);

	if (!status)
		gt_diff_print_head(out, args, &pairs);
	close_pairs(&pairs);
	free(places.places);
	return status;
}

static int check_windows(const struct gt_args *args)
{
	if (!args->from || !args->to)
		return gt_message(GT_EXIT_USAGE, "diff: usage: gputrace diff A B, or of one run: "
						 "gputrace diff A --from WHEN --to WHEN");
	if (args->range ||
	    (args->at_set && args->at.kind != GT_WHEN_PEAK && args->at.kind != GT_WHEN_END))
		return gt_message(GT_EXIT_USAGE,
				  "diff: --from and --to of one run go with --at peak "
				  "or --at end only");
	return 0;
}

static int check_many(const struct gt_args *args)
{
	if (!args->fail_set && !args->at_set && !args->by_set && !args->from && !args->to &&
	    !args->range)
		return 0;
	return gt_message(GT_EXIT_USAGE, "diff: of three traces or more there is one table, as of "
					 "compare: name two");
}

int gt_cmd_diff(struct gt_args *args)
{
	struct gt_session session;
	int status = gt_session_open(args, &session);

	if (status)
		return status;
	if (session.count > 2)
		status = check_many(args);
	if (!status && session.count > 2)
		status = gt_compare(args, &session);
	if (session.count == 1)
		status = check_windows(args);
	if (!status && session.count <= 2)
		status = print(args, &session);
	gt_session_close(&session);
	return status;
}
