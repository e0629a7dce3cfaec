/* SPDX-License-Identifier: MIT */
/*
 * gputrace compare A B C...: the experiment table that people keep by hand: one row per trace and
 * device, what its configuration has of its own, peaks, speed, and how it ended.
 */
#define _GNU_SOURCE
#include "cmd/diff.h"

#include <stdlib.h>
#include <string.h>
#include "model/plan.h"
#include "model/xalloc.h"
#include "out/json.h"
#include "out/table.h"
#include "symbols/library.h"

struct entry { /* a device of a trace */
	const struct gt_place *place;
	size_t input; /* index */
	struct gt_steps steps;
	uint64_t categories[GT_CATEGORIES]; /* at the peak; [0]: what has none */
	const struct gt_report *failure;    /* that ended the run, on whatever device */
	size_t failed_step;
	bool categorized;
};

struct entries {
	struct entry *entries;
	size_t count;
	struct gt_contrast contrast;
	const struct gt_session *session;
	bool devices; /* some trace has several */
};

/* ---- reading --------------------------------------------------------------------------------- */

static int read_peak(const struct gt_args *args, struct entry *entry)
{
	const struct gt_when when = {.kind = GT_WHEN_PEAK};
	struct gt_state state;
	int status = gt_input_state(entry->place->input, entry->place->lane_index, args->total,
				    when, &state);

	if (status)
		return status;
	for (size_t i = 0; i < state.hold_count; i++) {
		entry->categories[state.holds[i].category] += state.holds[i].bytes;
		entry->categorized |= state.holds[i].category != GT_CATEGORY_NONE;
	}
	gt_state_clear(&state);
	return 0;
}

static void read_failure(struct entry *entry, const struct gt_answers *answers)
{
	const struct gt_trace *trace = entry->place->input->trace;
	size_t lane;

	entry->failure = gt_headline(trace);
	if (!entry->failure || !answers || !entry->steps.count)
		return;
	lane = gt_report_lane(trace, entry->failure);
	if (lane == trace->lane_count)
		return;
	entry->failed_step = gt_boundary_step(
		&answers->steps, gt_story_position(answers->story, lane, entry->failure->seq));
}

static int read_entry(const struct gt_args *args, struct entry *entry)
{
	const struct gt_answers *answers = gt_input_answers(entry->place->input);
	struct gt_error err = {0};

	if (answers &&
	    gt_steps_get(answers, entry->place->lane_index, args->total, &entry->steps, &err))
		return gt_message_error(&err);
	read_failure(entry, answers);
	return read_peak(args, entry);
}

static int read_entries(const struct gt_args *args, const struct gt_places *places,
			struct entries *entries)
{
	int status = 0;

	for (size_t i = 0; i < places->count && !status; i++) {
		const struct gt_place *place = &places->places[i];
		struct entry *entry = GT_PUSH(entries->entries, entries->count);

		entry->place = place;
		entry->input = (size_t)(place->input - entries->session->inputs);
		entries->devices |= i && places->places[i - 1].input == place->input;
		status = read_entry(args, entry);
	}
	return status;
}

static void close_entries(struct entries *entries)
{
	for (size_t i = 0; i < entries->count; i++)
		gt_steps_clear(&entries->entries[i].steps);
	free(entries->entries);
	gt_contrast_clear(&entries->contrast);
}

/* ---- figures --------------------------------------------------------------------------------- */

static uint64_t peak_of(const struct gt_args *args, const struct entry *entry)
{
	return entry->place->lane->ctr.peak[args->total];
}

static uint64_t static_of(const struct entry *entry)
{
	return entry->categories[GT_CATEGORY_WEIGHTS] + entry->categories[GT_CATEGORY_GRADIENTS] +
	       entry->categories[GT_CATEGORY_OPTIMIZER];
}

static const char *end_word(const struct entry *entry)
{
	const struct gt_trace *trace = entry->place->input->trace;

	if (entry->failure)
		return "oom";
	return trace->running ? "running" : trace->header.exit_us ? "ok" : "killed";
}

/* "ok", "oom, step 10". To be freed. */
static char *end_text(const struct entry *entry)
{
	if (!entry->failed_step)
		return gt_xstrdup(end_word(entry));
	return gt_xasprintf("%s, step %zu", end_word(entry), entry->failed_step);
}

/* ---- text ------------------------------------------------------------------------------------ */

/* The largest number that fitted and the smallest that did not, over the rows. */
static void find_edge(const struct entries *entries, double *ret_fits, double *ret_fails)
{
	*ret_fits = -1;
	*ret_fails = -1;
	for (size_t i = 0; i < entries->count; i++) {
		const struct entry *entry = &entries->entries[i];
		double number = entries->contrast.numbers[entry->input];

		if (!entry->failure && number > *ret_fits)
			*ret_fits = number;
		if (entry->failure && (*ret_fails < 0 || number < *ret_fails))
			*ret_fails = number;
	}
}

/* A straight line through the peaks of the runs that ended well. False: fewer than two numbers. */
static bool fit_peaks(const struct gt_args *args, const struct entries *entries,
		      struct gt_line_fit *ret)
{
	double *numbers = gt_xcalloc(entries->count, sizeof(*numbers));
	double *peaks = gt_xcalloc(entries->count, sizeof(*peaks));
	size_t count = 0;
	bool fitted;

	for (size_t i = 0; i < entries->count; i++)
		if (!entries->entries[i].failure) {
			numbers[count] = entries->contrast.numbers[entries->entries[i].input];
			peaks[count++] = (double)peak_of(args, &entries->entries[i]);
		}
	fitted = !gt_fit_line(numbers, peaks, count, ret);
	free(numbers);
	free(peaks);
	return fitted;
}

static bool print_slope(struct gt_out *out, const struct gt_args *args,
			const struct entries *entries)
{
	const char *name = entries->contrast.number_name;
	double fits, fails;
	struct gt_line_fit line;
	char slope[GT_SIZE_TEXT];
	char *edge;

	if (!entries->contrast.numbers || entries->devices || !fit_peaks(args, entries, &line) ||
	    line.slope < 0)
		return false;
	find_edge(entries, &fits, &fails);
	edge = fails > fits ? gt_xasprintf("; %g fits, %g ran out of memory", fits, fails)
			    : gt_xstrdup("");
	gt_line(out, GT_BOLD, "Peak +%s per 1 more of %s%s.",
		gt_size_text((uint64_t)line.slope, slope), *name ? name : "the argument", edge);
	free(edge);
	return true;
}

static void print_range(struct gt_out *out, const struct gt_args *args,
			const struct entries *entries)
{
	const struct entry *low = entries->entries, *high = low;
	size_t failed = 0;
	char a[GT_SIZE_TEXT], b[GT_SIZE_TEXT];

	for (size_t i = 0; i < entries->count; i++) {
		const struct entry *entry = &entries->entries[i];

		failed += !!entry->failure;
		low = peak_of(args, entry) < peak_of(args, low) ? entry : low;
		high = peak_of(args, entry) > peak_of(args, high) ? entry : high;
	}
	if (failed)
		gt_line(out, GT_RED_BOLD, "Peaks from %s to %s; %zu of %zu ran out of memory.",
			gt_size_text(peak_of(args, low), a), gt_size_text(peak_of(args, high), b),
			failed, entries->count);
	else
		gt_line(out, GT_BOLD, "Peaks from %s (%s) to %s (%s).",
			gt_size_text(peak_of(args, low), a),
			gt_base_name(entries->session->paths[low->input]),
			gt_size_text(peak_of(args, high), b),
			gt_base_name(entries->session->paths[high->input]));
}

static size_t folder_length(const char *path)
{
	return (size_t)(gt_base_name(path) - path);
}

static bool in_one_folder(const struct gt_session *session)
{
	const char *first = session->paths[0];
	size_t length = folder_length(first);

	for (size_t i = 1; i < session->count; i++)
		if (folder_length(session->paths[i]) != length ||
		    memcmp(session->paths[i], first, length) != 0)
			return false;
	return true;
}

/*
 * Without folders and the ending where people read it. Of traces with the recorder's own names from several
 * folders, "gputrace.python.PID" tells nothing apart: they are FOLDER/PID. To be freed.
 */
static char *file_text(const struct gt_out *out, const struct gt_session *session, size_t input)
{
	const char *path = session->paths[input], *base = gt_base_name(path), *from, *pid;
	size_t length, ending = strlen(GT_SUFFIX);

	if (out->format != GT_FORMAT_TEXT)
		return gt_xstrdup(path);
	length = strlen(base);
	if (length > ending && !strcmp(base + length - ending, GT_SUFFIX))
		length -= ending;
	pid = memrchr(base, '.', length);
	if (in_one_folder(session) || base == path || !pid || strncmp(base, "gputrace.", 9) != 0)
		return strndup(base, length);
	from = memrchr(path, '/', (size_t)(base - path) - 1);
	from = from ? from + 1 : path;
	return gt_xasprintf("%.*s%.*s", (int)(base - from), from, (int)(base + length - pid - 1),
			    pid + 1);
}

static const struct gt_field fields[] = {
	{"file", NULL, GT_FIELD_TEXT, GT_SHOW_ALWAYS},
	{"device", "GPU", GT_FIELD_COUNT, GT_SHOW_WIDE},
	{"configuration", "arguments", GT_FIELD_TEXT, GT_SHOW_ALWAYS},
	{"peak_allocated", "peak", GT_FIELD_BYTES, GT_SHOW_ALWAYS},
	{"peak_reserved", "held", GT_FIELD_BYTES, GT_SHOW_ALWAYS},
	{"first_step_peak", "step 1", GT_FIELD_BYTES, GT_SHOW_ALWAYS},
	{"activations", "activations", GT_FIELD_BYTES, GT_SHOW_ALWAYS},
	{"static", "static", GT_FIELD_BYTES, GT_SHOW_ALWAYS},
	{"weights", "weights", GT_FIELD_BYTES, GT_SHOW_WIDE},
	{"gradients", "gradients", GT_FIELD_BYTES, GT_SHOW_WIDE},
	{"optimizer_state", "state", GT_FIELD_BYTES, GT_SHOW_WIDE},
	{"temporaries", "temporaries", GT_FIELD_BYTES, GT_SHOW_DATA},
	{"steps_per_second", "steps/s", GT_FIELD_TEXT, GT_SHOW_ALWAYS},
	{"end", NULL, GT_FIELD_TEXT, GT_SHOW_ALWAYS},
};

static void put_categories(struct gt_table *table, const struct entry *entry)
{
	static const enum gt_category shown[] = {
		GT_CATEGORY_WEIGHTS,
		GT_CATEGORY_GRADIENTS,
		GT_CATEGORY_OPTIMIZER,
		GT_CATEGORY_TEMPORARIES,
	};

	gt_table_known(table, (int64_t)entry->categories[GT_CATEGORY_ACTIVATIONS],
		       entry->categorized);
	gt_table_known(table, (int64_t)static_of(entry), entry->categorized);
	for (size_t i = 0; i < sizeof(shown) / sizeof(shown[0]); i++)
		gt_table_known(table, (int64_t)entry->categories[shown[i]], entry->categorized);
}

static void add_entry(struct gt_table *table, const struct gt_out *out, const struct gt_args *args,
		      const struct entries *entries, const struct entry *entry)
{
	char *file = file_text(out, entries->session, entry->input);
	char *configuration = gt_contrast_text(&entries->contrast, entry->input);
	char *end = end_text(entry);
	char speed[32] = "-";

	if (out->terminal && !out->all)
		gt_cut_text(configuration, gt_is_wide(out) ? 32 : 12);
	if (gt_steps_per_second(&entry->steps) > 0)
		snprintf(speed, sizeof(speed), "%.3g", gt_steps_per_second(&entry->steps));
	gt_table_row(table, 0, 0, entry->failure ? GT_ROW_ACT : 0);
	gt_table_text(table, file);
	gt_table_number(table, entry->place->lane->device);
	gt_table_text(table, *configuration ? configuration : "-");
	gt_table_number(table, (int64_t)peak_of(args, entry));
	gt_table_number(table, (int64_t)entry->place->lane->ctr.peak[GT_TOTAL_RESERVED]);
	gt_table_known(table, entry->steps.count ? (int64_t)entry->steps.steps[0].peak : 0,
		       entry->steps.count);
	put_categories(table, entry);
	gt_table_text(table, speed);
	gt_table_text(table, end);
	free(end);
	free(configuration);
	free(file);
}

static void print_text(struct gt_out *out, const struct gt_args *args,
		       const struct entries *entries)
{
	struct gt_table *table = gt_table_new(fields, sizeof(fields) / sizeof(fields[0]));
	uint64_t most = 0;

	for (size_t i = 0; i < entries->count; i++)
		most = peak_of(args, &entries->entries[i]) > most
			       ? peak_of(args, &entries->entries[i])
			       : most;
	if (out->format == GT_FORMAT_TEXT && entries->count) {
		if (!print_slope(out, args, entries))
			print_range(out, args, entries);
		gt_line(out, GT_PLAIN,
			"At each run's peak (%s), %s. static = weights, gradients, optimizer "
			"state.",
			gt_level_text(args->total), gt_unit_name(gt_unit_for(most)));
	}
	for (size_t i = 0; i < entries->count; i++)
		add_entry(table, out, args, entries, &entries->entries[i]);
	gt_table_unit(table, gt_unit_for(most));
	if (entries->count)
		gt_table_print(table, out, 0);
	else
		gt_line(out, GT_BOLD, "Nothing to compare: no GPU memory was asked for.");
	gt_table_free(table);
	gt_next(out, "next: gputrace diff A B     gputrace plan A B --target N");
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static json_t *json_configuration(const struct gt_contrast *contrast, size_t input)
{
	json_t *configuration = json_object();

	if (!contrast->same_arguments)
		json_object_set_new(configuration, "arguments",
				    gt_json_name(contrast->arguments[input]));
	for (size_t i = 0; i < contrast->setting_count; i++)
		if (contrast->settings[i].differs)
			json_object_set_new(configuration, contrast->settings[i].name,
					    gt_json_name(contrast->settings[i].values[input]));
	return configuration;
}

static json_t *json_categories(const struct entry *entry)
{
	uint64_t bytes[GT_CATEGORIES];

	if (!entry->categorized)
		return json_null();
	memcpy(bytes, entry->categories, sizeof(bytes));
	bytes[GT_CATEGORY_UNKNOWN] += bytes[GT_CATEGORY_NONE];
	return gt_json_category_bytes(bytes);
}

static json_t *json_entry(const struct gt_args *args, const struct entries *entries,
			  const struct entry *entry)
{
	const struct gt_steps *steps = &entry->steps;
	char *line = gt_command_line(entry->place->input->trace, 0);
	json_t *object = json_pack(
		"{s:o, s:o, s:o, s:o, s:o, s:I, s:I, s:o, s:I, s:o, s:o, s:o, s:s, s:o}", "file",
		gt_json_name(entries->session->paths[entry->input]), "pid",
		gt_json_pid(entry->place->input->trace), "device",
		gt_json_ordinal(entry->place->lane->device), "command_line", gt_json_name(line),
		"configuration", json_configuration(&entries->contrast, entry->input),
		"peak_allocated", (json_int_t)peak_of(args, entry), "peak_reserved",
		(json_int_t)entry->place->lane->ctr.peak[GT_TOTAL_RESERVED], "first_step_peak",
		gt_json_number(steps->count ? steps->steps[0].peak : 0, steps->count), "steps",
		(json_int_t)steps->count, "steps_per_second",
		gt_steps_per_second(&entry->steps) > 0
			? json_real(gt_steps_per_second(&entry->steps))
			: json_null(),
		"categories", json_categories(entry), "static",
		gt_json_number(static_of(entry), entry->categorized), "end", end_word(entry),
		"failed_step", gt_json_number(entry->failed_step, entry->failed_step));

	free(line);
	return object;
}

static void json(struct gt_out *out, const struct gt_args *args, const struct entries *entries)
{
	json_t *answer = gt_json_answer("compare"), *rows = json_array();

	for (size_t i = 0; i < entries->count; i++)
		json_array_append_new(rows, json_entry(args, entries, &entries->entries[i]));
	json_object_set_new(answer, "level", json_string(gt_level_text(args->total)));
	json_object_set_new(answer, "rows", rows);
	gt_json_print(out, answer);
}

/* ---- the command ----------------------------------------------------------------------------- */

int gt_compare(const struct gt_args *args, struct gt_session *session)
{
	struct gt_places places = gt_places_of(args, session);
	struct entries entries = {.session = session};
	struct gt_out out;
	int status = gt_check_places(args, &places);

	entries.contrast = gt_contrast_of(session);
	if (!status)
		status = gt_check_levels(args, session);
	if (!status)
		status = read_entries(args, &places, &entries);
	if (!status)
		status = gt_args_out(args, &out);
	if (!status) {
		if (args->format == GT_FORMAT_JSON)
			json(&out, args, &entries);
		else
			print_text(&out, args, &entries);
		status = gt_args_done(args, &out, 0);
	}
	close_entries(&entries);
	free(places.places);
	return status;
}

int gt_cmd_compare(struct gt_args *args)
{
	struct gt_session session;
	int status = gt_session_open(args, &session);

	if (status)
		return status;
	if (session.count < 2)
		status = gt_message(GT_EXIT_USAGE, "compare: one trace given: there is nothing to "
						   "compare it with");
	else
		status = gt_compare(args, &session);
	gt_session_close(&session);
	return status;
}
