/* SPDX-License-Identifier: MIT */
/* See verdict.h. */
#include "cmd/verdict.h"

#include <stdlib.h>
#include <string.h>
#include "cmd/growth.h"
#include "model/xalloc.h"
#include "out/json.h"
#include "out/table.h"

struct saying {
	struct gt_out *out;
	struct gt_input *input;
	const struct gt_report *report;
	const struct gt_verdict *v;
	const struct gt_joint *joint;
	enum gt_unit unit;
};

static long long in_unit(const struct saying *s, uint64_t bytes)
{
	return gt_in_unit((int64_t)bytes, s->unit);
}

static const struct gt_site_def *site_of(const struct gt_input *input,
					 const struct gt_report *report, const struct gt_verdict *v)
{
	return v->site ? v->site : gt_report_site(input->trace, report);
}

/*
 * Of another process the row that has most of its memory, if it has a trace here: its line says more
 * than its number.
 */
static const struct gt_ledger_row *other_row(const struct gt_verdict *v,
					     const struct gt_joint *joint)
{
	const struct gt_ledger_row *most = NULL;

	if (v->cause == GT_CAUSE_IDLE_CONTEXTS)
		return v->idle_row;
	for (size_t i = 0; v->cause == GT_CAUSE_OTHER_PROCESS && i < joint->ledger.row_count; i++) {
		const struct gt_ledger_row *row = &joint->ledger.rows[i];

		if (row->process != GT_LEDGER_NOBODY && row->pid != v->pid &&
		    row->kind <= GT_LEDGER_LIBRARY && row->kind != GT_LEDGER_CACHED &&
		    (!most || row->bytes > most->bytes))
			most = row;
	}
	return most;
}

/* The line to look at. To be freed. */
static char *where_text(const struct saying *s)
{
	const struct gt_ledger_row *row = other_row(s->v, s->joint);

	if (row)
		return gt_joint_where(s->joint, row);
	if (s->v->frame)
		return gt_frame_text(s->v->frame);
	return gt_where_text(s->input, site_of(s->input, s->report, s->v));
}

/*
 * Of the causes that alone would have been enough to take away, that with the largest margin which is
 * not yet done, done then; GT_CAUSE_NONE = no more.
 */
static enum gt_cause next_cause(const struct gt_verdict *v, bool done[GT_CAUSES])
{
	int most = GT_CAUSE_NONE;

	for (int c = GT_CAUSE_DUPLICATE_STATE; c < GT_CAUSE_ACTIVATIONS; c++)
		if (!done[c] && v->margins[c] && (!most || v->margins[c] > v->margins[most]))
			most = c;
	done[most] = true;
	return (enum gt_cause)most;
}

/* " (also fragmentation, growth)": the other causes. To be freed. */
static char *causes_text(const struct gt_verdict *v)
{
	bool done[GT_CAUSES] = {false};
	char *text = gt_xstrdup("");
	enum gt_cause cause;

	done[v->cause] = true;
	while ((cause = next_cause(v, done)))
		text = gt_xappend(text, "%s%s", *text ? ", " : " (also ", gt_cause_name(cause));
	return *text ? gt_xappend(text, ")") : text;
}

/* ---- the first line, by cause ---------------------------------------------------------------- */

static void say_growth(const struct saying *s, const char *where, const char *causes)
{
	bool calls = s->v->calls.site;
	char slope[GT_SIZE_TEXT];

	gt_line(s->out, GT_RED_BOLD, "Out of memory by growth: %s more per %s %s%s.",
		gt_size_text(calls ? s->v->calls.per_call : (uint64_t)s->v->growth.slope, slope),
		calls ? "call of" : "step, kept from", where, causes);
}

static void say_host(const struct saying *s, const char *where, const char *causes)
{
	char size[GT_SIZE_TEXT], pinned[GT_SIZE_TEXT];

	gt_line(s->out, GT_RED_BOLD,
		"Out of host memory: %s could not be pinned at %s; %s are pinned already.",
		gt_size_text(s->report->requested, size), where,
		gt_size_text(s->report->cur[GT_TOTAL_RESERVED], pinned));
}

static void say_held(const struct saying *s, const char *where, const char *causes)
{
	gt_line(s->out, GT_RED_BOLD,
		"Out of memory again: %lld %s are still held since the one that was caught, "
		"made at %s%s.",
		in_unit(s, s->v->margins[GT_CAUSE_HELD_AFTER_OOM]), gt_unit_name(s->unit), where,
		causes);
}

static void say_pool(const struct saying *s, const char *where, const char *causes)
{
	static const char *const whose[] = {
		[GT_POOL_PRIVATE] = "pools of CUDA graphs keep",
		[GT_POOL_TORCH] = "torch's cache keeps",
		[GT_POOL_DRIVER] = "the driver's pools keep",
	};

	gt_line(s->out, GT_RED_BOLD, "Out of memory: %s %lld %s that nobody uses, from %s%s.",
		whose[s->v->pool], in_unit(s, s->v->pool_cached), gt_unit_name(s->unit), where,
		causes);
}

static void say_idle(const struct saying *s, const char *where, const char *causes)
{
	gt_line(s->out, GT_RED_BOLD, "Out of memory: %zu idle context%s %lld %s, made at %s%s.",
		s->v->idle_count, s->v->idle_count > 1 ? "s hold" : " holds",
		in_unit(s, s->v->idle), gt_unit_name(s->unit), where, causes);
}

static void say_first_step(const struct saying *s, const char *where, const char *causes)
{
	gt_line(s->out, GT_RED_BOLD,
		"Too large for this card: step 1 needs %lld %s at %s, the card has %lld.",
		in_unit(s, s->report->cur[GT_TOTAL_IN_USE] + s->v->to_come), gt_unit_name(s->unit),
		where, in_unit(s, s->report->device_total));
}

static void say_fragmentation(const struct saying *s, const char *where, const char *causes)
{
	gt_line(s->out, GT_RED_BOLD,
		"Out of memory by fragmentation: %lld %s cached, in %zu pieces up to %lld, kept "
		"apart by %s%s.",
		in_unit(s, s->v->cached), gt_unit_name(s->unit), s->v->pieces,
		in_unit(s, s->v->largest_piece), where, causes);
}

static void say_other(const struct saying *s, const char *where, const char *causes)
{
	const struct gt_other *most = &s->report->other[0];

	for (uint32_t i = 1; i < s->report->others; i++)
		if (s->report->other[i].bytes > most->bytes)
			most = &s->report->other[i];
	gt_line(s->out, GT_RED_BOLD, "Out of memory: pid %u%s %lld %s of this card%s%s%s.",
		most->pid, s->report->others > 1 ? " and others hold" : " holds",
		in_unit(s, gt_report_others(s->report)), gt_unit_name(s->unit),
		other_row(s->v, s->joint) ? ", most of it from " : "",
		other_row(s->v, s->joint) ? where : "", causes);
}

static void say_single(const struct saying *s, const char *where, const char *causes)
{
	gt_line(s->out, GT_RED_BOLD,
		"Out of memory by one request: %s asked %lld %s, the card has %lld.", where,
		in_unit(s, gt_report_asked(s->report)), gt_unit_name(s->unit),
		in_unit(s, s->report->device_total));
}

static void say_duplicate(const struct saying *s, const char *where, const char *causes)
{
	gt_line(s->out, GT_RED_BOLD,
		"Out of memory: optimizer state is there more than once, %lld %s too much; made at "
		"%s%s.",
		in_unit(s, s->v->margins[GT_CAUSE_DUPLICATE_STATE]), gt_unit_name(s->unit), where,
		causes);
}

static void say_load(const struct saying *s, const char *where, const char *causes)
{
	gt_line(s->out, GT_RED_BOLD,
		"Out of memory in loading: %lld %s of loaded tensors beside the model's, at %s.",
		in_unit(s, s->v->margins[GT_CAUSE_LOAD_PEAK]), gt_unit_name(s->unit), where);
}

static void say_activations(const struct saying *s, const char *where, const char *causes)
{
	gt_line(s->out, GT_RED_BOLD, "Out of memory: activations hold %lld %s%s %s.",
		in_unit(s, s->v->margins[GT_CAUSE_ACTIVATIONS]), gt_unit_name(s->unit),
		s->v->large_input ? " of the largest input so far, from" : ", at", where);
}

bool gt_print_verdict(struct gt_out *out, struct gt_input *input, const struct gt_report *report,
		      const struct gt_verdict *verdict, const struct gt_joint *joint,
		      enum gt_unit unit)
{
	static void (*const sayers[GT_CAUSES])(const struct saying *s, const char *where,
					       const char *causes) = {
		[GT_CAUSE_HOST_MEMORY] = say_host,
		[GT_CAUSE_SINGLE_REQUEST] = say_single,
		[GT_CAUSE_TOO_LARGE] = say_first_step,
		[GT_CAUSE_FIRST_STEP] = say_first_step,
		[GT_CAUSE_LOAD_PEAK] = say_load,
		[GT_CAUSE_DUPLICATE_STATE] = say_duplicate,
		[GT_CAUSE_HELD_AFTER_OOM] = say_held,
		[GT_CAUSE_GROWTH] = say_growth,
		[GT_CAUSE_POOL_CACHE] = say_pool,
		[GT_CAUSE_IDLE_CONTEXTS] = say_idle,
		[GT_CAUSE_FRAGMENTATION] = say_fragmentation,
		[GT_CAUSE_OTHER_PROCESS] = say_other,
		[GT_CAUSE_ACTIVATIONS] = say_activations,
	};
	struct saying saying = {out, input, report, verdict, joint, unit};
	char *where, *causes;

	if (!sayers[verdict->cause])
		return false;
	where = where_text(&saying);
	causes = causes_text(verdict);
	sayers[verdict->cause](&saying, where, causes);
	free(causes);
	free(where);
	return true;
}

char *gt_verdict_moment(const struct gt_verdict *verdict)
{
	const char *phase = gt_phase_name(verdict->phase);

	if (!verdict->steps_known)
		return gt_xstrdup("");
	if (!verdict->step)
		return gt_xstrdup("   before step 1");
	return gt_xasprintf("   step %zu%s%s", verdict->step, *phase ? ", " : "", phase);
}

/* ---- remedies -------------------------------------------------------------------------------- */

bool gt_remedy_shown(const struct gt_verdict *v, const struct gt_remedy *remedy, bool all)
{
	return all || remedy->enough || (remedy->bytes && remedy->checked) ||
	       (v->cause == GT_CAUSE_FRAGMENTATION && remedy->checked) ||
	       (v->over && remedy->bytes);
}

size_t gt_remedy_lines(const struct gt_verdict *verdict, bool all)
{
	size_t lines = 2;

	for (size_t i = 0; i < verdict->remedy_count; i++)
		lines += gt_remedy_shown(verdict, &verdict->remedies[i], all);
	return lines;
}

char *gt_remedy_lasts(const struct gt_verdict *v, const struct gt_remedy *remedy)
{
	if (!remedy->enough)
		return gt_xstrdup("no");
	if (remedy->steps < 0)
		return gt_xstrdup("for good");
	return gt_xasprintf("%lld more %s%s", (long long)remedy->steps,
			    v->calls.site ? "call" : "step", remedy->steps == 1 ? "" : "s");
}

static void print_suspicion(struct gt_out *out, const struct gt_verdict *v,
			    const struct gt_grower *first)
{
	struct gt_suspicion suspicion = gt_suspect(&v->growth, first);
	char *text = gt_suspicion_text(&suspicion, v->result);

	gt_line(out, GT_PLAIN, "Why  %s (rule %s); %u of %u steps.", text, suspicion.rule,
		first->ups, first->steps);
	free(text);
}

void gt_print_evidence(struct gt_out *out, const struct gt_verdict *v)
{
	const struct gt_grower *first = gt_first_grower(&v->growth);

	if (v->cause == GT_CAUSE_GROWTH && v->calls.site)
		gt_line(out, GT_PLAIN, "Why  %llu calls%s, %llu of their blocks were freed.",
			(unsigned long long)v->calls.count,
			v->steps_known ? " since the last step began" : " (no steps found)",
			(unsigned long long)v->calls.freed);
	else if (v->cause == GT_CAUSE_GROWTH && first)
		print_suspicion(out, v, first);
}

static void add_remedy(struct gt_table *table, const struct gt_verdict *v,
		       const struct gt_remedy *remedy, bool act)
{
	char *lasts = gt_remedy_lasts(v, remedy);
	char *result = gt_xasprintf("%s%s", remedy->same_result ? "same" : "may vary",
				    remedy->checked ? "" : ", not checked");

	gt_table_row(table, 0, 0, act ? GT_ROW_ACT : 0);
	gt_table_text(table, remedy->text);
	gt_table_number(table, (int64_t)remedy->bytes);
	gt_table_text(table, lasts);
	gt_table_text(table, result);
	gt_table_text(table, remedy->formula);
	free(result);
	free(lasts);
}

void gt_print_remedies(struct gt_out *out, const struct gt_verdict *verdict, enum gt_unit unit,
		       bool all)
{
	uint64_t lack = verdict->over ? verdict->over : verdict->short_by;
	char *title = gt_xasprintf("Enough?  %s by %lld %s", verdict->over ? "over" : "short",
				   gt_in_unit((int64_t)lack, unit), gt_unit_name(unit));
	const struct gt_field fields[] = {
		{"remedy", title, GT_FIELD_TEXT, GT_SHOW_ALWAYS},
		{"bytes", "gives", GT_FIELD_BYTES, GT_SHOW_ALWAYS},
		{"lasts", NULL, GT_FIELD_TEXT, GT_SHOW_ALWAYS},
		{"result", NULL, GT_FIELD_TEXT, GT_SHOW_ALWAYS},
		{"how", "how it was worked out", GT_FIELD_TEXT,
		 all ? GT_SHOW_ALWAYS : GT_SHOW_WIDE},
	};
	struct gt_table *table = gt_table_new(fields, sizeof(fields) / sizeof(fields[0]));
	bool act = true, any = false;

	gt_print_evidence(out, verdict);
	gt_table_unit(table, unit);
	for (size_t i = 0; i < verdict->remedy_count; i++) {
		const struct gt_remedy *remedy = &verdict->remedies[i];

		if (!gt_remedy_shown(verdict, remedy, all))
			continue;
		any = true;
		add_remedy(table, verdict, remedy, act && remedy->enough && remedy->checked);
		act &= !(remedy->enough && remedy->checked);
	}
	if (any)
		gt_table_print(table, out, 0);
	gt_table_free(table);
	free(title);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static json_t *json_where(struct gt_input *input, const struct gt_report *report,
			  const struct gt_verdict *v, const struct gt_joint *joint)
{
	const struct gt_ledger_row *row = other_row(v, joint);
	const struct gt_site_def *site = row ? &row->site : site_of(input, report, v);
	struct gt_label label;
	json_t *where;

	if (v->frame)
		return json_pack("{s:o, s:i, s:o}", "file", gt_json_name(v->frame->file), "line",
				 v->frame->line, "function", gt_json_name(v->frame->function));
	if (row)
		input = joint->places[row->process].input;
	gt_label_make(gt_input_symbols(input), input->trace, site, GT_STREAM_UNKNOWN, GT_BY_LINE,
		      &label);
	where = gt_json_where(&label);
	gt_label_clear(&label);
	return where;
}

static json_t *json_also(const struct gt_verdict *v)
{
	json_t *also = json_array();
	bool done[GT_CAUSES] = {false};
	enum gt_cause cause;

	done[v->cause] = true;
	while ((cause = next_cause(v, done)))
		json_array_append_new(also, json_string(gt_cause_name(cause)));
	return also;
}

json_t *gt_json_verdict(struct gt_input *input, const struct gt_report *report,
			const struct gt_verdict *v, const struct gt_joint *joint)
{
	json_t *evidence = json_array();

	for (int c = GT_CAUSE_NONE + 1; c < GT_CAUSES; c++)
		if (v->margins[c])
			json_array_append_new(evidence,
					      json_pack("{s:s, s:I}", "cause",
							gt_cause_name((enum gt_cause)c), "bytes",
							(json_int_t)v->margins[c]));
	for (size_t i = 0; i < v->growth.count; i++)
		json_array_append_new(evidence,
				      gt_json_grower(input, &v->growth, &v->growth.growers[i]));
	if (v->calls.site)
		json_array_append_new(evidence,
				      json_pack("{s:s, s:I, s:I, s:I}", "rule", "kept-by-call",
						"bytes_per_call", (json_int_t)v->calls.per_call,
						"calls", (json_int_t)v->calls.count, "freed",
						(json_int_t)v->calls.freed));
	return json_pack("{s:s, s:o, s:o, s:o}", "cause", gt_cause_name(v->cause), "also_enough",
			 json_also(v), "where", json_where(input, report, v, joint), "evidence",
			 evidence);
}

json_t *gt_json_remedies(const struct gt_verdict *verdict)
{
	json_t *remedies = json_array();

	for (size_t i = 0; i < verdict->remedy_count; i++) {
		const struct gt_remedy *r = &verdict->remedies[i];

		json_array_append_new(
			remedies,
			json_pack("{s:s, s:I, s:b, s:o, s:b, s:b, s:s}", "id", r->id, "bytes",
				  (json_int_t)r->bytes, "enough", r->enough, "lasts_steps",
				  gt_json_number((uint64_t)r->steps, r->steps >= 0), "same_result",
				  r->same_result, "checked", r->checked, "formula", r->formula));
	}
	return remedies;
}
