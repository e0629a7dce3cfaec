/* SPDX-License-Identifier: MIT */
/*
 * The store order of one event. The process may be killed between any two stores, and a reader may
 * look between any two, so every word that an event changes is either
 *
 *   before    not looked at yet: the fields of a slot whose key is 0, the cell of an event that the
 *             lane's seq does not cover, the counters and the redo line of the other parity;
 *   commit    the one word that decides: gt_lane.seq, followed by a store barrier, because a
 *             release store alone lets later stores pass it;
 *   after     absolute, so that a reader can write it again from the cell and the redo line of
 *             event seq: the slot's key, the site's line.
 *
 * Adding to a total is not among these: a second addition, or a missing one, cannot be told from
 * the right one. Under the lane's lock; no system call other than those of a seal.
 */
#include "recorder.h"

/* So that each copy of commit() knows its op all the way down. */
#define INLINE static inline __attribute__((always_inline))

/* Unrolled: three rounds of a loop are mostly its counter. */
#define EACH_TOTAL(k)                           \
	_Pragma("GCC unroll 3") /* GT_TOTALS */ \
		for (unsigned k = 0; k < GT_TOTALS; k++)

INLINE void count_block(struct gt_ctr *c, enum gt_op op, uint64_t size, bool torch)
{
	switch (op) {
	case GT_OP_ALLOC:
		c->allocs++;
		c->alloc_bytes += size;
		c->live_count++;
		c->torch_allocs += torch;
		break;
	case GT_OP_UNFREE: /* as if it had never been freed */
		c->frees--;
		c->free_bytes -= size;
		c->live_count++;
		break;
	case GT_OP_IMPLICIT_FREE:
		c->implicit_frees++;
		/* fall through */
	case GT_OP_FREE:
		c->frees++;
		c->free_bytes += size;
		c->live_count--;
		break;
	case GT_OP_UNKNOWN_FREE:
		c->unknown_frees++;
		break;
	case GT_OP_FAILED:
		c->failed++;
		break;
	default:
		break;
	}
}

/* delta: signed size; a tie with the peak keeps the first. */
INLINE void count_totals(struct gt_ctr *c, uint32_t mask, int effect, uint64_t delta, uint64_t q,
			 uint64_t us)
{
	EACH_TOTAL(k)
	{
		uint64_t cur = c->cur[k] + (mask & 1u << k ? delta : 0);

		c->cur[k] = cur;
		if (effect > 0 && cur > c->peak[k]) {
			c->peak[k] = cur;
			c->peak_seq[k] = q;
			c->peak_us[k] = us;
		}
	}
}

/*
 * The site after event q. Its bytes at a peak are those it has now for as long as nothing changes
 * them, so they are put aside only by the first change after the peak. No generations: sequence
 * numbers say the same and cannot wrap.
 */
INLINE void next_line(struct gt_site *line, const struct gt_site *old, const struct gt_ctr *before,
		      enum gt_op op, uint64_t size, uint64_t q)
{
	uint64_t last_seq = old->last_seq, live = old->live;
	int effect = gt_op_effect(op);

	EACH_TOTAL(k)
	line->at[k] = last_seq <= before->peak_seq[k] ? live : old->at[k];
	line->last_seq = q;
	line->live = live + (effect > 0 ? size : 0 - size);
	line->live_count = old->live_count + (uint64_t)(int64_t)effect;
	line->ever = old->ever + (op == GT_OP_ALLOC ? size : 0);
	line->ever_count = old->ever_count + (op == GT_OP_ALLOC);
}

/* In the order in which a reader of the running process does not look: live, last_seq, at. */
INLINE void apply_line(struct gt_site *site, const struct gt_site *line)
{
	EACH_TOTAL(k)
	gt_store_relaxed(&site->at[k], line->at[k]);
	gt_store(&site->last_seq, line->last_seq);
	gt_store(&site->live, line->live);
	gt_store_relaxed(&site->live_count, line->live_count);
	gt_store_relaxed(&site->ever, line->ever);
	gt_store_relaxed(&site->ever_count, line->ever_count);
}

/* A block that comes back was born before its event: nothing may refer to that one. */
INLINE void fill_slot(struct gt_slot *slot, const struct gt_cell *cell, enum gt_op op, uint64_t q)
{
	if (gt_mutant(GT_MUTANT_KEY_FIRST))
		gt_store(&slot->key, cell->key);
	gt_store_relaxed(&slot->size_stream, cell->size_stream);
	gt_store_relaxed(&slot->birth, cell->birth);
	gt_store_relaxed(&slot->site, cell->site);
	gt_store_relaxed(&slot->spare, op == GT_OP_ALLOC ? (uint32_t)q : 0);
}

/*
 * Field by field, as they were written a moment ago: loads of two at once could not be served from the
 * store buffer and would wait (a fifth of this file's time).
 */
INLINE void fill_cell(struct gt_cell *to, const struct gt_cell *cell)
{
	gt_store_relaxed(&to->seq_op, cell->seq_op);
	gt_store_relaxed(&to->time_thread, cell->time_thread);
	gt_store_relaxed(&to->key, cell->key);
	gt_store_relaxed(&to->size_stream, cell->size_stream);
	gt_store_relaxed(&to->birth, cell->birth);
	gt_store_relaxed(&to->site, cell->site);
	gt_store_relaxed(&to->slot, cell->slot);
	gt_store_relaxed(&to->free_site, cell->free_site);
	gt_store_relaxed(&to->aux, cell->aux);
	gt_store_relaxed(&to->extra, cell->extra);
}

/* Time and thread of the event; those of the block's birth too unless it is older. */
INLINE uint64_t stamp(struct lane *l, struct gt_cell *cell, enum gt_op op)
{
	uint64_t us = gt_now_us();

	if (us < l->last_us)
		us = l->last_us;
	l->last_us = us;
	cell->time_thread = GT_PACK(us, gt_def_thread());
	if (gt_op_effect(op) == 0 || op == GT_OP_ALLOC)
		cell->birth = cell->time_thread;
	return us;
}

struct places { /* what an event changes, beside its cell */
	struct gt_ctr *ctr;
	const struct gt_ctr *before;
	struct gt_redo *redo;
	struct gt_slot *slot; /* NULL: no block */
	struct gt_site *site;
};

/* Rather than keep such an address, gcc computes it again for each of its fields: 60 instructions. */
#define KEEP(p) __asm__("" : "+r"(p))

INLINE struct places places_of(struct lane *l, struct gt_slot *slot, const struct gt_cell *cell,
			       enum gt_op op, uint64_t q)
{
	struct places p = {
		.ctr = &l->file->ctr[q & 1],
		.before = &l->file->ctr[~q & 1],
		.redo = &l->file->redo[q & 1],
		.slot = slot,
	};

	if (gt_op_effect(op)) {
		p.site = gt_array_at(&l->sites, cell->site);
		KEEP(p.site);
	}
	KEEP(p.ctr);
	KEEP(p.before);
	KEEP(p.redo);
	return p;
}

/* Everything before the commit word. */
INLINE void prepare(struct lane *l, const struct places *p, struct gt_cell *cell, enum gt_op op,
		    uint32_t mask, uint64_t q)
{
	uint64_t us = stamp(l, cell, op);
	uint64_t size = GT_LOW48(cell->size_stream);
	int effect = gt_op_effect(op);

	if (effect > 0)
		fill_slot(p->slot, cell, op, q);
	else if (effect < 0)
		l->ring.born[q & (l->cap - 1)] = p->slot->spare;
	cell->seq_op = q << 8 | op;
	fill_cell(&l->cells[q & (l->cap - 1)], cell);
	p->redo->site = GT_NONE;
	if (effect) {
		next_line(&p->redo->line, p->site, p->before, op, size, q);
		if (gt_mutant(GT_MUTANT_NO_REDO))
			apply_line(p->site, &p->redo->line);
		else
			p->redo->site = cell->site;
	}
	*p->ctr = *p->before;
	count_block(p->ctr, op, size, GT_KEY_SPACE(cell->key) == GT_SPACE_TORCH);
	if (effect)
		count_totals(p->ctr, mask, effect, effect > 0 ? size : 0 - size, q, us);
	if (gt_mutant(GT_MUTANT_ONE_REDO))
		l->file->redo[~q & 1] = *p->redo;
	if (gt_mutant(GT_MUTANT_ONE_CTR))
		l->file->ctr[~q & 1] = *p->ctr;
}

/* Everything behind it. */
INLINE void apply(const struct places *p, const struct gt_cell *cell, enum gt_op op)
{
	gt_store(&p->slot->key, gt_op_effect(op) > 0 ? cell->key : 0);
	if (p->redo->site != GT_NONE)
		apply_line(p->site, &p->redo->line);
}

INLINE uint64_t commit(struct lane *l, struct gt_slot *slot, struct gt_cell *cell, enum gt_op op,
		       uint32_t mask)
{
	uint64_t q = l->seq + 1;
	struct places p;

	if (gt_unlikely(l->seq - l->sealed == l->cap))
		gt_ring_seal(l);
	p = places_of(l, slot, cell, op, q);
	prepare(l, &p, cell, op, mask, q);
	gt_store(&l->file->seq, q);
	gt_store_barrier();
	if (gt_op_effect(op))
		apply(&p, cell, op);
	gt_store_barrier();
	l->seq = q;
	__builtin_prefetch(&l->cells[(q + 1) & (l->cap - 1)], 1);
	return q;
}

/* A copy of it for each of the two frequent ops, without the questions which op it is. */
uint64_t gt_commit(struct lane *l, struct gt_slot *slot, struct gt_cell *cell, enum gt_op op,
		   uint32_t mask)
{
	if (op == GT_OP_ALLOC)
		return commit(l, slot, cell, GT_OP_ALLOC, mask);
	if (op == GT_OP_FREE)
		return commit(l, slot, cell, GT_OP_FREE, mask);
	return commit(l, slot, cell, op, mask);
}
