/* SPDX-License-Identifier: MIT */
/* What others show of the screen of a run that did not fail. */
#ifndef GT_SUMMARY_H
#define GT_SUMMARY_H

#include "cmd/session.h"

/* Its first lines, of one device: the answer, and the process. */
void gt_summary_head(struct gt_out *out, const struct gt_args *args, const struct gt_place *place);

/* steps.c: its answer; nothing where there are no steps. */
void gt_steps_head(struct gt_out *out, const struct gt_args *args, const struct gt_place *place);

#endif
