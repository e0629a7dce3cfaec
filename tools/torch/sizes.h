/* SPDX-License-Identifier: MIT */
/*
 * How torch's caching allocator rounds and cuts. Its events say only what was requested; what a block
 * took follows from the request, the settings, and what was free where it lies.
 */
#ifndef GT_TORCH_SIZES_H
#define GT_TORCH_SIZES_H

#include "torch/shape.h"

#define GT_TORCH_SMALL ((uint64_t)1 << 20) /* blocks up to here come from the pool of small ones */

/* The request, rounded up. */
uint64_t gt_torch_round(const struct gt_torch_settings *settings, uint64_t requested);

/* What torch would ask of the driver for a block of that size. */
uint64_t gt_torch_segment_size(uint64_t rounded);

/*
 * The segments of a device that were not mapped piece by piece, with the blocks in them: there a
 * large block takes what is left over if that is no more than 1 MiB.
 */
struct gt_cuts;

struct gt_cuts *gt_cuts_new(const struct gt_torch_settings *settings); /* NULL = no memory */
struct gt_cuts *gt_cuts_free(struct gt_cuts *cuts);

int gt_cuts_segment(struct gt_cuts *cuts, uint64_t addr, uint64_t size); /* 0, or -1: no memory */
void gt_cuts_segment_gone(struct gt_cuts *cuts, uint64_t addr);
int gt_cuts_block(struct gt_cuts *cuts, uint64_t addr, uint64_t size);
void gt_cuts_block_gone(struct gt_cuts *cuts, uint64_t addr);

/* What a new block at the address takes. */
uint64_t gt_cuts_size(const struct gt_cuts *cuts, uint64_t addr, uint64_t requested);

#endif
