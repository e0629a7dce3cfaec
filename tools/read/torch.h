/* SPDX-License-Identifier: MIT */
/*
 * A copy of a trace with what a torch snapshot of the same run knows beside it: what was asked of
 * torch before it rounded up, and in which of torch's pools memory lies.
 */
#ifndef GT_READ_TORCH_H
#define GT_READ_TORCH_H

#include "read/append.h"

/* Of events of a lane, or of its blocks that are alive at the end (alive); which only rises. */
void gt_torch_append(struct gt_append *append, uint32_t lane, bool alive,
		     const struct gt_added *added, size_t count);
/* The pools that these name, all of them, and first. */
void gt_torch_append_pools(struct gt_append *append, const struct gt_pool_def *pools, size_t count);
/* Whose they are. */
void gt_torch_append_name(struct gt_append *append, const char *snapshot);

#endif
