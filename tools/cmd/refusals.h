/* SPDX-License-Identifier: MIT */
/* The refused requests of a session: which is meant, which ended a run, and the words for them. */
#ifndef GT_REFUSALS_H
#define GT_REFUSALS_H

#include "cmd/session.h"

/* Is the report of a device that the trace has, and of one asked for? */
bool gt_report_wanted(const struct gt_args *args, const struct gt_trace *trace,
		      const struct gt_report *report);

/* The input whose headline failure came first; NULL when none failed. */
struct gt_input *gt_first_failed(const struct gt_args *args, struct gt_session *session);

/* The headline failure of the input, on the devices asked for; NULL = none. */
const struct gt_report *gt_input_headline(const struct gt_args *args, const struct gt_input *input);

/* Line --nth of errors, which go by trace, and the input it is of; NULL: there are fewer. */
const struct gt_report *gt_nth_report(const struct gt_args *args, struct gt_session *session,
				      struct gt_input **ret_input);

/* "fatal", "granted on retry": how it ended, in a column. */
const char *gt_outcome_text(const struct gt_trace *trace, const struct gt_report *report);

/* What was asked and how it ended, in a few words. To be freed. */
char *gt_refusal_text(const struct gt_trace *trace, const struct gt_report *report);

#endif
