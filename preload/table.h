/* SPDX-License-Identifier: MIT */
/*
 * What the driver's objects mean to us: things that the live blocks of a lane do not say. One table
 * for all families, from a key to a few words. table.c.
 */
#ifndef GT_TABLE_H
#define GT_TABLE_H

#include "preload.h"

/* Name spaces beside enum gt_space, for objects that are no blocks; never in the file. */
enum gt_side {
	GT_SIDE_PRIMARY = 100, /* device + 1: `of` is its primary context */
	GT_SIDE_GRAPH = 101,   /* graph: `of` is its list of memory nodes */
	GT_SIDE_EXEC = 102,    /* instance of a graph: the same */
	GT_SIDE_EVENT = 103,   /* event that torch waits for: `of` is the freed block */
	GT_SIDE_PENDING = 104, /* freed torch block: refs events are not over */
	GT_SIDE_ORPHAN = 105, /* block of a destroyed pool: `of` is the key of what is left of it */
	GT_SIDE_REMAINS = 106, /* ... of which refs blocks are not freed yet */
};

struct gt_entry {
	uint64_t key; /* GT_KEY(handle or address, enum gt_space or gt_side); 0 = empty */
	uint64_t of;  /* what it belongs to; the family says */
	uint64_t size;
	int32_t device;
	uint32_t refs;
};

void gt_table_put(
	const struct gt_entry *e); /* in place of one with the same key; refs at least 1 */
bool gt_table_get(uint64_t key, struct gt_entry *ret);
bool gt_table_take(uint64_t key, struct gt_entry *ret); /* get and remove; ret may be NULL */
bool gt_table_ref(uint64_t key);			/* one more reference; is it there? */
/* One reference less, *ret is how it was; true if it was the last, and the entry is gone. */
bool gt_table_unref(uint64_t key, struct gt_entry *ret);
void gt_table_forget(void); /* in a forked child */

#endif
