/* SPDX-License-Identifier: MIT */
/* What growth and oom say about bytes that stay. */
#ifndef GT_CMD_GROWTH_H
#define GT_CMD_GROWTH_H

#include "cmd/session.h"
#include "model/growth.h"

struct gt_suspicion { /* a usual culprit that fits, as a rule's name and its evidence */
	const char *rule, *text;
};

struct gt_suspicion gt_suspect(const struct gt_growth *growth, const struct gt_grower *grower);

/*
 * In words. Of a graph that is kept it names the line whose result keeps it, where that is another than the
 * line of most of it; result: of gt_growth_result(). To be freed.
 */
char *gt_suspicion_text(const struct gt_suspicion *suspicion, const struct gt_frame *result);

/* The largest that is no cache; NULL = nothing grows. */
const struct gt_grower *gt_first_grower(const struct gt_growth *growth);

/* "leak.py:29"; to be freed. */
char *gt_frame_text(const struct gt_frame *frame);

json_t *gt_json_grower(struct gt_input *input, const struct gt_growth *growth,
		       const struct gt_grower *grower);

#endif
