/* SPDX-License-Identifier: MIT */
/* What others show of the screen of a run that did not fail. */
#ifndef GT_SUMMARY_H
#define GT_SUMMARY_H

#include "cmd/session.h"
#include "model/steps.h"

/* Its first lines, of one device: the answer, and the process. */
void gt_summary_head(struct gt_out *out, const struct gt_args *args, const struct gt_place *place);

/* steps.c: its answer from the steps of the place; nothing where there are none. */
void gt_steps_head(struct gt_out *out, const struct gt_place *place, const struct gt_steps *steps);

#endif
