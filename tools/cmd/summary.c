/* SPDX-License-Identifier: MIT */
/* gputrace summary: the answer in one screen; of a failed run, the screen of oom. */
#include <stdlib.h>
#include <string.h>
#include "cmd/holders.h"
#include "cmd/oom.h"
#include "cmd/ranks.h"
#include "cmd/refusals.h"
#include "cmd/torch_table.h"
#include "cmd/warnings.h"
#include "cmd/summary.h"
#include "model/xalloc.h"
#include "out/json.h"

/* ---- one process ----------------------------------------------------------------------------- */

/* ": step 10 of 12, in backward" if there are steps and the peak is in one, else " at 0.512 s". To be freed. */
static char *peak_moment(const struct gt_place *place, enum gt_total total)
{
	static const char *const in[] = {
		[GT_PHASE_NONE] = "",
		[GT_PHASE_FORWARD] = ", in forward",
		[GT_PHASE_BACKWARD] = ", in backward",
		[GT_PHASE_OPTIMIZER] = ", in the optimizer",
		[GT_PHASE_AFTER] = "",
	};
	const struct gt_answers *answers = gt_input_answers(place->input);
	const struct gt_ctr *ctr = &place->lane->ctr;
	uint32_t position;
	size_t step;

	if (answers) {
		position =
			gt_story_position(answers->story, place->lane_index, ctr->peak_seq[total]);
		step = gt_boundary_step(&answers->steps, position);
		if (step)
			return gt_xasprintf(": step %zu of %zu%s", step, answers->steps.count,
					    in[gt_answers_phase(answers, position)]);
	}
	return gt_xasprintf(" at %.3f s", (double)ctr->peak_us[total] / 1e6);
}

static void print_answer(struct gt_out *out, const struct gt_place *place, enum gt_total total)
{
	char device[GT_DEVICE_TEXT];
	char *peak = gt_of_card(place->lane->ctr.peak[total], place->device_total);
	char *moment = peak_moment(place, total);

	gt_line(out, GT_BOLD, "%s Peak %s%s on %s%s.", gt_no_failure(place->input->trace), peak,
		total == GT_TOTAL_RESERVED ? " held" : "",
		gt_device_text(place->lane->device, device), moment);
	free(moment);
	free(peak);
}

static void print_process(struct gt_out *out, const struct gt_trace *trace)
{
	char *line = gt_command_line(trace, out->terminal ? 44 : 0);
	char pid[GT_PID_TEXT];

	if (trace->snapshot)
		gt_line(out, GT_PLAIN, "torch snapshot of an unknown process   %.2f s",
			(double)trace->last_us / 1e6);
	else
		gt_line(out, GT_PLAIN, "%s   %s   %s   %.2f s", line, gt_pid_text(trace, pid),
			gt_process_state(trace), (double)trace->last_us / 1e6);
	free(line);
}

void gt_summary_head(struct gt_out *out, const struct gt_args *args, const struct gt_place *place)
{
	print_answer(out, place, args->total);
	print_process(out, place->input->trace);
}

static const char *at_peak_title(const struct gt_args *args, const struct gt_rows *rows, char **ret)
{
	return *ret = gt_xasprintf("%s at the peak, %s (%s)",
				   args->total == GT_TOTAL_RESERVED ? "Held" : "In use",
				   gt_by_text(args->by), gt_rows_level(rows));
}

static void print_holders(struct gt_out *out, const struct gt_args *args,
			  const struct gt_place *place, const struct gt_state *state,
			  const struct gt_rows *rows, size_t other_lines)
{
	struct gt_field fields[GT_HOLDERS_FIELDS];
	struct gt_table *table;
	char *title;

	gt_holders_fields(fields, at_peak_title(args, rows, &title), true);
	table = gt_table_new(fields, GT_HOLDERS_FIELDS);
	gt_holders_rows(table, out, place, rows, state->blocks_known);
	gt_holders_total(table, 0, args->total == GT_TOTAL_RESERVED ? "held" : "in use",
			 state->bytes, state->block_count, 0, state->blocks_known);
	gt_table_print(table, out, gt_screen_rows(out, other_lines));
	gt_table_free(table);
	free(title);
}

/* What was held when most was in use is not the most that was ever held; both are said. */
static void print_held(struct gt_out *out, const struct gt_state *state,
		       const struct gt_trace_lane *lane)
{
	char held[GT_SIZE_TEXT], used[GT_SIZE_TEXT], cached[GT_SIZE_TEXT], most[GT_SIZE_TEXT];

	gt_size_text(lane->ctr.peak[GT_TOTAL_RESERVED], most);
	if (!state->blocks_known) {
		gt_line(out, GT_PLAIN, "Most held from the driver: %s.", most);
		return;
	}
	gt_line(out, GT_PLAIN, "Held then %s = in use %s + cached %s. Most ever held: %s.",
		gt_size_text(state->cur[GT_TOTAL_RESERVED], held),
		gt_size_text(state->cur[GT_TOTAL_IN_USE], used),
		gt_size_text(state->cur[GT_TOTAL_RESERVED] - state->cur[GT_TOTAL_IN_USE], cached),
		most);
}

static void print_device_line(struct gt_out *out, const struct gt_place *place, enum gt_total total)
{
	char device[GT_DEVICE_TEXT], now[GT_SIZE_TEXT];
	char *peak = gt_of_card(place->lane->ctr.peak[total], place->device_total);

	gt_line(out, GT_PLAIN, "%s: peak %s, now %s, %llu refused.",
		gt_device_text(place->lane->device, device), peak,
		gt_size_text(place->lane->ctr.cur[total], now),
		(unsigned long long)place->lane->ctr.failed);
	free(peak);
}

static void print_survived(struct gt_out *out, const struct gt_trace *trace)
{
	size_t recovered = 0, caught = 0;

	if (!trace->report_count)
		return;
	for (size_t i = 0; i < trace->report_count; i++) {
		enum gt_end end = gt_report_end(trace, &trace->reports[i]);

		recovered += gt_is_memory(&trace->reports[i]) && end == GT_END_RECOVERED;
		caught += gt_is_memory(&trace->reports[i]) && end == GT_END_CAUGHT;
	}
	gt_line(out, GT_PLAIN, "Requests refused and survived: %zu granted on retry, %zu caught.",
		recovered, caught);
}

static void print_warnings(struct gt_out *out, const struct gt_warnings *warnings)
{
	for (size_t i = 0; i < warnings->count; i++)
		gt_line(out, GT_RED, "Warning: %s.  gputrace %s FILE", warnings->warnings[i].text,
			warnings->warnings[i].command);
}

static int print_one(struct gt_out *out, const struct gt_args *args, const struct gt_places *places)
{
	const struct gt_place *tightest = gt_tightest(places, args->total);
	const struct gt_trace *trace = tightest->input->trace;
	struct gt_warnings warnings;
	struct gt_state state;
	struct gt_rows rows;
	int status = gt_input_state(tightest->input, tightest->lane_index, args->total,
				    (struct gt_when){.kind = GT_WHEN_PEAK}, &state);

	if (!status)
		status = gt_input_rows(tightest->input, &state, args->by, &rows);
	if (status)
		return status;
	warnings = gt_warnings_of(tightest->input, places);
	if (out->format == GT_FORMAT_TEXT) {
		print_answer(out, tightest, args->total);
		print_process(out, trace);
	}
	print_holders(out, args, tightest, &state, &rows,
		      4 + gt_loss_lines(trace) + places->count + !!trace->report_count +
			      warnings.count);
	if (out->format == GT_FORMAT_TEXT) {
		print_held(out, &state, tightest->lane);
		for (size_t i = 0; i < places->count; i++)
			if (&places->places[i] != tightest)
				print_device_line(out, &places->places[i], args->total);
		print_survived(out, trace);
		print_warnings(out, &warnings);
		gt_print_loss(out, trace);
		gt_next(out, "next: gputrace at peak FILE     gputrace timeline FILE");
	}
	gt_warnings_clear(&warnings);
	gt_rows_clear(&rows);
	gt_state_clear(&state);
	return 0;
}

/* ---- several processes ----------------------------------------------------------------------- */

static void add_place(struct gt_table *table, const struct gt_ranked *row, bool tightest)
{
	const struct gt_place *place = row->place;
	const struct gt_trace *trace = place->input->trace;
	const struct gt_ctr *ctr = &place->lane->ctr;

	gt_table_row(table, 0, 0, tightest ? GT_ROW_ACT : 0);
	gt_table_text(table, gt_rank_text(trace));
	gt_table_number(table, place->lane->device);
	gt_table_pid(table, trace);
	gt_table_number(table, (int64_t)ctr->peak[GT_TOTAL_IN_USE]);
	gt_table_number(table, (int64_t)ctr->peak[GT_TOTAL_RESERVED]);
	gt_table_known(table, (int64_t)place->device_total, place->device_total);
	gt_table_number(table, (int64_t)ctr->failed);
	gt_table_text(table, row->state);
}

static void print_places(struct gt_out *out, const struct gt_ranked *rows, size_t count,
			 const struct gt_place *tightest)
{
	static const struct gt_field fields[] = {
		{"rank", NULL, GT_FIELD_TEXT, GT_SHOW_ALWAYS},
		{"device", "GPU", GT_FIELD_COUNT, GT_SHOW_ALWAYS},
		{"pid", NULL, GT_FIELD_COUNT, GT_SHOW_ALWAYS},
		{"peak_allocated", "peak in use MiB", GT_FIELD_BYTES, GT_SHOW_ALWAYS},
		{"peak_reserved", "peak held", GT_FIELD_BYTES, GT_SHOW_ALWAYS},
		{"device_total", "of card", GT_FIELD_BYTES, GT_SHOW_ALWAYS},
		{"refused", NULL, GT_FIELD_COUNT, GT_SHOW_ALWAYS},
		{"state", NULL, GT_FIELD_TEXT, GT_SHOW_ALWAYS},
	};
	struct gt_table *table = gt_table_new(fields, sizeof(fields) / sizeof(fields[0]));

	gt_table_unit(table, GT_UNIT_MIB);
	for (size_t i = 0; i < count; i++)
		add_place(table, &rows[i], rows[i].place == tightest);
	gt_table_print(table, out, 0);
	gt_table_free(table);
}

static void print_order(struct gt_out *out, const struct gt_ranked *rows, size_t count,
			uint64_t median)
{
	char text[GT_SIZE_TEXT];
	size_t odd = 0;

	while (odd < count && (rows[odd].failed || rows[odd].off))
		odd++;
	if (odd)
		gt_line(out, GT_PLAIN, "Unlike the others, first: %zu of %zu; median peak %s.", odd,
			count, gt_size_text(median, text));
}

static int print_many(struct gt_out *out, const struct gt_args *args, struct gt_session *session,
		      const struct gt_places *places)
{
	const struct gt_place *tightest = gt_tightest(places, args->total);
	char device[GT_DEVICE_TEXT], pid[GT_PID_TEXT];
	char *peak = gt_of_card(tightest->lane->ctr.peak[args->total], tightest->device_total);
	char *line = gt_command_line(tightest->input->trace, out->terminal ? 56 : 0);
	uint64_t median;
	struct gt_ranked *rows = gt_rank_places(places, args->total, &median);

	if (out->format == GT_FORMAT_TEXT) {
		gt_line(out, GT_BOLD, "%s Tightest: %s on %s, peak %s.",
			gt_no_failure(tightest->input->trace),
			gt_pid_text(tightest->input->trace, pid),
			gt_device_text(tightest->lane->device, device), peak);
		gt_line(out, GT_PLAIN, "%s   %zu processes", line, session->count);
		print_order(out, rows, places->count, median);
	}
	print_places(out, rows, places->count, tightest);
	if (out->format == GT_FORMAT_TEXT) {
		for (size_t i = 0; i < session->count; i++)
			gt_print_loss(out, session->inputs[i].trace);
		gt_next(out, "next: gputrace %s",
			session->paths[tightest->input - session->inputs]);
	}
	free(rows);
	free(line);
	free(peak);
	return 0;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static json_t *json_device(const struct gt_place *place)
{
	const struct gt_trace_lane *lane = place->lane;
	const struct gt_ctr *ctr = &lane->ctr;

	return json_pack(
		"{s:o, s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:I, "
		"s:I, s:I, s:I, s:o}",
		"ordinal", gt_json_ordinal(lane->device), "total",
		gt_json_number(place->device_total, place->device_total), "allocated",
		(json_int_t)ctr->cur[GT_TOTAL_IN_USE], "reserved",
		(json_int_t)ctr->cur[GT_TOTAL_RESERVED], "cached",
		(json_int_t)(ctr->cur[GT_TOTAL_RESERVED] - ctr->cur[GT_TOTAL_IN_USE]),
		"peak_allocated", (json_int_t)ctr->peak[GT_TOTAL_IN_USE], "peak_reserved",
		(json_int_t)ctr->peak[GT_TOTAL_RESERVED], "torch_allocated",
		(json_int_t)ctr->cur[GT_TOTAL_TORCH], "peak_seconds",
		gt_json_seconds(ctr->peak_us[GT_TOTAL_IN_USE], true), "torch_reserved",
		(json_int_t)gt_torch_reserved(lane), "torch_peak_allocated",
		(json_int_t)ctr->peak[GT_TOTAL_TORCH], "live_blocks", (json_int_t)ctr->live_count,
		"events", (json_int_t)lane->seq, "allocations", (json_int_t)ctr->allocs, "frees",
		(json_int_t)ctr->frees, "unknown_frees", (json_int_t)ctr->unknown_frees,
		"implicit_frees", (json_int_t)ctr->implicit_frees, "failed",
		(json_int_t)ctr->failed, "lost", (json_int_t)lane->lost, "history_starts",
		gt_json_seconds(lane->history_us, true));
}

static json_t *json_lost(const struct gt_trace *trace)
{
	const uint64_t *lost = trace->header.lost;

	return json_pack(
		"{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "events",
		(json_int_t)gt_lost_events(trace), "sites", (json_int_t)lost[GT_LOST_SITES],
		"stacks", (json_int_t)lost[GT_LOST_STACKS], "truncated",
		(json_int_t)lost[GT_LOST_TRUNCATED], "streams", (json_int_t)lost[GT_LOST_STREAMS],
		"threads", (json_int_t)lost[GT_LOST_THREADS], "reports",
		(json_int_t)lost[GT_LOST_REPORTS], "python", (json_int_t)lost[GT_LOST_PYTHON]);
}

static json_t *json_info(const struct gt_trace *trace, const char *key)
{
	const struct gt_bytes *info = gt_trace_info(trace, key);

	return info ? gt_json_text(info->text, info->length) : json_null();
}

static json_t *json_warnings(struct gt_input *input, const struct gt_places *places)
{
	struct gt_warnings warnings = gt_warnings_of(input, places);
	json_t *array = json_array();

	for (size_t i = 0; i < warnings.count; i++)
		json_array_append_new(array,
				      json_pack("{s:s, s:s, s:s}", "id", warnings.warnings[i].id,
						"text", warnings.warnings[i].text, "command",
						warnings.warnings[i].command));
	gt_warnings_clear(&warnings);
	return array;
}

static json_t *json_process(const struct gt_args *args, struct gt_input *input,
			    const struct gt_places *places)
{
	const struct gt_trace *trace = input->trace;
	json_t *devices = json_array();
	char *line = gt_command_line(trace, 0);
	json_t *process;

	for (size_t i = 0; i < places->count; i++)
		if (places->places[i].input == input)
			json_array_append_new(devices, json_device(&places->places[i]));
	process = json_pack(
		"{s:o, s:o, s:o, s:o, s:o, s:o, s:s, s:o, s:b, s:o, s:o, s:I, s:o, s:b, s:o, s:o}",
		"file", gt_json_name(trace->path), "pid", gt_json_pid(trace), "ppid",
		gt_json_number(trace->header.ppid, trace->header.ppid), "command_line",
		*line ? gt_json_name(line) : json_null(), "host", json_info(trace, "host"), "rank",
		json_info(trace, "env.RANK"), "state", gt_process_state(trace), "seconds",
		gt_json_seconds(trace->last_us, true), "oom",
		gt_input_headline(args, input) != NULL, "stopped_seconds",
		gt_json_seconds(trace->header.stop_us - 1, trace->header.stop_us), "history_starts",
		gt_json_seconds(gt_history_starts(trace), true), "lost_events",
		(json_int_t)gt_lost_events(trace), "lost", json_lost(trace), "partial",
		trace->partial, "devices", devices, "warnings", json_warnings(input, places));
	free(line);
	return process;
}

static void json(struct gt_out *out, const struct gt_args *args, struct gt_session *session,
		 const struct gt_places *places)
{
	json_t *answer = gt_json_answer("summary"), *processes = json_array();

	for (size_t i = 0; i < session->count; i++)
		json_array_append_new(processes, json_process(args, &session->inputs[i], places));
	json_object_set_new(answer, "processes", processes);
	gt_json_print(out, answer);
}

static int print(struct gt_out *out, const struct gt_args *args, const struct gt_places *places)
{
	struct gt_session *session = places->session;
	struct gt_input *failed = gt_first_failed(args, session);

	if (out->format == GT_FORMAT_JSON) {
		json(out, args, session, places);
	} else if (failed && out->format == GT_FORMAT_TEXT) {
		gt_oom_screen(out, args, session, failed);
	} else if (!places->count) {
		gt_line(out, GT_BOLD, "%s", gt_no_memory(session->inputs[0].trace));
		print_process(out, session->inputs[0].trace);
	} else if (session->count > 1) {
		return print_many(out, args, session, places);
	} else {
		return print_one(out, args, places);
	}
	return 0;
}

int gt_cmd_summary(struct gt_args *args)
{
	return gt_run_places(args, args->torch ? gt_torch_table : print);
}
