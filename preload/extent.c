/* SPDX-License-Identifier: MIT */
/*
 * Extents: the pieces of the file. Growing ones come from the end of the file; ring extents go
 * round in the order of their fills once GPUTRACE_RING is reached; and when the disk or
 * GPUTRACE_MAX is full, what must not be lost (live blocks, sites, definitions) takes a ring
 * extent, because old history is worth less than the present. Called with a lane's lock or the
 * definitions' lock held; takes the extent lock; never allocates from the heap or logs.
 *
 * A reader may look at any moment, and the process may die at any moment: an extent is listed (end,
 * or kind for one that was a ring extent) only when every other field and its content are in place.
 */
#include <string.h>
#include "recorder.h"

struct ring_entry { /* in the order of their fills, the oldest first */
	struct gt_extent *extent;
	uint32_t lane;
	uint32_t next; /* entry number, GT_NONE = last */
	bool open;     /* its lane still writes to it */
};

static struct gt_lock extent_lock;

/* All under extent_lock. */
static struct {
	struct ring_entry *entries;
	uint32_t count, room;
	uint32_t head, tail;
	uint64_t bytes;
	uint64_t serial;
	uint32_t held[GT_MAX_LANES]; /* extents of each lane */
} ring = {.head = GT_NONE, .tail = GT_NONE};

static void list(struct gt_extent *e, enum gt_extent_kind kind, const struct gt_extent *fields)
{
	e->lane = fields->lane;
	e->offset = (uint64_t)((char *)e - (char *)gt_file);
	e->length = fields->length;
	e->used = sizeof(*e);
	e->first_seq = fields->first_seq;
	e->first_index = fields->first_index;
	e->serial = fields->serial;
	gt_store(&e->kind, (uint32_t)kind);
}

static struct gt_extent *grow(enum gt_extent_kind kind, const struct gt_extent *fields)
{
	struct gt_extent *e = gt_file_grow(fields->length);

	if (!e)
		return NULL;
	if (gt_mutant(GT_MUTANT_KIND_FIRST))
		gt_file_grown(fields->length);
	list(e, kind, fields);
	if (!gt_mutant(GT_MUTANT_KIND_FIRST))
		gt_file_grown(fields->length);
	return e;
}

/* ---- the ring ------------------------------------------------------------------------------ */

static void append(uint32_t i)
{
	ring.entries[i].next = GT_NONE;
	if (ring.tail == GT_NONE)
		ring.head = i;
	else
		ring.entries[ring.tail].next = i;
	ring.tail = i;
}

static void unlink_entry(uint32_t i, uint32_t before)
{
	if (before == GT_NONE)
		ring.head = ring.entries[i].next;
	else
		ring.entries[before].next = ring.entries[i].next;
	if (ring.tail == i)
		ring.tail = before;
}

/*
 * Takes the oldest closed extent off the list, from a lane that has more than `keep`, or from
 * `own`. A quiet lane's oldest extent can be all the history it has: hence two are left to each if
 * possible.
 */
static uint32_t take_oldest(uint32_t own, uint32_t keep)
{
	uint32_t before = GT_NONE;

	for (uint32_t i = ring.head; i != GT_NONE; before = i, i = ring.entries[i].next) {
		struct ring_entry *r = &ring.entries[i];

		if (r->open || (r->lane != own && ring.held[r->lane] <= keep))
			continue;
		unlink_entry(i, before);
		ring.held[r->lane]--;
		return i;
	}
	return GT_NONE;
}

/* From here on readers skip it. */
static void empty(struct gt_extent *e)
{
	if (gt_mutant(GT_MUTANT_RECYCLE_FULL))
		return;
	gt_store_relaxed(&e->gen, e->gen | 1);
	gt_store_barrier();
	gt_store(&e->used, sizeof(*e));
}

static void hand_out(struct ring_entry *r, uint32_t lane)
{
	r->lane = lane;
	r->open = true;
	ring.held[lane]++;
	append((uint32_t)(r - ring.entries));
}

static struct gt_extent *recycle(uint32_t lane, uint64_t first_seq, uint32_t own, uint32_t keep)
{
	uint32_t i = take_oldest(own, keep);
	struct gt_extent *e;

	if (i == GT_NONE)
		return NULL;
	e = ring.entries[i].extent;
	empty(e);
	gt_store_relaxed(&e->lane, lane);
	gt_store_relaxed(&e->first_seq, first_seq);
	gt_store_relaxed(&e->serial, ++ring.serial);
	gt_store(&e->gen, (e->gen | 1) + 1);
	hand_out(&ring.entries[i], lane);
	return e;
}

static struct gt_extent *add(uint32_t lane, uint64_t first_seq)
{
	struct gt_extent fields = {.lane = lane,
				   .length = gt_options.extent,
				   .first_seq = first_seq,
				   .serial = ring.serial + 1};
	size_t bytes = ring.room * sizeof(*ring.entries);
	struct ring_entry *more;
	struct gt_extent *e;

	if (ring.count == ring.room) {
		more = gt_remap(ring.entries, bytes, bytes ? 2 * bytes : GT_HEADER_SIZE);
		if (!more)
			return NULL;
		ring.room = (uint32_t)((bytes ? 2 * bytes : GT_HEADER_SIZE) / sizeof(*more));
		ring.entries = more;
	}
	e = grow(GT_EXTENT_RING, &fields);
	if (!e)
		return NULL;
	ring.serial++;
	ring.bytes += fields.length;
	ring.entries[ring.count].extent = e;
	hand_out(&ring.entries[ring.count++], lane);
	return e;
}

/* Two are everybody's right, whatever the limit, and only a full disk can deny them. */
struct gt_extent *gt_ring_take(uint32_t lane, uint64_t first_seq)
{
	struct gt_extent *e = NULL;
	bool poor;

	gt_lock(&extent_lock);
	poor = ring.held[lane] < 2;
	if (ring.bytes + gt_options.extent <= gt_options.ring)
		e = add(lane, first_seq);
	if (!e)
		e = recycle(lane, first_seq, poor ? GT_LANE_NONE : lane, 2);
	if (!e && poor)
		e = add(lane, first_seq);
	if (!e)
		e = recycle(lane, first_seq, lane, 1);
	gt_unlock(&extent_lock);
	return e;
}

void gt_ring_close(struct gt_extent *e)
{
	gt_lock(&extent_lock);
	for (uint32_t i = ring.head; i != GT_NONE; i = ring.entries[i].next)
		if (ring.entries[i].extent == e)
			ring.entries[i].open = false;
	gt_unlock(&extent_lock);
}

/* ---- everything else ------------------------------------------------------------------------ */

/*
 * A ring extent becomes one of another kind. It keeps its length, which may be more than asked, and is
 * not read from the file: that may be gone (truncated.c).
 */
static struct gt_extent *steal(enum gt_extent_kind kind, const struct gt_extent *fields)
{
	struct gt_extent want = *fields, *e;
	uint32_t i;

	if (want.length > gt_options.extent)
		return NULL;
	want.length = gt_options.extent;
	i = take_oldest(GT_LANE_NONE, 2);
	if (i == GT_NONE)
		i = take_oldest(GT_LANE_NONE, 0);
	if (i == GT_NONE)
		return NULL;
	e = ring.entries[i].extent;
	ring.bytes -= want.length;
	if (gt_mutant(GT_MUTANT_KIND_FIRST))
		gt_store(&e->kind, (uint32_t)kind);
	empty(e);
	memset(e + 1, 0, want.length - sizeof(*e));
	list(e, kind, &want);
	gt_store(&e->gen, (e->gen | 1) + 1);
	return e;
}

struct gt_extent *gt_extent_new(enum gt_extent_kind kind, uint32_t lane, uint64_t length,
				uint64_t first_index)
{
	struct gt_extent fields = {.lane = lane, .first_index = first_index};
	struct gt_extent *e;

	fields.length = gt_round_up(length ? length : gt_options.extent, GT_HEADER_SIZE);
	fields.first_seq = kind == GT_EXTENT_LANE;
	gt_lock(&extent_lock);
	e = grow(kind, &fields);
	if (!e)
		e = steal(kind, &fields);
	gt_unlock(&extent_lock);
	return e;
}

void gt_extents_forget(void)
{
	memset(&ring, 0, sizeof(ring));
	ring.head = ring.tail = GT_NONE;
	extent_lock = (struct gt_lock){0};
}

/* ---- arrays --------------------------------------------------------------------------------- */

void gt_array_init(struct gt_array *a, uint32_t size)
{
	a->size = size;
	a->per = (uint32_t)((gt_options.extent - sizeof(struct gt_extent)) / size);
	a->reciprocal = UINT64_MAX / a->per + 1;
}

bool gt_array_grow(struct gt_array *a, enum gt_extent_kind kind, uint32_t lane)
{
	const size_t page = GT_HEADER_SIZE / sizeof(*a->extents);
	struct gt_extent **more;
	struct gt_extent *e;

	if (a->extent_count % page == 0) {
		size_t bytes = a->extent_count * sizeof(*more);

		more = gt_remap(a->extents, bytes, bytes + GT_HEADER_SIZE);
		if (!more)
			return false;
		a->extents = more;
	}
	e = gt_extent_new(kind, lane, 0, a->room);
	if (!e)
		return false;
	a->extents[a->extent_count++] = e;
	a->room += a->per;
	return true;
}
