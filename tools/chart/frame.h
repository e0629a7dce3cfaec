/* SPDX-License-Identifier: MIT */
/* What the charts have in common: colours, head, the axis of memory, layers, legend. */
#ifndef GT_CHART_FRAME_H
#define GT_CHART_FRAME_H

#include "chart/chart.h"
#include "out/number.h"

#define GT_TEXT	     0x1a1d21u
#define GT_MUTED     0x5a6270u
#define GT_GRID	     0xd5d9dfu
#define GT_EDGE	     0x5a6270u
#define GT_FAILURE   0xb3261eu
#define GT_CACHED    0xd5dae1u
#define GT_MORE_FILL 0xd6604du
#define GT_LESS_FILL 0x4393c3u
#define GT_MORE_TEXT 0xa8321eu
#define GT_LESS_TEXT 0x1b5e9eu

#define GT_MARGIN 18.0

struct gt_plot_area { /* the area that a chart draws in, and its scale of memory */
	struct gt_canvas *canvas;
	double left, right, top, bottom;
	uint64_t most; /* at the top */
	enum gt_unit unit;
};

gt_color gt_layer_color(enum gt_category category);
/* What is written on a fill, at a contrast of 4.5 at least. */
gt_color gt_ink_on(gt_color fill);
const char *gt_layer_name(enum gt_category category);

/* Categories from the bottom of a stack: what lasts longest lies lowest. */
extern const uint8_t gt_layer_order[GT_CATEGORIES];

/* Title and note; the chart begins under them. */
#define GT_HEAD_HEIGHT 62.0
void gt_frame_head(struct gt_canvas *canvas, const struct gt_chart_head *head);

/* The scale: from 0 to the largest value, or to the card's limit where that is not far above. */
void gt_frame_scale(struct gt_plot_area *frame, uint64_t most, uint64_t card);
double gt_frame_y(const struct gt_plot_area *frame, uint64_t bytes);

/* Grid and numbers, before the data; the card's limit, behind it, its name at either end. */
void gt_frame_grid(const struct gt_plot_area *frame);
void gt_frame_card(const struct gt_plot_area *frame, uint64_t card, bool name_right);

/* "■ weights 120   ■ ..." from the top of the stack; parts add up to whole as printed. */
#define GT_LEGEND_ROW 18.0
struct gt_legend {
	const char *when;	  /* its numbers are of */
	struct gt_pile peak;	  /* at that moment */
	bool seen[GT_CATEGORIES]; /* anywhere in the chart */
	bool cached, card;
	const char *line; /* what black lines are; NULL: there are none */
};

double gt_legend_height(const struct gt_legend *legend);
void gt_legend_draw(const struct gt_plot_area *frame, double y, const struct gt_legend *legend);

#endif
