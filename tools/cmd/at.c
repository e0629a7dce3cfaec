/* SPDX-License-Identifier: MIT */
/* gputrace at WHEN: who holds memory at a moment, for each device of each process. */
#include "cmd/holders.h"
#include "cmd/part.h"
#include "cmd/tree.h"
#include "cmd/why.h"

#include <stdlib.h>
#include <string.h>
#include "model/xalloc.h"
#include "out/json.h"

struct view { /* one device at the moment */
	const struct gt_place *place;
	struct gt_state state;
	struct gt_rows rows;
	bool at_least; /* the peak of a part whose history is not whole */
};

static const char *when_text(struct gt_when when)
{
	static const char *const texts[] = {
		[GT_WHEN_PEAK] = "at the peak",
		[GT_WHEN_OOM] = "at the failure",
		[GT_WHEN_END] = "at the end",
		[GT_WHEN_TIME] = "at that time",
		[GT_WHEN_STEP] = "at the end of that step",
		[GT_WHEN_NAME] = "at that mark",
	};

	return texts[when.kind];
}

static int open_view(const struct gt_args *args, const struct gt_place *place, struct view *ret)
{
	struct gt_when when;
	int status = gt_part_when(args, place, &when, &ret->at_least);

	if (status)
		return status;
	ret->place = place;
	status = gt_input_state(place->input, place->lane_index, args->total, when, &ret->state);
	if (!status)
		status = gt_input_rows(place->input, &ret->state, args->by, &ret->rows);
	return status;
}

static void close_view(struct view *view)
{
	gt_rows_clear(&view->rows);
	gt_state_clear(&view->state);
}

/* ---- text ------------------------------------------------------------------------------------ */

static const char *total_word(enum gt_total total)
{
	return total == GT_TOTAL_RESERVED ? "held from the driver"
	       : total == GT_TOTAL_TORCH  ? "in use by torch"
					  : "in use";
}

/* People recognise a size sooner than a line: the largest row, with its share, is the answer. */
static void print_answer(struct gt_out *out, const struct gt_args *args, const struct view *view)
{
	char size[GT_SIZE_TEXT], largest[GT_SIZE_TEXT];
	const struct gt_row *row = view->rows.rows;
	char *where;

	if (!view->rows.count) {
		gt_line(out, GT_BOLD, "Nothing %s %s.", total_word(args->total),
			when_text(args->at));
		return;
	}
	gt_size_text(view->state.bytes, size);
	gt_size_text(row->bytes, largest);
	where = gt_fitting(out, row->label.text,
			   strlen(total_word(args->total)) + strlen(when_text(args->at)) +
				   strlen(size) + strlen(largest) + sizeof("  .  of it from ."));
	gt_line(out, GT_BOLD, "%s %s %s. %s of it from %s.", size, total_word(args->total),
		when_text(args->at), largest, where);
	free(where);
}

static void print_context(struct gt_out *out, const struct gt_args *args, const struct view *view)
{
	const struct gt_state *state = &view->state;
	const bool behind = args->at.kind == GT_WHEN_TIME && args->at.us > state->trace->last_us;
	const struct gt_trace *trace = state->trace;
	char device[GT_DEVICE_TEXT], pid[GT_PID_TEXT], size[GT_SIZE_TEXT];
	char *held = state->blocks_known
			     ? gt_xasprintf("   %zu blocks   held %s", state->block_count,
					    gt_size_text(state->cur[GT_TOTAL_RESERVED], size))
			     : gt_xstrdup("");

	gt_line(out, GT_PLAIN, "%s   %s   %.3f s%s%s",
		gt_device_text(view->place->lane->device, device), gt_pid_text(trace, pid),
		(double)state->us / 1e6, held,
		state->teardown ? "   (after exit handlers: the history starts later)"
		: behind	? "   (the last event: the trace ends before that time)"
				: "");
	free(held);
}

/* What was asked for before torch rounded up, of all rows; 0 = not known. */
static uint64_t asked_of(const struct view *view)
{
	uint64_t sum = 0, requested;

	for (size_t i = 0; i < view->rows.count; i++) {
		if (!gt_row_requested(view->state.trace, &view->rows.rows[i], &requested))
			return 0;
		sum += requested;
	}
	return sum;
}

/* Of a merged trace or a torch snapshot, where a column has no room for it. */
static void print_asked(struct gt_out *out, const struct view *view)
{
	const uint64_t asked = asked_of(view), bytes = view->state.bytes;
	char size[GT_SIZE_TEXT], rest[GT_SIZE_TEXT];

	if (asked && asked == bytes)
		gt_line(out, GT_PLAIN,
			"The program asked for all of it: torch rounded nothing up.");
	else if (asked)
		gt_line(out, GT_PLAIN, "The program asked for %s of it; %s are torch's rounding.",
			gt_size_text(asked, size), gt_size_text(bytes - asked, rest));
}

static void print_table(struct gt_out *out, const struct gt_args *args, const struct view *view,
			size_t other_lines)
{
	const struct gt_state *state = &view->state;
	struct gt_field fields[GT_HOLDERS_FIELDS];
	char *title =
		gt_xasprintf("%s, %s (%s)", args->total == GT_TOTAL_RESERVED ? "Held" : "In use",
			     gt_by_text(args->by), gt_rows_level(&view->rows));
	struct gt_table *table;

	gt_holders_fields(fields, title, false);
	table = gt_table_new(fields, GT_HOLDERS_FIELDS);
	gt_holders_rows(table, out, view->place, &view->rows, state->blocks_known);
	gt_holders_total(table, 0, args->total == GT_TOTAL_RESERVED ? "held" : "in use",
			 state->bytes, state->block_count, asked_of(view), state->blocks_known);
	gt_table_print(table, out, gt_screen_rows(out, other_lines));
	gt_table_free(table);
	free(title);
}

static void print_text(struct gt_out *out, const struct gt_args *args, const struct view *view,
		       size_t others)
{
	const struct gt_trace *trace = view->state.trace;
	char size[GT_SIZE_TEXT];
	const size_t other_lines = 4 + gt_loss_lines(trace) + !!others + !!asked_of(view);

	print_answer(out, args, view);
	print_context(out, args, view);
	if (view->rows.count && args->tree)
		gt_print_tree(out, args, view->place, &view->state, other_lines);
	else if (view->rows.count)
		print_table(out, args, view, other_lines);
	print_asked(out, view);
	if (view->at_least)
		gt_line(out, GT_RED,
			"Part of that history is gone: the peak was at least this, >= %s.",
			gt_size_text(view->state.bytes, size));
	gt_print_loss(out, trace);
	if (others)
		gt_line(out, GT_PLAIN, "%zu more GPU%s or process%s: --all, --device N, --rank N",
			others, others > 1 ? "s" : "", others > 1 ? "es" : "");
	gt_next(out, "next: gputrace timeline FILE     gputrace at %s FILE     (--all, --by stack)",
		args->at.kind == GT_WHEN_END ? "peak" : "end");
}

/* A screen has room for one device: the tightest. A pipe gets all of them. */
static int text(struct gt_out *out, const struct gt_args *args, const struct gt_places *places)
{
	bool one = out->terminal && !args->all && out->format == GT_FORMAT_TEXT;
	const struct gt_place *only = one ? gt_tightest(places, args->total) : NULL;

	for (size_t i = 0; i < places->count; i++) {
		struct view view = {0};
		int status;

		if (only && only != &places->places[i])
			continue;
		status = open_view(args, &places->places[i], &view);
		if (status)
			return status;
		if (args->why)
			status = gt_print_why(out, view.place, &view.state, args->why);
		else if (out->format == GT_FORMAT_TEXT)
			print_text(out, args, &view, one ? places->count - 1 : 0);
		else if (args->tree)
			gt_print_tree(out, args, view.place, &view.state, 0);
		else
			print_table(out, args, &view, 0);
		close_view(&view);
		if (status)
			return status;
	}
	return 0;
}

/* One table of all devices, without sums. */
static int csv(struct gt_out *out, const struct gt_args *args, const struct gt_places *places)
{
	struct gt_field fields[GT_HOLDERS_FIELDS];
	struct gt_table *table;
	int status = 0;

	gt_holders_fields(fields, "holder", false);
	table = gt_table_new(fields, GT_HOLDERS_FIELDS);
	for (size_t i = 0; !status && i < places->count; i++) {
		struct view view = {0};

		status = open_view(args, &places->places[i], &view);
		if (!status)
			gt_holders_rows(table, out, &places->places[i], &view.rows,
					view.state.blocks_known);
		close_view(&view);
	}
	if (!status)
		gt_table_print(table, out, 0);
	gt_table_free(table);
	return status;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static json_t *json_device(const struct view *view)
{
	const struct gt_state *state = &view->state;
	bool known = state->blocks_known;

	return json_pack("{s:o, s:o, s:o, s:o, s:I, s:b, s:o, s:o, s:o, s:o, s:o}", "pid",
			 gt_json_pid(state->trace), "device",
			 gt_json_ordinal(view->place->lane->device), "seconds",
			 gt_json_seconds(state->us, true), "count",
			 gt_json_number(state->block_count, known), "bytes",
			 (json_int_t)state->bytes, "at_least", view->at_least, "allocated",
			 gt_json_number(state->cur[GT_TOTAL_IN_USE], known), "reserved",
			 gt_json_number(state->cur[GT_TOTAL_RESERVED], known), "torch_allocated",
			 gt_json_number(state->cur[GT_TOTAL_TORCH], known), "device_total",
			 gt_json_number(view->place->device_total, view->place->device_total),
			 "categories", gt_json_categories(state));
}

static void append_holders(json_t *holders, const struct gt_args *args, const struct view *view)
{
	for (size_t i = 0; i < view->rows.count; i++) {
		json_t *holder =
			gt_json_holder(view->place->input, view->place->lane, &view->rows.rows[i],
				       args->by, view->state.blocks_known);

		json_object_set_new(holder, "pid", gt_json_pid(view->state.trace));
		json_object_set_new(holder, "device", gt_json_ordinal(view->place->lane->device));
		json_array_append_new(holders, holder);
	}
}

static int holder_order(const void *a, const void *b)
{
	json_t *const *x = a, *const *y = b;
	json_int_t p = json_integer_value(json_object_get(*x, "bytes"));
	json_int_t q = json_integer_value(json_object_get(*y, "bytes"));

	return p < q ? 1 : p > q ? -1 : 0;
}

/* Rows of each device are sorted already; several devices are merged. */
static json_t *sorted(json_t *holders)
{
	size_t count = json_array_size(holders);
	json_t **list = gt_xcalloc(count, sizeof(*list));
	json_t *result = json_array();

	for (size_t i = 0; i < count; i++)
		list[i] = json_array_get(holders, i);
	qsort(list, count, sizeof(*list), holder_order);
	for (size_t i = 0; i < count; i++)
		json_array_append(result, list[i]);
	free(list);
	json_decref(holders);
	return result;
}

static int json(struct gt_out *out, const struct gt_args *args, const struct gt_places *places)
{
	static const char *const names[] = {"peak", "oom", "end", "time", "step", NULL, "mark"};
	json_t *answer = gt_json_answer("at"), *devices = json_array(), *holders = json_array();
	json_t *why = json_array(), *trees = json_array();
	int status = 0;

	for (size_t i = 0; !status && i < places->count; i++) {
		struct view view = {0};

		status = open_view(args, &places->places[i], &view);
		if (status)
			break;
		json_array_append_new(devices, json_device(&view));
		append_holders(holders, args, &view);
		if (args->why)
			json_array_append_new(why, gt_json_why(view.place, &view.state, args->why));
		if (args->tree)
			json_array_append_new(trees, gt_json_tree(args, view.place, &view.state));
		close_view(&view);
	}
	json_object_set_new(answer, "at", json_string(names[args->at.kind]));
	json_object_set_new(answer, "level", json_string(gt_level_text(args->total)));
	json_object_set_new(answer, "by", json_string(gt_by_name(args->by)));
	json_object_set_new(answer, "devices", devices);
	json_object_set_new(answer, "holders", sorted(holders));
	json_object_set_new(answer, "why", why);
	json_object_set_new(answer, "trees", trees);
	if (status)
		json_decref(answer);
	else
		gt_json_print(out, answer);
	return status;
}

static int print(struct gt_out *out, const struct gt_args *args, const struct gt_places *places)
{
	if (args->format == GT_FORMAT_JSON)
		return json(out, args, places);
	if (args->format == GT_FORMAT_CSV && !args->why && !args->tree)
		return csv(out, args, places);
	return text(out, args, places);
}

static int run(struct gt_args *args)
{
	if (args->format == GT_FORMAT_JSON && !args->by_set)
		args->by = GT_BY_SITE;
	return gt_run_places(args, print);
}

int gt_cmd_at(struct gt_args *args)
{
	if (gt_parse_when(args->operands[0], &args->at))
		return gt_message(GT_EXIT_USAGE,
				  "at: %s: not peak, oom, end, step:N, a time like 2.75s or a name",
				  args->operands[0]);
	memmove(args->operands, args->operands + 1, --args->operand_count * sizeof(char *));
	return run(args);
}

int gt_cmd_peak(struct gt_args *args)
{
	return run(args);
}
