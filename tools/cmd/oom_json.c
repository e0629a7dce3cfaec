/* SPDX-License-Identifier: MIT */
/*
 * What oom says as JSON: the headline, or --nth, with its verdict, and below it every refused request.
 * Called from oom.c.
 */
#include "cmd/oom.h"

#include <string.h>
#include "cmd/failure.h"
#include "cmd/refusals.h"
#include "cmd/verdict.h"
#include "out/json.h"

static json_t *json_holders(const struct gt_failure *failure, enum gt_by by)
{
	json_t *holders = json_array();

	for (size_t i = 0; i < failure->rows.count; i++)
		json_array_append_new(holders, gt_json_holder(failure->input, failure->lane,
							      &failure->rows.rows[i], by, true));
	return holders;
}

static json_t *json_others(const struct gt_report *report)
{
	json_t *others = json_array();

	for (uint32_t i = 0; i < report->others; i++) {
		const struct gt_other *other = &report->other[i];
		size_t length = strnlen(other->name, sizeof(other->name));

		json_array_append_new(others,
				      json_pack("{s:I, s:o, s:I}", "pid", (json_int_t)other->pid,
						"name", gt_json_text(other->name, length), "bytes",
						(json_int_t)other->bytes));
	}
	return others;
}

static json_t *json_site(const struct gt_failure *failure)
{
	struct gt_label label;
	json_t *where;

	gt_label_make(gt_input_symbols(failure->input), failure->trace, failure->site,
		      GT_STREAM_UNKNOWN, GT_BY_LINE, &label);
	where = gt_json_where(&label);
	gt_label_clear(&label);
	return where;
}

static json_t *json_request(const struct gt_failure *failure)
{
	const struct gt_report *report = failure->report;
	const struct gt_verdict *verdict = &failure->verdict;

	return json_pack(
		"{s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "bytes",
		(json_int_t)report->requested, "torch_bytes",
		gt_json_number(report->torch_requested, report->torch_requested), "device",
		gt_json_ordinal(failure->lane->device), "seconds",
		gt_json_seconds(report->us, true), "step",
		gt_json_number(verdict->step, verdict->steps_known), "first_step",
		verdict->steps_known ? json_boolean(verdict->step <= 1) : json_null(), "phase",
		gt_json_name(gt_phase_name(verdict->phase)), "where", json_site(failure), "frames",
		gt_json_frames(gt_symbols_frames(gt_input_symbols(failure->input),
						 failure->site->native, failure->site->python,
						 failure->input->frames)));
}

/* Of this process, from the ledger; null when that is not known. */
static json_t *json_own(const struct gt_failure *failure, enum gt_ledger_kind kind)
{
	const struct gt_ledger *ledger = &failure->joint.ledger;
	int64_t sum = 0;

	for (size_t i = 0; i < ledger->row_count; i++)
		if (ledger->rows[i].kind == kind &&
		    ledger->rows[i].pid == failure->trace->header.pid)
			sum += ledger->rows[i].bytes;
	return failure->joint.count ? json_integer((json_int_t)sum) : json_null();
}

/* Less what the ledger has for contexts and modules. */
static json_t *json_unexplained(const struct gt_failure *failure)
{
	json_t *context = json_own(failure, GT_LEDGER_CONTEXT);
	json_t *modules = json_own(failure, GT_LEDGER_MODULES);
	int64_t rest =
		failure->unexplained - json_integer_value(context) - json_integer_value(modules);

	json_decref(context);
	json_decref(modules);
	return json_integer((json_int_t)rest);
}

static json_t *json_device(const struct gt_failure *failure)
{
	const struct gt_report *report = failure->report;
	bool whole = failure->free_known && failure->total_known;

	return json_pack(
		"{s:o, s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:o}", "total",
		gt_json_number(report->device_total, failure->total_known), "allocated",
		(json_int_t)failure->in_use, "reserved", (json_int_t)report->cur[GT_TOTAL_RESERVED],
		"cached", (json_int_t)failure->cached, "largest_free_block",
		gt_json_number(failure->verdict.largest_piece, failure->verdict.pieces_known),
		"context", json_own(failure, GT_LEDGER_CONTEXT), "modules",
		json_own(failure, GT_LEDGER_MODULES), "others", json_others(report), "unexplained",
		whole ? json_unexplained(failure) : json_null(), "free",
		gt_json_number(report->device_free, failure->free_known));
}

static json_t *json_failure(const struct gt_failure *failure, enum gt_by by)
{
	const struct gt_report *report = failure->report;

	return json_pack(
		"{s:o, s:o, s:I, s:o, s:s, s:o, s:o, s:I, s:I, s:I, s:i, s:o, s:o, s:o}", "pid",
		gt_json_pid(failure->trace), "device", gt_json_ordinal(failure->lane->device),
		"requested", (json_int_t)report->requested, "torch_requested",
		gt_json_number(report->torch_requested, report->torch_requested), "outcome",
		gt_end_name(gt_report_end(failure->trace, report)), "free",
		gt_json_number(report->device_free, failure->free_known), "total",
		gt_json_number(report->device_total, failure->total_known), "allocated",
		(json_int_t)failure->in_use, "reserved", (json_int_t)report->cur[GT_TOTAL_RESERVED],
		"tries", (json_int_t)report->tries, "result", report->result, "seconds",
		gt_json_seconds(report->us, true), "where", json_site(failure), "holders",
		json_holders(failure, by));
}

static json_t *json_failures(const struct gt_args *args, struct gt_session *session, enum gt_by by)
{
	json_t *failures = json_array();

	for (size_t i = 0; i < session->count; i++) {
		struct gt_input *input = &session->inputs[i];
		const struct gt_trace *trace = input->trace;

		for (size_t r = 0; r < trace->report_count; r++) {
			struct gt_failure failure;

			if (!gt_report_wanted(args, trace, &trace->reports[r]))
				continue;
			gt_failure_open(input, &trace->reports[r], by, &failure);
			json_array_append_new(failures, json_failure(&failure, by));
			gt_failure_close(&failure);
		}
	}
	return failures;
}

static json_t *json_headline(const struct gt_failure *failure)
{
	const struct gt_verdict *verdict = &failure->verdict;

	return json_pack(
		"{s:b, s:o, s:o, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "oom", 1, "file",
		gt_json_name(failure->trace->path), "pid", gt_json_pid(failure->trace), "level",
		failure->report->torch_requested ? "torch" : "driver", "outcome",
		gt_end_name(gt_report_end(failure->trace, failure->report)), "verdict",
		gt_json_verdict(failure->input, failure->report, verdict, &failure->joint),
		"request", json_request(failure), "device", json_device(failure), "categories",
		verdict->categories_known ? gt_json_category_bytes(verdict->categories)
					  : json_null(),
		"short_by", gt_json_number(failure->short_by, failure->free_known), "to_come",
		gt_json_number(verdict->to_come, verdict->to_come_known), "remedies",
		gt_json_remedies(verdict));
}

/* The same keys, so that nobody has to ask whether they are there. */
static json_t *json_no_headline(void)
{
	return json_pack("{s:b, s:n, s:n, s:n, s:n, s:n, s:n, s:n, s:n, s:n, s:n, s:[]}", "oom", 0,
			 "file", "pid", "level", "outcome", "verdict", "request", "device",
			 "categories", "short_by", "to_come", "remedies");
}

static void set_headline(json_t *answer, const struct gt_args *args, struct gt_session *session)
{
	struct gt_input *input = gt_first_failed(args, session);
	const struct gt_report *report = args->nth ? gt_nth_report(args, session, &input)
					 : input   ? gt_input_headline(args, input)
						   : NULL;
	json_t *headline;

	if (report) {
		struct gt_failure failure;

		gt_failure_open(input, report, GT_BY_SITE, &failure);
		gt_failure_judge(&failure, session, GT_BY_SITE);
		headline = json_headline(&failure);
		gt_failure_close(&failure);
	} else {
		headline = json_no_headline();
	}
	json_object_update(answer, headline);
	json_decref(headline);
}

void gt_oom_json(struct gt_out *out, const struct gt_args *args, struct gt_session *session)
{
	json_t *answer = gt_json_answer("oom");
	uint64_t lost = 0, starts = 0;

	set_headline(answer, args, session);
	json_object_set_new(answer, "failures",
			    json_failures(args, session, args->by_set ? args->by : GT_BY_SITE));
	for (size_t i = 0; i < session->count; i++) {
		uint64_t us = gt_history_starts(session->inputs[i].trace);

		lost += gt_lost_events(session->inputs[i].trace);
		starts = us > starts ? us : starts;
	}
	json_object_set_new(answer, "lost_events", json_integer((json_int_t)lost));
	json_object_set_new(answer, "history_starts", gt_json_seconds(starts, true));
	gt_json_print(out, answer);
}
