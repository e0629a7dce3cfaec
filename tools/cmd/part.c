/* SPDX-License-Identifier: MIT */
/* See part.h. */
#include "cmd/part.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include "model/steps.h"
#include "model/xalloc.h"
#include "out/number.h"

bool gt_part_asked(const struct gt_args *args)
{
	return args->from || args->to || args->range || args->at.kind == GT_WHEN_NAME;
}

/* ---- names ----------------------------------------------------------------------------------- */

/* NAME#n: the nth. A name that has such an end itself is found whole. */
static const struct gt_named *find(const struct gt_marks *marks, const char *text)
{
	const struct gt_named *named = gt_marks_find(marks, text, 0, 1);
	const char *sharp = strrchr(text, '#');
	char *name;
	long nth;

	if (!strncmp(text, "step:", 5) && !gt_parse_number(text + 5, 1, UINT32_MAX, &nth))
		return gt_marks_step(marks, (uint32_t)nth);
	if (named || !sharp || gt_parse_number(sharp + 1, 1, INT_MAX, &nth))
		return named;
	name = gt_xstrdup(text);
	name[sharp - text] = 0;
	named = gt_marks_find(marks, name, 0, (size_t)nth);
	free(name);
	return named;
}

static int no_name(const struct gt_parts *parts, const char *text)
{
	const struct gt_trace *trace = parts->marks.trace;

	if (!strncmp(text, "step:", 5))
		return gt_message(GT_EXIT_USAGE, "%s: no %s: to see them: gputrace steps %s",
				  trace->path, text, trace->path);
	if (!parts->marks.named_count)
		return gt_message(GT_EXIT_USAGE,
				  "%s: %s: the trace has no marks: call gputrace_mark or NVTX, or "
				  "give a time like 2.75s",
				  trace->path, text);
	return gt_message(GT_EXIT_USAGE,
			  "%s: %s: no mark, range or step of that name; to see them: gputrace "
			  "timeline --range '*' %s",
			  trace->path, text, trace->path);
}

/* ---- parts ----------------------------------------------------------------------------------- */

static void add(struct gt_parts *parts, const struct gt_named *named)
{
	*GT_PUSH(parts->parts, parts->count) = (struct gt_part){
		.named = named,
		.begin = named->begin,
		.end = named->end,
		.to_us = UINT64_MAX,
	};
}

static bool matches(const char *pattern, const char *name)
{
	return !strcmp(pattern, name) || fnmatch(pattern, name, 0) == 0;
}

static int add_ranges(struct gt_parts *parts, const char *pattern)
{
	for (size_t i = 0; i < parts->marks.named_count; i++) {
		const struct gt_named *named = &parts->marks.named[i];
		const char *name = named->kind == GT_STRETCH_STEP ? "step" : named->name;

		if (matches(pattern, name))
			add(parts, named);
	}
	return parts->count ? 0 : no_name(parts, pattern);
}

static int add_one(struct gt_parts *parts, const char *text)
{
	const struct gt_named *named = find(&parts->marks, text);

	if (!named)
		return no_name(parts, text);
	add(parts, named);
	return 0;
}

/*
 * When a step begins or ends that the program did not count. Where one ends, the next has its first
 * event.
 */
static bool inferred_step(struct gt_input *input, const char *text, bool to, uint64_t *ret_us)
{
	const struct gt_answers *answers;
	uint64_t from_us, to_us;
	long number;

	if (strncmp(text, "step:", 5) || gt_parse_number(text + 5, 1, INT_MAX, &number))
		return false;
	answers = gt_input_answers(input);
	if (!answers || gt_step_times(answers, (size_t)number, &from_us, &to_us))
		return false;
	*ret_us = !to ? from_us : (size_t)number < answers->steps.count ? to_us - 1 : to_us;
	return true;
}

/* A bound: the begin of what is named, or, for --to, its end. */
static int bound(const struct gt_parts *parts, struct gt_input *input, const char *text, bool to,
		 size_t *ret_note, uint64_t *ret_us)
{
	const struct gt_named *named;

	if (!text || !gt_parse_time(text, ret_us))
		return 0;
	named = find(&parts->marks, text);
	if (!named && inferred_step(input, text, to, ret_us))
		return 0;
	if (!named)
		return no_name(parts, text);
	*ret_note = to ? named->end : named->begin;
	if (*ret_note != GT_NO_NOTE)
		*ret_us = parts->marks.notes[*ret_note].us;
	return 0;
}

static int add_from_to(struct gt_parts *parts, const struct gt_args *args, struct gt_input *input)
{
	struct gt_part part = {
		.begin = GT_NO_NOTE,
		.end = GT_NO_NOTE,
		.to_us = UINT64_MAX,
	};
	int status = bound(parts, input, args->from, false, &part.begin, &part.from_us);

	if (!status)
		status = bound(parts, input, args->to, true, &part.end, &part.to_us);
	if (!status && part.from_us > part.to_us)
		status = gt_message(GT_EXIT_USAGE, "--to %s is before --from %s", args->to,
				    args->from);
	if (!status)
		*GT_PUSH(parts->parts, parts->count) = part;
	return status;
}

int gt_parts_get(const struct gt_args *args, struct gt_input *input, struct gt_parts *ret)
{
	struct gt_parts parts = {0};
	struct gt_error err = {0};
	int status;

	if (gt_marks_get(input->trace, &parts.marks, &err))
		return gt_message_error(&err);
	if (args->range)
		status = add_ranges(&parts, args->range);
	else if (args->at.kind == GT_WHEN_NAME)
		status = add_one(&parts, args->at.name);
	else
		status = add_from_to(&parts, args, input);
	if (status)
		gt_parts_clear(&parts);
	else
		*ret = parts;
	return status;
}

void gt_parts_clear(struct gt_parts *parts)
{
	gt_marks_clear(&parts->marks);
	free(parts->parts);
	*parts = (struct gt_parts){0};
}

/* ---- peaks ----------------------------------------------------------------------------------- */

static int span_of(const struct gt_parts *parts, const struct gt_part *part, size_t lane_index,
		   struct gt_span *ret, struct gt_error *err)
{
	const struct gt_trace *trace = parts->marks.trace;
	bool cut;

	*ret = gt_span_of_notes(&parts->marks, lane_index, part->begin, part->end);
	if (part->begin == GT_NO_NOTE && part->from_us) {
		ret->from_us = part->from_us;
		if (gt_seq_at(trace, lane_index, part->from_us, &ret->from, &ret->cut, err))
			return -1;
	}
	if (part->end != GT_NO_NOTE || part->to_us == UINT64_MAX)
		return 0;
	return gt_seq_at(trace, lane_index, part->to_us, &ret->to, &cut, err);
}

int gt_parts_tops(const struct gt_parts *parts, size_t lane_index, struct gt_top **ret)
{
	struct gt_span *spans = gt_xcalloc(parts->count, sizeof(*spans));
	struct gt_top *tops = gt_xcalloc(parts->count, sizeof(*tops));
	struct gt_error err = {0};
	int failed = 0;

	for (size_t i = 0; !failed && i < parts->count; i++)
		failed = span_of(parts, &parts->parts[i], lane_index, &spans[i], &err);
	if (!failed)
		failed = gt_tops_get(parts->marks.trace, lane_index, spans, parts->count, tops,
				     &err);
	free(spans);
	if (!failed)
		*ret = tops;
	else
		free(tops);
	return failed ? gt_message_error(&err) : 0;
}

static struct gt_when highest(const struct gt_args *args, const struct gt_place *place,
			      const struct gt_top *tops, size_t count, bool *ret_at_least)
{
	const int k = args->total;
	size_t best = 0;

	*ret_at_least = false;
	for (size_t i = 0; i < count; i++) {
		*ret_at_least |= tops[i].at_least[k];
		if (tops[i].bytes[k] > tops[best].bytes[k])
			best = i;
	}
	if (place->lane->ctr.peak[k] == tops[best].bytes[k] &&
	    place->lane->ctr.peak_seq[k] == tops[best].seq[k]) {
		*ret_at_least = false;
		return (struct gt_when){.kind = GT_WHEN_PEAK};
	}
	return (struct gt_when){.kind = GT_WHEN_EVENT, .seq = tops[best].seq[k]};
}

/* The end of a step that the program counted; any other stays as it is, to be inferred. */
static int end_of_step(const struct gt_place *place, struct gt_when *when)
{
	struct gt_marks marks;
	struct gt_error err = {0};
	const struct gt_named *step;

	if (gt_marks_get(place->input->trace, &marks, &err))
		return gt_message_error(&err);
	step = gt_marks_step(&marks, when->step);
	if (step) {
		struct gt_span span = gt_span_of(&marks, place->lane_index, step);

		*when = (struct gt_when){.kind = GT_WHEN_EVENT, .seq = span.to};
	}
	gt_marks_clear(&marks);
	return 0;
}

int gt_part_when(const struct gt_args *args, const struct gt_place *place, struct gt_when *ret,
		 bool *ret_at_least)
{
	struct gt_parts parts;
	struct gt_top *tops;
	int status;

	*ret = args->at;
	*ret_at_least = false;
	if (!gt_part_asked(args) && args->at.kind == GT_WHEN_STEP && !args->at.phase)
		return end_of_step(place, ret);
	if (!gt_part_asked(args))
		return 0;
	status = gt_parts_get(args, place->input, &parts);
	if (status)
		return status;
	status = gt_parts_tops(&parts, place->lane_index, &tops);
	if (!status) {
		*ret = highest(args, place, tops, parts.count, ret_at_least);
		free(tops);
	}
	gt_parts_clear(&parts);
	return status;
}

int gt_part_span(const struct gt_args *args, const struct gt_place *place, struct gt_span *ret)
{
	struct gt_parts parts;
	struct gt_error err = {0};
	int status = gt_parts_get(args, place->input, &parts);

	if (status)
		return status;
	if (span_of(&parts, &parts.parts[parts.count - 1], place->lane_index, ret, &err))
		status = gt_message_error(&err);
	gt_parts_clear(&parts);
	return status;
}

int gt_part_end(const struct gt_args *args, const struct gt_place *place, struct gt_when *ret)
{
	struct gt_span span;
	int status = gt_part_span(args, place, &span);

	if (!status)
		*ret = (struct gt_when){.kind = GT_WHEN_EVENT, .seq = span.to};
	return status;
}

int gt_when_time(const struct gt_args *args, struct gt_input *input, struct gt_when *ret)
{
	struct gt_parts parts;
	int status;

	*ret = args->at;
	if (args->at.kind != GT_WHEN_NAME)
		return 0;
	status = gt_parts_get(args, input, &parts);
	if (status)
		return status;
	*ret = (struct gt_when){
		.kind = GT_WHEN_TIME,
		.us = parts.marks.notes[parts.parts[0].begin].us,
	};
	gt_parts_clear(&parts);
	return 0;
}
