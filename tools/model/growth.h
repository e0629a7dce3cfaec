/* SPDX-License-Identifier: MIT */
/*
 * What stays after each step: bytes that outlive the step after the one that made them, by site.
 * Such blocks do not depend on the size of this step's input, so a small slope shows among large
 * variation.
 */
#ifndef GT_GROWTH_H
#define GT_GROWTH_H

#include "model/steps.h"

enum gt_growth_kind {
	GT_GROWTH_KEPT,	  /* more blocks every so many steps */
	GT_GROWTH_BUFFER, /* one block replaced by a larger one */
	GT_GROWTH_CACHE,  /* blocks of different sizes, ever more seldom: no fault */
};

struct gt_grower {			/* a site that grows */
	const struct gt_site_def *site; /* one of those with its Python stack */
	const struct gt_features *features;
	enum gt_growth_kind kind;
	enum gt_category category; /* of most of its bytes */
	double slope;		   /* bytes per step */
	uint64_t bytes, count;	   /* now, that are old */
	uint32_t ups, steps;	   /* steps in which it grew, of how many */
	uint32_t first_step;	   /* in which the oldest that is kept was made */
	uint32_t last_born;	   /* position at which the newest that is old was made */
	bool high;		   /* confidence: high or medium */
	size_t pattern;		   /* growers with the same are one cause; from 0 */
};

struct gt_growth {
	struct gt_grower *growers; /* largest slope first; caches last */
	size_t count;
	double slope;		    /* of all that are no cache */
	uint64_t bytes;		    /* kept by them now */
	uint32_t ups, steps;	    /* of the largest */
	bool enough;		    /* steps to say that nothing grows */
	uint64_t end_low, end_high; /* in use at the ends of steps, the first and last left out */
};

struct gt_growth gt_growth_of(const struct gt_answers *answers, size_t lane_index);
void gt_growth_clear(struct gt_growth *growth);

/*
 * The frame of a grower that tells it from innocent sites: the innermost whose line no site
 * that does not grow comes to by other calls; outwards from a helper that everybody calls. NULL = no Python frames.
 */
const struct gt_frame *gt_growth_frame(const struct gt_answers *answers,
				       const struct gt_growth *growth,
				       const struct gt_grower *grower);

/*
 * What is made last of all that grows together with the largest: of a graph that is kept, the loss or the
 * output that keeps it. NULL = its line is the one that gt_growth_frame names.
 */
const struct gt_frame *gt_growth_result(const struct gt_answers *answers,
					const struct gt_growth *growth);

#endif
