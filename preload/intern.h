/* SPDX-License-Identifier: MIT */
/*
 * Interning: a key of two words becomes a dense id, the same for all threads, for ever. Used for the
 * stack trees (parent, frame) and for code objects. Look-ups take no lock; one lock orders inserts.
 *
 * Keys are dense (key of id n in a segment that never moves), the hash index holds ids only: a new
 * path of sixty nodes then touches one or two pages of keys instead of sixty. An index that is half
 * full is copied into one twice as large; the old one stays mapped because a look-up may be inside, so
 * all of them together cost less than the last one twice.
 */
#ifndef GT_INTERN_H
#define GT_INTERN_H

#include "preload.h"

#define GT_INTERN_SEGMENTS 14u /* of 1024 << n keys: ids up to 16,776,192 */

struct gt_intern_key {
	uint64_t a, b;
};

struct gt_intern_index {
	uint32_t mask;
	uint32_t id[]; /* 0 = free */
};

/* Zeroed = empty. limit bounds the ids; a forked child clears the whole struct (pages are gone). */
struct gt_intern {
	struct gt_lock lock; /* inserts */
	uint32_t count, limit;
	struct gt_intern_index *index;
	struct gt_intern_key *segment[GT_INTERN_SEGMENTS];
};

/* Writes the record of a new id; false = it could not be kept, the id is not used. */
typedef bool gt_intern_define(uint32_t id, struct gt_intern_key key, const void *arg);

/* The id of a key, 0 = unknown. No lock. */
uint32_t gt_intern_find(const struct gt_intern *t, struct gt_intern_key key);
/* Finds or inserts; define runs under the lock, before any look-up can see the id. 0 = no room. */
uint32_t gt_intern_add(struct gt_intern *t, struct gt_intern_key key, gt_intern_define *define,
		       const void *arg);

#endif
