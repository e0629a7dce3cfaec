/* SPDX-License-Identifier: MIT */
/*
 * gputrace growth: what stays after each step, and from which line. "Kept from", never "leaked by":
 * the line that allocates is not the line that keeps; who may keep is a suspicion with its
 * evidence.
 */
#include "cmd/growth.h"

#include <stdlib.h>
#include <string.h>
#include "cmd/session.h"
#include "model/calls.h"
#include "model/xalloc.h"
#include "out/json.h"
#include "out/table.h"
#include "symbols/library.h"

/* ---- suspicions ------------------------------------------------------------------------------ */

static size_t with_pattern(const struct gt_growth *growth, size_t pattern)
{
	size_t count = 0;

	for (size_t i = 0; i < growth->count; i++)
		count += growth->growers[i].pattern == pattern;
	return count;
}

static uint32_t bits_of(const struct gt_growth *growth, const struct gt_grower *grower)
{
	uint32_t bits = 0;

	for (size_t i = 0; i < growth->count; i++)
		if (growth->growers[i].pattern == grower->pattern)
			bits |= growth->growers[i].features->bits;
	return bits;
}

struct gt_suspicion gt_suspect(const struct gt_growth *growth, const struct gt_grower *grower)
{
	uint32_t bits = bits_of(growth, grower);

	if (grower->kind == GT_GROWTH_CACHE)
		return (struct gt_suspicion){
			"shape-cache", "blocks of ever new sizes, none twice: a cache is filling"};
	if (grower->kind == GT_GROWTH_BUFFER)
		return (struct gt_suspicion){"growing-buffer",
					     "one block, replaced by a larger one each time"};
	if (bits & GT_IN_OPTIMIZER)
		return (struct gt_suspicion){"optimizer-again",
					     "an optimizer makes state again and again"};
	if (bits & GT_IN_CALL && with_pattern(growth, grower->pattern) > 1)
		return (struct gt_suspicion){"kept-graph", "each step's graph is kept, by a loss "
							   "or an output that is held undetached"};
	if (bits & GT_IN_CALL)
		return (struct gt_suspicion){"kept-outputs",
					     "one output of a module is kept for each step"};
	return (struct gt_suspicion){"kept-tensors", "a tensor is kept for each step"};
}

/* ---- text ------------------------------------------------------------------------------------ */

char *gt_frame_text(const struct gt_frame *frame)
{
	if (!frame)
		return gt_xstrdup("(no line)");
	return gt_xasprintf("%s:%d", gt_base_name(frame->file), frame->line);
}

char *gt_suspicion_text(const struct gt_suspicion *suspicion, const struct gt_frame *result)
{
	char *where, *text;

	if (!result || strcmp(suspicion->rule, "kept-graph") != 0)
		return gt_xstrdup(suspicion->text);
	where = gt_frame_text(result);
	text = gt_xasprintf("each step's graph is kept: the result of %s is held undetached",
			    where);
	free(where);
	return text;
}

const struct gt_grower *gt_first_grower(const struct gt_growth *growth)
{
	return growth->count && growth->growers[0].kind != GT_GROWTH_CACHE ? &growth->growers[0]
									   : NULL;
}

/* ---- calls, where there are no steps --------------------------------------------------------- */

static bool has_steps(const struct gt_answers *answers)
{
	return answers && answers->steps.source != GT_STEPS_NONE;
}

/* As oom counts them, up to the request that ended the run; site 0: nothing grows, or steps tell. */
static struct gt_calls calls_of(const struct gt_place *place, const struct gt_answers *answers)
{
	const struct gt_trace *trace = place->input->trace;
	const struct gt_report *last = NULL;

	if (has_steps(answers))
		return (struct gt_calls){0};
	for (size_t i = 0; i < trace->report_count; i++)
		if (trace->reports[i].lane == place->lane->lane &&
		    trace->reports[i].outcome == GT_OUTCOME_PENDING)
			last = &trace->reports[i];
	return gt_calls_of(trace, answers, place->lane_index, 0, last);
}

static void print_calls(struct gt_out *out, const struct gt_place *place,
			const struct gt_calls *calls)
{
	char *where = gt_where_text(place->input, &place->lane->site_defs[calls->site]);
	char slope[GT_SIZE_TEXT], kept[GT_SIZE_TEXT], device[GT_DEVICE_TEXT];

	gt_line(out, GT_BOLD, "Grows %s per call of %s.", gt_size_text(calls->per_call, slope),
		where);
	gt_line(out, GT_PLAIN,
		"%s   no steps found, so calls are counted: %llu calls kept %s, %llu blocks freed",
		gt_device_text(place->lane->device, device), (unsigned long long)calls->count,
		gt_size_text(calls->bytes, kept), (unsigned long long)calls->freed);
	free(where);
}

static void print_none(struct gt_out *out, const struct gt_answers *answers,
		       const struct gt_growth *growth)
{
	char low[GT_SIZE_TEXT], high[GT_SIZE_TEXT];

	if (!has_steps(answers))
		gt_line(out, GT_BOLD,
			"No steps found, and no call of which nearly every block is kept while "
			"others go.");
	else if (!growth->enough)
		gt_line(out, GT_BOLD, "%zu steps are too few to tell growth from warm-up (10 do).",
			answers->steps.count);
	else
		gt_line(out, GT_BOLD, "No growth: ends of steps 2 to %zu are %s to %s.",
			answers->steps.count - 1, gt_size_text(growth->end_low, low),
			gt_size_text(growth->end_high, high));
}

static char *label_of(struct gt_input *input, const struct gt_grower *grower, bool full)
{
	struct gt_label label;
	char *text;

	gt_label_make(gt_input_symbols(input), input->trace, grower->site, GT_STREAM_UNKNOWN,
		      GT_BY_LINE, &label);
	text = gt_xstrdup(full ? label.full : label.text);
	gt_label_clear(&label);
	return text;
}

static void print_answer(struct gt_out *out, const struct gt_answers *answers,
			 const struct gt_growth *growth)
{
	const struct gt_grower *first = gt_first_grower(growth);
	char slope[GT_SIZE_TEXT];
	char *where = gt_frame_text(gt_growth_frame(answers, growth, first));
	char *often =
		first->ups == first->steps
			? gt_xasprintf("in every step from %zu to %zu",
				       answers->steps.count - first->steps + 1,
				       answers->steps.count)
			: gt_xasprintf("in %u of the last %u steps", first->ups, first->steps);

	gt_line(out, GT_BOLD, "Grows %s per step, %s, kept from %s.",
		gt_size_text((uint64_t)growth->slope, slope), often, where);
	free(often);
	free(where);
}

static void add_row(struct gt_table *table, struct gt_input *input, const struct gt_grower *grower,
		    bool full, bool act)
{
	char *text = label_of(input, grower, full);
	char *steps = gt_xasprintf("%u/%u", grower->ups, grower->steps);

	gt_table_row(table, 1, 0, act ? GT_ROW_ACT : 0);
	gt_table_text(table, text);
	gt_table_number(table, (int64_t)(grower->slope + 0.5));
	gt_table_text(table, steps);
	gt_table_number(table, (int64_t)grower->bytes);
	gt_table_text(table, gt_category_name(grower->category));
	gt_table_text(table, grower->high ? "high" : "medium");
	free(steps);
	free(text);
}

/* Slopes are what is read here: as MiB where none of them would be rounded to nothing much. */
static enum gt_unit unit_of(const struct gt_growth *growth)
{
	double least = growth->slope;

	for (size_t i = 0; i < growth->count; i++)
		if (growth->growers[i].kind != GT_GROWTH_CACHE && growth->growers[i].slope < least)
			least = growth->growers[i].slope;
	return least >= 4 << 20 ? GT_UNIT_MIB : gt_unit_for(growth->bytes);
}

static void print_table(struct gt_out *out, struct gt_input *input, const struct gt_growth *growth)
{
	const enum gt_unit unit = unit_of(growth);
	const bool kib = unit == GT_UNIT_KIB;
	const struct gt_field fields[] = {
		{"site", "Kept over step ends, by your lines", GT_FIELD_TEXT, GT_SHOW_ALWAYS},
		{"slope_bytes_per_step", kib ? "KiB/step" : "MiB/step", GT_FIELD_BYTES,
		 GT_SHOW_ALWAYS},
		{"steps", NULL, GT_FIELD_TEXT, GT_SHOW_ALWAYS},
		{"bytes", kib ? "now KiB" : "now MiB", GT_FIELD_BYTES, GT_SHOW_ALWAYS},
		{"category", NULL, GT_FIELD_TEXT, GT_SHOW_ALWAYS},
		{"confidence", NULL, GT_FIELD_TEXT, GT_SHOW_WIDE},
	};
	struct gt_table *table = gt_table_new(fields, sizeof(fields) / sizeof(fields[0]));

	gt_table_unit(table, unit);
	for (size_t i = 0; i < growth->count; i++)
		if (growth->growers[i].kind != GT_GROWTH_CACHE)
			add_row(table, input, &growth->growers[i], !out->terminal, i == 0);
	gt_table_row(table, 0, 1, GT_ROW_SCREEN);
	gt_table_text(table, "in all");
	gt_table_number(table, (int64_t)(growth->slope + 0.5));
	gt_table_unknown(table);
	gt_table_number(table, (int64_t)growth->bytes);
	gt_table_print(table, out, gt_screen_rows(out, 8));
	gt_table_free(table);
}

/* Caches are named, so that nobody wonders; they are no fault. */
static void print_caches(struct gt_out *out, struct gt_input *input, const struct gt_growth *growth)
{
	for (size_t i = 0; i < growth->count; i++) {
		char size[GT_SIZE_TEXT];
		char *text;

		if (growth->growers[i].kind != GT_GROWTH_CACHE)
			continue;
		text = label_of(input, &growth->growers[i], false);
		gt_line(out, GT_PLAIN, "A cache is filling at %s: %s by now, no two blocks alike.",
			text, gt_size_text(growth->growers[i].bytes, size));
		free(text);
	}
}

static void print_suspicion(struct gt_out *out, const struct gt_answers *answers,
			    const struct gt_growth *growth)
{
	struct gt_suspicion suspicion = gt_suspect(growth, gt_first_grower(growth));
	char *text = gt_suspicion_text(&suspicion, gt_growth_result(answers, growth));

	gt_line(out, GT_PLAIN, "Suspicion (rule %s): %s.", suspicion.rule, text);
	free(text);
}

static void print_text(struct gt_out *out, const struct gt_place *place,
		       const struct gt_growth *growth)
{
	const struct gt_answers *answers = gt_input_answers(place->input);
	const struct gt_grower *first = gt_first_grower(growth);
	char device[GT_DEVICE_TEXT];

	if (!first) {
		struct gt_calls calls = calls_of(place, answers);

		if (calls.site)
			print_calls(out, place, &calls);
		else
			print_none(out, answers, growth);
		gt_calls_clear(&calls);
		print_caches(out, place->input, growth);
		gt_print_loss(out, place->input->trace);
		return;
	}
	print_answer(out, answers, growth);
	gt_line(out, GT_PLAIN, "%s   steps (%s) count from 1",
		gt_device_text(place->lane->device, device),
		gt_step_source_name(answers->steps.source));
	print_table(out, place->input, growth);
	print_suspicion(out, answers, growth);
	print_caches(out, place->input, growth);
	gt_print_loss(out, place->input->trace);
	gt_next(out, "next: gputrace steps FILE     gputrace at end FILE");
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static json_t *json_frame_where(const struct gt_frame *frame)
{
	if (!frame)
		return json_null();
	return json_pack("{s:o, s:i, s:o}", "file", gt_json_name(frame->file), "line", frame->line,
			 "function", gt_json_name(frame->function));
}

json_t *gt_json_grower(struct gt_input *input, const struct gt_growth *growth,
		       const struct gt_grower *grower)
{
	static const char *const kinds[] = {
		[GT_GROWTH_KEPT] = "kept",
		[GT_GROWTH_BUFFER] = "buffer",
		[GT_GROWTH_CACHE] = "cache",
	};
	struct gt_symbols *symbols = gt_input_symbols(input);

	return json_pack("{s:f, s:s, s:s, s:s, s:o, s:I, s:I, s:i, s:i, s:I, s:o, s:o}",
			 "slope_bytes_per_step", grower->slope, "confidence",
			 grower->high ? "high" : "medium", "kind", kinds[grower->kind], "rule",
			 gt_suspect(growth, grower).rule, "category",
			 gt_json_category(grower->category), "bytes", (json_int_t)grower->bytes,
			 "count", (json_int_t)grower->count, "steps", grower->ups, "of_steps",
			 grower->steps, "first_step", (json_int_t)grower->first_step, "where",
			 json_frame_where(gt_growth_frame(gt_input_answers(input), growth, grower)),
			 "frames",
			 gt_json_frames(gt_symbols_stack(symbols, grower->site->native,
							 grower->site->python)));
}

/* null: none, or steps tell. */
static json_t *json_calls(const struct gt_place *place)
{
	struct gt_calls calls = calls_of(place, gt_input_answers(place->input));
	json_t *object = json_null();
	char *where;

	if (calls.site) {
		where = gt_where_text(place->input, &place->lane->site_defs[calls.site]);
		object = json_pack("{s:I, s:I, s:I, s:I, s:o}", "bytes_per_call",
				   (json_int_t)calls.per_call, "calls", (json_int_t)calls.count,
				   "freed", (json_int_t)calls.freed, "bytes",
				   (json_int_t)calls.bytes, "where", gt_json_name(where));
		free(where);
	}
	gt_calls_clear(&calls);
	return object;
}

static json_t *json_place(const struct gt_place *place, const struct gt_growth *growth)
{
	json_t *sites = json_array(), *calls = json_calls(place);
	bool grows = gt_first_grower(growth) || json_is_object(calls);

	for (size_t i = 0; i < growth->count; i++)
		json_array_append_new(sites,
				      gt_json_grower(place->input, growth, &growth->growers[i]));
	return json_pack("{s:o, s:o, s:b, s:f, s:I, s:b, s:o, s:o}", "pid",
			 gt_json_pid(place->input->trace), "device",
			 gt_json_ordinal(place->lane->device), "grows", grows,
			 "slope_bytes_per_step", growth->slope, "bytes", (json_int_t)growth->bytes,
			 "enough_steps", growth->enough, "sites", sites, "calls", calls);
}

static void json(struct gt_out *out, const struct gt_places *places)
{
	json_t *answer = gt_json_answer("growth"), *devices = json_array(), *sites = json_array();

	for (size_t i = 0; i < places->count; i++) {
		const struct gt_place *place = &places->places[i];
		const struct gt_answers *answers = gt_input_answers(place->input);
		struct gt_growth growth = {0};
		json_t *device;

		if (answers)
			growth = gt_growth_of(answers, place->lane_index);
		device = json_place(place, &growth);
		json_array_extend(sites, json_object_get(device, "sites"));
		json_array_append_new(devices, device);
		gt_growth_clear(&growth);
	}
	json_object_set_new(answer, "sites", sites);
	json_object_set_new(answer, "devices", devices);
	gt_json_print(out, answer);
}

static int print(struct gt_out *out, const struct gt_args *args, const struct gt_places *places)
{
	bool one = out->terminal && !args->all && out->format == GT_FORMAT_TEXT;
	const struct gt_place *only = one ? gt_tightest(places, args->total) : NULL;

	if (args->format == GT_FORMAT_JSON) {
		json(out, places);
		return 0;
	}
	for (size_t i = 0; i < places->count; i++) {
		const struct gt_place *place = &places->places[i];
		const struct gt_answers *answers = gt_input_answers(place->input);
		struct gt_growth growth = {0};

		if (only && only != place)
			continue;
		gt_print_which(out, places, place, only);
		if (answers)
			growth = gt_growth_of(answers, place->lane_index);
		if (out->format == GT_FORMAT_TEXT)
			print_text(out, place, &growth);
		else if (gt_first_grower(&growth))
			print_table(out, place->input, &growth);
		gt_growth_clear(&growth);
	}
	return 0;
}

int gt_cmd_growth(struct gt_args *args)
{
	return gt_run_places(args, print);
}
