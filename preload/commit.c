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

/* What an op does to the block it names. */
static inline int effect_of(enum gt_op op)
{
	switch (op) {
	case GT_OP_ALLOC:
	case GT_OP_UNFREE:
		return 1;
	case GT_OP_FREE:
	case GT_OP_IMPLICIT_FREE:
		return -1;
	default:
		return 0;
	}
}

static inline void count_block(struct gt_ctr *c, enum gt_op op, uint64_t size, bool torch)
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
static inline void count_totals(struct gt_ctr *c, uint32_t mask, uint64_t delta, uint64_t q,
				uint64_t us)
{
	for (unsigned k = 0; k < GT_TOTALS; k++) {
		c->cur[k] += mask >> k & 1 ? delta : 0;
		if (c->cur[k] > c->peak[k]) {
			c->peak[k] = c->cur[k];
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
static inline void next_line(struct gt_site *line, const struct gt_site *old,
			     const struct gt_ctr *before, enum gt_op op, uint64_t size, uint64_t q)
{
	int effect = effect_of(op);

	for (unsigned k = 0; k < GT_TOTALS; k++)
		line->at[k] = old->last_seq <= before->peak_seq[k] ? old->live : old->at[k];
	line->last_seq = q;
	line->live = old->live + (effect > 0 ? size : 0 - size);
	line->live_count = old->live_count + (uint64_t)(int64_t)effect;
	line->ever = old->ever + (op == GT_OP_ALLOC ? size : 0);
	line->ever_count = old->ever_count + (op == GT_OP_ALLOC);
}

/* In the order in which a reader of the running process does not look: live, last_seq, at. */
static inline void apply_line(struct gt_site *site, const struct gt_site *line)
{
	for (unsigned k = 0; k < GT_TOTALS; k++)
		gt_store_relaxed(&site->at[k], line->at[k]);
	gt_store(&site->last_seq, line->last_seq);
	gt_store(&site->live, line->live);
	gt_store_relaxed(&site->live_count, line->live_count);
	gt_store_relaxed(&site->ever, line->ever);
	gt_store_relaxed(&site->ever_count, line->ever_count);
}

static inline void fill_slot(struct gt_slot *slot, const struct gt_cell *cell)
{
	if (gt_mutant(GT_MUTANT_KEY_FIRST))
		gt_store(&slot->key, cell->key);
	gt_store_relaxed(&slot->size_stream, cell->size_stream);
	gt_store_relaxed(&slot->birth, cell->birth);
	gt_store_relaxed(&slot->site, cell->site);
}

/* Time and thread of the event; those of the block's birth too unless it is older. */
static inline uint64_t stamp(struct lane *l, struct gt_cell *cell, enum gt_op op)
{
	uint64_t us = gt_now_us();

	if (us < l->last_us)
		us = l->last_us;
	l->last_us = us;
	cell->time_thread = GT_PACK(us, gt_def_thread());
	if (effect_of(op) == 0 || op == GT_OP_ALLOC)
		cell->birth = cell->time_thread;
	return us;
}

/* Everything before the commit word. */
static inline void prepare(struct lane *l, struct gt_cell *cell, enum gt_op op, uint32_t mask,
			   uint64_t q)
{
	struct gt_ctr *ctr = &l->file->ctr[q & 1];
	struct gt_redo *redo = &l->file->redo[q & 1];
	const struct gt_ctr *before = &l->file->ctr[~q & 1];
	uint64_t us = stamp(l, cell, op);
	uint64_t size = GT_LOW48(cell->size_stream);
	int effect = effect_of(op);

	if (effect > 0)
		fill_slot(gt_array_at(&l->slots, cell->slot), cell);
	cell->seq_op = q << 8 | op;
	l->cells[q & (l->cap - 1)] = *cell;
	redo->site = GT_NONE;
	if (effect) {
		struct gt_site *site = gt_array_at(&l->sites, cell->site);

		next_line(&redo->line, site, before, op, size, q);
		if (gt_mutant(GT_MUTANT_NO_REDO))
			apply_line(site, &redo->line);
		else
			redo->site = cell->site;
	}
	*ctr = *before;
	count_block(ctr, op, size, GT_KEY_SPACE(cell->key) == GT_SPACE_TORCH);
	if (effect)
		count_totals(ctr, mask, effect > 0 ? size : 0 - size, q, us);
	if (gt_mutant(GT_MUTANT_ONE_REDO))
		l->file->redo[~q & 1] = *redo;
	if (gt_mutant(GT_MUTANT_ONE_CTR))
		l->file->ctr[~q & 1] = *ctr;
}

/* Everything behind it. */
static inline void apply(struct lane *l, const struct gt_cell *cell, enum gt_op op, uint64_t q)
{
	const struct gt_redo *redo = &l->file->redo[q & 1];
	struct gt_slot *slot = gt_array_at(&l->slots, cell->slot);

	gt_store(&slot->key, effect_of(op) > 0 ? cell->key : 0);
	if (redo->site != GT_NONE)
		apply_line(gt_array_at(&l->sites, cell->site), &redo->line);
}

uint64_t gt_commit(struct lane *l, struct gt_cell *cell, enum gt_op op, uint32_t mask)
{
	uint64_t q = l->seq + 1;

	if (gt_unlikely(l->seq - l->sealed == l->cap))
		gt_ring_seal(l);
	prepare(l, cell, op, mask, q);
	gt_store(&l->file->seq, q);
	gt_store_barrier();
	if (effect_of(op))
		apply(l, cell, op, q);
	gt_store_barrier();
	l->seq = q;
	return q;
}
