/* SPDX-License-Identifier: MIT */
/* gputrace errors: every refused request and how it ended; most are no failure at all. */
#include <stdlib.h>
#include <string.h>
#include "cmd/refusals.h"
#include "model/xalloc.h"
#include "out/json.h"
#include "out/number.h"
#include "out/table.h"

struct refusal {
	struct gt_input *input;
	const struct gt_report *report;
	size_t lane_index;
	size_t step; /* 0 = not known */
	char *where;
	const char *outcome;
};

struct refusals {
	struct refusal *items;
	size_t count;
	size_t ends[GT_END_OPEN + 1], other; /* other: refused for another reason than memory */
};

static void count(struct refusals *all, const struct gt_trace *trace,
		  const struct gt_report *report)
{
	if (gt_is_memory(report))
		all->ends[gt_report_end(trace, report)]++;
	else
		all->other++;
}

static size_t step_of(struct gt_input *input, size_t lane_index, const struct gt_report *report)
{
	const struct gt_answers *answers = gt_input_answers(input);

	if (!answers || answers->steps.source == GT_STEPS_NONE)
		return 0;
	return gt_boundary_step(&answers->steps,
				gt_story_position(answers->story, lane_index, report->seq));
}

static void add_trace(const struct gt_args *args, struct gt_input *input, struct refusals *all)
{
	const struct gt_trace *trace = input->trace;

	for (size_t i = 0; i < trace->report_count; i++) {
		const struct gt_report *report = &trace->reports[i];
		size_t lane = gt_report_lane(trace, report);

		if (!gt_report_wanted(args, trace, report))
			continue;
		count(all, trace, report);
		*GT_PUSH(all->items, all->count) = (struct refusal){
			.input = input,
			.report = report,
			.lane_index = lane,
			.step = step_of(input, lane, report),
			.where = gt_where_text(input, gt_report_site(trace, report)),
			.outcome = gt_outcome_text(trace, report),
		};
	}
}

static void print_answer(struct gt_out *out, const struct refusals *all)
{
	size_t ended = all->ends[GT_END_FATAL] + all->ends[GT_END_OPEN];

	if (!all->count) {
		gt_line(out, GT_BOLD, "No request was refused.");
		return;
	}
	if (ended) {
		gt_line(out, GT_RED_BOLD, "%zu refused request%s, %zu ended the run or may have.",
			all->count, all->count > 1 ? "s" : "", ended);
		return;
	}
	gt_line(out, GT_BOLD,
		"%zu refused request%s: %zu granted on retry, %zu caught, %zu not memory. No "
		"failure.",
		all->count, all->count > 1 ? "s" : "", all->ends[GT_END_RECOVERED],
		all->ends[GT_END_CAUGHT], all->other);
}

static void print_table(struct gt_out *out, const struct refusals *all)
{
	static const struct gt_field fields[] = {
		{"where", "Refused", GT_FIELD_TEXT, GT_SHOW_ALWAYS},
		{"pid", NULL, GT_FIELD_COUNT, GT_SHOW_WIDE},
		{"device", "GPU", GT_FIELD_COUNT, GT_SHOW_ALWAYS},
		{"step", NULL, GT_FIELD_COUNT, GT_SHOW_ALWAYS},
		{"seconds", "at s", GT_FIELD_SECONDS, GT_SHOW_ALWAYS},
		{"requested", "asked MiB", GT_FIELD_BYTES, GT_SHOW_ALWAYS},
		{"tries", NULL, GT_FIELD_COUNT, GT_SHOW_WIDE},
		{"outcome", NULL, GT_FIELD_TEXT, GT_SHOW_ALWAYS},
	};
	struct gt_table *table = gt_table_new(fields, sizeof(fields) / sizeof(fields[0]));

	gt_table_unit(table, GT_UNIT_MIB);
	for (size_t i = 0; i < all->count; i++) {
		const struct refusal *refusal = &all->items[i];
		const struct gt_trace *trace = refusal->input->trace;
		const int device = trace->lanes[refusal->lane_index].device;

		gt_table_row(table, 0, 0, strcmp(refusal->outcome, "fatal") == 0 ? GT_ROW_ACT : 0);
		gt_table_text(table, refusal->where);
		gt_table_pid(table, trace);
		/* What the host refused to pin is of no GPU. */
		gt_table_known(table, device, device >= 0);
		gt_table_known(table, (int64_t)refusal->step, refusal->step);
		gt_table_number(table, (int64_t)refusal->report->us);
		gt_table_number(table, (int64_t)gt_report_asked(refusal->report));
		gt_table_number(table, refusal->report->tries);
		gt_table_text(table, refusal->outcome);
	}
	if (all->count)
		gt_table_print(table, out, 0);
	gt_table_free(table);
}

static json_t *json_refusal(const struct refusal *refusal)
{
	const struct gt_trace *trace = refusal->input->trace;
	const struct gt_report *report = refusal->report;

	return json_pack("{s:o, s:o, s:o, s:o, s:I, s:I, s:o, s:s}", "pid", gt_json_pid(trace),
			 "device", gt_json_ordinal(trace->lanes[refusal->lane_index].device),
			 "step", gt_json_number(refusal->step, refusal->step), "seconds",
			 gt_json_seconds(report->us, true), "requested",
			 (json_int_t)gt_report_asked(report), "tries", (json_int_t)report->tries,
			 "key", gt_json_name(refusal->where), "outcome", refusal->outcome);
}

static void print_json(struct gt_out *out, const struct refusals *all)
{
	json_t *answer = gt_json_answer("errors"), *rows = json_array();

	for (size_t i = 0; i < all->count; i++)
		json_array_append_new(rows, json_refusal(&all->items[i]));
	json_object_set_new(answer, "errors", rows);
	gt_json_print(out, answer);
}

int gt_cmd_errors(struct gt_args *args)
{
	struct gt_session session;
	struct refusals all = {0};
	struct gt_out out;
	int status = gt_session_open(args, &session);

	if (status)
		return status;
	status = gt_args_out(args, &out);
	for (size_t i = 0; !status && i < session.count; i++)
		add_trace(args, &session.inputs[i], &all);
	if (!status) {
		if (args->format == GT_FORMAT_TEXT)
			print_answer(&out, &all);
		if (args->format == GT_FORMAT_JSON)
			print_json(&out, &all);
		else
			print_table(&out, &all);
		status = gt_args_done(args, &out, 0);
	}
	for (size_t i = 0; i < all.count; i++)
		free(all.items[i].where);
	free(all.items);
	gt_session_close(&session);
	return status;
}
