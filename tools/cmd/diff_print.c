/* SPDX-License-Identifier: MIT */
/* What diff says of two traces, for people and as JSON. Called from diff.c with all that was read. */
#include "cmd/diff.h"

#include <stdlib.h>
#include <string.h>
#include "cmd/holders.h"
#include "model/xalloc.h"
#include "out/json.h"
#include "out/plot.h"
#include "symbols/library.h"

#define BAR 16 /* columns, of the largest change; on wide screens */

/* ---- words ----------------------------------------------------------------------------------- */

static const struct gt_row *newer(const struct gt_diff_row *row)
{
	return row->a && !row->b ? row->a : row->b;
}

static const struct gt_label *label_of(const struct gt_diff_row *row)
{
	return &newer(row)->label;
}

static const char *status_of(const struct gt_diff_row *row)
{
	if (!row->a)
		return "added";
	if (!row->b)
		return "removed";
	return row->bytes_a == row->bytes_b ? "same" : "changed";
}

static const char *moment(const struct gt_args *args)
{
	static const char *const texts[] = {
		[GT_WHEN_PEAK] = "peak",   [GT_WHEN_OOM] = "failure", [GT_WHEN_END] = "end",
		[GT_WHEN_TIME] = "moment", [GT_WHEN_STEP] = "step",   [GT_WHEN_NAME] = "mark",
	};

	return texts[args->at.kind];
}

static enum gt_unit unit_of(const struct gt_diff_pair *pair)
{
	return gt_unit_for(pair->diff.bytes_b > pair->diff.bytes_a ? pair->diff.bytes_b
								   : pair->diff.bytes_a);
}

/* ---- the lines before the table -------------------------------------------------------------- */

/* The row's name where it fits, else the innermost line of it; "" when nothing does. To be freed. */
static char *where_text(const struct gt_out *out, const struct gt_label *label, size_t columns)
{
	bool cut = out->terminal && !out->all;
	size_t room = cut ? out->width - (columns < out->width ? columns : out->width) : SIZE_MAX;
	char *line;

	if (gt_text_width(label->text) <= room || !*label->file)
		return gt_fitting(out, label->text, columns);
	line = gt_xasprintf("%s:%d", gt_base_name(label->file), label->line);
	if (strlen(line) > room)
		*line = '\0';
	return line;
}

/* ", most in activations of train.py:25", or nothing when nothing changed. To be freed. */
static char *most_text(const struct gt_out *out, const struct gt_args *args,
		       const struct gt_diff_pair *pair, size_t columns)
{
	const struct gt_diff_row *row = pair->diff.rows;
	const uint8_t category = pair->diff.count ? newer(row)->category : GT_CATEGORY_NONE;
	const char *name = category && gt_by_code(args->by) ? gt_category_name(category) : NULL;
	const char *share = pair->one_line || pair->diff.count == 1 ? "all" : "most";
	char *words, *where, *text;

	if (!pair->diff.count || pair->diff.bytes_a == pair->diff.bytes_b)
		return gt_xstrdup("");
	words = name ? gt_xasprintf(", %s in %s", share, name) : gt_xasprintf(", %s", share);
	where = where_text(out, label_of(row), columns + strlen(words) + sizeof(" from ."));
	text = gt_xasprintf("%s%s%s", name || *where ? words : "",
			    !*where ? ""
			    : name  ? " of "
				    : " from ",
			    where);
	free(where);
	free(words);
	return text;
}

/* In the unit of the table below, rounded as its last row is. */
static void print_answer(struct gt_out *out, const struct gt_args *args,
			 const struct gt_diff_pair *pair)
{
	enum gt_unit unit = unit_of(pair);
	long long a = gt_in_unit(pair->diff.bytes_a, unit);
	long long b = gt_in_unit(pair->diff.bytes_b, unit);
	char device[GT_DEVICE_TEXT];
	char *sentence =
		gt_xasprintf("%s: %s %+lld %s (%lld -> %lld)", gt_device_text(pair->device, device),
			     moment(args), b - a, gt_unit_name(unit), a, b);
	char *most = most_text(out, args, pair, strlen(sentence));

	gt_line(out, GT_BOLD, "%s%s.", sentence, most);
	free(most);
	free(sentence);
}

/* "   both peaks: step 10, backward"; "" when the steps are not known. To be freed. */
static char *peaks_text(const struct gt_args *args, const struct gt_diff_pair *pair)
{
	const struct gt_diff_view *a = &pair->a, *b = &pair->b;

	if (!a->step || !b->step || args->at.kind != GT_WHEN_PEAK)
		return gt_xstrdup("");
	if (a->step == b->step && a->phase == b->phase)
		return gt_xasprintf("   both peaks: step %zu, %s", a->step,
				    gt_phase_name(a->phase));
	return gt_xasprintf("   peaks: step %zu, %s; step %zu, %s", a->step,
			    gt_phase_name(a->phase), b->step, gt_phase_name(b->phase));
}

static void print_sides(struct gt_out *out, const struct gt_args *args,
			const struct gt_diff_pairs *pairs, const struct gt_diff_pair *pair)
{
	const struct gt_session *session = pairs->session;
	char *peaks = peaks_text(args, pair);

	if (pairs->windows)
		gt_line(out, GT_PLAIN, "A %s   B %s   of %s   + = B uses more%s", args->from,
			args->to, session->paths[0], peaks);
	else
		gt_line(out, GT_PLAIN, "A %s   B %s   + = B uses more%s",
			out->terminal ? gt_base_name(session->paths[0]) : session->paths[0],
			out->terminal ? gt_base_name(session->paths[1]) : session->paths[1], peaks);
	free(peaks);
}

static char *add_words(char *text, const char *words)
{
	return gt_xappend(text, "%s%s", *text ? ", " : "", words);
}

static const char *or_none(const char *words)
{
	return *words ? words : "none";
}

/* What the runs were started with, where it tells them apart. */
static void print_contrast(struct gt_out *out, const struct gt_contrast *contrast)
{
	char *differs = gt_xstrdup(""), *same = gt_xstrdup("");

	if (contrast->same_arguments) {
		same = add_words(same, "arguments");
	} else {
		char *words = gt_xasprintf("arguments (%s; %s)", or_none(contrast->arguments[0]),
					   or_none(contrast->arguments[1]));

		differs = add_words(differs, words);
		free(words);
	}
	for (size_t i = 0; i < contrast->setting_count; i++) {
		const struct gt_setting *setting = &contrast->settings[i];
		char *words =
			gt_xasprintf("%s (%s; %s)", setting->name, or_none(setting->values[0]),
				     or_none(setting->values[1]));

		if (setting->differs)
			differs = add_words(differs, words);
		else if (*setting->values[0])
			same = add_words(same, setting->name);
		free(words);
	}
	gt_line(out, GT_PLAIN, "%s%s%sSame: %s.", *differs ? "Differs: " : "", differs,
		*differs ? ". " : "", *same ? same : "nothing that is known");
	free(differs);
	free(same);
}

/* ---- the table ------------------------------------------------------------------------------- */

static void add_row(struct gt_table *table, unsigned int part_of, unsigned int sum_of,
		    unsigned int flags, const char *name, uint64_t a, uint64_t b)
{
	gt_table_row(table, part_of, sum_of, flags);
	gt_table_text(table, name);
	gt_table_number(table, (int64_t)a);
	gt_table_number(table, (int64_t)b);
	gt_table_number(table, (int64_t)(b - a));
}

/* A row that was paired in spite of another name in A says that name. To be freed. */
static char *row_name(const struct gt_out *out, const struct gt_diff_row *row)
{
	const char *name = out->terminal ? label_of(row)->text : label_of(row)->full;
	const char *old = row->a && row->loosened ? row->a->label.text : NULL;

	if (!old || !strcmp(old, label_of(row)->text))
		return gt_xstrdup(name);
	return gt_xasprintf("%s (A: %s)", name, old);
}

static uint64_t most_changed(const struct gt_diff *diff)
{
	uint64_t most = 0;

	for (size_t i = 0; i < diff->count; i++) {
		int64_t change = (int64_t)(diff->rows[i].bytes_b - diff->rows[i].bytes_a);
		uint64_t size = (uint64_t)(change < 0 ? -change : change);

		most = size > most ? size : most;
	}
	return most;
}

static void add_rows(struct gt_table *table, const struct gt_out *out, const struct gt_diff *diff,
		     enum gt_by by)
{
	uint64_t most = most_changed(diff);

	for (size_t i = 0; i < diff->count; i++) {
		const struct gt_diff_row *row = &diff->rows[i];
		int64_t change = (int64_t)(row->bytes_b - row->bytes_a);
		char *name = row_name(out, row), *bar = gt_plot_bar(out, change, most, BAR);

		add_row(table, 1, 0, 0, name, row->bytes_a, row->bytes_b);
		if (newer(row)->category && gt_by_code(by))
			gt_table_text(table, gt_category_name(newer(row)->category));
		else
			gt_table_unknown(table);
		gt_table_text(table, status_of(row));
		if (out->terminal)
			gt_table_text(table, bar);
		free(bar);
		free(name);
	}
}

static void print_table(struct gt_out *out, const struct gt_args *args,
			const struct gt_diff_pair *pair, size_t other_lines)
{
	enum gt_by by = pair->one_line ? GT_BY_INSIDE : args->by;
	char *title = gt_xasprintf(
		"%s, %s (%s), %s", args->total == GT_TOTAL_RESERVED ? "Held" : "In use",
		gt_by_text(by), gt_rows_level(pair->b.rows.count ? &pair->b.rows : &pair->a.rows),
		gt_unit_name(unit_of(pair)));
	const struct gt_field fields[] = {
		{"holder", title, GT_FIELD_TEXT, GT_SHOW_ALWAYS},
		{"a", "A", GT_FIELD_BYTES, GT_SHOW_ALWAYS},
		{"b", "B", GT_FIELD_BYTES, GT_SHOW_ALWAYS},
		{"delta", "B-A", GT_FIELD_DELTA, GT_SHOW_ALWAYS},
		{"category", NULL, GT_FIELD_TEXT, GT_SHOW_ALWAYS},
		{"status", NULL, GT_FIELD_TEXT, GT_SHOW_DATA},
		{"bar", "", GT_FIELD_TEXT, GT_SHOW_WIDE},
	};
	struct gt_table *table = gt_table_new(fields, out->terminal ? 7 : 6);

	add_rows(table, out, pair->one_line ? &pair->inside : &pair->diff, by);
	add_row(table, 0, 1, GT_ROW_SCREEN, args->total == GT_TOTAL_RESERVED ? "held" : "in use",
		pair->diff.bytes_a, pair->diff.bytes_b);
	gt_table_print(table, out, gt_screen_rows(out, other_lines));
	gt_table_free(table);
	free(title);
}

/* ---- the lines behind it --------------------------------------------------------------------- */

static char *change_text(uint64_t a, uint64_t b, enum gt_unit unit)
{
	long long x = gt_in_unit(a, unit), y = gt_in_unit(b, unit);

	return x == y ? gt_xasprintf("%lld -> %lld", x, y)
		      : gt_xasprintf("%lld -> %lld (%+lld)", x, y, y - x);
}

static bool both(const struct gt_diff_pair *pair)
{
	return pair->a.lane && pair->b.lane;
}

static void print_held(struct gt_out *out, const struct gt_diff_pair *pair)
{
	enum gt_unit unit = unit_of(pair);
	char *held, *end;

	if (!both(pair))
		return;
	held = change_text(pair->a.lane->ctr.peak[GT_TOTAL_RESERVED],
			   pair->b.lane->ctr.peak[GT_TOTAL_RESERVED], unit);
	end = change_text(pair->a.end_bytes, pair->b.end_bytes, unit);
	if (pair->a.end_known && pair->b.end_known)
		gt_line(out, GT_PLAIN, "Peak held %s, in use at the end %s.", held, end);
	else
		gt_line(out, GT_PLAIN, "Peak held %s.", held);
	free(held);
	free(end);
}

static bool worth_showing(const struct gt_diff_pair *pair, size_t index)
{
	return index < 2 || index == pair->a.steps.worst || index == pair->b.steps.worst;
}

static void print_steps(struct gt_out *out, const struct gt_diff_pair *pair)
{
	const struct gt_steps *a = &pair->a.steps, *b = &pair->b.steps;
	size_t count = a->count < b->count ? a->count : b->count;
	char *numbers = gt_xstrdup(""), *changes = gt_xstrdup("");
	enum gt_unit unit = unit_of(pair);

	for (size_t i = 0; i < count; i++) {
		char words[32];

		if (!worth_showing(pair, i))
			continue;
		snprintf(words, sizeof(words), "%zu", i + 1);
		numbers = add_words(numbers, words);
		snprintf(words, sizeof(words), "%+lld",
			 gt_in_unit(b->steps[i].peak, unit) - gt_in_unit(a->steps[i].peak, unit));
		changes = add_words(changes, words);
	}
	if (count)
		gt_line(out, GT_PLAIN, "Peaks of steps %s: %s.", numbers, changes);
	free(numbers);
	free(changes);
}

static uint64_t slope_of(const struct gt_diff_view *view)
{
	return view->growth.slope > 0 ? (uint64_t)view->growth.slope : 0;
}

static void print_growth(struct gt_out *out, const struct gt_diff_pair *pair)
{
	char a[GT_SIZE_TEXT], b[GT_SIZE_TEXT];

	if (slope_of(&pair->a) || slope_of(&pair->b))
		gt_line(out, GT_PLAIN, "Growth per step %s -> %s.",
			gt_size_text(slope_of(&pair->a), a), gt_size_text(slope_of(&pair->b), b));
}

static void print_alone(struct gt_out *out, const struct gt_args *args,
			const struct gt_diff_pair *pair)
{
	const struct gt_diff *diff = pair->one_line ? &pair->inside : &pair->diff;
	size_t added = 0, removed = 0;
	uint64_t more = 0, less = 0;

	for (size_t i = 0; i < diff->count; i++) {
		const struct gt_diff_row *row = &diff->rows[i];

		added += !row->a;
		removed += !row->b;
		more += row->a ? 0 : row->bytes_b;
		less += row->b ? 0 : row->bytes_a;
	}
	if (added || removed)
		gt_line(out, GT_PLAIN, "Only in B: %zu row%s, %lld %s. Only in A: %zu row%s, %lld.",
			added, added == 1 ? "" : "s", gt_in_unit(more, unit_of(pair)),
			gt_unit_name(unit_of(pair)), removed, removed == 1 ? "" : "s",
			gt_in_unit(less, unit_of(pair)));
}

static void print_pair(struct gt_out *out, const struct gt_args *args,
		       const struct gt_diff_pairs *pairs, const struct gt_diff_pair *pair)
{
	bool text = out->format == GT_FORMAT_TEXT, first = pair == pairs->pairs;

	if (text)
		print_answer(out, args, pair);
	if (text && first)
		print_sides(out, args, pairs, pair);
	if (text && first && !pairs->windows)
		print_contrast(out, &pairs->contrast);
	print_table(out, args, pair, 9);
	if (!text)
		return;
	print_alone(out, args, pair);
	if (pairs->windows)
		return;
	print_held(out, pair);
	print_steps(out, pair);
	print_growth(out, pair);
}

void gt_diff_print_head(struct gt_out *out, const struct gt_args *args,
			const struct gt_diff_pairs *pairs)
{
	if (!pairs->count)
		return;
	print_answer(out, args, pairs->pairs);
	print_sides(out, args, pairs, pairs->pairs);
	print_contrast(out, &pairs->contrast);
}

void gt_diff_print(struct gt_out *out, const struct gt_args *args,
		   const struct gt_diff_pairs *pairs)
{
	for (size_t i = 0; i < pairs->count; i++)
		print_pair(out, args, pairs, &pairs->pairs[i]);
	if (out->format != GT_FORMAT_TEXT)
		return;
	if (!pairs->count)
		gt_line(out, GT_BOLD, "Nothing to compare: no GPU memory was asked for.");
	for (size_t i = 0; i < pairs->session->count; i++)
		gt_print_loss(out, pairs->session->inputs[i].trace);
	gt_next(out, "next: gputrace diff A B --by function|category|step|phase|stack|owner");
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static json_t *json_row(const struct gt_diff_row *row)
{
	const struct gt_label *label = label_of(row);
	const char *old = row->a ? row->a->label.text : NULL;

	return json_pack(
		"{s:o, s:o, s:s, s:s, s:o, s:o, s:o, s:o, s:I, s:I, s:I}", "key",
		gt_json_name(label->text), "key_a", gt_json_name(old), "status", status_of(row),
		"level", newer(row)->torch ? "torch" : "driver", "file", gt_json_name(label->file),
		"line", gt_json_number((uint64_t)label->line, label->line > 0), "function",
		gt_json_name(label->function), "category", gt_json_category(newer(row)->category),
		"a", (json_int_t)row->bytes_a, "b", (json_int_t)row->bytes_b, "delta",
		(json_int_t)(row->bytes_b - row->bytes_a));
}

static json_t *json_steps(const struct gt_diff_pair *pair)
{
	const struct gt_steps *a = &pair->a.steps, *b = &pair->b.steps;
	json_t *steps = json_array();

	for (size_t i = 0; i < a->count && i < b->count; i++)
		json_array_append_new(steps,
				      json_pack("{s:I, s:I, s:I, s:I}", "step", (json_int_t)i + 1,
						"a", (json_int_t)a->steps[i].peak, "b",
						(json_int_t)b->steps[i].peak, "delta",
						(json_int_t)(b->steps[i].peak - a->steps[i].peak)));
	return steps;
}

/* What stands beside the moment compared, under its keys with _a or _b. */
static void json_view(json_t *object, const struct gt_diff_view *view, const char *side)
{
	const struct gt_trace_lane *lane = view->lane;
	json_t *values = json_pack(
		"{s:I, s:o, s:o, s:o, s:o, s:o}", "peak", (json_int_t)view->peak, "reserved",
		gt_json_number(lane ? lane->ctr.peak[GT_TOTAL_RESERVED] : 0, lane), "end",
		gt_json_number(view->end_bytes, view->end_known), "growth",
		gt_json_number(slope_of(view), view->growth.enough), "step",
		gt_json_number(view->step, view->step), "phase",
		view->step ? json_string(gt_phase_name(view->phase)) : json_null());
	const char *key;
	json_t *value;

	json_object_foreach(values, key, value) {
		char *name = gt_xasprintf("%s_%s", key, side);

		json_object_set(object, name, value);
		free(name);
	}
	json_decref(values);
}

static json_t *json_pair(const struct gt_diff_pair *pair)
{
	json_t *rows = json_array(), *object;

	for (size_t i = 0; i < pair->diff.count; i++)
		json_array_append_new(rows, json_row(&pair->diff.rows[i]));
	object = json_pack("{s:o, s:I, s:I, s:I, s:b, s:b, s:o, s:o}", "ordinal",
			   gt_json_ordinal(pair->device), "bytes_a", (json_int_t)pair->diff.bytes_a,
			   "bytes_b", (json_int_t)pair->diff.bytes_b, "delta",
			   (json_int_t)(pair->diff.bytes_b - pair->diff.bytes_a), "at_least_a",
			   pair->a.at_least, "at_least_b", pair->b.at_least, "steps",
			   json_steps(pair), "rows", rows);
	json_view(object, &pair->a, "a");
	json_view(object, &pair->b, "b");
	return object;
}

static json_t *json_side(const struct gt_diff_pairs *pairs, bool second, const char *window)
{
	const struct gt_diff_pair *pair = pairs->count ? &pairs->pairs[0] : NULL;
	uint64_t bytes = pair ? second ? pair->diff.bytes_b : pair->diff.bytes_a : 0;
	const char *path = pairs->session->paths[second && !pairs->windows];

	return json_pack("{s:o, s:o, s:o}", "file", gt_json_name(path), "window",
			 pairs->windows ? gt_json_name(window) : json_null(), "bytes",
			 gt_json_number(bytes, pair));
}

/* The keys of the first device stand at the top too: most runs have one. */
static void json_first(json_t *answer, const struct gt_args *args,
		       const struct gt_diff_pairs *pairs, json_t *devices)
{
	json_t *first = json_array_get(devices, 0);

	json_object_set_new(answer, "a", json_side(pairs, false, args->from));
	json_object_set_new(answer, "b", json_side(pairs, true, args->to));
	json_object_set(answer, "difference",
			first ? json_object_get(first, "delta") : json_null());
	json_object_set(answer, "rows", first ? json_object_get(first, "rows") : json_array());
}

void gt_diff_json(struct gt_out *out, const struct gt_args *args, const struct gt_diff_pairs *pairs)
{
	static const char *const names[] = {"peak", "oom", "end", "time", "step", NULL, "mark"};
	const struct gt_session *session = pairs->session;
	json_t *answer = gt_json_answer("diff"), *devices = json_array(), *differs = json_object();

	for (size_t i = 0; i < pairs->count; i++)
		json_array_append_new(devices, json_pair(&pairs->pairs[i]));
	if (!pairs->contrast.same_arguments)
		json_object_set_new(differs, "arguments",
				    json_pack("[o, o]", gt_json_name(pairs->contrast.arguments[0]),
					      gt_json_name(pairs->contrast.arguments[1])));
	for (size_t i = 0; i < pairs->contrast.setting_count; i++) {
		const struct gt_setting *setting = &pairs->contrast.settings[i];

		if (setting->differs)
			json_object_set_new(differs, setting->name,
					    json_pack("[o, o]", gt_json_name(setting->values[0]),
						      gt_json_name(setting->values[1])));
	}
	json_object_set_new(answer, "at", json_string(names[args->at.kind]));
	json_object_set_new(answer, "by", json_string(gt_by_name(args->by)));
	json_object_set_new(answer, "level", json_string(gt_level_text(args->total)));
	json_object_set_new(answer, "files",
			    json_pack("[o, o]", gt_json_name(session->paths[0]),
				      gt_json_name(session->paths[!pairs->windows])));
	json_object_set_new(answer, "differs", differs);
	json_first(answer, args, pairs, devices);
	json_object_set_new(answer, "devices", devices);
	gt_json_print(out, answer);
}
