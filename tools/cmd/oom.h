/* SPDX-License-Identifier: MIT */
/* The screen of a failed run, which oom and the summary of such a run print. */
#ifndef GT_OOM_H
#define GT_OOM_H

#include "cmd/session.h"

/* The input whose headline failure came first; NULL when none failed. */
struct gt_input *gt_first_failed(const struct gt_args *args, struct gt_session *session);

/* The headline failure of the input, on the devices asked for; NULL = none. */
const struct gt_report *gt_input_headline(const struct gt_args *args, const struct gt_input *input);

/* The first lines of the screen: what happened, where, how much, and why if that is known. */
void gt_oom_head(struct gt_out *out, const struct gt_args *args, struct gt_input *input);

/* errors.c: what was asked and how it ended, in a few words. To be freed. */
char *gt_refusal_text(const struct gt_trace *trace, const struct gt_report *report);

void gt_oom_screen(struct gt_out *out, const struct gt_args *args, struct gt_session *session,
		   struct gt_input *input);

#endif
