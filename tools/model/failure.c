/* SPDX-License-Identifier: MIT */
/*
 * See failure.h. The recorder writes down what it can know at the time (granted later, went on);
 * that a failure was the last thing a process did only shows afterwards, so it is decided here:
 * exit() began and nothing followed = fatal; no exit() = the process runs, or was killed inside its
 * retry.
 */
#include "model/failure.h"

const char *gt_end_name(enum gt_end end)
{
	static const char *const names[] = {
		[GT_END_RECOVERED] = "recovered",
		[GT_END_CAUGHT] = "caught",
		[GT_END_FATAL] = "fatal",
		[GT_END_OPEN] = "open",
	};

	return names[end];
}

/*
 * The recorder goes by the thread, but autograd's threads pass the error on to the one that called
 * backward(): a process that came to ask for more memory after it had outlived the refusal.
 */
static bool outlived(const struct gt_trace *trace, const struct gt_report *report)
{
	for (size_t i = 0; i < trace->report_count; i++) {
		const struct gt_report *later = &trace->reports[i];

		if (later->lane == report->lane && later->us > report->us &&
		    later->thread != report->thread && gt_is_memory(later) &&
		    (!trace->header.exit_us || later->us < trace->header.exit_us))
			return true;
	}
	return false;
}

enum gt_end gt_report_end(const struct gt_trace *trace, const struct gt_report *report)
{
	if (report->outcome == GT_OUTCOME_RECOVERED)
		return GT_END_RECOVERED;
	if (report->outcome == GT_OUTCOME_CAUGHT || outlived(trace, report))
		return GT_END_CAUGHT;
	return trace->header.exit_us ? GT_END_FATAL : GT_END_OPEN;
}

uint64_t gt_report_block(const struct gt_report *report)
{
	return report->torch_requested ? report->torch_requested : report->requested;
}

bool gt_report_is_piece(const struct gt_report *report)
{
	return report->requested && report->torch_requested > report->requested;
}

uint64_t gt_report_asked(const struct gt_report *report)
{
	return report->torch_requested > report->requested ? report->torch_requested
							   : report->requested;
}

static uint64_t beyond(uint64_t bytes, uint64_t available)
{
	return bytes > available ? bytes - available : 0;
}

uint64_t gt_report_short(const struct gt_report *report)
{
	uint64_t of_call, of_block, cached;

	if (report->device_free == GT_UNKNOWN_BYTES)
		return 0;
	if (!gt_report_is_piece(report))
		return beyond(report->requested, report->device_free);
	of_call = report->requested - report->device_free % report->requested;
	cached = beyond(report->cur[GT_TOTAL_RESERVED], report->cur[GT_TOTAL_IN_USE]);
	of_block = beyond(report->torch_requested, report->device_free + cached);
	return of_block > of_call ? of_block : of_call;
}

uint64_t gt_report_others(const struct gt_report *report)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < report->others; i++)
		sum += report->other[i].bytes;
	return sum;
}

/* A refusal for another reason than memory (a bad argument) is no out-of-memory. */
bool gt_is_memory(const struct gt_report *report)
{
	return report->result == GT_CUDA_OUT_OF_MEMORY || report->torch_requested;
}

const struct gt_report *gt_headline(const struct gt_trace *trace)
{
	const struct gt_report *open = NULL;

	for (size_t i = trace->report_count; i-- > 0;) {
		const struct gt_report *report = &trace->reports[i];
		enum gt_end end = gt_report_end(trace, report);

		if (!gt_is_memory(report))
			continue;
		if (end == GT_END_FATAL)
			return report;
		if (end == GT_END_OPEN && !open)
			open = report;
	}
	return open;
}

size_t gt_report_lane(const struct gt_trace *trace, const struct gt_report *report)
{
	for (size_t i = 0; i < trace->lane_count; i++)
		if (trace->lanes[i].lane == report->lane)
			return i;
	return trace->lane_count;
}

const struct gt_site_def *gt_report_site(const struct gt_trace *trace,
					 const struct gt_report *report)
{
	static const struct gt_site_def nothing;
	size_t lane = gt_report_lane(trace, report);

	if (lane == trace->lane_count || report->site >= trace->lanes[lane].site_count)
		return &nothing;
	return &trace->lanes[lane].site_defs[report->site];
}
