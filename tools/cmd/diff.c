/* SPDX-License-Identifier: MIT */
/* gputrace diff A B: what changed between the peaks (or another moment) of two traces, by device.
 */
#include <stdlib.h>
#include <string.h>
#include "cmd/holders.h"
#include "cmd/part.h"
#include "model/diff.h"
#include "model/xalloc.h"
#include "out/json.h"

struct side {
	struct gt_input *input;
	const struct gt_trace_lane *lane; /* NULL: this device is not in the trace */
	size_t lane_index;
	struct gt_state state;
	struct gt_rows rows;
	uint64_t peak; /* lifetime, of the total */
	bool at_least; /* the peak of a part whose history is not whole */
};

struct pair { /* a device in both traces */
	int device;
	struct side a, b;
	struct gt_diff diff;
};

struct pairs {
	struct pair *pairs;
	size_t count;
};

/* ---- reading
 * ---------------------------------------------------------------------------------------- */

static int open_side(const struct gt_args *args, struct gt_input *input, int device,
		     struct side *ret)
{
	struct gt_place place = {.input = input};
	struct gt_when when;
	int status;

	*ret = (struct side){.input = input};
	for (size_t i = 0; i < input->trace->lane_count; i++)
		if (input->trace->lanes[i].device == device) {
			ret->lane = &input->trace->lanes[i];
			ret->lane_index = i;
		}
	if (!ret->lane)
		return 0;
	ret->peak = ret->lane->ctr.peak[args->total];
	place.lane = ret->lane;
	place.lane_index = ret->lane_index;
	status = gt_part_when(args, &place, &when, &ret->at_least);
	if (!status)
		status = gt_input_state(input, ret->lane_index, args->total, when, &ret->state);
	if (status)
		return status;
	ret->rows = gt_rows_of(&ret->state, gt_input_symbols(input), args->by);
	return 0;
}

static void close_side(struct side *side)
{
	gt_rows_clear(&side->rows);
	gt_state_clear(&side->state);
}

static bool has_device(const struct pairs *pairs, int device)
{
	for (size_t i = 0; i < pairs->count; i++)
		if (pairs->pairs[i].device == device)
			return true;
	return false;
}

static int by_device(const void *a, const void *b)
{
	const struct pair *x = a, *y = b;

	return x->device < y->device ? -1 : x->device > y->device;
}

static struct pairs list_devices(const struct gt_places *places)
{
	struct pairs pairs = {0};

	for (size_t i = 0; i < places->count; i++)
		if (!has_device(&pairs, places->places[i].lane->device))
			GT_PUSH(pairs.pairs, pairs.count)->device = places->places[i].lane->device;
	if (pairs.count)
		qsort(pairs.pairs, pairs.count, sizeof(*pairs.pairs), by_device);
	return pairs;
}

static int open_pairs(const struct gt_args *args, struct gt_session *session, struct pairs *pairs)
{
	for (size_t i = 0; i < pairs->count; i++) {
		struct pair *pair = &pairs->pairs[i];
		int status = open_side(args, &session->inputs[0], pair->device, &pair->a);

		if (!status)
			status = open_side(args, &session->inputs[1], pair->device, &pair->b);
		if (status)
			return status;
		pair->diff = gt_diff_rows(&pair->a.rows, &pair->b.rows);
	}
	return 0;
}

static void close_pairs(struct pairs *pairs)
{
	for (size_t i = 0; i < pairs->count; i++) {
		gt_diff_clear(&pairs->pairs[i].diff);
		close_side(&pairs->pairs[i].a);
		close_side(&pairs->pairs[i].b);
	}
	free(pairs->pairs);
}

/* ---- the check
 * -------------------------------------------------------------------------------------- */

/* Growth against the limit is judged at the lifetime peaks, whatever moment the rows show. */
static bool grows_too_much(const struct gt_args *args, const struct pair *pair)
{
	double limit = args->fail_percent ? (double)pair->a.peak * args->fail_limit / 100
					  : args->fail_limit;

	return args->fail_set && (double)pair->b.peak - (double)pair->a.peak > limit;
}

static int check(const struct gt_args *args, const struct pairs *pairs)
{
	int status = GT_EXIT_FINE;
	char a[GT_SIZE_TEXT], b[GT_SIZE_TEXT], device[GT_DEVICE_TEXT];

	for (size_t i = 0; i < pairs->count; i++) {
		const struct pair *pair = &pairs->pairs[i];

		if (!grows_too_much(args, pair))
			continue;
		status = gt_message(GT_EXIT_CHECK,
				    "diff: peak on %s grew from %s to %s: above the limit",
				    gt_device_text(pair->device, device),
				    gt_size_text(pair->a.peak, a), gt_size_text(pair->b.peak, b));
	}
	return status;
}

/* ---- text
 * ------------------------------------------------------------------------------------------- */

static const struct gt_label *label_of(const struct gt_diff_row *row)
{
	return row->b ? &row->b->label : &row->a->label;
}

static const char *moment(const struct gt_args *args)
{
	static const char *const texts[] = {
		[GT_WHEN_PEAK] = "peak",   [GT_WHEN_OOM] = "failure", [GT_WHEN_END] = "end",
		[GT_WHEN_TIME] = "moment", [GT_WHEN_STEP] = "step",   [GT_WHEN_NAME] = "mark",
	};

	return texts[args->at.kind];
}

/* In the unit of the table below, rounded as its last row is. */
static void print_answer(struct gt_out *out, const struct gt_args *args, const struct pair *pair)
{
	const struct gt_diff *diff = &pair->diff;
	bool more = diff->bytes_b >= diff->bytes_a;
	enum gt_unit unit = gt_unit_for(more ? diff->bytes_b : diff->bytes_a);
	int64_t a = gt_round_to((int64_t)diff->bytes_a, gt_unit_bytes(unit));
	int64_t b = gt_round_to((int64_t)diff->bytes_b, gt_unit_bytes(unit));
	char device[GT_DEVICE_TEXT];
	char *sentence = gt_xasprintf(
		"%s: %s %+lld %s (%lld -> %lld)", gt_device_text(pair->device, device),
		moment(args), (long long)(b - a), gt_unit_name(unit), (long long)a, (long long)b);
	char *most = diff->count && diff->bytes_a != diff->bytes_b
			     ? gt_fitting(out, label_of(&diff->rows[0])->text,
					  strlen(sentence) + sizeof(", most from ."))
			     : NULL;

	gt_line(out, GT_BOLD, "%s%s%s.", sentence, most ? ", most from " : "", most ? most : "");
	free(most);
	free(sentence);
}

static void add_row(struct gt_table *table, unsigned int part_of, unsigned int sum_of,
		    unsigned int flags, const char *name, uint64_t a, uint64_t b)
{
	gt_table_row(table, part_of, sum_of, flags);
	gt_table_text(table, name);
	gt_table_number(table, (int64_t)a);
	gt_table_number(table, (int64_t)b);
	gt_table_number(table, (int64_t)(b - a));
}

static void print_table(struct gt_out *out, const struct gt_args *args, const struct pair *pair)
{
	char *title = gt_xasprintf(
		"%s, %s (%s), %s", args->total == GT_TOTAL_RESERVED ? "Held" : "In use",
		gt_by_text(args->by),
		gt_rows_level(pair->b.rows.count ? &pair->b.rows : &pair->a.rows),
		gt_unit_name(gt_unit_for(pair->diff.bytes_a > pair->diff.bytes_b
						 ? pair->diff.bytes_a
						 : pair->diff.bytes_b)));
	const struct gt_field fields[] = {
		{"holder", title, GT_FIELD_TEXT, GT_SHOW_ALWAYS},
		{"a", "A", GT_FIELD_BYTES, GT_SHOW_ALWAYS},
		{"b", "B", GT_FIELD_BYTES, GT_SHOW_ALWAYS},
		{"delta", "B-A", GT_FIELD_DELTA, GT_SHOW_ALWAYS},
		{"category", NULL, GT_FIELD_TEXT, GT_SHOW_ALWAYS},
	};
	struct gt_table *table = gt_table_new(fields, 5);

	for (size_t i = 0; i < pair->diff.count; i++) {
		const struct gt_diff_row *row = &pair->diff.rows[i];
		uint8_t category = (row->b ? row->b : row->a)->category;

		add_row(table, 1, 0, 0, out->terminal ? label_of(row)->text : label_of(row)->full,
			row->bytes_a, row->bytes_b);
		if (category && args->by != GT_BY_CATEGORY)
			gt_table_text(table, gt_category_name(category));
	}
	add_row(table, 0, 1, GT_ROW_SCREEN, args->total == GT_TOTAL_RESERVED ? "held" : "in use",
		pair->diff.bytes_a, pair->diff.bytes_b);
	gt_table_print(table, out, gt_screen_rows(out, 5));
	gt_table_free(table);
	free(title);
}

static void print_held(struct gt_out *out, const struct pair *pair)
{
	char a[GT_SIZE_TEXT], b[GT_SIZE_TEXT];

	if (!pair->a.lane || !pair->b.lane)
		return;
	gt_line(out, GT_PLAIN, "Most held from the driver: %s -> %s.",
		gt_size_text(pair->a.lane->ctr.peak[GT_TOTAL_RESERVED], a),
		gt_size_text(pair->b.lane->ctr.peak[GT_TOTAL_RESERVED], b));
}

static void print_text(struct gt_out *out, const struct gt_args *args,
		       const struct gt_session *session, const struct pairs *pairs)
{
	for (size_t i = 0; i < pairs->count; i++) {
		if (out->format == GT_FORMAT_TEXT)
			print_answer(out, args, &pairs->pairs[i]);
		if (out->format == GT_FORMAT_TEXT && i == 0)
			gt_line(out, GT_PLAIN, "A %s   B %s   + = B uses more", session->paths[0],
				session->paths[1]);
		print_table(out, args, &pairs->pairs[i]);
		if (out->format == GT_FORMAT_TEXT)
			print_held(out, &pairs->pairs[i]);
	}
	if (!pairs->count && out->format == GT_FORMAT_TEXT)
		gt_line(out, GT_BOLD, "Nothing to compare: no GPU memory was asked for.");
	for (size_t i = 0; i < session->count && out->format == GT_FORMAT_TEXT; i++)
		gt_print_loss(out, session->inputs[i].trace);
	gt_next(out, "next: gputrace diff A B --by function|stack|site|owner");
}

/* ---- JSON
 * ------------------------------------------------------------------------------------------- */

static json_t *json_row(const struct gt_diff_row *row)
{
	const struct gt_label *label = label_of(row);

	return json_pack("{s:o, s:s, s:o, s:o, s:o, s:o, s:I, s:I, s:I}", "key",
			 gt_json_name(label->text), "level",
			 (row->b ? row->b : row->a)->torch ? "torch" : "driver", "file",
			 gt_json_name(label->file), "line",
			 gt_json_number((uint64_t)label->line, label->line > 0), "function",
			 gt_json_name(label->function), "category",
			 gt_json_category((row->b ? row->b : row->a)->category), "a",
			 (json_int_t)row->bytes_a, "b", (json_int_t)row->bytes_b, "delta",
			 (json_int_t)(row->bytes_b - row->bytes_a));
}

static json_t *json_pair(const struct pair *pair)
{
	json_t *rows = json_array();

	for (size_t i = 0; i < pair->diff.count; i++)
		json_array_append_new(rows, json_row(&pair->diff.rows[i]));
	return json_pack("{s:o, s:I, s:I, s:I, s:I, s:I, s:b, s:b, s:o}", "ordinal",
			 gt_json_ordinal(pair->device), "peak_a", (json_int_t)pair->a.peak,
			 "peak_b", (json_int_t)pair->b.peak, "bytes_a",
			 (json_int_t)pair->diff.bytes_a, "bytes_b", (json_int_t)pair->diff.bytes_b,
			 "delta", (json_int_t)(pair->diff.bytes_b - pair->diff.bytes_a),
			 "at_least_a", pair->a.at_least, "at_least_b", pair->b.at_least, "rows",
			 rows);
}

static void json(struct gt_out *out, const struct gt_args *args, const struct gt_session *session,
		 const struct pairs *pairs)
{
	static const char *const names[] = {"peak", "oom", "end", "time", "step", NULL, "mark"};
	json_t *answer = gt_json_answer("diff"), *devices = json_array();

	for (size_t i = 0; i < pairs->count; i++)
		json_array_append_new(devices, json_pair(&pairs->pairs[i]));
	json_object_set_new(answer, "at", json_string(names[args->at.kind]));
	json_object_set_new(answer, "by", json_string(gt_by_name(args->by)));
	json_object_set_new(answer, "level", json_string(gt_level_text(args->total)));
	json_object_set_new(answer, "files",
			    json_pack("[o, o]", gt_json_name(session->paths[0]),
				      gt_json_name(session->paths[1])));
	json_object_set_new(answer, "devices", devices);
	gt_json_print(out, answer);
}

static int compare(const struct gt_args *args, struct gt_session *session)
{
	struct gt_places places = gt_places_of(args, session);
	struct pairs pairs = list_devices(&places);
	struct gt_out out;
	int status = gt_check_places(args, &places);

	if (!status)
		status = open_pairs(args, session, &pairs);
	if (!status)
		status = gt_args_out(args, &out);
	if (!status) {
		if (args->format == GT_FORMAT_JSON)
			json(&out, args, session, &pairs);
		else
			print_text(&out, args, session, &pairs);
		status = gt_args_done(args, &out, check(args, &pairs));
	}
	close_pairs(&pairs);
	free(places.places);
	return status;
}

int gt_cmd_diff(struct gt_args *args)
{
	struct gt_session session;
	int status = gt_session_open(args, &session);

	if (status)
		return status;
	if (session.count == 2)
		status = compare(args, &session);
	else
		status = gt_message(GT_EXIT_USAGE,
				    "diff: %zu traces given, two are compared: name them",
				    session.count);
	gt_session_close(&session);
	return status;
}
