/* SPDX-License-Identifier: MIT */
/*
 * The index: hash -> number. A bucket is one cache line with the numbers of twelve entries and a byte of
 * each one's hash, so that a look-up costs one miss, and a hundred thousand blocks have an index that
 * fits the second cache. What finds its bucket full goes to the next one, and the full one counts it: a
 * search ends at the first bucket that nothing went past, so there are no tombstones, and look-ups that
 * miss stay short for ever. Private memory of a lane, used under its lock only: it need not survive,
 * readers find blocks by their slots. A table starts small, because most programs have few blocks and 128
 * pages would cost the cache and the TLB more than a few moves cost once.
 *
 * Full hashes are not kept, they would double it: a table that grows asks for them again.
 */
#include "recorder.h"

/* Buckets of a table: at first all from one piece of memory, then a page of its own, then by halves more. */
#define FIRST  2u
#define SECOND ((uint32_t)(GT_HEADER_SIZE / sizeof(struct gt_bucket)))

int gt_index_init(struct gt_index *ix, gt_hash_fn *hash_of, const void *owner)
{
	struct gt_bucket *all = gt_map(GT_INDEX_TABLES * FIRST * sizeof(*all));

	if (!all)
		return -1;
	ix->hash_of = hash_of;
	ix->owner = owner;
	for (uint32_t i = 0; i < GT_INDEX_TABLES; i++)
		ix->table[i] = (struct gt_index_table){.buckets = all + i * FIRST, .count = FIRST};
	return 0;
}

static void put(struct gt_index_table *t, uint32_t hash, uint32_t value)
{
	uint32_t at = gt_index_home(t, hash), room;

	while (!(room = gt_bucket_match(&t->buckets[at], 0))) {
		t->buckets[at].passed++;
		at = gt_index_behind(t, at);
	}
	room = (uint32_t)__builtin_ctz(room);
	t->buckets[at].value[room] = value;
	t->buckets[at].tag[room] = gt_index_tag(hash);
}

/* First all hashes: each may be a miss, and they can wait for each other's memory together. */
static void move(const struct gt_index *ix, struct gt_index_table *to, const struct gt_bucket *from)
{
	uint32_t hash[GT_BUCKET];

	for (unsigned i = 0; i < GT_BUCKET; i++)
		hash[i] = from->tag[i] ? ix->hash_of(ix->owner, from->value[i]) : 0;
	for (unsigned i = 0; i < GT_BUCKET; i++)
		if (from->tag[i])
			put(to, hash[i], from->value[i]);
}

/* The first tables share one mapping, which stays: nothing to unmap then. */
bool gt_index_grow(const struct gt_index *ix, struct gt_index_table *t)
{
	struct gt_index_table old = *t;
	uint32_t count = old.count == FIRST ? SECOND : old.count / 2 * 3;
	struct gt_bucket *buckets = gt_map(count * sizeof(*buckets));

	if (!buckets)
		return false;
	t->buckets = buckets;
	t->count = count;
	for (uint32_t i = 0; i < old.count; i++)
		move(ix, t, &old.buckets[i]);
	if (old.count != FIRST)
		gt_unmap(old.buckets, old.count * sizeof(*buckets));
	return true;
}

void gt_index_add(struct gt_index *ix, uint32_t hash, uint32_t value)
{
	struct gt_index_table *t = gt_index_table(ix, hash);

	put(t, hash, value);
	t->used++;
}

void gt_index_remove(struct gt_index *ix, uint32_t hash, const struct gt_probe *found)
{
	struct gt_index_table *t = gt_index_table(ix, hash);
	uint32_t at = gt_index_home(t, hash);

	t->buckets[found->at].tag[found->last] = 0;
	t->used--;
	for (; gt_unlikely(at != found->at); at = gt_index_behind(t, at))
		t->buckets[at].passed--;
}
