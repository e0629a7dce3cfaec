/* SPDX-License-Identifier: MIT */
/* See intern.h. May not allocate other than by gt_map, nor call anything foreign. */
#include "intern.h"

#define FIRST_SEGMENT 1024u /* keys */
#define FIRST_INDEX   1024u /* slots */

static uint64_t hash(struct gt_intern_key key)
{
	uint64_t h = (key.a ^ key.b >> 32 ^ key.b << 32) * 0x9e3779b97f4a7c15ull;

	h = (h ^ h >> 29 ^ key.b) * 0xd6e8feb86659fd93ull;
	return h ^ h >> 32;
}

/* Segment s holds ids from FIRST_SEGMENT * (2^s - 1) + 1 on. */
static uint32_t segment_of(uint32_t id, uint32_t *ret_offset)
{
	uint32_t n = id - 1 + FIRST_SEGMENT;
	uint32_t s = 31u - (uint32_t)__builtin_clz(n / FIRST_SEGMENT);

	*ret_offset = n - (FIRST_SEGMENT << s);
	return s;
}

static bool same(const struct gt_intern *t, uint32_t id, struct gt_intern_key key)
{
	uint32_t offset, s = segment_of(id, &offset);
	const struct gt_intern_key *k = &t->segment[s][offset];

	return k->a == key.a && k->b == key.b;
}

uint32_t gt_intern_find(const struct gt_intern *t, struct gt_intern_key key)
{
	const struct gt_intern_index *index = gt_load(&t->index);
	uint32_t i, id;

	if (!index)
		return 0;
	for (i = (uint32_t)hash(key);; i++) {
		id = gt_load(&index->id[i & index->mask]); /* pairs with put() */
		if (!id || same(t, id, key))
			return id;
	}
}

static void put(struct gt_intern_index *index, struct gt_intern_key key, uint32_t id)
{
	uint32_t i = (uint32_t)hash(key);

	while (index->id[i & index->mask])
		i++;
	gt_store(&index->id[i & index->mask], id);
}

/* Keeps the index at most half full. */
static bool grow_index(struct gt_intern *t)
{
	uint32_t slots = t->index ? (t->index->mask + 1) * 2 : FIRST_INDEX;
	struct gt_intern_index *index;
	uint32_t id, offset, s;

	if (t->index && t->count < slots / 4)
		return true;
	index = gt_map(sizeof(*index) + slots * sizeof(index->id[0]));
	if (!index)
		return false;
	index->mask = slots - 1;
	for (id = 1; id <= t->count; id++) {
		s = segment_of(id, &offset);
		put(index, t->segment[s][offset], id);
	}
	gt_store(&t->index, index);
	return true;
}

static struct gt_intern_key *key_slot(struct gt_intern *t, uint32_t id)
{
	uint32_t offset, s = segment_of(id, &offset);

	if (s >= GT_INTERN_SEGMENTS)
		return NULL;
	if (!t->segment[s])
		t->segment[s] = gt_map(((size_t)FIRST_SEGMENT << s) * sizeof(*t->segment[s]));
	return t->segment[s] ? &t->segment[s][offset] : NULL;
}

static uint32_t insert(struct gt_intern *t, struct gt_intern_key key, gt_intern_define *define,
		       const void *arg)
{
	uint32_t id = t->count + 1;
	struct gt_intern_key *slot;

	if (id > t->limit || !grow_index(t))
		return 0;
	slot = key_slot(t, id);
	if (!slot || !define(id, key, arg))
		return 0;
	*slot = key;
	t->count = id;
	put(t->index, key, id);
	return id;
}

uint32_t gt_intern_add(struct gt_intern *t, struct gt_intern_key key, gt_intern_define *define,
		       const void *arg)
{
	uint32_t id = gt_intern_find(t, key);

	if (gt_likely(id))
		return id;
	gt_lock(&t->lock);
	id = gt_intern_find(t, key);
	if (!id)
		id = insert(t, key, define, arg);
	gt_unlock(&t->lock);
	return id;
}
