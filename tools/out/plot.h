/* SPDX-License-Identifier: MIT */
/* Memory over time, or step by step, as characters. */
#ifndef GT_PLOT_H
#define GT_PLOT_H

#include <stdint.h>
#include "out/out.h"

struct gt_plot {
	const uint64_t *used, *held; /* one pair per column; each the maximum of its slice */
	size_t columns;
	uint64_t top; /* of the scale; 0 = the largest value */
	int rows;
	const char *from, *to; /* what stands under its ends */
};

/* Columns of a plot that fits the screen. */
size_t gt_plot_columns(const struct gt_out *out);
void gt_plot_print(struct gt_out *out, const struct gt_plot *plot);

/*
 * A bar of so many columns at most, as part of the most, in eighths of a column: solid for more, pale
 * for less. To be freed.
 */
char *gt_plot_bar(const struct gt_out *out, int64_t value, uint64_t most, size_t columns);

#endif
