/* SPDX-License-Identifier: MIT */
/*
 * A snapshot as torch.cuda.memory._snapshot() gives it and pytorch.org/memory_viz reads it, written
 * as it comes: first the history of each device, then its segments as they are at the end of it.
 * The viewer replays the history backwards from the segments: both must come from one gt_segments.
 */
#ifndef GT_MEMORY_VIZ_H
#define GT_MEMORY_VIZ_H

#include <stdio.h>
#include "model/segments.h"
#include "symbols/symbols.h"

struct gt_viz *gt_viz_new(FILE *file, const struct gt_trace *trace, struct gt_symbols *symbols);

/* Begin the history of the next device, from ordinal 0 up, none left out; lane NULL: it is empty.
 */
void gt_viz_device(struct gt_viz *viz, const struct gt_trace_lane *lane);

/* Events of that device, in order of time. gt_viz_change is a gt_watch; data is the gt_viz. */
void gt_viz_change(void *viz, const struct gt_change *change);
void gt_viz_oom(struct gt_viz *viz, const struct gt_event *event, uint64_t device_free);
void gt_viz_taken(struct gt_viz *viz, uint64_t us, uint64_t in_use); /* the snapshot itself */

/* What the next changes have as user_metadata; NULL: nothing. */
void gt_viz_remark(struct gt_viz *viz, const char *remark);

/* After the last device, in any order of devices, each device's by address. */
void gt_viz_segments(struct gt_viz *viz, const struct gt_trace_lane *lane,
		     const struct gt_segment_list *list);

/* After the segments: shown as they are in the viewer's settings. Any bytes, made printable. */
void gt_viz_setting(struct gt_viz *viz, const char *key, const char *text, size_t length);

/* 0, or -errno when not everything was written. Frees the writer. */
int gt_viz_end(struct gt_viz *viz);

/* Events written. */
uint64_t gt_viz_events(const struct gt_viz *viz);

#endif
