/* SPDX-License-Identifier: MIT */
/*
 * Brings the copy of a lane to the state right after event seq1 by applying the events seq0 .. seq1
 * to it, the way the recorder did. An event sets the state of its key absolutely, so it does not
 * matter that some slots show it already; a site's line says after which event it was copied. The
 * counters are not taken from here (ctr1 is exact), but must come out equal: a check on the copy.
 *
 * Peaks per site: total k of the lane peaked at event peak_seq[k]. A site that did not change since
 * has its bytes at the peak in live, one that did saved them in at[k] at its first change.
 */
#include <stdlib.h>
#include <string.h>
#include <uthash.h>
#include "read/reader.h"

struct change { /* what became of a key between seq0 and seq1 */
	uint64_t key;
	bool alive;
	struct gt_block block;
	UT_hash_handle hh;
};

struct replay {
	struct gt_image *image;
	const struct gt_lane_sites *defs;
	struct gt_ctr ctr;
	struct change *changes;
};

/* The last change of a key wins, whatever the slots showed. */
static int note_change(struct replay *r, const struct gt_event *e, bool alive)
{
	const uint64_t key = GT_KEY(e->addr, e->space);
	struct change *change;

	HASH_FIND(hh, r->changes, &key, sizeof(key), change);
	if (!change) {
		change = calloc(1, sizeof(*change));
		if (!change)
			return -1;
		change->key = key;
		HASH_ADD(hh, r->changes, key, sizeof(key), change);
	}
	change->alive = alive;
	change->block = gt_block_of(e);
	return 0;
}

/* The rule of the recorder, in its order: save for the peaks, change, and only then the totals. */
static void replay_line(struct replay *r, const struct gt_event *e, int sign)
{
	struct gt_site *line = &r->image->lines[e->site];
	const uint64_t change = sign > 0 ? e->size : 0 - e->size;

	if (e->seq <= r->image->line_seq[e->site])
		return;
	for (int k = 0; k < GT_TOTALS; k++) {
		if (line->last_seq <= r->ctr.peak_seq[k])
			line->at[k] = line->live;
	}
	line->live += change;
	line->live_count += (uint64_t)(int64_t)sign;
	line->last_seq = e->seq;
	if (e->op == GT_OP_ALLOC) {
		line->ever += e->size;
		line->ever_count++;
	}
}

static void replay_counters(struct replay *r, const struct gt_event *e, int sign)
{
	const unsigned int mask = r->defs->defs[e->site].mask;

	for (int k = 0; k < GT_TOTALS; k++) {
		if (!(mask >> k & 1))
			continue;
		r->ctr.cur[k] += sign > 0 ? e->size : 0 - e->size;
		if (r->ctr.cur[k] > r->ctr.peak[k]) {
			r->ctr.peak[k] = r->ctr.cur[k];
			r->ctr.peak_seq[k] = e->seq;
		}
	}
}

static int replay_event(struct replay *r, const struct gt_event *e)
{
	const int sign = gt_op_effect(e->op);

	if (!sign)
		return 0;
	if (!r->image->totals && note_change(r, e, sign > 0))
		return -1;
	if (e->seq > r->image->seq0) {
		replay_line(r, e, sign);
		replay_counters(r, e, sign);
	}
	return 0;
}

/*
 * seq0 itself is part of it: it was committed, but its slot may not have been written yet. Of the
 * totals it is not: its line is exact.
 */
static uint64_t window_begin(const struct gt_image *image)
{
	return image->seq0 && !image->totals ? image->seq0 : image->seq0 + 1;
}

static int replay_window(struct replay *r, struct gt_cursor *cursor, struct gt_error *err)
{
	const struct gt_event *event;
	uint64_t seq = window_begin(r->image);
	int rc = 0;

	for (; !rc && seq <= r->image->seq1; seq++) {
		if (seq < r->image->history.first_seq)
			return cursor->source->live ? GT_RECYCLED : 0;
		rc = gt_cursor_at(cursor, seq, &event, err);
		if (!rc && replay_event(r, event))
			rc = gt_fail_memory(err, cursor->source->path);
	}
	return rc;
}

static void add_block(struct gt_trace_lane *lane, const struct gt_block *block)
{
	lane->blocks[lane->block_count++] = *block;
}

static int by_address(const void *a, const void *b)
{
	const struct gt_block *x = a, *y = b;

	if (x->addr != y->addr)
		return x->addr < y->addr ? -1 : 1;
	return x->space < y->space ? -1 : x->space > y->space;
}

/*
 * Blocks of the copied slots that did not change, and those that the changes left alive; sorted by
 * address, so that consumers can search and print without a sort of their own.
 */
static int settle_blocks(struct replay *r, struct gt_trace_lane *lane)
{
	struct gt_image *image = r->image;
	struct change *change, *next;

	lane->blocks =
		calloc(image->slot_count + HASH_COUNT(r->changes) + 1, sizeof(*lane->blocks));
	if (!lane->blocks)
		return -1;
	for (size_t i = 0; i < image->slot_count; i++) {
		const struct gt_slot *s = &image->slots[i];

		HASH_FIND(hh, r->changes, &s->key, sizeof(s->key), change);
		if (change)
			continue;
		add_block(lane, &(struct gt_block){
					.addr = GT_KEY_ADDR(s->key),
					.space = (uint8_t)GT_KEY_SPACE(s->key),
					.size = GT_LOW48(s->size_stream),
					.stream = (uint16_t)GT_HIGH16(s->size_stream),
					.birth_us = GT_LOW48(s->birth),
					.thread = (uint16_t)GT_HIGH16(s->birth),
					.site = s->site,
				});
	}
	HASH_ITER(hh, r->changes, change, next) {
		if (change->alive)
			add_block(lane, &change->block);
	}
	qsort(lane->blocks, lane->block_count, sizeof(*lane->blocks), by_address);
	return 0;
}

static void free_changes(struct replay *r)
{
	struct change *change, *next;

	HASH_ITER(hh, r->changes, change, next) {
		HASH_DEL(r->changes, change);
		free(change);
	}
}

/* Every block names sites, threads, streams that exist; in a partial trace those that do. */
static int check_blocks(const struct gt_trace *trace, const struct gt_image *image,
			struct gt_trace_lane *lane, struct gt_error *err)
{
	for (size_t i = 0; i < lane->block_count; i++) {
		struct gt_block *b = &lane->blocks[i];

		if (b->site < lane->site_count && b->thread < trace->thread_count &&
		    b->stream < trace->stream_count)
			continue;
		if (!trace->partial)
			return gt_damaged(err, trace->path, image->extent.offset,
					  "live block %#llx of this lane names something that is "
					  "not defined",
					  (unsigned long long)b->addr);
		b->site = b->site < lane->site_count ? b->site : 0;
		b->thread = b->thread < trace->thread_count ? b->thread : 0;
		b->stream = b->stream < trace->stream_count ? b->stream : 0;
	}
	return 0;
}

/* The counters that came out must be those that were stored, or the copy was torn. */
static bool adds_up(const struct replay *r)
{
	const struct gt_ctr *stored = &r->image->ctr1;

	return !memcmp(r->ctr.cur, stored->cur, sizeof(stored->cur)) &&
	       !memcmp(r->ctr.peak, stored->peak, sizeof(stored->peak)) &&
	       !memcmp(r->ctr.peak_seq, stored->peak_seq, sizeof(stored->peak_seq));
}

static int run(struct replay *r, struct gt_trace *trace, struct gt_error *err)
{
	const struct gt_history *history = &r->image->history;
	const uint64_t begin = window_begin(r->image);
	bool missing = begin <= r->image->seq1 && history->first_seq > r->image->seq1;
	struct gt_cursor cursor;
	struct gt_limits limits;
	int rc;

	if (missing && trace->reader->source.live)
		return GT_RECYCLED;
	if (missing && !trace->partial)
		return gt_damaged(err, trace->path, r->image->extent.offset,
				  "the last event of lane %u is missing", r->image->extent.lane);
	gt_limits_of(trace, r->image->extent.lane, &limits);
	gt_cursor_init(&cursor, &trace->reader->source, history, &limits);
	rc = replay_window(r, &cursor, err);
	gt_cursor_release(&cursor);
	return !rc && !adds_up(r) ? GT_RECYCLED : rc;
}

/* Hands the results over; what has moved is no longer the image's. */
static void hand_over(struct gt_image *image, struct gt_trace_lane *lane)
{
	lane->lane = image->extent.lane;
	lane->device = image->device;
	lane->seq = image->seq1;
	lane->ctr = image->ctr1;
	lane->incomplete_seq = image->incomplete_seq;
	lane->lost = image->lost;
	lane->history_first = image->totals ? image->seq1 + 1 : image->history.first_seq;
	lane->history_us = lane->history_first > 1 ? image->history.first_us : 0;
	lane->sites = image->lines;
	image->lines = NULL;
	image->line_count = 0;
}

/* After the definitions: masks of sites decide which totals an event changes. */
int gt_image_settle(struct gt_image *image, struct gt_trace *trace, struct gt_trace_lane *lane,
		    struct gt_error *err)
{
	const struct gt_lane_sites *defs = &trace->reader->sites[image->extent.lane];
	struct replay r = {.image = image, .defs = defs, .ctr = image->ctr0};
	int rc;

	lane->site_defs = defs->defs;
	lane->site_count = defs->count;
	if (gt_image_lines(image, defs->count))
		return gt_fail_memory(err, trace->path);
	rc = run(&r, trace, err);
	if (!rc && settle_blocks(&r, lane))
		rc = gt_fail_memory(err, trace->path);
	free_changes(&r);
	if (!rc)
		hand_over(image, lane);
	return rc ? rc : check_blocks(trace, image, lane, err);
}
