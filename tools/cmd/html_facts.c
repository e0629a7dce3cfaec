/* SPDX-License-Identifier: MIT */
/* See html.h: the facts of a device that need no history, for the page's script and its tables. */
#include "cmd/html.h"

#include <stdlib.h>
#include <string.h>
#include "cmd/diff.h"
#include "cmd/ledger.h"
#include "cmd/oom.h"
#include "cmd/refusals.h"
#include "cmd/segments.h"
#include "cmd/summary.h"
#include "cmd/verdict.h"
#include "cmd/words.h"
#include "out/json.h"
#include "page/pool.h"
#include "page/text.h"
#include "symbols/library.h"

struct gt_when gt_html_when(const struct gt_html_view *view)
{
	bool known = view->failure && gt_history_reaches(view->place->lane, view->failure->seq);

	return (struct gt_when){.kind = known ? GT_WHEN_OOM : GT_WHEN_PEAK};
}

/* ---- words of the other screens -------------------------------------------------------------- */

static json_t *lines_of(struct gt_words *words)
{
	char *text = gt_words_end(words), *at = text, *line;
	json_t *lines = json_array();

	while ((line = strsep(&at, "\n")))
		if (*line)
			json_array_append_new(lines, gt_page_string(line));
	free(text);
	return lines;
}

/* The answer and what follows it, as the summary of this device says them. */
static json_t *head_lines(const struct gt_args *args, const struct gt_html_view *view)
{
	struct gt_words words;

	gt_words_begin(&words);
	if (view->failure)
		gt_oom_head(&words.out, args, view->place->input);
	else
		gt_summary_head(&words.out, args, view->place);
	if (!view->failure)
		gt_steps_head(&words.out, view->place, &view->history->steps);
	return lines_of(&words);
}

json_t *gt_html_diff_head(const struct gt_args *args, struct gt_session *session)
{
	struct gt_words words;

	gt_words_begin(&words);
	gt_diff_head(&words.out, args, session);
	return lines_of(&words);
}

static json_t *loss_lines(const struct gt_html_view *view)
{
	struct gt_words words;

	gt_words_begin(&words);
	gt_print_loss(&words.out, view->place->input->trace);
	return lines_of(&words);
}

/* ---- what would have been enough ------------------------------------------------------------- */

static json_t *json_remedy(const struct gt_verdict *verdict, const struct gt_remedy *remedy)
{
	char *lasts = gt_remedy_lasts(verdict, remedy);
	json_t *row =
		json_pack("{s:o, s:I, s:o, s:s, s:b, s:o}", "text", gt_page_string(remedy->text),
			  "bytes", (json_int_t)remedy->bytes, "lasts", gt_page_string(lasts),
			  "result", remedy->same_result ? "same" : "may vary", "enough",
			  remedy->enough, "how", gt_page_string(remedy->formula));

	free(lasts);
	return row;
}

static const struct gt_frame *line_to_look_at(const struct gt_html_view *view,
					      const struct gt_verdict *verdict)
{
	const struct gt_site_def *def =
		verdict->site ? verdict->site
			      : gt_report_site(view->place->input->trace, view->failure);

	if (verdict->frame)
		return verdict->frame;
	return gt_symbols_user_frame(gt_input_symbols(view->place->input), def->native,
				     def->python);
}

static json_t *json_line(const struct gt_html_view *view, const struct gt_frame *frame)
{
	const char *source;
	json_t *line;
	char *text;

	if (!frame)
		return json_null();
	source = gt_symbols_source(gt_input_symbols(view->place->input), frame->file, frame->line);
	text = gt_label_frame(frame, true);
	line = json_pack("[o, o]", gt_page_string(text), gt_page_string(source));
	free(text);
	return line;
}

static json_t *json_oom(const struct gt_html_view *view)
{
	const struct gt_report *report = view->failure;
	struct gt_verdict verdict;
	json_t *remedies = json_array(), *result;

	if (!report)
		return json_null();
	verdict = gt_verdict_of(view->place->input->trace, gt_input_answers(view->place->input),
				view->place->lane_index, report, NULL);
	for (size_t i = 0; i < verdict.remedy_count; i++)
		if (gt_remedy_shown(&verdict, &verdict.remedies[i], false))
			json_array_append_new(remedies,
					      json_remedy(&verdict, &verdict.remedies[i]));
	result = json_pack(
		"{s:s, s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:o, s:o}", "cause",
		gt_cause_name(verdict.cause), "us", (json_int_t)report->us, "asked",
		(json_int_t)report->requested, "short", (json_int_t)verdict.short_by, "over",
		(json_int_t)verdict.over, "allocated", (json_int_t)report->cur[GT_TOTAL_IN_USE],
		"largest", gt_json_number(verdict.largest_piece, verdict.pieces_known), "free",
		gt_json_number(report->device_free, report->device_free != GT_UNKNOWN_BYTES),
		"line", json_line(view, line_to_look_at(view, &verdict)), "remedies", remedies);
	gt_verdict_clear(&verdict);
	return result;
}

/* ---- the whole device ------------------------------------------------------------------------ */

static json_t *json_ledger_row(const struct gt_ledger_row *row)
{
	struct gt_ledger_row plain = *row;
	char *text;
	json_t *result;

	if (row->kind != GT_LEDGER_OTHER)
		plain.pid = 0;
	text = gt_ledger_row_text(&plain, "");
	if (strncmp(text, "0 ", 2) == 0)
		memmove(text, text + 2, strlen(text) - 1);
	result = json_pack("[o, s, s, I, s]", gt_page_string(text), gt_ledger_row_level(row),
			   gt_measured_name(row->measured), (json_int_t)row->bytes,
			   gt_ledger_kind_name(row->kind));
	free(text);
	return result;
}

static json_t *json_ledger(const struct gt_html_view *view, const struct gt_state *state)
{
	struct gt_ledger_process process = {
		view->place->input->trace,
		gt_input_symbols(view->place->input),
		view->place->lane_index,
		view->place->device_total,
		state,
	};
	struct gt_error err = {0};
	struct gt_ledger ledger;
	json_t *rows;

	if (gt_ledger_make(&process, 1, 0, state->seq, state->us, &ledger, &err))
		return json_null();
	rows = json_array();
	for (size_t i = 0; i < ledger.row_count; i++)
		json_array_append_new(rows, json_ledger_row(&ledger.rows[i]));
	rows = json_pack("{s:o, s:I, s:I, s:b}", "rows", rows, "total", (json_int_t)ledger.total,
			 "us", (json_int_t)ledger.us, "sampled", ledger.sampled);
	gt_ledger_clear(&ledger);
	return rows;
}

/* ---- segments -------------------------------------------------------------------------------- */

static json_t *json_segments(const struct gt_html_view *view)
{
	struct gt_when when = {.kind = view->failure ? GT_WHEN_OOM : GT_WHEN_END};
	struct gt_segment_list list;
	json_t *result;
	uint64_t us;

	if (gt_segments_at(view->place, when, &list, &us))
		return json_null();
	result = gt_page_pool(view->place->input->trace, gt_input_symbols(view->place->input),
			      view->place->lane, &list);
	json_object_set_new(result, "us", json_integer((json_int_t)us));
	json_object_set_new(result, "at", json_string(view->failure ? "failure" : "end"));
	gt_segments_list_clear(&list);
	return result;
}

/* ---- marks ----------------------------------------------------------------------------------- */

static json_t *json_marks(const struct gt_html_view *view)
{
	const struct gt_trace *trace = view->place->input->trace;
	json_t *list = json_array();

	for (size_t i = 0; i < view->history->mark_count; i++) {
		const struct gt_page_mark *mark = &view->history->marks[i];
		const char *name =
			mark->text < trace->string_count ? trace->strings[mark->text].text : NULL;

		json_array_append_new(list, json_pack("[I, o]", (json_int_t)mark->us,
						      gt_page_string(name ? name : "")));
	}
	return list;
}

/* ---- refused requests beside the one that ended the run -------------------------------------- */

static json_t *json_refused(const struct gt_html_view *view)
{
	const struct gt_trace *trace = view->place->input->trace;
	json_t *list = json_array();

	for (size_t i = 0; i < trace->report_count; i++) {
		const struct gt_report *report = &trace->reports[i];
		char *text;

		if (report == view->failure || report->lane != view->place->lane->lane ||
		    !gt_is_memory(report))
			continue;
		text = gt_refusal_text(trace, report);
		json_array_append_new(
			list, json_pack("[I, o]", (json_int_t)report->us, gt_page_string(text)));
		free(text);
	}
	return list;
}

/* ---- together -------------------------------------------------------------------------------- */

static json_t *json_info(const struct gt_trace *trace, const char *key)
{
	const struct gt_bytes *info = gt_trace_info(trace, key);

	return info && info->length ? gt_page_string(info->text) : json_null();
}

static json_t *json_process(const struct gt_html_view *view)
{
	const struct gt_trace *trace = view->place->input->trace;
	char *line = gt_command_line(trace, 60);
	char device[GT_DEVICE_TEXT];
	json_t *result =
		json_pack("{s:o, s:o, s:o, s:o, s:s, s:s, s:I}", "file",
			  gt_page_string(gt_base_name(trace->path)), "pid", gt_json_pid(trace),
			  "rank", json_info(trace, "env.RANK"), "command", gt_page_string(line),
			  "gpu", gt_device_text(view->place->lane->device, device), "state",
			  gt_process_state(trace), "card", (json_int_t)view->place->device_total);

	free(line);
	return result;
}

static void add_moment(json_t *facts, struct gt_html_view *view)
{
	struct gt_state *state = &view->state;

	if (gt_input_state(view->place->input, view->place->lane_index, GT_TOTAL_IN_USE,
			   gt_html_when(view), state))
		return;
	view->state_known = true;
	json_object_set_new(facts, "ledger", json_ledger(view, state));
	json_object_set_new(facts, "us", json_integer((json_int_t)state->us));
	json_object_set_new(facts, "bytes", json_integer((json_int_t)state->bytes));
}

json_t *gt_html_facts(const struct gt_args *args, struct gt_html_view *view)
{
	json_t *facts = json_process(view);
	struct gt_when when = gt_html_when(view);

	json_object_set_new(facts, "head", head_lines(args, view));
	json_object_set_new(facts, "loss", loss_lines(view));
	json_object_set_new(facts, "when", json_string(when.kind == GT_WHEN_OOM ? "oom" : "peak"));
	json_object_set_new(facts, "oom", json_oom(view));
	json_object_set_new(facts, "segments", json_segments(view));
	json_object_set_new(facts, "marks", json_marks(view));
	json_object_set_new(facts, "refused", json_refused(view));
	add_moment(facts, view);
	return facts;
}
