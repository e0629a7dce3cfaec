/* SPDX-License-Identifier: MIT */
/* Inside the command plan: what was read and worked out, for those who print it. */
#ifndef GT_CMD_PLAN_H
#define GT_CMD_PLAN_H

#include "cmd/session.h"
#include "model/plan.h"
#include "model/steps.h"

/* A line over the batch size for each slice of the first step, which warms up, and of the others. */
#define GT_PLAN_LINES (2 * GT_STEP_SLICES)

struct gt_plan_point { /* a run with its batch size */
	const char *path;
	double batch;
	double peak, held;
	double lines[GT_PLAN_LINES]; /* peaks of the slices: of the first step, of all others */
	uint8_t phases[GT_PLAN_LINES];
	double by_phase[GT_PHASE_AFTER + 1]; /* the highest peak of each phase */
	uint64_t events;		     /* in a usual step */
	double categories[GT_CATEGORIES];    /* at the end of a usual step's backward */
	double at_peak[GT_CATEGORIES];
	size_t worst; /* step of the peak, from 1 */
	enum gt_phase phase;
	uint64_t device_total;
};

struct gt_plan_view {
	struct gt_plan_point *points;
	size_t count;
	struct gt_line_fit lines[GT_PLAN_LINES], held;
	bool fitted[GT_PLAN_LINES];
	size_t line; /* the one that limits the batch */
	struct gt_plan_base base;
	double gpu, reserve; /* 0 = not known */
	double residual;     /* static_bytes less weights, gradients and state as measured */
	uint64_t largest;    /* of the base */
	uint64_t by_held;    /* the same by what torch holds; 0 = not known */
	struct gt_plan_row *rows;
	size_t row_count;
};

/* Room for samples with a row's static bytes. */
double gt_plan_room(const struct gt_plan_view *view, const struct gt_plan_row *row);
uint64_t gt_plan_row_largest(const struct gt_plan_view *view, const struct gt_plan_row *row);

/* The highest line at a batch size: what the runs say of its peak. */
size_t gt_plan_highest(const struct gt_plan_view *view, double batch);
double gt_plan_predict(const struct gt_plan_view *view, double batch);

/* The highest line behind the one that is it up to some batch size; GT_PLAN_LINES: none. */
size_t gt_plan_next(const struct gt_plan_view *view, size_t line);

const char *gt_plan_phase(const struct gt_plan_view *view, size_t line);

void gt_plan_print(struct gt_out *out, const struct gt_args *args, const struct gt_plan_view *view);
void gt_plan_json(struct gt_out *out, const struct gt_args *args, const struct gt_plan_view *view);

#endif
