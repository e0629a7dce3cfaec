/* SPDX-License-Identifier: MIT */
/* What is held, per stack: the common input of everything that draws flame graphs. */
#ifndef GT_EXPORT_SAMPLES_H
#define GT_EXPORT_SAMPLES_H

#include "export/export.h"

struct gt_sample {
	uint32_t native, python; /* the stack, for gt_symbols_stack */
	uint8_t category;	 /* enum gt_category; 0 = none, or not asked for */
	uint8_t space;		 /* enum gt_space; 0 = not asked for */
	uint64_t bytes, count;	 /* at the moment; count only if the state's blocks are known */
	uint64_t ever, ever_count;
};

struct gt_samples {
	struct gt_sample *samples; /* by stack, category, space: each once */
	size_t count;
};

/*
 * bytes add up to the state's; ever is of all sites of the total, whatever is left of them. fine: a
 * sample per category and space too, and what was allocated ever has no category.
 */
struct gt_samples gt_samples_of(const struct gt_export_place *place, enum gt_total total,
				bool fine);
void gt_samples_clear(struct gt_samples *samples);

#endif
