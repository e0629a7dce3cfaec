/* SPDX-License-Identifier: MIT */
/* A snapshot's segments and traces as the events of a gputrace trace. */
#ifndef GT_TORCH_EVENTS_H
#define GT_TORCH_EVENTS_H

#include "torch/shape.h"

/* Tells the builder everything. 0, or -1: no memory. */
int gt_torch_tell(struct gt_torch *torch, struct gt_build *build);

#endif
