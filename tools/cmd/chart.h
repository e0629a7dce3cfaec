/* SPDX-License-Identifier: MIT */
/* Pictures of what timeline, steps and diff found, when -o names one. */
#ifndef GT_CMD_CHART_H
#define GT_CMD_CHART_H

#include "cmd/diff.h"
#include "cmd/session.h"
#include "model/steps.h"

/* The device that a picture is of, when several were found: the tightest. */
struct gt_chart_of {
	const struct gt_args *args;
	const struct gt_place *place;
	size_t places;
};

/* All write to out and return 0, or the exit status after saying why. */
int gt_chart_timeline(struct gt_out *out, const struct gt_chart_of *of, uint64_t from_us,
		      uint64_t to_us);
int gt_chart_steps(struct gt_out *out, const struct gt_chart_of *of, const struct gt_steps *steps);
int gt_chart_diff(struct gt_out *out, const struct gt_args *args,
		  const struct gt_diff_pairs *pairs);

#endif
