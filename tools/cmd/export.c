/* SPDX-License-Identifier: MIT */
/*
 * gputrace export: the trace as a file that other tools open. Which formats there are, and what they
 * need, says the table in export/export.c.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/export.h"
#include "cmd/part.h"
#include "model/xalloc.h"

void gt_export_close(struct gt_export_place *places, size_t count)
{
	for (size_t i = 0; i < count; i++)
		gt_state_clear(&places[i].state);
	free(places);
}

struct gt_export_place *gt_export_open(const struct gt_places *places)
{
	struct gt_export_place *list = gt_xcalloc(places->count, sizeof(*list));

	for (size_t i = 0; i < places->count; i++) {
		const struct gt_place *place = &places->places[i];

		list[i] = (struct gt_export_place){
			.trace = place->input->trace,
			.symbols = gt_input_symbols(place->input),
			.lane_index = place->lane_index,
			.lane = place->lane,
			.device_total = place->device_total,
		};
	}
	return list;
}

/* What is asked of the model once per device. 0, or the exit status after saying why. */
static int prepare(const struct gt_args *args, const struct gt_places *places, bool moment,
		   struct gt_export_place *list)
{
	int status = 0;

	for (size_t i = 0; !status && i < places->count; i++) {
		struct gt_when when;
		bool at_least;

		list[i].answers = gt_input_answers(places->places[i].input);
		if (!moment)
			continue;
		status = gt_part_when(args, &places->places[i], &when, &at_least);
		if (!status)
			status = gt_input_state(places->places[i].input, list[i].lane_index,
						args->total, when, &list[i].state);
	}
	return status;
}

/* ---- the file -------------------------------------------------------------------------------- */

static int write_file(const struct gt_export_format *format, struct gt_export *export,
		      struct gt_file *file)
{
	struct gt_error err = {0};
	int rc, bad;

	export->file = file->file;
	export->path = file->path;
	export->now = file->now;
	rc = format->write(export, &err);
	bad = gt_file_finish(file, !rc);
	if (rc)
		return gt_message_error(&err);
	if (!bad)
		return GT_EXIT_FINE;
	return gt_message(GT_EXIT_UNREADABLE, "%s: not everything was written: %s",
			  file->path ? file->path : "standard output", strerror(errno));
}

static int write_where(const struct gt_args *args, const struct gt_export_format *format,
		       struct gt_export *export)
{
	struct gt_file file;
	int status;

	if (gt_file_create(&file, args->output, GT_MODE_OURS))
		return gt_message(GT_EXIT_UNREADABLE, "%s: %s", args->output, strerror(errno));
	status = write_file(format, export, &file);
	if (!status && file.path)
		printf("%s: opens in %s\n", file.path, format->opens_in);
	return status;
}

/* ---- the command ----------------------------------------------------------------------------- */

static int check(const struct gt_args *args, const struct gt_export_format *format)
{
	const char *output = args->output ? args->output : "-";
	size_t length = strlen(output), suffix = strlen(GT_SUFFIX);

	if (length >= suffix && !strcmp(output + length - suffix, GT_SUFFIX))
		return gt_message(GT_EXIT_USAGE, "%s: would replace a trace", output);
	if (!(format->flags & GT_EXPORT_MOMENT) && (args->at_set || gt_part_asked(args)))
		return gt_message(
			GT_EXIT_USAGE,
			"export: %s has the whole run: --at, --from, --to and --range are "
			"for folded, pprof and speedscope",
			format->name);
	if (strcmp(output, "-"))
		return 0;
	if (format->flags & GT_EXPORT_SEEKS)
		return gt_message(GT_EXIT_USAGE, "export: %s needs a file: -o FILE", format->name);
	if (format->flags & GT_EXPORT_BINARY && isatty(STDOUT_FILENO))
		return gt_message(GT_EXIT_USAGE, "export: %s is not for a terminal: -o FILE",
				  format->name);
	return 0;
}

/* What an export of the history cannot say is said where it does not get into the file. */
static void warn(const struct gt_places *places, const struct gt_export_format *format)
{
	for (size_t i = 0; i < places->count && !(format->flags & GT_EXPORT_MOMENT); i++)
		if (places->places[i].lane->history_us)
			gt_message(
				0,
				"%s: history starts at %.3f s (the ring was full): what was freed "
				"before is not in the export",
				places->places[i].input->trace->path,
				(double)places->places[i].lane->history_us / 1e6);
}

static int run(const struct gt_args *args, const struct gt_export_format *format,
	       const struct gt_places *places)
{
	struct gt_export_place *list = gt_export_open(places);
	struct gt_export export = {
		.places = list,
		.count = places->count,
		.total = args->total,
		.points = args->points,
	};
	int status = prepare(args, places, format->flags & GT_EXPORT_MOMENT, list);

	if (!status)
		status = write_where(args, format, &export);
	if (!status)
		warn(places, format);
	gt_export_close(list, places->count);
	return status;
}

int gt_cmd_export(struct gt_args *args)
{
	const struct gt_export_format *format =
		args->exported ? gt_export_find(args->exported) : NULL;
	struct gt_session session;
	struct gt_places places;
	int status;

	if (!format)
		return gt_message(GT_EXIT_USAGE, "export: --format %s: %s",
				  args->exported ? args->exported : "is missing",
				  &gt_export_names[1]);
	status = check(args, format);
	if (!status)
		status = gt_places_open(args, &session, &places);
	if (status)
		return status;
	status = gt_check_places(args, &places);
	if (!status)
		status = run(args, format, &places);
	gt_places_close(&places);
	return status;
}
