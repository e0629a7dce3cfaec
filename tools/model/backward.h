/* SPDX-License-Identifier: MIT */
/*
 * Backward passes in a story: the anchors from which categories and steps are found, because
 * autograd's engine shows in every trace of a training.
 */
#ifndef GT_BACKWARD_H
#define GT_BACKWARD_H

#include "model/story.h"

struct gt_pass {
	uint32_t first, last;		 /* positions, both inside */
	const struct gt_features *chain; /* who called backward(); never NULL */
	const struct gt_site_def *call;	 /* the site whose chain that is; NULL = not known */
	uint64_t kept_bytes;		 /* allocated in it and alive at its end */
};

struct gt_passes {
	struct gt_pass *passes; /* in order */
	size_t count;
};

struct gt_passes gt_passes_of(const struct gt_story *story);
void gt_passes_clear(struct gt_passes *passes);

/* Index of the first pass that begins after the position; count = none. */
size_t gt_pass_after(const struct gt_passes *passes, uint32_t position);

/* The same, looked for at a guess and just behind it first. */
size_t gt_pass_after_near(const struct gt_passes *passes, uint32_t position, size_t guess);

/* Index of the pass that the position lies in; count = none. */
size_t gt_pass_at(const struct gt_passes *passes, uint32_t position);

/* The same, when the pass that begins after the position is known. */
static inline size_t gt_pass_before(const struct gt_passes *passes, uint32_t position, size_t after)
{
	return after && position <= passes->passes[after - 1].last ? after - 1 : passes->count;
}

#endif
