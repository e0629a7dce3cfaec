/* SPDX-License-Identifier: MIT */
/*
 * gputrace html: one file that answers most questions at a glance, for a browser without a network.
 * Words and numbers come from where the other commands get theirs.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/html.h"
#include "cmd/refusals.h"
#include "model/xalloc.h"

#define DEFAULT_BUDGET (5u << 20)
#define DEFAULT_NAME   "report.html"

struct report {
	const struct gt_args *args;
	const struct gt_places *places;
	struct gt_html_view *views;
	struct gt_page_device *devices;
	struct gt_paths *paths;
	json_t *meta, *facts;
	struct gt_page page;
};

/* The device of the answer: that of the failure that came first, else the tightest. */
static size_t opening(const struct report *report)
{
	const struct gt_places *places = report->places;
	struct gt_input *failed = gt_first_failed(report->args, places->session);
	const struct gt_place *tightest = gt_tightest(places, GT_TOTAL_IN_USE);

	if (report->args->diff)
		return places->count - 1;
	for (size_t i = 0; i < places->count; i++)
		if (failed && places->places[i].input == failed && report->views[i].failure)
			return i;
	return (size_t)(tightest - places->places);
}

static void look_at(struct report *report)
{
	const struct gt_places *places = report->places;

	report->views = gt_xcalloc(places->count, sizeof(*report->views));
	for (size_t i = 0; i < places->count; i++) {
		const struct gt_place *place = &places->places[i];
		const struct gt_report *failure = gt_input_headline(report->args, place->input);
		bool here = failure && failure->lane == place->lane->lane;

		report->views[i] = (struct gt_html_view){
			.place = place,
			.failure = here ? failure : NULL,
			.paths = report->paths,
		};
	}
}

static int build(struct report *report, uint64_t budget)
{
	const struct gt_places *places = report->places;
	uint64_t share = budget / (places->count ? places->count : 1);
	struct gt_error err = {0};

	report->devices = gt_xcalloc(places->count, sizeof(*report->devices));
	for (size_t i = 0; i < places->count; i++) {
		const struct gt_place *place = &places->places[i];

		if (gt_page_build(place->input->trace, gt_input_answers(place->input),
				  gt_input_symbols(place->input), place->lane_index, report->paths,
				  share, &report->devices[i], &err))
			return gt_message_error(&err);
		report->views[i].history = &report->devices[i].history;
		report->page.device_count++;
	}
	return 0;
}

static int describe(struct report *report)
{
	size_t open = report->places->count ? opening(report) : 0;

	report->facts = json_array();
	for (size_t i = 0; i < report->places->count; i++) {
		json_t *facts = gt_html_facts(report->args, &report->views[i]);
		const struct gt_input *input = report->places->places[i].input;

		json_object_set_new(
			facts, "process",
			json_integer((json_int_t)(input - report->places->session->inputs)));
		json_array_append_new(report->facts, facts);
	}
	report->meta = json_pack("{s:i, s:I, s:b, s:O}", "schema", 1, "open", (json_int_t)open,
				 "diff", report->args->diff, "places", report->facts);
	if (report->args->diff)
		json_object_set_new(report->meta, "head",
				    gt_html_diff_head(report->args, report->places->session));
	report->page.meta = report->meta;
	report->page.devices = report->devices;
	if (!report->places->count) {
		report->page.parts[GT_PART_ANSWER] =
			gt_xstrdup(gt_no_memory(report->places->session->inputs[0].trace));
		return 0;
	}
	return gt_html_fixed(&report->views[open], json_array_get(report->facts, open),
			     &report->devices[open], &report->page);
}

static int write_text(const char *path, const char *text, size_t size)
{
	struct gt_file file;

	if (gt_file_create(&file, path, GT_MODE_OURS))
		return gt_message(GT_EXIT_UNREADABLE, "%s: %s", path, strerror(errno));
	fwrite(text, 1, size, file.file);
	if (gt_file_finish(&file, true))
		return gt_message(GT_EXIT_UNREADABLE, "%s: %s", path ? path : "standard output",
				  strerror(errno));
	if (path)
		printf("%s: %.1f MB, one file, opens in any browser without a network\n", path,
		       (double)size / 1e6);
	return 0;
}

static int page_text(const struct report *report, char **ret_text, size_t *ret_size)
{
	FILE *memory = open_memstream(ret_text, ret_size);

	if (!memory)
		return gt_message(GT_EXIT_UNREADABLE, "the page could not be made: %s",
				  strerror(errno));
	gt_page_write(memory, &report->page);
	if (!fclose(memory))
		return 0;
	return gt_message(GT_EXIT_UNREADABLE, "the page could not be made: %s", strerror(errno));
}

static void clear(struct report *report)
{
	for (size_t i = 0; i < report->page.device_count; i++)
		gt_page_device_clear(&report->devices[i]);
	for (size_t i = 0; i < report->places->count; i++)
		gt_state_clear(&report->views[i].state);
	for (int i = 0; i < GT_PARTS; i++)
		free(report->page.parts[i]);
	json_decref(report->meta);
	json_decref(report->facts);
	gt_paths_free(report->paths);
	free(report->devices);
	free(report->views);
}

/* A page whose histories take room bytes; what is beside them is known only when it is made. */
static int try(const struct gt_args *args, const struct gt_places *places, uint64_t room,
	       char **ret_text, size_t *ret_size)
{
	struct report report = {.args = args, .places = places};
	int status;

	report.paths = gt_paths_new(args->strip);
	look_at(&report);
	status = build(&report, room);
	if (!status)
		status = describe(&report);
	if (!status)
		status = page_text(&report, ret_text, ret_size);
	clear(&report);
	return status;
}

/* Nothing is created, and nothing replaced, when the page is larger than was asked for. */
static int make(const struct gt_args *args, const struct gt_places *places)
{
	uint64_t budget = args->budget ? args->budget : DEFAULT_BUDGET;
	uint64_t fixed = gt_page_fixed_size() + 65536, over;
	uint64_t room = budget > fixed ? budget - fixed : 0;
	const char *path = args->output ? args->output : DEFAULT_NAME;
	char *text = NULL, asked[GT_SIZE_TEXT], needed[GT_SIZE_TEXT];
	size_t size = 0;
	int status;

	while (!(status = try(args, places, room, &text, &size)) && room && size > budget) {
		over = size - budget + room / 16;
		room = room > over ? room - over : 0;
		free(text);
		text = NULL;
	}
	if (!status && args->budget && size > budget)
		status = gt_message(GT_EXIT_USAGE, "--budget %s: the smallest page of this is %s",
				    gt_size_text(budget, asked), gt_size_text(size, needed));
	else if (!status)
		status = write_text(strcmp(path, "-") ? path : NULL, text, size);
	free(text);
	return status;
}

/* A trace given as -o by mistake must not be lost. */
static int check(const struct gt_args *args, const struct gt_session *session)
{
	size_t length = args->output ? strlen(args->output) : 0, suffix = strlen(GT_SUFFIX);

	if (length >= suffix && !strcmp(args->output + length - suffix, GT_SUFFIX))
		return gt_message(GT_EXIT_USAGE, "%s: would replace a trace", args->output);
	if (args->diff && session->count != 2)
		return gt_message(GT_EXIT_USAGE,
				  "html: %zu traces given, --diff compares two: name them",
				  session->count);
	return 0;
}

int gt_cmd_html(struct gt_args *args)
{
	struct gt_session session;
	struct gt_places places;
	int status = gt_places_open(args, &session, &places);

	if (status)
		return status;
	status = check(args, &session);
	if (!status)
		status = gt_check_places(args, &places);
	if (!status)
		status = make(args, &places);
	gt_places_close(&places);
	return status;
}
