/* SPDX-License-Identifier: MIT */
/*
 * Segments that are kept up event by event against what their list says: random programs of segments,
 * torch blocks in them and driver memory beside them.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include "model/segments.h"

#define MIB (UINT64_C(1) << 20)

enum site {
	SITE_SEGMENT = 1,
	SITE_RAW,
	SITE_TORCH,
	SITES,
};

static struct gt_site_def sites[SITES] = {
	[SITE_SEGMENT] = {.space = GT_SPACE_DRIVER, .mask = GT_MASK_RESERVED},
	[SITE_RAW] = {.space = GT_SPACE_DRIVER, .mask = GT_MASK_RESERVED | GT_MASK_IN_USE},
	[SITE_TORCH] = {.space = GT_SPACE_TORCH, .mask = GT_MASK_TORCH | GT_MASK_IN_USE},
};

static struct gt_event random_event(uint64_t seq)
{
	struct gt_event event = {.seq = seq, .us = seq};

	event.op = rand() % 3 ? GT_OP_ALLOC : GT_OP_FREE;
	event.site = rand() % 4 ? SITE_TORCH : rand() % 4 ? SITE_SEGMENT : SITE_RAW;
	event.space = sites[event.site].space;
	event.addr = 1024 * MIB + (uint64_t)(rand() % 12) * 20 * MIB;
	event.size = rand() % 2 ? 2 * MIB : 20 * MIB;
	if (event.site == SITE_TORCH) {
		event.addr += (uint64_t)(rand() % 16) * MIB / 8;
		event.size = (uint64_t)(1 + rand() % 6) * MIB / 8;
	}
	return event;
}

/* A segment that is free as a whole can be given back, so it does not count. */
static struct gt_inactive inactive_in(const struct gt_segment_list *list, bool small)
{
	struct gt_inactive sum = {0};

	for (size_t i = 0; i < list->count; i++) {
		const struct gt_segment *segment = &list->segments[i];

		if (segment->small != small || !segment->pool || !segment->used)
			continue;
		for (size_t p = 0; p < segment->piece_count; p++)
			if (!segment->pieces[p].used) {
				sum.bytes += segment->pieces[p].size;
				sum.count++;
			}
	}
	return sum;
}

Test(segments, inactive_pieces_are_those_of_the_list_after_every_event)
{
	struct gt_trace_lane lane = {.site_defs = sites, .site_count = SITES};
	size_t seen[2] = {0};

	srand(7);
	for (int program = 0; program < 20; program++) {
		struct gt_segments *segments = gt_segments_new(&lane);

		for (uint64_t seq = 1; seq <= 300; seq++) {
			struct gt_event event = random_event(seq);
			struct gt_segment_list list;

			gt_segments_apply(segments, &event, NULL, NULL);
			gt_segments_list(segments, &list);
			for (int small = 0; small < 2; small++) {
				struct gt_inactive got = gt_segments_inactive(segments, small);
				struct gt_inactive wanted = inactive_in(&list, small);

				cr_assert_eq(got.bytes, wanted.bytes);
				cr_assert_eq(got.count, wanted.count);
				seen[small] += wanted.count;
			}
			gt_segments_list_clear(&list);
		}
		gt_segments_free(segments);
	}
	cr_assert(seen[0] > 1000 && seen[1] > 1000, "%zu, %zu pieces: no test", seen[0], seen[1]);
}
