/* SPDX-License-Identifier: MIT */
/* Inside the command plan: what was read and worked out, for those who print it. */
#ifndef GT_CMD_PLAN_H
#define GT_CMD_PLAN_H

#include "cmd/session.h"
#include "model/plan.h"

struct gt_plan_point { /* a run with its batch size */
	const char *path;
	double batch;
	double peak, held;
	double phases[GT_PHASE_AFTER + 1]; /* the highest peak of each, over all steps */
	double categories[GT_CATEGORIES];  /* at the end of a usual step's backward */
	double at_peak[GT_CATEGORIES];
	size_t worst; /* step of the peak, from 1 */
	enum gt_phase phase;
	uint64_t device_total;
};

struct gt_plan_view {
	struct gt_plan_point *points;
	size_t count;
	struct gt_line_fit phases[GT_PHASE_AFTER + 1], held;
	bool fitted[GT_PHASE_AFTER + 1];
	enum gt_phase phase; /* the one that limits the batch */
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

/* What the runs say of another batch size; of one run, its line from the static bytes. */
double gt_plan_predict(const struct gt_plan_view *view, double batch);

void gt_plan_print(struct gt_out *out, const struct gt_args *args, const struct gt_plan_view *view);
void gt_plan_json(struct gt_out *out, const struct gt_args *args, const struct gt_plan_view *view);

#endif
