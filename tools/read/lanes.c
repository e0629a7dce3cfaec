/* SPDX-License-Identifier: MIT */
/*
 * Copies a lane that its process may be changing. Nothing is locked; instead every part of the copy
 * is known to be right at some event between seq0 and seq1, and replay.c carries all of them to
 * seq1:
 *
 *   counters  ctr[seq & 1], if seq is still the same after the copy: seq0's and seq1's
 *   sites     a line that was copied while seq stood at q is right after q, except that the line of
 *             q itself may not be written yet: its new content is redo[q & 1]
 *   blocks    whatever the slots show; every change between seq0 and seq1 is set right by replay,
 *             that of seq0 too, whose slot may not be written yet
 *   staging   a cell is event s if it says so and could not have been overwritten meanwhile
 *
 * In the file of a dead process seq never moves, and the same steps give the state after its last
 * event: the overlay of one cell and one redo line.
 */
#include <stdlib.h>
#include <string.h>
#include "read/reader.h"

#define TRIES 1000
#define GROUP 64 /* lines looked at together: a page of them */
#define FEW   4	 /* lines that can be copied between two events of the fastest program */

#define LANE_AT(image, field) \
	((image)->extent.offset + sizeof(struct gt_extent) + offsetof(struct gt_lane, field))

uint64_t gt_image_seq(const struct gt_image *image, const struct gt_source *source)
{
	return gt_source_word(source, LANE_AT(image, seq));
}

/* Copies what belongs to the current event: an element of a pair, chosen by seq & 1. */
static int copy_of_event(const struct gt_image *image, const struct gt_source *source, uint64_t at,
			 void *to, size_t size, uint64_t *ret_seq)
{
	uint64_t seq;

	for (int tries = 0; tries < TRIES; tries++) {
		seq = gt_image_seq(image, source);
		if (gt_source_copy(source, at + (seq & 1) * size, to, size))
			return -1;
		if (gt_image_seq(image, source) == seq) {
			*ret_seq = seq;
			return 0;
		}
	}
	return GT_RECYCLED;
}

static int copy_counters(const struct gt_image *image, const struct gt_source *source,
			 struct gt_ctr *ctr, uint64_t *seq)
{
	return copy_of_event(image, source, LANE_AT(image, ctr), ctr, sizeof(*ctr), seq);
}

bool gt_lane_has_cells(const struct gt_source *source, const struct gt_extent *lane)
{
	const uint64_t at = lane->offset + sizeof(*lane) + offsetof(struct gt_lane, cap);

	return (uint32_t)gt_source_word(source, at) != 0;
}

int gt_image_begin(struct gt_image *image, const struct gt_source *source,
		   const struct gt_extent *e, struct gt_error *err)
{
	struct gt_lane lane;

	memset(image, 0, sizeof(*image));
	image->extent = *e;

	if (e->length < GT_CELLS_OFFSET || e->lane >= GT_MAX_LANES ||
	    gt_source_copy(source, e->offset + sizeof(*e), &lane, sizeof(lane)))
		return gt_damaged(err, source->path, e->offset, "a lane is not sane");
	if (lane.cap < 2 || lane.cap > GT_MAX_CHUNK_EVENTS || (lane.cap & (lane.cap - 1)) ||
	    lane.cap > (e->length - GT_CELLS_OFFSET) / sizeof(struct gt_cell))
		return gt_damaged(err, source->path, LANE_AT(image, cap),
				  "a lane's staging does not fit into it");
	if (lane.seq > UINT64_MAX >> 8)
		return gt_damaged(err, source->path, LANE_AT(image, seq),
				  "a lane's last event is not sane");
	image->cap = lane.cap;
	image->device = lane.device;
	image->incomplete_seq = lane.incomplete_seq;
	image->lost = lane.lost;
	return copy_counters(image, source, &image->ctr0, &image->seq0);
}

static int copy_redo(const struct gt_image *image, const struct gt_source *source,
		     struct gt_redo *redo, uint64_t *seq)
{
	return copy_of_event(image, source, LANE_AT(image, redo), redo, sizeof(*redo), seq);
}

/* Lines first .. first + count, exact after one event; GT_RECYCLED when one always came between. */
static int copy_lines(struct gt_image *image, const struct gt_source *source, uint64_t at,
		      size_t first, size_t count, int tries)
{
	struct gt_redo redo;
	uint64_t seq, again;
	int rc;

	while (tries--) {
		rc = copy_redo(image, source, &redo, &seq);
		if (rc)
			return rc;
		if (gt_source_copy(source, at, &image->lines[first], count * sizeof(redo.line)))
			return -1;
		again = gt_image_seq(image, source);
		if (again != seq)
			continue;
		if (seq && redo.site >= first && redo.site - first < count)
			image->lines[redo.site] = redo.line;
		for (size_t i = 0; i < count; i++)
			image->line_seq[first + i] = seq;
		return 0;
	}
	return GT_RECYCLED;
}

/* A line that was not in the file at seq0 was zero then. */
int gt_image_lines(struct gt_image *image, size_t count)
{
	struct gt_site *lines;
	uint64_t *seqs;

	if (count <= image->line_count)
		return 0;
	lines = reallocarray(image->lines, count, sizeof(*lines));
	if (lines)
		image->lines = lines;
	seqs = reallocarray(image->line_seq, count, sizeof(*seqs));
	if (seqs)
		image->line_seq = seqs;
	if (!lines || !seqs)
		return -1;
	for (size_t i = image->line_count; i < count; i++) {
		memset(&lines[i], 0, sizeof(*lines));
		seqs[i] = image->seq0;
	}
	image->line_count = count;
	return 0;
}

/* Room for lines, not their number: lines that no site has are zeros and harmless. */
static size_t lines_in(const struct gt_extent *e)
{
	return (e->length - sizeof(*e)) / sizeof(struct gt_site);
}

/*
 * Every try takes the lane's first words out of the cache of the core that writes them, so it is
 * made for as many lines at once as the program's pace allows. Of a dead file that is all of them.
 */
static int copy_used(struct gt_image *image, const struct gt_source *source, uint64_t at,
		     size_t first, size_t count)
{
	size_t step = count, done = 0, n;
	int rc;

	while (done < count) {
		n = count - done < step ? count - done : step;
		rc = copy_lines(image, source, at + done * sizeof(struct gt_site), first + done, n,
				n > FEW ? 1 : TRIES);
		if (rc == GT_RECYCLED && n > FEW)
			step = n / 2;
		else if (rc)
			return rc;
		else
			done += n;
	}
	return 0;
}

/*
 * How many of the lines were ever changed, up to the last of them. One that is zeros had no event
 * up to that of redo, which was copied before, unless that is its own: so it needs no exact copy,
 * and a program with a few sites has thousands of such lines.
 */
static size_t used_lines(const struct gt_source *source, uint64_t at, size_t first, size_t count,
			 const struct gt_redo *redo)
{
	static const struct gt_site unused;
	struct gt_site lines[GROUP];

	if (gt_source_copy(source, at, lines, count * sizeof(*lines)))
		return count;
	while (count && redo->site != first + count - 1 &&
	       !memcmp(&lines[count - 1], &unused, sizeof(unused)))
		count--;
	return count;
}

static int copy_group(struct gt_image *image, const struct gt_source *source, uint64_t at,
		      size_t first, size_t count, struct gt_error *err)
{
	int rc;

	if (gt_image_lines(image, first + count))
		return gt_fail_memory(err, source->path);
	rc = copy_used(image, source, at, first, count);
	return rc < 0 ? gt_fail(err, source->path, "was cut while it was read") : rc;
}

static int copy_site_extent(struct gt_image *image, const struct gt_source *source,
			    const struct gt_extent *e, size_t most, struct gt_error *err)
{
	const uint64_t lines = e->offset + sizeof(*e);
	const size_t room = lines_in(e), left = most > e->first_index ? most - e->first_index : 0;
	const size_t count = room < left ? room : left;
	const size_t step = source->live ? GROUP : count;
	struct gt_redo redo;
	uint64_t seq;
	int rc = copy_redo(image, source, &redo, &seq);

	if (rc < 0)
		return gt_fail(err, source->path, "was cut while it was read");
	for (size_t i = 0; !rc && i < count; i += step) {
		const uint64_t at = lines + i * sizeof(struct gt_site);
		const size_t first = e->first_index + i;
		size_t used = count - i < step ? count - i : step;

		if (source->live)
			used = used_lines(source, at, first, used, &redo);
		if (used)
			rc = copy_group(image, source, at, first, used, err);
	}
	return rc;
}

/*
 * No order between the words of a slot is needed: whichever event changed one of them while it was
 * copied lies between seq0 and seq1, and replay sets that key right.
 */
static int copy_slot_extent(struct gt_image *image, const struct gt_source *source,
			    const struct gt_extent *e, struct gt_error *err)
{
	struct gt_slot part[128];
	uint64_t at, bytes;

	for (at = sizeof(*e); e->length - at >= sizeof(part[0]); at += bytes) {
		bytes = e->length - at < sizeof(part) ? e->length - at : sizeof(part);
		bytes -= bytes % sizeof(part[0]);
		if (gt_source_copy(source, e->offset + at, part, bytes))
			return gt_fail(err, source->path, "was cut while it was read");
		for (size_t i = 0; i < bytes / sizeof(part[0]); i++) {
			if (!part[i].key)
				continue;
			if (gt_grow(&image->slots, &image->slot_capacity, image->slot_count,
				    sizeof(part[0])))
				return gt_fail_memory(err, source->path);
			image->slots[image->slot_count++] = part[i];
		}
	}
	return 0;
}

static size_t lines_of_lane(const struct gt_extents *list, uint32_t lane)
{
	size_t total = 0;

	for (size_t i = 0; i < list->count; i++) {
		if (list->at[i].kind == GT_EXTENT_SITES && list->at[i].lane == lane)
			total += lines_in(&list->at[i]);
	}
	return total;
}

/* The extents of a lane's sites join up, so no first_index is larger than all of them together. */
static bool sites_in_place(const struct gt_extents *list, const struct gt_extent *e)
{
	return e->first_index <= lines_of_lane(list, e->lane) - lines_in(e);
}

static int by_index(const void *a, const void *b)
{
	const struct gt_extent *const *x = a, *const *y = b;

	return (*x)->first_index < (*y)->first_index ? -1 : (*x)->first_index > (*y)->first_index;
}

/* In order of index: a place behind the last element of one extent may belong to the next one. */
static int copy_sites(struct gt_image *image, const struct gt_source *source,
		      const struct gt_extents *list, size_t most, bool partial,
		      struct gt_error *err)
{
	const struct gt_extent **sorted = calloc(list->count + 1, sizeof(*sorted));
	size_t count = 0;
	int rc = 0;

	if (!sorted)
		return gt_fail_memory(err, source->path);
	for (size_t i = 0; i < list->count; i++) {
		if (list->at[i].kind == GT_EXTENT_SITES && list->at[i].lane == image->extent.lane)
			sorted[count++] = &list->at[i];
	}
	if (count)
		qsort(sorted, count, sizeof(*sorted), by_index);
	for (size_t i = 0; !rc && i < count; i++) {
		if (sites_in_place(list, sorted[i]))
			rc = copy_site_extent(image, source, sorted[i], most, err);
		else if (!partial)
			rc = source->live ? GT_RECYCLED
					  : gt_damaged(err, source->path, sorted[i]->offset,
						       "an extent of sites is out of place");
	}
	free(sorted);
	return rc;
}

static int copy_slots(struct gt_image *image, const struct gt_source *source,
		      const struct gt_extents *list, struct gt_error *err)
{
	int rc = 0;

	for (size_t i = 0; !rc && i < list->count; i++) {
		if (list->at[i].kind == GT_EXTENT_LIVE && list->at[i].lane == image->extent.lane)
			rc = copy_slot_extent(image, source, &list->at[i], err);
	}
	return rc;
}

/* The cells from..seq1 into tail[0..]; the first that was not overwritten meanwhile. */
static uint64_t copy_cells(struct gt_image *image, const struct gt_source *source, uint64_t from)
{
	const uint64_t cells = image->extent.offset + GT_CELLS_OFFSET, mask = image->cap - 1;
	uint64_t first = from, sealed, seq, kept;
	struct gt_event *event;
	struct gt_cell cell;

	for (uint64_t s = from; s <= image->seq1; s++) {
		memset(&cell, 0, sizeof(cell));
		gt_source_copy(source, cells + (s & mask) * sizeof(cell), &cell, sizeof(cell));
		event = &image->history.tail[s - from];
		gt_event_of_cell(&cell, image->extent.lane, event);
		if (event->seq != s)
			first = s + 1;
	}
	sealed = gt_source_word(source, LANE_AT(image, sealed));
	seq = gt_image_seq(image, source);
	kept = seq + 2 > image->cap ? seq + 2 - image->cap : 1;
	if (kept > sealed + 1)
		kept = sealed + 1;
	return kept > first ? kept : first;
}

/* Totals need the cells behind seq0, and the last one for its time. */
static uint64_t first_cell(const struct gt_image *image)
{
	const uint64_t held = image->seq1 >= image->cap ? image->seq1 - image->cap + 1 : 1;
	const uint64_t wanted = image->seq0 < image->seq1 ? image->seq0 + 1 : image->seq1;

	return image->totals && wanted > held ? wanted : held;
}

/* The tail is what staging still holds; history.c drops from it what chunks have as well. */
int gt_image_staging(struct gt_image *image, const struct gt_source *source, struct gt_error *err)
{
	struct gt_history *h = &image->history;
	const uint64_t from = first_cell(image);

	free(h->tail);
	h->tail = calloc(image->seq1 + 2 - from, sizeof(*h->tail));
	if (!h->tail)
		return gt_fail_memory(err, source->path);
	h->lane = image->extent.lane;
	h->last_seq = image->seq1;
	h->tail_count = 0;
	h->tail_first = copy_cells(image, source, from);
	if (h->tail_first > image->seq1)
		return 0;
	h->tail_count = image->seq1 - h->tail_first + 1;
	memmove(h->tail, h->tail + (h->tail_first - from), h->tail_count * sizeof(*h->tail));
	return 0;
}

/*
 * Totals need the events behind seq0 only, and staging nearly always has them: to list the chunks
 * touches every page of the ring. True when nothing else is needed.
 */
static bool staging_is_enough(struct gt_image *image)
{
	struct gt_history *h = &image->history;

	if (!image->totals || (image->seq1 > image->seq0 && h->tail_first > image->seq0 + 1))
		return false;
	h->first_seq = h->tail_count ? h->tail_first : image->seq1 + 1;
	h->last_us = h->tail_count ? h->tail[h->tail_count - 1].us : 0;
	return true;
}

/*
 * Listed after seq0: what is not listed was filled by events that replay will see. A list from before
 * will do when it has the lines of all sites that there are; to make one takes so long that staging
 * may be lapped meanwhile.
 */
static int take_sites(struct gt_image *image, const struct gt_trace *trace,
		      const struct gt_extents *known, struct gt_extents *list, struct gt_error *err)
{
	const uint32_t lane = image->extent.lane;
	const size_t most = known ? trace->reader->sites[lane].count : SIZE_MAX;
	struct gt_source *source = &trace->reader->source;
	int rc;

	if (known && lines_of_lane(known, lane) >= most)
		return copy_sites(image, source, known, most, trace->partial, err);
	rc = gt_extents_list(source, trace->partial, list, err);
	return rc ? rc : copy_sites(image, source, list, most, trace->partial, err);
}

static int take_history(struct gt_image *image, const struct gt_trace *trace,
			struct gt_extents *list, struct gt_error *err)
{
	struct gt_source *source = &trace->reader->source;
	int rc = gt_extents_list(source, trace->partial, list, err);

	return rc ? rc : gt_history_build(&image->history, source, list, trace->partial, err);
}

/*
 * The order of the steps is the algorithm: seq0, then everything that changes, then seq1, then the
 * events between the two. Of these the cells go first, since they are overwritten soonest.
 */
int gt_image_take(struct gt_image *image, const struct gt_trace *trace,
		  const struct gt_extent *extent, const struct gt_extents *known, bool chunks,
		  struct gt_error *err)
{
	const struct gt_source *source = &trace->reader->source;
	struct gt_extents list = {0};
	int rc;

	rc = gt_image_begin(image, source, extent, err);
	image->totals = trace->totals;
	if (!rc)
		rc = take_sites(image, trace, known, &list, err);
	if (!rc && !image->totals)
		rc = copy_slots(image, source, &list, err);
	if (!rc)
		rc = copy_counters(image, source, &image->ctr1, &image->seq1);
	if (!rc)
		rc = gt_image_staging(image, source, err);
	if (!rc && !staging_is_enough(image))
		rc = chunks ? take_history(image, trace, &list, err) : GT_RECYCLED;
	free(list.at);
	return rc;
}

void gt_image_free(struct gt_image *image)
{
	free(image->lines);
	free(image->line_seq);
	free(image->slots);
	gt_history_free(&image->history);
	memset(image, 0, sizeof(*image));
}
