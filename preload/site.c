/* SPDX-License-Identifier: MIT */
/*
 * The sites of a lane: one for each combination of stacks, call, key space and totals. Totals
 * belong to (lane, site), because a peak is a lane's. A site is defined before the event that names
 * it; when it cannot be (disk or limit full), its blocks go to the site without a stack that adds
 * to the same totals, defined with the lane, so that sums over sites stay exact. Under the lane's
 * lock.
 */
#include "recorder.h"

#define FIRST_ROOM (GT_HEADER_SIZE / sizeof(struct gt_site_key))

/* A key has no padding: two words that are read at once. */
_Static_assert(sizeof(struct gt_site_key) == 12, "two words");

static inline uint64_t stacks_of(const struct gt_site_key *k)
{
	uint64_t v;

	__builtin_memcpy(&v, k, sizeof(v));
	return v;
}

static inline uint32_t rest_of(const struct gt_site_key *k)
{
	uint32_t v;

	__builtin_memcpy(&v, (const char *)k + sizeof(uint64_t), sizeof(v));
	return v;
}

static inline uint32_t hash_of(const struct gt_site_key *k)
{
	return gt_hash(stacks_of(k) * 0x9e3779b97f4a7c15ull + rest_of(k));
}

static inline bool same(const struct gt_site_key *a, const struct gt_site_key *b)
{
	return stacks_of(a) == stacks_of(b) && rest_of(a) == rest_of(b);
}

static bool make_room(struct lane *l, uint32_t hash)
{
	uint32_t more = l->site_room ? 2 * l->site_room : (uint32_t)FIRST_ROOM;
	struct gt_site_key *keys;

	if (l->sites.count == l->sites.room &&
	    !gt_array_grow(&l->sites, GT_EXTENT_SITES, l->number))
		return false;
	if (l->sites.count == l->site_room) {
		keys = gt_remap(l->site_keys, l->site_room * sizeof(*keys), more * sizeof(*keys));
		if (!keys)
			return false;
		l->site_keys = keys;
		l->site_room = more;
	}
	return gt_index_reserve(&l->site_index, hash);
}

static uint32_t define(struct lane *l, const struct gt_site_key *key, uint32_t hash)
{
	struct gt_rec_site rec = {
		.rec.kind = GT_REC_SITE,
		.lane = l->number,
		.index = l->sites.count,
		.native = key->native,
		.python = key->python,
		.space = key->space,
		.mask = key->mask,
		.api = key->api,
	};

	if (!make_room(l, hash) || !gt_def_append(&rec.rec, sizeof(rec), NULL, 0, NULL, 0))
		return GT_NONE;
	l->site_keys[rec.index] = *key;
	gt_index_add(&l->site_index, hash, rec.index);
	return l->sites.count++;
}

static inline uint32_t find(const struct lane *l, const struct gt_site_key *key, uint32_t hash)
{
	struct gt_probe p = gt_index_probe(&l->site_index, hash);
	uint32_t site;

	while ((site = gt_index_next(&p)) != GT_NONE)
		if (same(&l->site_keys[site], key))
			break;
	return site;
}

static __attribute__((noinline)) uint32_t new_site(struct lane *l, const struct gt_site_key *key,
						   uint32_t hash)
{
	const struct gt_site_key nowhere = {.mask = key->mask};
	uint32_t site = define(l, key, hash);

	if (site != GT_NONE)
		return site;
	gt_count_lost(GT_LOST_SITES);
	site = find(l, &nowhere, hash_of(&nowhere));
	return site == GT_NONE ? 0 : site;
}

uint32_t gt_site_of(struct lane *l, const struct gt_site_key *key)
{
	uint32_t hash = hash_of(key);
	uint32_t site = find(l, key, hash);

	return gt_likely(site != GT_NONE) ? site : new_site(l, key, hash);
}

static uint32_t site_hash(const void *lane, uint32_t site)
{
	return hash_of(&((const struct lane *)lane)->site_keys[site]);
}

bool gt_sites_init(struct lane *l)
{
	static const uint8_t masks[] = {
		GT_MASK_RESERVED,
		GT_MASK_RESERVED | GT_MASK_IN_USE,
		GT_MASK_TORCH | GT_MASK_IN_USE,
	};

	gt_array_init(&l->sites, sizeof(struct gt_site));
	if (gt_index_init(&l->site_index, site_hash, l) || !make_room(l, 0))
		return false;
	l->sites.count = 1; /* site 0 is never defined */
	for (size_t i = 0; i < sizeof(masks); i++) {
		struct gt_site_key key = {.mask = masks[i]};

		if (define(l, &key, hash_of(&key)) == GT_NONE)
			return false;
	}
	return true;
}

/* ---- the largest ---------------------------------------------------------------------------- */

/* Restores the heap (smallest on top) of n holders below i. */
static void sift(struct gt_holder *heap, uint32_t i, uint32_t n)
{
	struct gt_holder moved = heap[i];

	for (uint32_t child; (child = 2 * i + 1) < n; i = child) {
		if (child + 1 < n && heap[child + 1].bytes < heap[child].bytes)
			child++;
		if (moved.bytes <= heap[child].bytes)
			break;
		heap[i] = heap[child];
	}
	heap[i] = moved;
}

static uint32_t collect(struct lane *l, struct gt_holder *heap)
{
	uint32_t n = 0;

	for (uint32_t site = 0; site < l->sites.count; site++) {
		const struct gt_site *line = gt_array_at(&l->sites, site);
		struct gt_holder h = {.bytes = line->live, .count = line->live_count, .site = site};

		if (!h.bytes || !(l->site_keys[site].mask & GT_MASK_IN_USE))
			continue;
		if (n < GT_REPORT_HOLDERS) {
			heap[n++] = h;
			for (uint32_t i = n == GT_REPORT_HOLDERS ? n / 2 : 0; i--;)
				sift(heap, i, n);
		} else if (h.bytes > heap[0].bytes) {
			heap[0] = h;
			sift(heap, 0, n);
		}
	}
	return n;
}

uint32_t gt_site_holders(struct lane *l, struct gt_holder *ret)
{
	uint32_t n = collect(l, ret);

	for (uint32_t i = n / 2; i--;)
		sift(ret, i, n);
	for (uint32_t last = n; last-- > 1;) {
		struct gt_holder smallest = ret[0];

		ret[0] = ret[last];
		sift(ret, 0, last);
		ret[last] = smallest;
	}
	return n;
}
