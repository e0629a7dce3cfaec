/* SPDX-License-Identifier: MIT */
/*
 * gputrace oom: the refused request that ended the run. What was asked, what was free, who held the
 * rest: the report that the recorder wrote at that moment says it, without any history.
 */
#include "cmd/oom.h"

#include <stdlib.h>
#include <string.h>
#include "cmd/failure.h"
#include "cmd/holders.h"
#include "cmd/refusals.h"
#include "cmd/verdict.h"
#include "model/xalloc.h"

/* ---- what happened --------------------------------------------------------------------------- */

/* One unit per screen: the ledger's. */
static enum gt_unit unit_of(const struct gt_failure *failure)
{
	uint64_t most = failure->total_known ? failure->report->device_total
					     : failure->report->requested + failure->in_use;

	return gt_unit_for(most);
}

static long long in_unit(const struct gt_failure *failure, uint64_t bytes)
{
	return gt_in_unit((int64_t)bytes, unit_of(failure));
}

static void print_answer(struct gt_out *out, const struct gt_failure *failure)
{
	char *lack, *asked, *where;

	if (gt_print_verdict(out, failure->input, failure->report, &failure->verdict,
			     &failure->joint, unit_of(failure)))
		return;
	lack = failure->short_by
		       ? gt_xasprintf(", short by %lld", in_unit(failure, failure->short_by))
		       : gt_xstrdup("");
	asked = gt_xasprintf("asked %lld %s%s", in_unit(failure, gt_report_asked(failure->report)),
			     gt_unit_name(unit_of(failure)), lack);
	where = gt_where_fitting(out, failure->input, failure->site,
				 strlen("Out of memory:  .") + strlen(asked));
	gt_line(out, GT_RED_BOLD, "Out of memory: %s %s.", where, asked);
	free(where);
	free(asked);
	free(lack);
}

static const char *end_text(const struct gt_failure *failure)
{
	switch (gt_report_end(failure->trace, failure->report)) {
	case GT_END_RECOVERED:
		return "granted on retry";
	case GT_END_CAUGHT:
		return "caught: the program went on";
	case GT_END_FATAL:
		return "fatal: the process ended after it";
	default:
		break;
	}
	if (failure->trace->snapshot)
		return "open: the snapshot was taken then";
	return failure->trace->running ? "open: the process has not gone on yet"
				       : "open: killed before it could go on";
}

static char *free_text(const struct gt_failure *failure)
{
	if (!failure->free_known)
		return gt_xstrdup("free not known");
	return gt_xasprintf("%lld free%s", in_unit(failure, failure->report->device_free),
			    failure->short_by ? "" : ": refused although that is enough");
}

/* The line that asked; the first line says it already where no cause is named. */
static char *asker_text(struct gt_out *out, const struct gt_failure *failure, size_t other_columns)
{
	char *where, *text;

	if (failure->verdict.cause == GT_CAUSE_NONE)
		return gt_xstrdup("");
	where = gt_where_fitting(out, failure->input, failure->site, other_columns);
	text = gt_xasprintf("   %s", where);
	free(where);
	return text;
}

#define WIDE_MOMENT 110

/* How it ended is told in one word where there is no room for a line's name beside it. */
static void print_moment(struct gt_out *out, const struct gt_failure *failure)
{
	const bool narrow = out->terminal && !out->all && out->width < WIDE_MOMENT;
	char device[GT_DEVICE_TEXT], pid[GT_PID_TEXT];
	char *moment = gt_verdict_moment(&failure->verdict);
	char *before = gt_xasprintf("%s   %s%s", gt_device_text(failure->lane->device, device),
				    gt_pid_text(failure->trace, pid), moment);
	char *after = gt_xasprintf("   at %.3f s   %s", (double)failure->report->us / 1e6,
				   end_text(failure));
	char *asker;

	if (narrow && failure->verdict.cause != GT_CAUSE_NONE)
		after[strcspn(after, ":")] = 0;
	asker = asker_text(out, failure, strlen(before) + strlen(after) + 3);
	gt_line(out, GT_PLAIN, "%s%s%s", before, asker, after);
	free(asker);
	free(after);
	free(before);
	free(moment);
}

/* " for a block of 4 MiB": torch asks the driver for whole segments, or for pages. To be freed. */
static char *block_text(const struct gt_failure *failure)
{
	const struct gt_report *report = failure->report;
	char asked[GT_SIZE_TEXT], size[GT_SIZE_TEXT];

	gt_size_text(report->requested, asked);
	gt_size_text(gt_report_block(report), size);
	if (!strcmp(asked, size))
		return gt_xstrdup("");
	return gt_xasprintf("%s for a block of %s", gt_report_is_piece(report) ? ", a piece" : "",
			    size);
}

static void print_context(struct gt_out *out, const struct gt_failure *failure)
{
	const struct gt_report *report = failure->report;
	char *available = free_text(failure);
	char *lack = failure->short_by ? gt_xasprintf(": short by %lld%s",
						      in_unit(failure, failure->short_by),
						      gt_report_is_piece(report) ? " at least" : "")
				       : gt_xstrdup("");
	char *torch = block_text(failure);

	print_moment(out, failure);
	gt_line(out, GT_PLAIN, "Asked %lld %s%s, %s%s; tries: %u.",
		in_unit(failure, report->requested), gt_unit_name(unit_of(failure)), torch,
		available, lack, report->tries);
	free(lack);
	free(torch);
	free(available);
}

/* ---- the device then ------------------------------------------------------------------------- */

static void ledger_row(struct gt_table *table, unsigned int part_of, const char *name,
		       int64_t bytes)
{
	gt_table_row(table, part_of, 0, GT_ROW_SCREEN);
	gt_table_text(table, name);
	gt_table_number(table, bytes);
}

/* Red where it is the point: so much, and no piece of it large enough. */
static void cached_row(struct gt_table *table, unsigned int part_of,
		       const struct gt_failure *failure)
{
	const struct gt_verdict *v = &failure->verdict;
	bool useless = v->cause == GT_CAUSE_FRAGMENTATION || v->cause == GT_CAUSE_POOL_CACHE;
	char *name = v->pieces_known && v->pool != GT_POOL_DRIVER
			     ? gt_xasprintf("cached, largest piece %lld",
					    in_unit(failure, v->largest_piece))
			     : gt_xstrdup("cached by pools");

	gt_table_row(table, part_of, 0, GT_ROW_SCREEN | (useless ? GT_ROW_ACT : 0));
	gt_table_text(table, name);
	gt_table_number(table, (int64_t)failure->cached);
	free(name);
}

static void other_row(struct gt_table *table, const struct gt_other *other)
{
	char *name = gt_xasprintf("other process: %u%s%.*s (NVML)", other->pid,
				  *other->name ? " " : "", (int)sizeof(other->name), other->name);

	ledger_row(table, 2, name, (int64_t)other->bytes);
	free(name);
}

static uint64_t rows_bytes(const struct gt_rows *rows)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < rows->count; i++)
		sum += rows->rows[i].bytes;
	return sum;
}

/* Holders of what is in use, then everything else on the device, down to its size. */
static void add_ledger(struct gt_table *table, struct gt_out *out, const struct gt_failure *failure)
{
	uint64_t listed = rows_bytes(&failure->rows);
	bool whole = failure->free_known && failure->total_known;
	struct gt_place place = {.input = failure->input, .lane = failure->lane};

	gt_holders_rows(table, out, &place, &failure->rows, true);
	if (listed < failure->in_use) {
		gt_table_row(table, 1, 0, 0);
		gt_table_text(table, "smaller holders");
		gt_table_number(table, (int64_t)(failure->in_use - listed));
		gt_table_number(table, (int64_t)(failure->in_use - listed));
	}
	gt_holders_total(table, whole ? 2 : 0, "in use", failure->in_use, 0, 0, false);
	if (failure->cached)
		cached_row(table, whole ? 2 : 0, failure);
	if (!whole)
		return;
	for (uint32_t i = 0; i < failure->report->others; i++)
		other_row(table, &failure->report->other[i]);
	ledger_row(table, 2, "context, modules, unexplained", failure->unexplained);
	ledger_row(table, 2, "free", (int64_t)failure->report->device_free);
	gt_table_row(table, 0, 2, GT_ROW_SCREEN);
	gt_table_text(table, "device");
	gt_table_number(table, (int64_t)failure->report->device_total);
}

static void print_table(struct gt_out *out, const struct gt_failure *failure, enum gt_by by,
			size_t other_lines)
{
	struct gt_field fields[GT_HOLDERS_FIELDS];
	char *title = gt_xasprintf("%s then, %s (%s)",
				   failure->lane->device == GT_DEVICE_HOST ? "Pinned on the host"
									   : "On the device",
				   gt_by_text(by), gt_rows_level(&failure->rows));
	struct gt_table *table;

	gt_holders_fields(fields, title, false);
	table = gt_table_new(fields, GT_HOLDERS_FIELDS);
	gt_table_unit(table, unit_of(failure));
	add_ledger(table, out, failure);
	gt_table_print(table, out, gt_screen_rows(out, other_lines));
	gt_table_free(table);
	free(title);
}

/* ---- all refused requests -------------------------------------------------------------------- */

static void add_refusal(struct gt_table *table, struct gt_input *input,
			const struct gt_report *report)
{
	struct gt_failure failure;
	char *where, *when = gt_xasprintf("%.3f s", (double)report->us / 1e6);

	gt_failure_open(input, report, GT_BY_LINE, &failure);
	where = gt_where_text(input, failure.site);
	gt_table_row(table, 0, 0, 0);
	gt_table_text(table, where);
	gt_table_text(table, when);
	gt_table_number(table, (int64_t)gt_report_asked(report));
	gt_table_known(table, (int64_t)report->device_free, failure.free_known);
	gt_table_number(table, report->tries);
	gt_table_text(table, gt_outcome_text(input->trace, report));
	free(when);
	free(where);
	gt_failure_close(&failure);
}

/* All refused requests of a process and how each ended; as many of the last as there is room. */
static void print_refusals(struct gt_out *out, struct gt_input *input, size_t room)
{
	static const struct gt_field fields[] = {
		{"where", "Refused in this run", GT_FIELD_TEXT, GT_SHOW_ALWAYS},
		{"seconds", "at", GT_FIELD_TEXT, GT_SHOW_ALWAYS},
		{"requested", "asked MiB", GT_FIELD_BYTES, GT_SHOW_ALWAYS},
		{"free", "free", GT_FIELD_BYTES, GT_SHOW_ALWAYS},
		{"tries", NULL, GT_FIELD_COUNT, GT_SHOW_WIDE},
		{"outcome", NULL, GT_FIELD_TEXT, GT_SHOW_ALWAYS},
	};
	const struct gt_trace *trace = input->trace;
	struct gt_table *table = gt_table_new(fields, sizeof(fields) / sizeof(fields[0]));
	size_t first = room && trace->report_count > room ? trace->report_count - room : 0;

	gt_table_unit(table, GT_UNIT_MIB);
	for (size_t i = first; i < trace->report_count; i++)
		if (gt_report_lane(trace, &trace->reports[i]) < trace->lane_count)
			add_refusal(table, input, &trace->reports[i]);
	gt_table_print(table, out, 0);
	if (first)
		gt_line(out, GT_PLAIN, "  ... %zu before these (--all)", first);
	gt_table_free(table);
}

static bool cuts(const struct gt_out *out)
{
	return out->terminal && !out->all;
}

/* ---- the screen ------------------------------------------------------------------------------ */

static void print_screen(struct gt_out *out, const struct gt_args *args, struct gt_session *session,
			 struct gt_input *input, const struct gt_report *report)
{
	size_t refusals = input->trace->report_count > 1 ? 5 : 0;
	struct gt_failure failure;

	gt_failure_open(input, report, args->by, &failure);
	gt_failure_judge(&failure, session, args->by);
	if (out->format == GT_FORMAT_TEXT) {
		print_answer(out, &failure);
		print_context(out, &failure);
	}
	print_table(out, &failure, args->by,
		    5 + gt_loss_lines(input->trace) + refusals +
			    gt_remedy_lines(&failure.verdict, args->remedies));
	if (out->format == GT_FORMAT_TEXT) {
		gt_print_remedies(out, &failure.verdict, unit_of(&failure), args->remedies);
		if (refusals)
			print_refusals(out, input, cuts(out) ? 3 : 0);
		gt_print_loss(out, input->trace);
		gt_next(out, "next: gputrace at oom FILE     gputrace at peak FILE");
	}
	gt_failure_close(&failure);
}

void gt_oom_screen(struct gt_out *out, const struct gt_args *args, struct gt_session *session,
		   struct gt_input *input)
{
	print_screen(out, args, session, input, gt_input_headline(args, input));
}

void gt_oom_head(struct gt_out *out, const struct gt_args *args, struct gt_input *input)
{
	struct gt_failure failure;

	gt_failure_open(input, gt_input_headline(args, input), args->by, &failure);
	gt_failure_judge(&failure, NULL, args->by);
	print_answer(out, &failure);
	print_context(out, &failure);
	gt_print_evidence(out, &failure.verdict);
	gt_failure_close(&failure);
}

static void print_none(struct gt_out *out, const struct gt_session *session)
{
	gt_line(out, GT_BOLD, "No out of memory: no refused request ended %s.",
		session->count > 1 ? "any of these runs" : "this run");
	for (size_t i = 0; i < session->count; i++) {
		if (session->inputs[i].trace->report_count)
			print_refusals(out, &session->inputs[i], cuts(out) ? 8 : 0);
		gt_print_loss(out, session->inputs[i].trace);
	}
}

int gt_cmd_oom(struct gt_args *args)
{
	struct gt_session session;
	struct gt_out out;
	int status = gt_session_open(args, &session);

	if (status)
		return status;
	status = gt_args_out(args, &out);
	if (!status) {
		struct gt_input *input = gt_first_failed(args, &session);
		const struct gt_report *nth = NULL;

		if (args->nth)
			nth = gt_nth_report(args, &session, &input);
		if (args->nth && !nth)
			status = gt_message(GT_EXIT_USAGE,
					    "oom: --nth %lu: gputrace errors lists fewer",
					    args->nth);
		else if (args->format == GT_FORMAT_JSON)
			gt_oom_json(&out, args, &session);
		else if (nth)
			print_screen(&out, args, &session, input, nth);
		else if (input)
			gt_oom_screen(&out, args, &session, input);
		else if (args->format == GT_FORMAT_TEXT)
			print_none(&out, &session);
		status = gt_args_done(args, &out, status);
	}
	gt_session_close(&session);
	return status;
}
