/* SPDX-License-Identifier: MIT */
/* Which spot each event of a lane belongs to: the live blocks, by address, with their spots. */
#ifndef GT_PAGE_SPOTS_H
#define GT_PAGE_SPOTS_H

#include "page/history.h"

struct gt_spotter;

struct gt_spotter *gt_spotter_new(struct gt_page_history *history);
struct gt_spotter *gt_spotter_free(struct gt_spotter *spotter);

/* A block that lived before the history; its spot's number. */
uint32_t gt_spotter_load(struct gt_spotter *spotter, const struct gt_block *block);

/* An event that changes what is in use; its spot's number. Call with each, in order. */
uint32_t gt_spotter_event(struct gt_spotter *spotter, const struct gt_event *event);

/* The spot of what a site held at a peak that the history does not reach. */
uint32_t gt_spotter_hold(struct gt_spotter *spotter, const struct gt_hold *hold);

#endif
