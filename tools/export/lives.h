/* SPDX-License-Identifier: MIT */
/* Every block of a device with the events between which it lived, streamed. */
#ifndef GT_EXPORT_LIVES_H
#define GT_EXPORT_LIVES_H

#include "export/export.h"

struct gt_lived {
	struct gt_block block;
	/*
	 * Alive after events from to before to. from 0: before the history; its time is known. to 0: it
	 * lives.
	 */
	uint64_t from, to;
	uint64_t from_us, to_us;
	const struct gt_event *end; /* the event of to; NULL = none */
	const struct gt_life *life; /* what is inferred of it; NULL = nothing */
	const struct gt_site_def
		*named; /* whose line it is on: its own site, or who called backward() */
};

typedef void gt_lived_fn(void *ctx, const struct gt_export_place *place,
			 const struct gt_lived *lived);

/*
 * In the order of their ends, those that live at the end last. Together they are the totals after
 * any event that the history covers. 0, or -1 with err.
 */
int gt_lives(const struct gt_export_place *place, gt_lived_fn *take, void *ctx,
	     struct gt_error *err);

/* The line of the user that stands for a site, whole: short names may be of several. Made once; valid until cleared. */
struct gt_lines {
	struct gt_line_text *list;
};

const char *gt_line_of(struct gt_lines *lines, const struct gt_export_place *place,
		       const struct gt_site_def *named);
void gt_lines_clear(struct gt_lines *lines);

#endif
