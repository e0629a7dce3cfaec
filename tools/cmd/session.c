/* SPDX-License-Identifier: MIT */
/* See session.h: from operands to opened traces and the devices in them. */
#define _GNU_SOURCE
#include "cmd/session.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "model/steps.h"
#include "model/callers.h"
#include "model/xalloc.h"
#include "out/bar.h"
#include "out/number.h"
#include "torch/open.h"

/* ---- operands to paths ----------------------------------------------------------------------- */

static void add_path(struct gt_session *session, char *path)
{
	*GT_PUSH(session->paths, session->path_count) = path;
}

static int is_trace(const struct dirent *entry)
{
	return fnmatch("*" GT_SUFFIX, entry->d_name, 0) == 0;
}

int gt_list_traces(const char *folder, struct dirent ***ret)
{
	return scandir(folder, ret, is_trace, versionsort);
}

/* empty: a directory without traces is none of our business: they may come. */
static int add_directory(struct gt_session *session, const char *path, bool empty)
{
	struct dirent **entries;
	int count = gt_list_traces(path, &entries);
	size_t length = strlen(path);

	if (count < 0)
		return gt_message(GT_EXIT_UNREADABLE, "%s: %s", path, strerror(errno));
	for (int i = 0; i < count; i++) {
		const char *slash = length && path[length - 1] == '/' ? "" : "/";

		add_path(session, gt_xasprintf("%s%s%s", path, slash, entries[i]->d_name));
		free(entries[i]);
	}
	free(entries);
	if (count || empty)
		return 0;
	return gt_message(GT_EXIT_UNREADABLE,
			  "%s: no *%s files: no process used CUDA, or the library was not loaded; "
			  "try: gputrace doctor",
			  path, GT_SUFFIX);
}

static int expand(const struct gt_args *args, struct gt_session *session)
{
	for (size_t i = 0; i < args->operand_count; i++) {
		struct stat info;
		bool directory = stat(args->operands[i], &info) == 0 && S_ISDIR(info.st_mode);
		int status;

		if (!directory) {
			add_path(session, gt_xstrdup(args->operands[i]));
			continue;
		}
		status = add_directory(session, args->operands[i], args->watch);
		if (status)
			return status;
	}
	return 0;
}

/* ---- opening --------------------------------------------------------------------------------- */

/* RANK of the process's environment, as launchers set it; -1 = none. */
static long rank_of(const struct gt_trace *trace)
{
	const struct gt_bytes *text = gt_trace_info(trace, "env.RANK");
	long rank;

	return text && !gt_parse_number(text->text, 0, LONG_MAX, &rank) ? rank : -1;
}

static void drop_input(struct gt_session *session, size_t number)
{
	size_t behind = --session->count - number;

	gt_trace_close(session->inputs[number].trace);
	free(session->paths[number]);
	memmove(&session->inputs[number], &session->inputs[number + 1],
		behind * sizeof(*session->inputs));
	memmove(&session->paths[number], &session->paths[number + 1],
		behind * sizeof(*session->paths));
	session->path_count--;
}

static int keep_rank(const struct gt_args *args, struct gt_session *session)
{
	for (size_t i = session->count; args->rank >= 0 && i-- > 0;)
		if (rank_of(session->inputs[i].trace) != args->rank)
			drop_input(session, i);
	if (session->count || args->rank < 0 || args->watch)
		return 0;
	return gt_message(GT_EXIT_USAGE, "%s: no process had RANK=%ld in its environment",
			  args->operands[args->operand_count - 1], args->rank);
}

/* A part of the file of that number; *ret_parts: how many it has. */
static int open_input(const struct gt_args *args, struct gt_session *session, const char *path,
		      unsigned int part, unsigned int *ret_parts)
{
	struct gt_input *input = GT_PUSH(session->inputs, session->count);
	struct gt_error err = {0};

	input->frames = args->frames;
	if (!gt_open(path, args->partial ? GT_OPEN_PARTIAL : 0, part, ret_parts, &input->trace,
		     &err))
		return 0;
	input->trace = NULL;
	return gt_message_error(&err);
}

/* A file of several processes is as many inputs, each with the path, so that both lists stay in step. */
static void repeat_path(struct gt_session *session, size_t at)
{
	char *path = gt_xstrdup(session->paths[at]);

	add_path(session, path);
	memmove(&session->paths[at + 1], &session->paths[at],
		(session->path_count - 1 - at) * sizeof(*session->paths));
	session->paths[at] = path;
}

int gt_session_open(const struct gt_args *args, struct gt_session *ret)
{
	struct gt_session session = {0};
	int status = expand(args, &session);

	gt_bar_begin();
	for (size_t i = 0, first = 0; !status && i < session.path_count; i++) {
		unsigned int parts;

		status = open_input(args, &session, session.paths[i], (unsigned int)(i - first) + 1,
				    &parts);
		/* Where traces come and go one may be gone, or at its beginning. */
		if (status && args->watch) {
			drop_input(&session, i--);
			first = i + 1;
			status = 0;
		} else if (!status && i - first + 1 < parts) {
			repeat_path(&session, i);
		} else {
			first = i + 1;
		}
	}
	if (!status)
		status = keep_rank(args, &session);
	if (status)
		gt_session_close(&session);
	else
		*ret = session;
	return status;
}

void gt_session_close(struct gt_session *session)
{
	gt_bar_end();
	for (size_t i = 0; i < session->count; i++) {
		gt_answers_free(session->inputs[i].answers);
		gt_symbols_free(session->inputs[i].symbols);
		gt_trace_close(session->inputs[i].trace);
	}
	for (size_t i = 0; i < session->path_count; i++)
		free(session->paths[i]);
	free(session->inputs);
	free(session->paths);
	*session = (struct gt_session){0};
}

struct gt_symbols *gt_input_symbols(struct gt_input *input)
{
	if (!input->symbols) {
		input->symbols = gt_symbols_new(input->trace);
		if (input->symbols)
			gt_callers_link(input->symbols, input->trace);
	}
	return input->symbols;
}

const struct gt_answers *gt_input_answers(struct gt_input *input)
{
	struct gt_error err = {0};

	if (input->answers || !gt_has_torch(input->trace))
		return input->answers;
	if (gt_answers_make(input->trace, gt_input_symbols(input), &input->answers, &err))
		gt_message_error(&err);
	return input->answers;
}

int gt_input_state(struct gt_input *input, size_t lane_index, enum gt_total total,
		   struct gt_when when, struct gt_state *ret)
{
	const struct gt_answers *answers = gt_input_answers(input);
	struct gt_error err = {0};

	if (gt_steps_resolve(answers, lane_index, &when, &err) ||
	    gt_state_get(input->trace, lane_index, total, when, ret, &err))
		return gt_message_error(&err);
	if (answers)
		gt_answers_split(answers, ret);
	return 0;
}

/* Steps that a program without torch marked are read for the occasion. */
static int split_births(struct gt_input *input, struct gt_state *state)
{
	const struct gt_answers *answers = gt_input_answers(input);
	struct gt_answers *own = NULL;
	struct gt_error err = {0};

	if (!answers && gt_answers_make(input->trace, gt_input_symbols(input), &own, &err))
		return gt_message_error(&err);
	gt_answers_births(answers ? answers : own, state);
	gt_answers_free(own);
	return 0;
}

int gt_input_rows(struct gt_input *input, struct gt_state *state, enum gt_by by,
		  struct gt_rows *ret)
{
	int status = by == GT_BY_STEP || by == GT_BY_PHASE ? split_births(input, state) : 0;

	if (!status)
		*ret = gt_rows_of(state, gt_input_symbols(input), by);
	return status;
}

/* ---- devices --------------------------------------------------------------------------------- */

uint64_t gt_device_total(const struct gt_trace *trace, int device)
{
	uint64_t total = 0;

	for (size_t i = 0; i < trace->device_count; i++)
		if (trace->devices[i].ordinal == device && trace->devices[i].total)
			total = trace->devices[i].total;
	return total;
}

static bool is_wanted(const struct gt_args *args, const struct gt_trace_lane *lane)
{
	if (lane->device == GT_DEVICE_HOST || !lane->seq)
		return false;
	return args->device == GT_ANY_DEVICE || args->device == lane->device;
}

static int by_device(const void *a, const void *b)
{
	const struct gt_place *x = a, *y = b;

	if (x->input != y->input)
		return x->input < y->input ? -1 : 1;
	return x->lane->device < y->lane->device ? -1 : x->lane->device > y->lane->device;
}

struct gt_places gt_places_of(const struct gt_args *args, struct gt_session *session)
{
	struct gt_places places = {.session = session};

	for (size_t i = 0; i < session->count; i++) {
		struct gt_input *input = &session->inputs[i];

		for (size_t l = 0; l < input->trace->lane_count; l++) {
			const struct gt_trace_lane *lane = &input->trace->lanes[l];

			if (!is_wanted(args, lane))
				continue;
			*GT_PUSH(places.places, places.count) = (struct gt_place){
				.input = input,
				.lane_index = l,
				.lane = lane,
				.device_total = gt_device_total(input->trace, lane->device),
			};
		}
	}
	if (places.count)
		qsort(places.places, places.count, sizeof(*places.places), by_device);
	return places;
}

int gt_places_open(const struct gt_args *args, struct gt_session *session, struct gt_places *ret)
{
	int status = gt_session_open(args, session);

	if (!status)
		*ret = gt_places_of(args, session);
	return status;
}

void gt_places_close(struct gt_places *places)
{
	free(places->places);
	gt_session_close(places->session);
}

int gt_check_places(const struct gt_args *args, const struct gt_places *places)
{
	if (places->count || args->device == GT_ANY_DEVICE)
		return 0;
	return gt_message(GT_EXIT_USAGE, "%s: no memory was asked for on GPU %d",
			  args->operands[args->operand_count - 1], args->device);
}

/* Share of the card at the peak; a card of unknown size counts as one that holds any peak twice. */
static double pressure(const struct gt_place *place, enum gt_total total)
{
	double peak = (double)place->lane->ctr.peak[total];

	return place->device_total ? 1 + peak / (double)place->device_total : peak / 1e18;
}

const struct gt_place *gt_tightest(const struct gt_places *places, enum gt_total total)
{
	const struct gt_place *best = NULL;

	for (size_t i = 0; i < places->count; i++)
		if (!best || pressure(&places->places[i], total) > pressure(best, total))
			best = &places->places[i];
	return best;
}

int gt_run_places(struct gt_args *args, int (*print)(struct gt_out *out, const struct gt_args *args,
						     const struct gt_places *places))
{
	struct gt_session session;
	struct gt_places places;
	struct gt_out out;
	int status = gt_places_open(args, &session, &places);

	if (status)
		return status;
	status = gt_check_places(args, &places);
	if (!status)
		status = gt_args_out(args, &out);
	if (!status)
		status = gt_args_done(args, &out, print(&out, args, &places));
	gt_places_close(&places);
	return status;
}
