/* SPDX-License-Identifier: MIT */
/* Fewer blocks that hold the same bytes, for files that may not be as long as the truth. */
#ifndef GT_COARSE_H
#define GT_COARSE_H

#include "read/trace.h"

#define GT_COARSE_LEVELS 6u

/*
 * Joins torch blocks that touch, in one segment, stream and pool: at levels 1 to 5 those of one site that are
 * smaller than gt_coarse_below, at level 6 all. Returns how many blocks are left; they are in order of
 * address, and sums of sizes and requests are as before.
 */
size_t gt_coarse_blocks(struct gt_block *blocks, size_t count, unsigned int level);

uint64_t gt_coarse_below(unsigned int level); /* UINT64_MAX: any size */

#endif
