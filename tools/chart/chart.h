/* SPDX-License-Identifier: MIT */
/* The three charts, from figures that whoever calls has collected: nothing here reads a trace. */
#ifndef GT_CHART_H
#define GT_CHART_H

#include "chart/canvas.h"
#include "model/piles.h"

struct gt_chart_head {
	const char *title; /* the answer in a sentence, as the command line says it */
	const char *note;  /* which process, which of several devices */
	bool failed;
};

/* The first ones get their names where there is no room for all. */
enum gt_mark_kind {
	GT_MARK_FAILURE,
	GT_MARK_PEAK,
	GT_MARK_REFUSED, /* and the program went on */
	GT_MARK_NAMED,	 /* the program's own */
};

struct gt_chart_mark {
	enum gt_mark_kind kind;
	uint64_t us;
	char *text;
};

#define GT_CHART_SLICES 590 /* of a timeline: one and a half units of its width each */

struct gt_timeline_chart {
	struct gt_chart_head head;
	uint64_t from_us, to_us;
	uint64_t card;			   /* 0 = not known */
	const struct gt_pile *piles;	   /* GT_CHART_SLICES of them, in use */
	const uint64_t *held;		   /* likewise */
	struct gt_pile peak;		   /* the highest of them: the numbers of the legend */
	const struct gt_chart_mark *marks; /* by kind */
	size_t mark_count;
	const uint64_t *step_us; /* where steps begin */
	size_t step_count, first_step;
};

struct gt_bar { /* a step, or the one with the highest peak of several */
	struct gt_pile peak;
	uint64_t end;
	bool end_known;
	size_t first, last; /* steps that it stands for, from 1 */
};

struct gt_steps_chart {
	struct gt_chart_head head;
	const struct gt_bar *bars;
	size_t bar_count;
	uint64_t card;
	const char *worst; /* said above the worst bar; NULL: none stands out */
};

struct gt_chart_change {
	char *name;
	uint64_t a, b;
};

struct gt_diff_chart {
	struct gt_chart_head head;
	struct gt_chart_change *rows; /* which add up to the whole */
	size_t row_count;
	struct gt_chart_change whole;
};

#define GT_CHART_WIDTH 960.0

double gt_timeline_height(const struct gt_timeline_chart *chart);
void gt_timeline_draw(struct gt_canvas *canvas, const struct gt_timeline_chart *chart);

double gt_steps_height(const struct gt_steps_chart *chart);
void gt_steps_draw(struct gt_canvas *canvas, const struct gt_steps_chart *chart);

double gt_diff_height(const struct gt_diff_chart *chart);
void gt_diff_draw(struct gt_canvas *canvas, const struct gt_diff_chart *chart);

#endif
