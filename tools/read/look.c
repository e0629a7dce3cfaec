/* SPDX-License-Identifier: MIT */
/*
 * Another look at a running process, for those who look ten times a second: the counters and the
 * totals of its sites, which are exact whatever the ring has forgotten. Costs the sites that there
 * are, never the events or blocks. Definitions only grow, so those of the last look stay valid;
 * whether new ones are needed shows in a site that they do not have. Called from tools/live.
 */
#include <stdlib.h>
#include "read/reader.h"

#define TRIES 8
#define NEW   2 /* definitions */

/* Is every site that has ever been used defined? */
static bool is_defined(const struct gt_trace *trace, const struct gt_image *image)
{
	const size_t known = trace->reader->sites[image->extent.lane].count;

	for (size_t i = known; i < image->line_count; i++)
		if (image->lines[i].ever_count || image->lines[i].last_seq)
			return false;
	for (size_t i = 0; i < image->history.tail_count; i++)
		if (image->history.tail[i].site >= known)
			return false;
	return true;
}

static bool is_known(const struct gt_trace *trace, const struct gt_image *images, size_t count)
{
	bool known = count == trace->lane_count;

	for (size_t i = 0; known && i < count; i++)
		known = images[i].extent.lane == trace->lanes[i].lane &&
			is_defined(trace, &images[i]);
	return known;
}

/* New lanes in place of the old ones; those stay when it fails. */
static int replace_lanes(struct gt_trace *trace, struct gt_image *images, size_t count,
			 struct gt_error *err)
{
	struct gt_trace_lane *lanes = trace->lanes;
	struct gt_history *histories = trace->reader->histories;
	const size_t before = trace->lane_count;
	int rc;

	trace->lanes = NULL;
	trace->reader->histories = NULL;
	trace->lane_count = 0;
	rc = gt_images_settle(trace, images, count, err);
	if (!rc) {
		gt_lanes_free(lanes, histories, before);
		return 0;
	}
	gt_lanes_free(trace->lanes, trace->reader->histories, trace->lane_count);
	trace->lanes = lanes;
	trace->reader->histories = histories;
	trace->lane_count = before;
	return rc;
}

/* 0, GT_RECYCLED, -1, or NEW: what cannot be brought to one event names what is not defined. */
static int look_once(struct gt_trace *trace, bool chunks, struct gt_error *err)
{
	struct gt_image *images;
	size_t count;
	int rc = gt_images_take(trace, chunks, &images, &count, err);

	if (!rc && !is_known(trace, images, count))
		rc = NEW;
	if (!rc) {
		rc = replace_lanes(trace, images, count, err);
		rc = rc < 0 ? NEW : rc;
	}
	gt_images_free(images, count);
	return rc;
}

/*
 * Staging is lapped when another program takes the processor away: then one more look costs next to
 * nothing, but to decode chunks, or to open the trace again, costs as much as dozens of looks.
 */
int gt_trace_look(struct gt_trace *trace, struct gt_error *err)
{
	int rc = GT_RECYCLED;

	trace->running = gt_alive(&trace->header) == GT_ALIVE_YES;
	if (gt_header_read(&trace->reader->source, &trace->header, err))
		return -1;
	for (int i = 1; rc == GT_RECYCLED && i <= TRIES; i++)
		rc = look_once(trace, i == TRIES, err);
	return rc > 0 ? 1 : rc;
}
