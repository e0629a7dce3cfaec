/* SPDX-License-Identifier: MIT */
/*
 * Where the steps of a training begin: from marks of the program or NVTX ranges, where there are
 * some, else inferred from the backward passes and the call chains that led to them, else from a
 * loop's jumps back, else from what repeats.
 */
#ifndef GT_BOUNDARY_H
#define GT_BOUNDARY_H

#include "model/backward.h"

enum gt_step_source {
	GT_STEPS_NONE,	   /* nothing repeats */
	GT_STEPS_MARKS,	   /* gputrace.h */
	GT_STEPS_NVTX,	   /* ranges */
	GT_STEPS_INFERRED, /* backward passes */
	GT_STEPS_LOOP,	   /* jumps of a loop without backward passes */
	GT_STEPS_PERIOD,   /* what repeats, where nothing else is known */
};

struct gt_boundaries {
	enum gt_step_source source;
	double confidence; /* 0 to 1; of marks 1 */
	uint32_t *starts;  /* position of the first event of each step */
	size_t count;
	uint32_t end;	/* position behind the last step: the end of training */
	uint32_t setup; /* where the first step begins, known even if steps are not */
};

const char *gt_step_source_name(enum gt_step_source source);

struct gt_boundaries gt_boundaries_of(const struct gt_story *story, const struct gt_passes *passes);
void gt_boundaries_clear(struct gt_boundaries *boundaries);

/* Number of the step that the position lies in, from 1; 0 = before the first. */
size_t gt_boundary_step(const struct gt_boundaries *boundaries, uint32_t position);

#endif
