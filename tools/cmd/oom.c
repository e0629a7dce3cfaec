/* SPDX-License-Identifier: MIT */
/*
 * gputrace oom: the refused request that ended the run. What was asked, what was free, who held the
 * rest: the report that the recorder wrote at that moment says it, without any history.
 */
#include "cmd/oom.h"

#include <stdlib.h>
#include <string.h>
#include "cmd/holders.h"
#include "cmd/ledger.h"
#include "cmd/verdict.h"
#include "model/xalloc.h"
#include "out/json.h"

const struct gt_report *gt_input_headline(const struct gt_args *args, const struct gt_input *input)
{
	const struct gt_report *report = gt_headline(input->trace);
	size_t lane = report ? gt_report_lane(input->trace, report) : 0;

	if (!report || lane == input->trace->lane_count)
		return NULL;
	if (args->device != GT_ANY_DEVICE && args->device != input->trace->lanes[lane].device)
		return NULL;
	return report;
}

struct gt_input *gt_first_failed(const struct gt_args *args, struct gt_session *session)
{
	struct gt_input *first = NULL;
	uint64_t when = UINT64_MAX;

	for (size_t i = 0; i < session->count; i++) {
		struct gt_input *input = &session->inputs[i];
		const struct gt_report *report = gt_input_headline(args, input);

		if (report && input->trace->header.real_us + report->us < when) {
			when = input->trace->header.real_us + report->us;
			first = input;
		}
	}
	return first;
}

/* ---- what a report says
 * --------------------------------------------------------------------------- */

struct failure {
	struct gt_input *input;
	const struct gt_trace *trace;
	const struct gt_report *report;
	size_t lane_index;
	const struct gt_trace_lane *lane;
	const struct gt_site_def *site;
	struct gt_rows rows;	   /* holders at that moment */
	struct gt_verdict verdict; /* of the headline only, as the next: judge() */
	struct gt_joint joint;	   /* the device then; no rows = not known */
	bool free_known, total_known;
};

static void open_failure(struct gt_input *input, const struct gt_report *report, enum gt_by by,
			 struct failure *ret)
{
	static const struct gt_site_def nothing;
	struct failure failure = {.input = input, .trace = input->trace, .report = report};

	failure.lane_index = gt_report_lane(input->trace, report);
	failure.lane = &input->trace->lanes[failure.lane_index];
	failure.site = report->site < failure.lane->site_count
			       ? &failure.lane->site_defs[report->site]
			       : &nothing;
	failure.rows = gt_rows_of_report(input->trace, failure.lane_index, report,
					 gt_input_symbols(input), by);
	failure.free_known = report->device_free != GT_UNKNOWN_BYTES;
	failure.total_known = report->device_total != GT_UNKNOWN_BYTES && report->device_total;
	*ret = failure;
}

/*
 * The report keeps the largest holders by site; the history, where it reaches, has every block, and
 * so what each was for.
 */
static void name_holders(struct failure *failure, enum gt_by by)
{
	struct gt_when when = {.kind = GT_WHEN_EVENT, .seq = failure->report->seq};
	struct gt_state state;
	struct gt_rows rows;

	if (!gt_input_answers(failure->input) ||
	    !gt_history_reaches(failure->lane, failure->report->seq) ||
	    gt_input_state(failure->input, failure->lane_index, GT_TOTAL_IN_USE, when, &state))
		return;
	if (!gt_input_rows(failure->input, &state, by, &rows)) {
		gt_rows_clear(&failure->rows);
		failure->rows = rows;
	}
	gt_state_clear(&state);
}

/* Without the history of that moment the report alone has to do. */
static void find_ledger(struct failure *failure, struct gt_session *session)
{
	struct gt_place place = {
		.input = failure->input,
		.lane_index = failure->lane_index,
		.lane = failure->lane,
		.device_total = gt_device_total(failure->trace, failure->lane->device),
	};

	if (session && failure->lane->device >= 0 &&
	    gt_history_reaches(failure->lane, failure->report->seq))
		gt_joint_of(session, &place, failure->report->seq, failure->report->us,
			    &failure->joint);
}

static void judge(struct failure *failure, struct gt_session *session, enum gt_by by)
{
	name_holders(failure, by);
	find_ledger(failure, session);
	failure->verdict = gt_verdict_of(failure->trace, gt_input_answers(failure->input),
					 failure->lane_index, failure->report,
					 failure->joint.count ? &failure->joint.ledger : NULL);
}

static void close_failure(struct failure *failure)
{
	gt_verdict_clear(&failure->verdict);
	gt_joint_clear(&failure->joint);
	gt_rows_clear(&failure->rows);
}

/* Bytes that the driver lacked; 0 when it refused although enough was free. */
static uint64_t short_by(const struct failure *failure)
{
	const struct gt_report *report = failure->report;

	return failure->free_known && report->requested > report->device_free
		       ? report->requested - report->device_free
		       : 0;
}

static uint64_t in_use(const struct failure *failure)
{
	return failure->report->cur[GT_TOTAL_IN_USE];
}

static uint64_t cached(const struct failure *failure)
{
	return failure->report->cur[GT_TOTAL_RESERVED] - in_use(failure);
}

static uint64_t others(const struct failure *failure)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < failure->report->others; i++)
		sum += failure->report->other[i].bytes;
	return sum;
}

/* Of the device, what nothing here accounts for: contexts, modules, processes not seen. */
static int64_t unexplained(const struct failure *failure)
{
	return (int64_t)failure->report->device_total - (int64_t)failure->report->device_free -
	       (int64_t)failure->report->cur[GT_TOTAL_RESERVED] - (int64_t)others(failure);
}

/* ---- text
 * ----------------------------------------------------------------------------------------- */

/* One unit per screen: the ledger's. */
static enum gt_unit unit_of(const struct failure *failure)
{
	uint64_t most = failure->total_known ? failure->report->device_total
					     : failure->report->requested + in_use(failure);

	return gt_unit_for(most);
}

static long long in_unit(const struct failure *failure, uint64_t bytes)
{
	return gt_in_unit((int64_t)bytes, unit_of(failure));
}

static void print_answer(struct gt_out *out, const struct failure *failure)
{
	char *lack, *asked, *where;

	if (gt_print_verdict(out, failure->input, failure->report, &failure->verdict,
			     &failure->joint, unit_of(failure)))
		return;
	lack = short_by(failure)
		       ? gt_xasprintf(", short by %lld", in_unit(failure, short_by(failure)))
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

static const char *end_text(const struct failure *failure)
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

static char *free_text(const struct failure *failure)
{
	if (!failure->free_known)
		return gt_xstrdup("free not known");
	return gt_xasprintf("%lld free%s", in_unit(failure, failure->report->device_free),
			    short_by(failure) ? "" : ": refused although that is enough");
}

/* The line that asked; the first line says it already where no cause is named. */
static char *asker_text(struct gt_out *out, const struct failure *failure, size_t other_columns)
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
static void print_moment(struct gt_out *out, const struct failure *failure)
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

/* Both figures of a request through torch, or its message reads as another event. */
static void print_context(struct gt_out *out, const struct failure *failure)
{
	const struct gt_report *report = failure->report;
	char size[GT_SIZE_TEXT];
	char *available = free_text(failure);
	char *lack = short_by(failure)
			     ? gt_xasprintf(": short by %lld", in_unit(failure, short_by(failure)))
			     : gt_xstrdup("");
	char *torch = report->torch_requested
			      ? gt_xasprintf(" (torch's message: %s)",
					     gt_size_text(report->torch_requested, size))
			      : gt_xstrdup("");

	print_moment(out, failure);
	gt_line(out, GT_PLAIN, "Asked %lld %s%s, %s%s; tries: %u.",
		in_unit(failure, report->requested), gt_unit_name(unit_of(failure)), torch,
		available, lack, report->tries);
	free(lack);
	free(torch);
	free(available);
}

static void ledger_row(struct gt_table *table, unsigned int part_of, const char *name,
		       int64_t bytes)
{
	gt_table_row(table, part_of, 0, GT_ROW_SCREEN);
	gt_table_text(table, name);
	gt_table_number(table, bytes);
}

/* Red where it is the point: so much, and no piece of it large enough. */
static void cached_row(struct gt_table *table, unsigned int part_of, const struct failure *failure)
{
	const struct gt_verdict *v = &failure->verdict;
	bool useless = v->cause == GT_CAUSE_FRAGMENTATION || v->cause == GT_CAUSE_POOL_CACHE;
	char *name = v->pieces_known && v->pool != GT_POOL_DRIVER
			     ? gt_xasprintf("cached, largest piece %lld",
					    in_unit(failure, v->largest_piece))
			     : gt_xstrdup("cached by pools");

	gt_table_row(table, part_of, 0, GT_ROW_SCREEN | (useless ? GT_ROW_ACT : 0));
	gt_table_text(table, name);
	gt_table_number(table, (int64_t)cached(failure));
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
static void add_ledger(struct gt_table *table, struct gt_out *out, const struct failure *failure)
{
	uint64_t listed = rows_bytes(&failure->rows);
	bool whole = failure->free_known && failure->total_known;
	struct gt_place place = {.input = failure->input, .lane = failure->lane};

	gt_holders_rows(table, out, &place, &failure->rows, true);
	if (listed < in_use(failure)) {
		gt_table_row(table, 1, 0, 0);
		gt_table_text(table, "smaller holders");
		gt_table_number(table, (int64_t)(in_use(failure) - listed));
		gt_table_number(table, (int64_t)(in_use(failure) - listed));
	}
	gt_holders_total(table, whole ? 2 : 0, "in use", in_use(failure), 0, 0, false);
	if (cached(failure))
		cached_row(table, whole ? 2 : 0, failure);
	if (!whole)
		return;
	for (uint32_t i = 0; i < failure->report->others; i++)
		other_row(table, &failure->report->other[i]);
	ledger_row(table, 2, "context, modules, unexplained", unexplained(failure));
	ledger_row(table, 2, "free", (int64_t)failure->report->device_free);
	gt_table_row(table, 0, 2, GT_ROW_SCREEN);
	gt_table_text(table, "device");
	gt_table_number(table, (int64_t)failure->report->device_total);
}

static void print_table(struct gt_out *out, const struct failure *failure, enum gt_by by,
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

/* The words of people for outcomes; a refusal for another reason is none of them. */
static const char *outcome_text(const struct gt_trace *trace, const struct gt_report *report)
{
	static const char *const texts[] = {
		[GT_END_RECOVERED] = "granted on retry",
		[GT_END_CAUGHT] = "caught",
		[GT_END_FATAL] = "fatal",
		[GT_END_OPEN] = "open",
	};

	return gt_is_memory(report) ? texts[gt_report_end(trace, report)] : "not memory";
}

static void add_refusal(struct gt_table *table, struct gt_input *input,
			const struct gt_report *report)
{
	struct failure failure;
	char *where, *when = gt_xasprintf("%.3f s", (double)report->us / 1e6);

	open_failure(input, report, GT_BY_LINE, &failure);
	where = gt_where_text(input, failure.site);
	gt_table_row(table, 0, 0, 0);
	gt_table_text(table, where);
	gt_table_text(table, when);
	gt_table_number(table, (int64_t)gt_report_asked(report));
	if (failure.free_known)
		gt_table_number(table, (int64_t)report->device_free);
	else
		gt_table_unknown(table);
	gt_table_number(table, report->tries);
	gt_table_text(table, outcome_text(input->trace, report));
	free(when);
	free(where);
	close_failure(&failure);
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

static void print_screen(struct gt_out *out, const struct gt_args *args, struct gt_session *session,
			 struct gt_input *input, const struct gt_report *report)
{
	size_t refusals = input->trace->report_count > 1 ? 5 : 0;
	struct failure failure;

	open_failure(input, report, args->by, &failure);
	judge(&failure, session, args->by);
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
	close_failure(&failure);
}

void gt_oom_screen(struct gt_out *out, const struct gt_args *args, struct gt_session *session,
		   struct gt_input *input)
{
	print_screen(out, args, session, input, gt_input_headline(args, input));
}

void gt_oom_head(struct gt_out *out, const struct gt_args *args, struct gt_input *input)
{
	struct failure failure;

	open_failure(input, gt_input_headline(args, input), args->by, &failure);
	judge(&failure, NULL, args->by);
	print_answer(out, &failure);
	print_context(out, &failure);
	gt_print_evidence(out, &failure.verdict);
	close_failure(&failure);
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

/* ---- JSON
 * ----------------------------------------------------------------------------------------- */

static json_t *json_holders(const struct failure *failure, enum gt_by by)
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

static json_t *json_site(const struct failure *failure)
{
	struct gt_label label;
	json_t *where;

	gt_label_make(gt_input_symbols(failure->input), failure->trace, failure->site,
		      GT_STREAM_UNKNOWN, GT_BY_LINE, &label);
	where = gt_json_where(&label);
	gt_label_clear(&label);
	return where;
}

static json_t *json_request(const struct failure *failure)
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
static json_t *json_own(const struct failure *failure, enum gt_ledger_kind kind)
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
static json_t *json_unexplained(const struct failure *failure)
{
	json_t *context = json_own(failure, GT_LEDGER_CONTEXT);
	json_t *modules = json_own(failure, GT_LEDGER_MODULES);
	int64_t rest =
		unexplained(failure) - json_integer_value(context) - json_integer_value(modules);

	json_decref(context);
	json_decref(modules);
	return json_integer((json_int_t)rest);
}

static json_t *json_device(const struct failure *failure)
{
	const struct gt_report *report = failure->report;
	bool whole = failure->free_known && failure->total_known;

	return json_pack(
		"{s:o, s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:o}", "total",
		gt_json_number(report->device_total, failure->total_known), "allocated",
		(json_int_t)in_use(failure), "reserved", (json_int_t)report->cur[GT_TOTAL_RESERVED],
		"cached", (json_int_t)cached(failure), "largest_free_block",
		gt_json_number(failure->verdict.largest_piece, failure->verdict.pieces_known),
		"context", json_own(failure, GT_LEDGER_CONTEXT), "modules",
		json_own(failure, GT_LEDGER_MODULES), "others", json_others(report), "unexplained",
		whole ? json_unexplained(failure) : json_null(), "free",
		gt_json_number(report->device_free, failure->free_known));
}

static json_t *json_failure(const struct failure *failure, enum gt_by by)
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
		(json_int_t)in_use(failure), "reserved", (json_int_t)report->cur[GT_TOTAL_RESERVED],
		"tries", (json_int_t)report->tries, "result", report->result, "seconds",
		gt_json_seconds(report->us, true), "where", json_site(failure), "holders",
		json_holders(failure, by));
}

static bool on_device(const struct gt_args *args, const struct gt_trace *trace, size_t lane)
{
	return lane < trace->lane_count &&
	       (args->device == GT_ANY_DEVICE || trace->lanes[lane].device == args->device);
}

static json_t *json_failures(const struct gt_args *args, struct gt_session *session, enum gt_by by)
{
	json_t *failures = json_array();

	for (size_t i = 0; i < session->count; i++) {
		struct gt_input *input = &session->inputs[i];
		const struct gt_trace *trace = input->trace;

		for (size_t r = 0; r < trace->report_count; r++) {
			struct failure failure;

			if (!on_device(args, trace, gt_report_lane(trace, &trace->reports[r])))
				continue;
			open_failure(input, &trace->reports[r], by, &failure);
			json_array_append_new(failures, json_failure(&failure, by));
			close_failure(&failure);
		}
	}
	return failures;
}

/* Line N of errors: in the order of the traces, those on the devices asked for. */
static const struct gt_report *nth_report(const struct gt_args *args, struct gt_session *session,
					  struct gt_input **ret)
{
	unsigned long number = 0;

	for (size_t i = 0; i < session->count; i++) {
		const struct gt_trace *trace = session->inputs[i].trace;

		for (size_t r = 0; r < trace->report_count; r++) {
			const struct gt_report *report = &trace->reports[r];

			if (!on_device(args, trace, gt_report_lane(trace, report)) ||
			    ++number != args->nth)
				continue;
			*ret = &session->inputs[i];
			return report;
		}
	}
	return NULL;
}

static void open_headline(const struct gt_args *args, struct gt_session *session,
			  struct gt_input *input, struct failure *failure)
{
	const struct gt_report *report =
		args->nth ? nth_report(args, session, &input) : gt_input_headline(args, input);

	open_failure(input, report, GT_BY_SITE, failure);
	judge(failure, session, GT_BY_SITE);
}

static json_t *json_categories(const struct gt_verdict *verdict)
{
	json_t *categories = json_object();

	for (int c = GT_CATEGORY_NONE + 1; c < GT_CATEGORIES; c++)
		json_object_set_new(categories, gt_category_key(c),
				    json_integer((json_int_t)verdict->categories[c]));
	return categories;
}

/* The headline's keys are there whether or not there is a headline. */
static void set_headline(json_t *answer, const struct gt_args *args, struct gt_session *session,
			 struct gt_input *input)
{
	struct failure failure;
	bool any = input != NULL;

	if (any)
		open_headline(args, session, input, &failure);
	json_object_set_new(answer, "oom", json_boolean(any));
	json_object_set_new(answer, "file", any ? gt_json_name(input->trace->path) : json_null());
	json_object_set_new(answer, "pid", any ? gt_json_pid(input->trace) : json_null());
	json_object_set_new(
		answer, "level",
		!any ? json_null()
		     : json_string(failure.report->torch_requested ? "torch" : "driver"));
	json_object_set_new(
		answer, "outcome",
		any ? json_string(gt_end_name(gt_report_end(failure.trace, failure.report)))
		    : json_null());
	json_object_set_new(
		answer, "verdict",
		any ? gt_json_verdict(input, failure.report, &failure.verdict, &failure.joint)
		    : json_null());
	json_object_set_new(answer, "request", any ? json_request(&failure) : json_null());
	json_object_set_new(answer, "device", any ? json_device(&failure) : json_null());
	json_object_set_new(answer, "categories",
			    any && failure.verdict.categories_known
				    ? json_categories(&failure.verdict)
				    : json_null());
	json_object_set_new(answer, "short_by",
			    any ? gt_json_number(short_by(&failure), failure.free_known)
				: json_null());
	json_object_set_new(
		answer, "to_come",
		any ? gt_json_number(failure.verdict.to_come, failure.verdict.to_come_known)
		    : json_null());
	json_object_set_new(answer, "remedies",
			    any ? gt_json_remedies(&failure.verdict) : json_array());
	if (any)
		close_failure(&failure);
}

static struct gt_input *first_input(const struct gt_args *args, struct gt_session *session)
{
	struct gt_input *input = NULL;

	if (!args->nth)
		return gt_first_failed(args, session);
	nth_report(args, session, &input);
	return input;
}

static void json(struct gt_out *out, const struct gt_args *args, struct gt_session *session)
{
	json_t *answer = gt_json_answer("oom");
	struct gt_input *input = first_input(args, session);
	uint64_t lost = 0, starts = 0;

	set_headline(answer, args, session, input);
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
			nth = nth_report(args, &session, &input);
		if (args->nth && !nth)
			status = gt_message(GT_EXIT_USAGE,
					    "oom: --nth %lu: gputrace errors lists fewer",
					    args->nth);
		else if (args->format == GT_FORMAT_JSON)
			json(&out, args, &session);
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
