/* SPDX-License-Identifier: MIT */
/* Memory over time as characters. */
#ifndef GT_PLOT_H
#define GT_PLOT_H

#include <stdint.h>
#include "out/out.h"

#define GT_PLOT_ROWS 16

struct gt_plot {
	const uint64_t *used, *held; /* one pair per column; each the maximum of its slice */
	size_t columns;
	uint64_t top; /* of the scale; 0 = the largest value */
	double seconds_from, seconds_to;
};

/* Columns of a plot that fits the screen. */
size_t gt_plot_columns(const struct gt_out *out);
void gt_plot_print(struct gt_out *out, const struct gt_plot *plot);

#endif
