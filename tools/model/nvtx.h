/* SPDX-License-Identifier: MIT */
/* Steps from ranges that the program named, by NVTX or gputrace.h. */
#ifndef GT_MODEL_NVTX_H
#define GT_MODEL_NVTX_H

#include "model/boundary.h"

/* Fills source, starts and count; leaves ret alone where no ranges are steps. */
void gt_nvtx_steps(const struct gt_story *story, const struct gt_passes *passes,
		   struct gt_boundaries *ret);

#endif
