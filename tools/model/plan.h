/* SPDX-License-Identifier: MIT */
/*
 * Arithmetic of what a training needs: bytes that do not depend on the batch, bytes per sample, what
 * of them each technique takes away, and the batch that fits. The formulas and their sources stand
 * in docs/accounting.md. Called by plan and compare.
 */
#ifndef GT_PLAN_H
#define GT_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gt_line_fit { /* y = at_zero + slope x, by least squares */
	double at_zero, slope;
	double residual; /* the largest distance of a point from the line */
};

/* 0, or -1: fewer than two different x. */
int gt_fit_line(const double *x, const double *y, size_t count, struct gt_line_fit *ret);

struct gt_plan_base {  /* bytes; a training as measured or assumed */
	double params; /* number of parameters; 0 = not known */
	double weights, gradients, optimizer;
	double other; /* the rest of what does not depend on the batch; may be negative */
	double per_sample;
	/* Of the model and the means: 0 = not given. */
	double layers, rank, devices;
};

struct gt_plan_row { /* the same with a technique */
	const char *id, *name, *formula;
	bool same_result; /* of the computation */
	bool applies;	  /* there is something to take away */
	bool known;	  /* false: the formula needs something that was not given */
	double weights, gradients, optimizer, other;
	double per_sample;
};

/* The base first; those that have nothing to take away are left out. To be freed. */
struct gt_plan_row *gt_plan_rows(const struct gt_plan_base *base, size_t *ret_count);

/* 32-bit weights and gradients, Adam. */
struct gt_plan_base gt_plan_of_params(double params);

double gt_plan_static(const struct gt_plan_row *row);

/* Samples that fit the room; 0 when not even one does, or per_sample is not known. */
uint64_t gt_plan_largest(double room, double per_sample);

/* The largest divisor of target that is at most most; 0: none. */
uint64_t gt_plan_divisor(uint64_t target, uint64_t most);

#endif
