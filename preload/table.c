/* SPDX-License-Identifier: MIT */
/*
 * The table of table.h: open addressing, linear probing, backward shift on removal, so that it has
 * no tombstones and a lookup that misses stops at the first gap. Its lock is a leaf: nothing of the
 * driver, of the loader or of the recorder runs under it. Doubles when half full; when there is no
 * memory for that, what does not fit is counted as lost. Called by the hooks, inside the guard.
 */
#include "table.h"

static struct gt_lock lock;
static struct gt_entry *table;
static uint64_t room, used; /* entries: a power of two, and taken */

static uint64_t home(uint64_t key)
{
	return (key * 0x9e3779b97f4a7c15ull >> 20) & (room - 1);
}

static struct gt_entry *find(uint64_t key)
{
	if (!table)
		return NULL;
	for (uint64_t i = home(key);; i = (i + 1) & (room - 1)) {
		if (table[i].key == key)
			return &table[i];
		if (!table[i].key)
			return NULL;
	}
}

static void put(const struct gt_entry *e)
{
	uint64_t i = home(e->key);

	while (table[i].key && table[i].key != e->key)
		i = (i + 1) & (room - 1);
	used += !table[i].key;
	table[i] = *e;
}

static bool grow(void)
{
	struct gt_entry *old = table;
	uint64_t old_room = room, size = room ? room * 2 : 1024;

	if (table && used < room / 2)
		return true;
	table = gt_map(size * sizeof(*table));
	if (!table) {
		table = old;
		return old && used < room - 1;
	}
	room = size;
	used = 0;
	for (uint64_t i = 0; i < old_room; i++)
		if (old[i].key) /* NOLINT: old is NULL only where old_room is 0 */
			put(&old[i]);
	gt_unmap(old, old_room * sizeof(*old));
	return true;
}

static void take_out(struct gt_entry *e)
{
	uint64_t hole = (uint64_t)(e - table), mask = room - 1;

	for (uint64_t i = (hole + 1) & mask; table[i].key; i = (i + 1) & mask) {
		if (((i - home(table[i].key)) & mask) < ((i - hole) & mask))
			continue;
		table[hole] = table[i];
		hole = i;
	}
	table[hole].key = 0;
	used--;
}

void gt_table_put(const struct gt_entry *e)
{
	struct gt_entry with = *e;

	if (!with.refs)
		with.refs = 1;
	gt_lock(&lock);
	if (grow())
		put(&with);
	else
		gt_count_lost(GT_LOST_EVENTS);
	gt_unlock(&lock);
}

bool gt_table_get(uint64_t key, struct gt_entry *ret)
{
	struct gt_entry *e;

	gt_lock(&lock);
	e = find(key);
	if (e)
		*ret = *e;
	gt_unlock(&lock);
	return e != NULL;
}

bool gt_table_take(uint64_t key, struct gt_entry *ret)
{
	struct gt_entry *e;

	gt_lock(&lock);
	e = find(key);
	if (e && ret)
		*ret = *e;
	if (e)
		take_out(e);
	gt_unlock(&lock);
	return e != NULL;
}

bool gt_table_ref(uint64_t key)
{
	struct gt_entry *e;

	gt_lock(&lock);
	e = find(key);
	if (e)
		e->refs++;
	gt_unlock(&lock);
	return e != NULL;
}

bool gt_table_unref(uint64_t key, struct gt_entry *ret)
{
	struct gt_entry *e;
	bool last = false;

	gt_lock(&lock);
	e = find(key);
	if (e) {
		*ret = *e;
		last = --e->refs == 0;
		if (last)
			take_out(e);
	}
	gt_unlock(&lock);
	return last;
}

void gt_table_forget(void)
{
	lock = (struct gt_lock){0};
	table = NULL; /* not mapped in the child */
	room = used = 0;
}
