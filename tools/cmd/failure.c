/* SPDX-License-Identifier: MIT */
/*
 * See failure.h. The report that the recorder wrote at the refusal says most of it without any history;
 * the history, where it reaches, adds what each block was for, and the ledger of the device.
 * Called from oom.c and oom_json.c.
 */
#include "cmd/failure.h"

static void count_bytes(struct gt_failure *failure)
{
	const struct gt_report *report = failure->report;

	failure->in_use = report->cur[GT_TOTAL_IN_USE];
	failure->cached = report->cur[GT_TOTAL_RESERVED] - failure->in_use;
	failure->short_by = gt_report_short(report);
	failure->unexplained = (int64_t)(report->device_total - report->device_free -
					 report->cur[GT_TOTAL_RESERVED] - gt_report_others(report));
}

void gt_failure_open(struct gt_input *input, const struct gt_report *report, enum gt_by by,
		     struct gt_failure *ret)
{
	struct gt_failure failure = {.input = input, .trace = input->trace, .report = report};

	failure.lane_index = gt_report_lane(input->trace, report);
	failure.lane = &input->trace->lanes[failure.lane_index];
	failure.site = gt_report_site(input->trace, report);
	failure.rows = gt_rows_of_report(input->trace, failure.lane_index, report,
					 gt_input_symbols(input), by);
	failure.free_known = report->device_free != GT_UNKNOWN_BYTES;
	failure.total_known = report->device_total != GT_UNKNOWN_BYTES && report->device_total;
	count_bytes(&failure);
	*ret = failure;
}

/*
 * The report keeps the largest holders by site; the history, where it reaches, has every block, and
 * so what each was for.
 */
static void name_holders(struct gt_failure *failure, enum gt_by by)
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
static void find_ledger(struct gt_failure *failure, struct gt_session *session)
{
	struct gt_place place = {
		.input = failure->input,
		.lane_index = failure->lane_index,
		.lane = failure->lane,
		.device_total = gt_device_total(failure->trace, failure->lane->device),
	};

	if (session && failure->lane->device >= 0 &&
	    gt_history_reaches(failure->lane, failure->report->seq))
		gt_joint_of(session, &place, failure->report->seq, failure->report->us, NULL,
			    &failure->joint);
}

void gt_failure_judge(struct gt_failure *failure, struct gt_session *session, enum gt_by by)
{
	name_holders(failure, by);
	find_ledger(failure, session);
	failure->verdict = gt_verdict_of(failure->trace, gt_input_answers(failure->input),
					 failure->lane_index, failure->report,
					 failure->joint.count ? &failure->joint.ledger : NULL);
}

void gt_failure_close(struct gt_failure *failure)
{
	gt_verdict_clear(&failure->verdict);
	gt_joint_clear(&failure->joint);
	gt_rows_clear(&failure->rows);
}
