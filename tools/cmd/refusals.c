/* SPDX-License-Identifier: MIT */
/* See refusals.h. The headline decides which screen a summary is, so many commands ask for it. */
#include "cmd/refusals.h"

#include "model/xalloc.h"
#include "out/number.h"

bool gt_report_wanted(const struct gt_args *args, const struct gt_trace *trace,
		      const struct gt_report *report)
{
	size_t lane = gt_report_lane(trace, report);

	return lane < trace->lane_count &&
	       (args->device == GT_ANY_DEVICE || trace->lanes[lane].device == args->device);
}

const struct gt_report *gt_input_headline(const struct gt_args *args, const struct gt_input *input)
{
	const struct gt_report *report = gt_headline(input->trace);

	return report && gt_report_wanted(args, input->trace, report) ? report : NULL;
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

const struct gt_report *gt_nth_report(const struct gt_args *args, struct gt_session *session,
				      struct gt_input **ret_input)
{
	unsigned long number = 0;

	for (size_t i = 0; i < session->count; i++) {
		const struct gt_trace *trace = session->inputs[i].trace;

		for (size_t r = 0; r < trace->report_count; r++) {
			const struct gt_report *report = &trace->reports[r];

			if (!gt_report_wanted(args, trace, report) || ++number != args->nth)
				continue;
			*ret_input = &session->inputs[i];
			return report;
		}
	}
	return NULL;
}

/* The words of people for outcomes; a refusal for another reason is none of them. */
const char *gt_outcome_text(const struct gt_trace *trace, const struct gt_report *report)
{
	enum gt_end end = gt_report_end(trace, report);

	if (!gt_is_memory(report))
		return "not memory";
	return end == GT_END_RECOVERED ? "granted on retry" : gt_end_name(end);
}

char *gt_refusal_text(const struct gt_trace *trace, const struct gt_report *report)
{
	static const char *const ends[] = {
		[GT_END_RECOVERED] = "%s refused, then granted",
		[GT_END_CAUGHT] = "%s refused, caught",
		[GT_END_FATAL] = "out of memory: %s asked",
		[GT_END_OPEN] = "out of memory: %s asked",
	};
	char size[GT_SIZE_TEXT];

	return gt_xasprintf(ends[gt_report_end(trace, report)],
			    gt_size_text(gt_report_asked(report), size));
}
