/* SPDX-License-Identifier: MIT */
/*
 * The index: hash -> number, linear probing, deletion by shifting back (no tombstones, so lookups
 * that miss stay short for ever). Private memory of a lane, used under its lock only: it need not
 * survive, readers find blocks by their slots. A table starts small, because most programs have few
 * blocks and 64 pages would cost the cache and the TLB more than a few doublings cost once.
 */
#include "recorder.h"

#define FIRST  64u		    /* entries of a table, all from one piece of memory */
#define SECOND (GT_HEADER_SIZE / 8) /* then a page of its own, then doubled */

int gt_index_init(struct gt_index *ix)
{
	uint64_t *all = gt_map(GT_INDEX_TABLES * FIRST * sizeof(*all));

	if (!all)
		return -1;
	for (uint32_t i = 0; i < GT_INDEX_TABLES; i++) {
		ix->table[i].entries = all + i * FIRST;
		ix->table[i].mask = FIRST - 1;
	}
	return 0;
}

/* The first tables share one mapping, which stays: nothing to unmap then. */
bool gt_index_grow(struct gt_index_table *t)
{
	struct gt_index_table old = *t;
	uint32_t count = old.mask + 1 == FIRST ? SECOND : 2 * (old.mask + 1);
	uint64_t *entries = gt_map(count * sizeof(*entries));

	if (!entries)
		return false;
	t->entries = entries;
	t->mask = count - 1;
	for (uint32_t i = 0; i <= old.mask; i++)
		if (old.entries[i])
			gt_index_put(t, old.entries[i]);
	if (old.mask + 1 != FIRST)
		gt_unmap(old.entries, (old.mask + 1) * sizeof(*entries));
	return true;
}

/* Moves later entries of the run into the gap, as far as each may go: not before its own place. */
static void close_gap(struct gt_index_table *t, uint32_t gap)
{
	for (uint32_t i = gap + 1; t->entries[i & t->mask]; i++) {
		uint32_t home = (uint32_t)(t->entries[i & t->mask] >> 32);

		if (((i - home) & t->mask) < ((i - gap) & t->mask))
			continue;
		t->entries[gap & t->mask] = t->entries[i & t->mask];
		gap = i;
	}
	t->entries[gap & t->mask] = 0;
}

void gt_index_remove(struct gt_index *ix, uint32_t hash, uint32_t value)
{
	struct gt_index_table *t = gt_index_table(ix, hash);
	uint64_t entry = (uint64_t)hash << 32 | (value + 1);
	uint32_t pos = hash;

	for (; t->entries[pos & t->mask] != entry; pos++)
		if (!t->entries[pos & t->mask])
			return;
	close_gap(t, pos);
	t->used--;
}
