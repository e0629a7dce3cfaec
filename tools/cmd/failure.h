/* SPDX-License-Identifier: MIT */
/* Inside the command oom: what is known of one refused request, for those who print it. */
#ifndef GT_CMD_FAILURE_H
#define GT_CMD_FAILURE_H

#include "cmd/ledger.h"
#include "model/verdict.h"

struct gt_failure {
	struct gt_input *input;
	const struct gt_trace *trace;
	const struct gt_report *report;
	size_t lane_index;
	const struct gt_trace_lane *lane;
	const struct gt_site_def *site;
	struct gt_rows rows; /* holders at that moment */
	bool free_known, total_known;
	uint64_t in_use, cached;
	uint64_t short_by; /* that the driver lacked; 0 when it refused although enough was free */
	int64_t unexplained; /* of the device: contexts, modules, processes not seen */

	/* From here on only once it was judged. */
	struct gt_verdict verdict;
	struct gt_joint joint; /* the device then; no rows = not known */
};

void gt_failure_open(struct gt_input *input, const struct gt_report *report, enum gt_by by,
		     struct gt_failure *ret);

/* Why, and what would have been enough. session: who else was on the device; NULL = not asked. */
void gt_failure_judge(struct gt_failure *failure, struct gt_session *session, enum gt_by by);
void gt_failure_close(struct gt_failure *failure);

#endif
