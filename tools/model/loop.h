/* SPDX-License-Identifier: MIT */
/* Steps of programs without backward passes: from a loop's jumps back, or from a period. */
#ifndef GT_LOOP_H
#define GT_LOOP_H

#include "model/boundary.h"

/* Fills source, starts and count; leaves ret alone where no loop shows. */
void gt_loop_steps(const struct gt_story *story, struct gt_boundaries *ret);

/* The same without stacks: what repeats in the order of allocations and frees. */
void gt_period_steps(const struct gt_story *story, struct gt_boundaries *ret);

/* -1: a is earlier in some loop body than b, 1: later, 0: neither can be said. Only that many
 * frames, from the outermost, are looked at; ret_level: of those that differ. */
int gt_chain_compare(const struct gt_features *a, uint32_t a_count, const struct gt_features *b,
		     uint32_t b_count, uint32_t *ret_level);

#endif
