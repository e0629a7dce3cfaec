/* SPDX-License-Identifier: MIT */
/* The steps of a training with their figures, per device. */
#ifndef GT_STEPS_H
#define GT_STEPS_H

#include "model/answers.h"

enum gt_step_moment {
	GT_STEP_FORWARD,
	GT_STEP_BACKWARD,
	GT_STEP_END,
	GT_STEP_PEAK,
	GT_STEP_MOMENTS,
};

/* Stretches of a step by number of events, for what happens at the same place in each of them. */
#define GT_STEP_SLICES 32

struct gt_step {
	uint32_t first, end; /* positions: from the first to before the end */
	uint64_t from_us, to_us;
	uint64_t seq_end;	 /* last event of the lane in it */
	uint64_t peak, peak_seq; /* of the total asked for; most at any event in it */
	uint32_t peak_at;	 /* position */
	enum gt_phase peak_phase;
	uint64_t peak_reserved;
	uint64_t end_bytes;  /* of the total */
	uint64_t carried_in; /* made in the step before, freed in this one */
	uint64_t inputs;     /* bytes of its inputs; 0 = none found */
	uint64_t allocs, frees, alloc_bytes;
	uint64_t phase_peaks[GT_PHASE_AFTER + 1];
	uint64_t slice_peaks[GT_STEP_SLICES];
	uint8_t slice_phases[GT_STEP_SLICES]; /* enum gt_phase of that peak */
	/* In use at the end of its (last) forward, of its (last) backward, at its own, and its
	 * peak. */
	uint64_t categories[GT_STEP_MOMENTS][GT_CATEGORIES];
	bool cut; /* the trace or the training ends in it: its end says nothing */
};

struct gt_steps {
	struct gt_step *steps;
	size_t count;
	enum gt_step_source source;
	double confidence;
	size_t usual; /* the step whose peak is the median; index */
	size_t worst; /* the largest peak, the first of equals; index */
};

/* 0 or -1 with err. */
int gt_steps_get(const struct gt_answers *answers, size_t lane_index, enum gt_total total,
		 struct gt_steps *ret, struct gt_error *err);
/* Makes a moment of GT_WHEN_STEP one of GT_WHEN_EVENT. 0, or -1 with err: there is none. */
int gt_steps_resolve(const struct gt_answers *answers, size_t lane_index, struct gt_when *when,
		     struct gt_error *err);
void gt_steps_clear(struct gt_steps *steps);

/* Without the first, which warms up, and the last, which may be cut. 0: too few to say. */
double gt_steps_per_second(const struct gt_steps *steps);

/*
 * The last event of the lane before the position: where a step, or a phase of it, ends. 0: none.
 */
uint64_t gt_seq_before(const struct gt_answers *answers, size_t lane_index, uint32_t position);

/* When step number (from 1) begins, and when the next does or, of the last, the story ends. 0 or -1. */
int gt_step_times(const struct gt_answers *answers, size_t number, uint64_t *ret_from_us,
		  uint64_t *ret_to_us);

/* The position at which a phase of step number (from 1) ends; 0 = no such step or phase. */
uint32_t gt_step_moment(const struct gt_answers *answers, size_t number, enum gt_phase phase);

#endif
