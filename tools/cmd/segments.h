/* SPDX-License-Identifier: MIT */
/* The segments of a device at a moment. */
#ifndef GT_CMD_SEGMENTS_H
#define GT_CMD_SEGMENTS_H

#include "cmd/session.h"
#include "model/segments.h"

/* 0, or the exit status after saying why. ret by address. */
int gt_segments_at(const struct gt_place *place, struct gt_when when, struct gt_segment_list *ret,
		   uint64_t *ret_us);

#endif
