/* SPDX-License-Identifier: MIT */
/* The frames of a snapshot as stacks of a trace: each list of frames once, wherever it stands. */
#ifndef GT_TORCH_FRAMES_H
#define GT_TORCH_FRAMES_H

#include "torch/shape.h"

struct gt_torch_frames;

struct gt_torch_frames *gt_torch_frames_new(const struct gt_values *values,
					    struct gt_build *build); /* NULL = no memory */
struct gt_torch_frames *gt_torch_frames_free(struct gt_torch_frames *frames);

/* Of a list of frames, innermost first; no frames when it is none. */
struct gt_torch_stack gt_torch_stack_of(struct gt_torch_frames *frames,
					const struct gt_value *list);

/* Was there a frame that is not Python's? */
bool gt_torch_frames_native(const struct gt_torch_frames *frames);

#endif
