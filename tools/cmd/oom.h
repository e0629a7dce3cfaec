/* SPDX-License-Identifier: MIT */
/* The screen of a failed run, which oom and the summary of such a run print. */
#ifndef GT_OOM_H
#define GT_OOM_H

#include "cmd/session.h"

/* The first lines of the screen: what happened, where, how much, and why if that is known. */
void gt_oom_head(struct gt_out *out, const struct gt_args *args, struct gt_input *input);

void gt_oom_screen(struct gt_out *out, const struct gt_args *args, struct gt_session *session,
		   struct gt_input *input);

/* oom_json.c: the answer as JSON. */
void gt_oom_json(struct gt_out *out, const struct gt_args *args, struct gt_session *session);

#endif
