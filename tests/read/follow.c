/* SPDX-License-Identifier: MIT */
/*
 * See follow.h. Each lane keeps the part of its history that was readable when it was last looked
 * at: the cells in staging and, only if those begin too late, the chunks before them. When that is
 * used up it is taken again. Everything that can be overwritten meanwhile says so (GT_RECYCLED),
 * and then the lane is looked at again too.
 */
#include <stdlib.h>
#include <string.h>
#include "read/reader.h"
#include "follow.h"

struct followed {
	struct gt_image image; /* its history is what may be given out */
	struct gt_cursor cursor;
	uint64_t next;
};

struct gt_follow {
	struct gt_source source;
	struct gt_header header;
	struct gt_extents extents;
	struct followed *lanes[GT_MAX_LANES];
	unsigned int turn; /* lane whose event was given last */
	uint64_t missed;
};

static struct followed *free_followed(struct followed *lane)
{
	if (lane) {
		gt_cursor_release(&lane->cursor);
		gt_image_free(&lane->image);
	}
	free(lane);
	return NULL;
}

struct gt_follow *gt_follow_close(struct gt_follow *f)
{
	if (!f)
		return NULL;
	for (unsigned int i = 0; i < GT_MAX_LANES; i++)
		free_followed(f->lanes[i]);
	free(f->extents.at);
	gt_source_close(&f->source);
	free(f);
	return NULL;
}

/* A new lane starts at event 1, so that its first events count as missed if they are gone already.
 */
static int add_lane(struct gt_follow *f, const struct gt_extent *e, struct gt_error *err)
{
	struct followed *lane = calloc(1, sizeof(*lane));
	struct gt_limits limits;
	int rc;

	if (!lane)
		return gt_fail_memory(err, f->source.path);
	rc = gt_image_begin(&lane->image, &f->source, e, err);
	if (rc) {
		free_followed(lane);
		return rc < 0 ? rc : 0;
	}
	gt_limits_widths(&limits);
	gt_cursor_init(&lane->cursor, &f->source, &lane->image.history, &limits);
	lane->next = 1;
	f->lanes[e->lane] = lane;
	return 0;
}

/* Lanes appear with their first event; looked for only when all known ones have nothing new. */
static int find_lanes(struct gt_follow *f, struct gt_error *err)
{
	int rc = gt_extents_list(&f->source, false, &f->extents, err);

	for (size_t i = 0; !rc && i < f->extents.count; i++) {
		const struct gt_extent *e = &f->extents.at[i];

		if (e->kind == GT_EXTENT_LANE && gt_lane_has_cells(&f->source, e) &&
		    (e->lane >= GT_MAX_LANES || !f->lanes[e->lane]))
			rc = add_lane(f, e, err);
	}
	return rc;
}

int gt_follow_open(const char *path, struct gt_follow **ret, struct gt_error *err)
{
	struct gt_follow *f = calloc(1, sizeof(*f));
	int rc;

	if (!f)
		return gt_fail_memory(err, path);
	rc = gt_source_open(&f->source, path, err);
	if (!rc)
		rc = gt_header_read(&f->source, &f->header, err);
	if (!rc && gt_alive(&f->header) != GT_ALIVE_NO)
		rc = gt_source_live(&f->source, err);
	if (rc) {
		gt_follow_close(f);
		return -1;
	}
	*ret = f;
	return 0;
}

/* Takes what the lane holds now; true if its next event is there. */
static int look_again(struct gt_follow *f, struct followed *lane, struct gt_error *err)
{
	struct gt_history *h = &lane->image.history;
	int rc;

	lane->image.seq1 = gt_image_seq(&lane->image, &f->source);
	if (lane->next > lane->image.seq1)
		return 0;
	rc = gt_image_staging(&lane->image, &f->source, err);
	if (rc)
		return rc;
	h->stretch_count = 0;
	h->first_seq = h->tail_first;
	if (h->tail_count && h->tail_first <= lane->next)
		return 1;
	rc = gt_extents_list(&f->source, false, &f->extents, err);
	if (!rc)
		rc = gt_history_build(h, &f->source, &f->extents, false, err);
	if (rc)
		return rc < 0 ? rc : 0;
	if (h->first_seq > lane->next) {
		f->missed += h->first_seq - lane->next;
		lane->next = h->first_seq;
	}
	return lane->next <= h->last_seq;
}

/* The lane's next event: 1, 0 = none now, -1. */
static int next_of(struct gt_follow *f, struct followed *lane, const struct gt_event **ret,
		   struct gt_error *err)
{
	const struct gt_history *h = &lane->image.history;
	int rc = GT_RECYCLED;

	if (lane->next >= h->first_seq && lane->next <= h->last_seq && h->first_seq)
		rc = gt_cursor_at(&lane->cursor, lane->next, ret, err);
	if (rc == GT_RECYCLED) {
		rc = look_again(f, lane, err);
		if (rc <= 0)
			return rc;
		rc = gt_cursor_at(&lane->cursor, lane->next, ret, err);
	}
	if (rc)
		return rc < 0 ? rc : 0;
	lane->next++;
	return 1;
}

const struct gt_event *gt_follow_next(struct gt_follow *f, struct gt_error *err)
{
	struct gt_error local;
	const struct gt_event *event;
	int rc = 0;

	err = err ? err : &local;
	err->status = 0;
	for (int round = 0; round < 2 && !rc; round++) {
		if (round && find_lanes(f, err))
			return NULL;
		for (unsigned int i = 0; i < GT_MAX_LANES && !rc; i++) {
			const unsigned int number = (f->turn + i) % GT_MAX_LANES;

			if (f->lanes[number])
				rc = next_of(f, f->lanes[number], &event, err);
			if (rc)
				f->turn = number;
		}
	}
	return rc > 0 ? event : NULL;
}

uint64_t gt_follow_missed(const struct gt_follow *f)
{
	return f->missed;
}

bool gt_follow_running(const struct gt_follow *f)
{
	return gt_alive(&f->header) == GT_ALIVE_YES;
}
