/* SPDX-License-Identifier: MIT */
/*
 * Lanes: one per device, one for the host, one for "device unknown", made at its first event. A
 * lane has its lock, live blocks, counters, sites and staged events, so that devices do not wait
 * for each other and the order inside one is exact. Called by the hooks with no lock held; nothing
 * foreign runs under a lane's lock, and nothing here allocates from the heap, logs or fails the
 * program: what cannot be recorded is counted.
 *
 * A signal handler may run a hook while this thread is inside: it would wait for its own lock, so a
 * thread-local flag drops such an event, counted.
 */
#include <string.h>
#include "recorder.h"

#define LANE_HOST    64u
#define LANE_UNKNOWN 65u

static struct {
	struct gt_lock lock; /* of making one */
	struct lane *lane[GT_MAX_LANES];
	bool failed[GT_MAX_LANES];
	uint64_t marks; /* recorded */
} lanes;

GT_TLS bool inside;

/* ---- making one ------------------------------------------------------------------------------ */

uint32_t gt_lane_number(int device)
{
	if (device == GT_DEVICE_HOST)
		return LANE_HOST;
	if (device == GT_DEVICE_UNKNOWN)
		return LANE_UNKNOWN;
	return device >= 0 && device < (int)LANE_HOST ? (uint32_t)device : GT_LANE_NONE;
}

int gt_lane_device(uint32_t number)
{
	if (number == LANE_HOST)
		return GT_DEVICE_HOST;
	return number == LANE_UNKNOWN ? GT_DEVICE_UNKNOWN : (int)number;
}

/* In the file: the lane is listed complete, with seq 0. */
static bool add_to_file(struct lane *l)
{
	uint64_t length = GT_CELLS_OFFSET + l->cap * sizeof(struct gt_cell);
	struct gt_extent *e = gt_extent_new(GT_EXTENT_LANE, l->number, length, 0);

	if (!e)
		return false;
	l->file = (struct gt_lane *)(e + 1);
	l->cells = (struct gt_cell *)((char *)e + GT_CELLS_OFFSET);
	l->file->device = gt_lane_device(l->number);
	gt_store(&l->file->cap, l->cap); /* readers skip a lane without cells */
	return true;
}

static inline struct gt_slot *slot_at(const struct lane *l, uint32_t slot)
{
	return gt_array_at(&l->slots, slot);
}

static uint32_t block_hash(const void *lane, uint32_t slot)
{
	return gt_hash(slot_at(lane, slot)->key);
}

static struct lane *new_lane(uint32_t number)
{
	struct lane *l = gt_map(sizeof(*l));

	if (!l)
		return NULL;
	l->number = number;
	l->cap = gt_options.cells;
	gt_array_init(&l->slots, sizeof(struct gt_slot));
	if (gt_index_init(&l->blocks, block_hash, l) || !gt_ring_init(l) || !add_to_file(l) ||
	    !gt_sites_init(l))
		return NULL;
	return l;
}

/* Private memory of a lane that could not be made stays; it happens once per lane. */
static struct lane *make(uint32_t number)
{
	struct lane *l;

	gt_lock(&lanes.lock);
	l = lanes.lane[number];
	if (!l && !lanes.failed[number]) {
		l = new_lane(number);
		lanes.failed[number] = !l;
		gt_store(&lanes.lane[number], l);
	}
	gt_unlock(&lanes.lock);
	return l;
}

/* ---- in and out ----------------------------------------------------------------------------- */

static inline void leave(struct lane *l)
{
	gt_unlock(&l->lock);
	inside = false;
	if (gt_unlikely(gt_load_relaxed(&gt_unsaid)))
		gt_stop_say();
}

/*
 * Recording has stopped, or somebody wrote over the file, from end to end as cp does: the places that are
 * read there next would lead anywhere. Zeros lead nowhere.
 */
static __attribute__((noinline)) struct lane *turn_away(struct lane *l)
{
	if (gt_load_relaxed(&l->file->seq) != l->seq && gt_started()) {
		gt_file_detach((uintptr_t)gt_file);
		gt_stop(GT_STOP_TRUNCATED);
	}
	leave(l);
	return NULL;
}

static inline struct lane *enter(struct lane *l, uint32_t hash)
{
	gt_index_prefetch(&l->blocks, hash);
	gt_lock(&l->lock);
	if (gt_likely(!gt_load_relaxed(&gt_file->stop) && gt_load_relaxed(&l->file->seq) == l->seq))
		return l;
	return turn_away(l);
}

static inline struct lane *enter_number(uint32_t number, uint32_t hash)
{
	struct lane *l = number < GT_MAX_LANES ? gt_load(&lanes.lane[number]) : NULL;

	if (!l || inside)
		return NULL;
	inside = true;
	return enter(l, hash);
}

static inline struct lane *enter_device(int device, uint32_t hash)
{
	uint32_t number = gt_lane_number(device);
	struct lane *l = NULL;

	if (number == GT_LANE_NONE || inside) {
		gt_count_lost(GT_LOST_EVENTS);
		return NULL;
	}
	inside = true;
	l = gt_load(&lanes.lane[number]);
	if (gt_unlikely(!l))
		l = make(number);
	if (gt_likely(l))
		return enter(l, hash);
	inside = false;
	gt_count_lost(GT_LOST_EVENTS);
	return NULL;
}

struct lane *gt_lane_enter(int device)
{
	return enter_device(device, 0);
}

void gt_lane_leave(struct lane *l)
{
	leave(l);
}

void gt_lanes_forget(void)
{
	memset(&lanes, 0, sizeof(lanes));
}

/* ---- live blocks ---------------------------------------------------------------------------- */

static inline uint32_t find(const struct lane *l, uint64_t key, uint32_t hash,
			    struct gt_probe *ret_place)
{
	uint32_t slot;

	*ret_place = gt_index_probe(&l->blocks, hash);
	while ((slot = gt_index_next(ret_place)) != GT_NONE)
		if (slot_at(l, slot)->key == key)
			break;
	return slot;
}

/*
 * A free slot, with room for its key in the index. Old history, even this lane's open extent, is
 * given up for it; when nothing is left the live set cannot be kept, and recording ends.
 */
static inline struct gt_slot *take_slot(struct lane *l, uint32_t hash, uint32_t *ret_slot)
{
	uint32_t slot = l->free_slot;
	struct gt_slot *s;

	if (!gt_index_reserve(&l->blocks, hash))
		goto stop;
	if (slot) {
		s = slot_at(l, slot - 1);
		l->free_slot = s->spare;
		*ret_slot = slot - 1;
		return s;
	}
	if (l->slots.count == l->slots.room &&
	    !gt_array_grow(&l->slots, GT_EXTENT_LIVE, l->number)) {
		gt_ring_give_up(l);
		if (!gt_array_grow(&l->slots, GT_EXTENT_LIVE, l->number))
			goto stop;
	}
	*ret_slot = l->slots.count++;
	return slot_at(l, *ret_slot);
stop:
	gt_store(&l->file->incomplete_seq, l->seq + 1);
	gt_stop(GT_STOP_NO_SPACE);
	return NULL;
}

/* place: where find has found it. */
static inline void free_block(struct lane *l, uint32_t slot, uint32_t hash,
			      const struct gt_probe *place, enum gt_op op, uint32_t free_site,
			      struct gt_freed *ret)
{
	struct gt_slot *s = slot_at(l, slot);
	struct gt_cell cell = {
		.key = s->key,
		.size_stream = s->size_stream,
		.birth = s->birth,
		.site = s->site,
		.slot = slot,
		.free_site = free_site,
	};
	uint32_t mask = l->site_keys[cell.site].mask;

	gt_commit(l, s, &cell, op, mask);
	gt_index_remove(&l->blocks, hash, place);
	s->spare = l->free_slot;
	l->free_slot = slot + 1;
	if (!ret)
		return;
	*ret = (struct gt_freed){
		.lane = l->number,
		.key = cell.key,
		.size_stream = cell.size_stream,
		.birth = cell.birth,
		.site = cell.site,
	};
}

static inline void add_block(struct lane *l, struct gt_cell *cell, uint32_t hash, enum gt_op op)
{
	struct gt_slot *slot = take_slot(l, hash, &cell->slot);

	if (!slot)
		return;
	gt_commit(l, slot, cell, op, l->site_keys[cell->site].mask);
	gt_index_add(&l->blocks, hash, cell->slot);
}

/* ---- what hooks call ------------------------------------------------------------------------ */

void gt_record_alloc(const struct gt_alloc *a)
{
	const struct gt_site_key site = {
		.native = a->where.native,
		.python = a->where.python,
		.space = (uint8_t)a->space,
		.mask = (uint8_t)a->mask,
		.api = (uint16_t)a->api,
	};
	struct gt_cell cell = {
		.key = GT_KEY(a->addr, a->space),
		.size_stream = GT_PACK(a->size, a->stream),
		.aux = a->aux,
	};
	uint32_t hash = gt_hash(cell.key), slot;
	struct lane *l = enter_device(a->device, hash);
	struct gt_probe place;

	if (!l)
		return;
	slot = find(l, cell.key, hash, &place);
	if (gt_unlikely(slot != GT_NONE))
		free_block(l, slot, hash, &place, GT_OP_IMPLICIT_FREE, 0, NULL);
	cell.site = gt_site_of(l, &site);
	add_block(l, &cell, hash, GT_OP_ALLOC);
	leave(l);
	gt_granted(a->device, a->space, a->size);
}

/* Finds and frees under one hold of the lock. */
static inline bool free_on(uint32_t number, uint64_t key, const struct gt_site_key *by,
			   struct gt_freed *ret)
{
	uint32_t hash = gt_hash(key), slot, free_site = 0;
	struct lane *l = enter_number(number, hash);
	struct gt_probe place;

	if (!l)
		return false;
	slot = find(l, key, hash, &place);
	if (slot != GT_NONE) {
		if (gt_options.stacks & GT_STACKS_FREE)
			free_site = gt_site_of(l, by);
		free_block(l, slot, hash, &place, GT_OP_FREE, free_site, ret);
	}
	leave(l);
	return slot != GT_NONE;
}

static void unknown_free(int device, uint64_t key, const struct gt_site_key *by)
{
	struct gt_cell cell = {.key = key, .slot = GT_NONE};
	struct lane *l = enter_device(device, 0);

	if (!l)
		return;
	if (gt_options.stacks & GT_STACKS_FREE)
		cell.free_site = gt_site_of(l, by);
	gt_commit(l, NULL, &cell, GT_OP_UNKNOWN_FREE, 0);
	leave(l);
}

void gt_record_free(int device, enum gt_space space, uint64_t addr, enum gt_api api,
		    struct gt_where where, struct gt_freed *ret)
{
	const struct gt_site_key by = {.native = where.native,
				       .python = where.python,
				       .space = (uint8_t)space,
				       .api = (uint16_t)api};
	uint32_t first = gt_lane_number(device);
	uint64_t key = GT_KEY(addr, space);

	if (ret)
		ret->lane = GT_LANE_NONE;
	if (free_on(first, key, &by, ret))
		return;
	for (uint32_t i = 0; i < GT_MAX_LANES; i++)
		if (i != first && free_on(i, key, &by, ret))
			return;
	unknown_free(device, key, &by);
}

void gt_record_unfree(const struct gt_freed *freed)
{
	struct gt_cell cell = {.key = freed->key,
			       .size_stream = freed->size_stream,
			       .birth = freed->birth,
			       .site = freed->site};
	uint32_t hash = gt_hash(cell.key);
	struct lane *l = enter_number(freed->lane, hash);
	struct gt_probe place;

	if (!l)
		return;
	if (find(l, cell.key, hash, &place) == GT_NONE)
		add_block(l, &cell, hash, GT_OP_UNFREE);
	leave(l);
}

uint64_t gt_record_note(enum gt_op op, int device, uint64_t addr, uint64_t size, uint32_t aux,
			uint64_t extra)
{
	struct gt_cell cell = {.key = GT_KEY(addr, GT_SPACE_NONE),
			       .size_stream = GT_PACK(size, 0),
			       .slot = GT_NONE,
			       .aux = aux,
			       .extra = extra};
	struct lane *l = enter_device(device, 0);
	uint64_t seq;

	if (!l)
		return 0;
	seq = gt_commit(l, NULL, &cell, op, 0);
	leave(l);
	return seq;
}

/*
 * On the host's lane, whose few events outlive those of busy devices, and on the lane of each
 * device, where its place among the allocations is exact.
 */
void gt_record_mark(enum gt_op op, uint64_t source, uint64_t range, uint32_t aux)
{
	uint64_t number = __atomic_add_fetch(&lanes.marks, 1, __ATOMIC_RELAXED);

	gt_record_note(op, GT_DEVICE_HOST, source, range, aux, number);
	for (uint32_t i = 0; i < GT_MAX_LANES; i++)
		if (i != LANE_HOST && gt_load(&lanes.lane[i]))
			gt_record_note(op, gt_lane_device(i), source, range, aux, number);
}

void gt_lanes_exit(void)
{
	for (uint32_t i = 0; i < GT_MAX_LANES; i++)
		if (gt_load(&lanes.lane[i]))
			gt_record_note(GT_OP_EXIT, gt_lane_device(i), 0, 0, 0, 0);
}

uint32_t gt_live_keys(uint32_t lane, bool inner, uint32_t *at, uint64_t *ret, uint32_t max)
{
	struct lane *l = enter_number(lane, 0);
	uint32_t n = 0;

	if (!l)
		return 0;
	for (; n < max && *at < l->slots.count; ++*at) {
		const struct gt_slot *s = slot_at(l, *at);
		uint32_t mask = s->key ? l->site_keys[s->site].mask : 0;

		if (s->key && inner == (mask && !(mask & GT_MASK_RESERVED)))
			ret[n++] = s->key;
	}
	leave(l);
	return n;
}

static bool lookup_on(uint32_t number, uint64_t key, uint64_t *ret_size)
{
	struct lane *l = enter_number(number, 0);
	struct gt_probe place;
	uint32_t slot;

	if (!l)
		return false;
	slot = find(l, key, gt_hash(key), &place);
	if (slot != GT_NONE)
		*ret_size = GT_LOW48(slot_at(l, slot)->size_stream);
	leave(l);
	return slot != GT_NONE;
}

bool gt_lookup(int device, enum gt_space space, uint64_t addr, int *ret_device, uint64_t *ret_size)
{
	uint32_t first = gt_lane_number(device);
	uint64_t key = GT_KEY(addr, space);

	for (uint32_t i = 0; i <= GT_MAX_LANES; i++) {
		uint32_t number = i ? i - 1 : first;

		if (!lookup_on(number, key, ret_size))
			continue;
		*ret_device = gt_lane_device(number);
		return true;
	}
	return false;
}
