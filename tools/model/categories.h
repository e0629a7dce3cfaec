/* SPDX-License-Identifier: MIT */
/*
 * What each block was for. Decided by an ordered table of rules (categories.c) from the block's
 * stack, its life relative to backward passes and steps, and sizes that recur. Nothing is guessed
 * silently: unknown is a category, and each block knows the rule that chose.
 */
#ifndef GT_CATEGORIES_H
#define GT_CATEGORIES_H

#include "model/boundary.h"

enum gt_category {
	GT_CATEGORY_NONE, /* not asked: no torch in the process */
	GT_CATEGORY_WEIGHTS,
	GT_CATEGORY_GRADIENTS,
	GT_CATEGORY_OPTIMIZER,
	GT_CATEGORY_ACTIVATIONS,
	GT_CATEGORY_TEMPORARIES,
	GT_CATEGORY_INPUTS,
	GT_CATEGORY_WORKSPACES,
	GT_CATEGORY_UNKNOWN,
	GT_CATEGORIES,
};

const char *gt_category_name(enum gt_category category); /* "optimizer state" */
const char *gt_category_key(enum gt_category category);	 /* "optimizer_state", in JSON */

struct gt_why { /* a rule of the table, for people */
	const char *name;
	const char *text;
	bool weak;
};

struct gt_why gt_rule_why(uint8_t rule);

/* Fills category and rule of each life. */
void gt_categorize(struct gt_story *story, const struct gt_passes *passes,
		   const struct gt_boundaries *boundaries);

/* Equal, or both above 1 MiB and less than 1 MiB apart: the allocator leaves such remainders. */
bool gt_same_size(uint64_t a, uint64_t b);

#endif
