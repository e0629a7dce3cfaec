/* SPDX-License-Identifier: MIT */
/*
 * Parts of a run that --from, --to and --range choose, and moments that have a name: NAME, NAME#2 (the
 * second of that name), step:N, or a time.
 */
#ifndef GT_PART_H
#define GT_PART_H

#include "cmd/session.h"
#include "model/window.h"

struct gt_part {
	const struct gt_named *named; /* NULL: of --from and --to */
	size_t begin, end;	      /* notes; GT_NO_NOTE: the times */
	uint64_t from_us, to_us;
};

struct gt_parts { /* of one trace */
	struct gt_marks marks;
	struct gt_part *parts;
	size_t count;
};

/* Was anything but the whole run asked for? */
bool gt_part_asked(const struct gt_args *args);

/* At least one, or the exit status after saying that there is none. */
int gt_parts_get(const struct gt_args *args, struct gt_input *input, struct gt_parts *ret);
void gt_parts_clear(struct gt_parts *parts);

/* The peaks of all parts on a lane, to be freed. 0, or the exit status. */
int gt_parts_tops(const struct gt_parts *parts, size_t lane_index, struct gt_top **ret);

/*
 * When, in the terms of gt_state_get, args mean on this device: the moment of the highest peak of
 * the parts asked for, else args->at. at_least: of that peak. 0, or the exit status.
 */
int gt_part_when(const struct gt_args *args, const struct gt_place *place, struct gt_when *ret,
		 bool *ret_at_least);

/* The moment at which the part asked for ends on this device; of several the last. */
int gt_part_end(const struct gt_args *args, const struct gt_place *place, struct gt_when *ret);
/* From where to where that is; the last of several. */
int gt_part_span(const struct gt_args *args, const struct gt_place *place, struct gt_span *ret);

/* timeline --range: one row, or JSON object, per range and device. 0, or the exit status. */
int gt_print_ranges(struct gt_out *out, const struct gt_args *args, const struct gt_places *places);

/* A device of its JSON answer; takes both references. */
json_t *gt_json_timeline(const struct gt_place *place, json_t *points, json_t *ranges);

/* args->at with a name made a time: for whoever wants one moment of all devices. */
int gt_when_time(const struct gt_args *args, struct gt_input *input, struct gt_when *ret);

#endif
