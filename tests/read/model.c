/* SPDX-License-Identifier: MIT */
/* See model.h: everything the slow and obvious way. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>
#include "model.h"

struct model_block {
	uint64_t key;
	struct gt_block block;
	UT_hash_handle hh;
};

#define SAY(m, ...) (snprintf((m)->why, sizeof((m)->why), __VA_ARGS__), (m)->why)

static struct model_block *find(struct model *m, uint64_t key)
{
	struct model_block *b;

	HASH_FIND(hh, m->blocks, &key, sizeof(key), b);
	return b;
}

const char *model_add(struct model *m, const struct gt_block *block)
{
	const uint64_t key = GT_KEY(block->addr, block->space);
	struct model_block *b;

	if (find(m, key))
		return SAY(m, "block %#llx is alive already", (unsigned long long)block->addr);
	b = calloc(1, sizeof(*b));
	if (!b)
		abort();
	b->key = key;
	b->block = *block;
	HASH_ADD(hh, m->blocks, key, sizeof(key), b);
	m->block_count++;
	return NULL;
}

static bool same_block(const struct gt_block *a, const struct gt_block *b)
{
	return a->addr == b->addr && a->size == b->size && a->birth_us == b->birth_us &&
	       a->site == b->site && a->stream == b->stream && a->thread == b->thread &&
	       a->space == b->space;
}

static const char *take(struct model *m, const struct gt_block *block)
{
	struct model_block *b = find(m, GT_KEY(block->addr, block->space));

	if (!b)
		return SAY(m, "block %#llx is not alive", (unsigned long long)block->addr);
	if (!same_block(&b->block, block))
		return SAY(m, "block %#llx has changed", (unsigned long long)block->addr);
	HASH_DEL(m->blocks, b);
	free(b);
	m->block_count--;
	return NULL;
}

static int effect(const struct gt_event *e)
{
	if (e->op == GT_OP_ALLOC || e->op == GT_OP_UNFREE)
		return 1;
	return e->op == GT_OP_FREE || e->op == GT_OP_IMPLICIT_FREE ? -1 : 0;
}

static struct gt_block block_of(const struct gt_event *e)
{
	return (struct gt_block){
		.addr = e->addr,
		.size = e->size,
		.birth_us = e->birth_us,
		.site = e->site,
		.stream = e->stream,
		.thread = e->birth_thread,
		.space = e->space,
	};
}

static void account(struct model *m, const struct gt_event *e, unsigned int mask, int sign)
{
	const uint64_t change = sign > 0 ? e->size : 0 - e->size;

	m->live[e->site] += change;
	m->ever[e->site] += e->op == GT_OP_ALLOC ? e->size : 0;
	for (int k = 0; k < GT_TOTALS; k++) {
		if (!(mask >> k & 1))
			continue;
		m->cur[k] += change;
		if (m->cur[k] > m->peak[k]) {
			m->peak[k] = m->cur[k];
			m->peak_seq[k] = e->seq;
			memcpy(m->at[k], m->live, sizeof(m->live));
		}
	}
}

const char *model_apply(struct model *m, const struct gt_event *e, unsigned int mask)
{
	const struct gt_block block = block_of(e);
	const int sign = effect(e);

	if (m->seq && e->seq != m->seq + 1)
		return SAY(m, "event %llu after %llu", (unsigned long long)e->seq,
			   (unsigned long long)m->seq);
	if (e->site >= MODEL_SITES)
		return SAY(m, "site %u", e->site);
	m->seq = e->seq;
	if (sign)
		account(m, e, mask, sign);
	return sign > 0 ? model_add(m, &block) : sign < 0 ? take(m, &block) : NULL;
}

const char *model_undo(struct model *m, const struct gt_event *e)
{
	const struct gt_block block = block_of(e);
	const int sign = effect(e);

	if (m->seq && e->seq != m->seq)
		return SAY(m, "event %llu before %llu", (unsigned long long)e->seq,
			   (unsigned long long)m->seq + 1);
	m->seq = e->seq - 1;
	return sign > 0 ? take(m, &block) : sign < 0 ? model_add(m, &block) : NULL;
}

const char *model_compare_blocks(struct model *m, const struct gt_trace_lane *lane)
{
	for (size_t i = 0; i < lane->block_count; i++) {
		const struct gt_block *block = &lane->blocks[i];
		const struct model_block *b = find(m, GT_KEY(block->addr, block->space));

		if (!b || !same_block(&b->block, block))
			return SAY(m, "block %#llx is %s", (unsigned long long)block->addr,
				   b ? "different" : "not alive");
	}
	if (lane->block_count != m->block_count)
		return SAY(m, "%zu blocks, model %zu", lane->block_count, m->block_count);
	return NULL;
}

bool model_same_blocks(struct model *a, struct model *b)
{
	const struct model_block *other;
	struct model_block *block;

	for (block = a->blocks; block; block = block->hh.next) {
		other = find(b, block->key);
		if (!other || !same_block(&other->block, &block->block))
			return false;
	}
	return a->block_count == b->block_count;
}

static bool used_by(const struct gt_trace_lane *lane, size_t site, int k)
{
	return lane->site_defs[site].mask >> k & 1;
}

const char *model_compare_totals(struct model *m, const struct gt_trace_lane *lane)
{
	if (lane->seq != m->seq)
		return SAY(m, "at event %llu, model %llu", (unsigned long long)lane->seq,
			   (unsigned long long)m->seq);
	for (int k = 0; k < GT_TOTALS; k++) {
		if (lane->ctr.cur[k] != m->cur[k] || lane->ctr.peak[k] != m->peak[k] ||
		    lane->ctr.peak_seq[k] != m->peak_seq[k])
			return SAY(m, "total %d differs", k);
	}
	for (size_t i = 0; i < lane->site_count; i++) {
		if (lane->sites[i].live != m->live[i] || lane->sites[i].ever != m->ever[i])
			return SAY(m, "bytes of site %zu differ", i);
		for (int k = 0; k < GT_TOTALS; k++) {
			if (used_by(lane, i, k) && gt_site_at_peak(lane, i, k) != m->at[k][i])
				return SAY(m, "bytes of site %zu at peak %d differ", i, k);
		}
	}
	return NULL;
}

const char *model_compare(struct model *m, const struct gt_trace_lane *lane)
{
	const char *bad = model_compare_totals(m, lane);

	return bad ? bad : model_compare_blocks(m, lane);
}

void model_free(struct model *m)
{
	struct model_block *block, *next;

	HASH_ITER(hh, m->blocks, block, next) {
		HASH_DEL(m->blocks, block);
		free(block);
	}
	memset(m, 0, sizeof(*m));
}
