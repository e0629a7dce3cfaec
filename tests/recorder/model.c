/* SPDX-License-Identifier: MIT */
/* See model.h. */
#include <stdlib.h>
#include <string.h>
#include "model.h"

#define FALLBACK_SITES 3 /* of each lane, defined with it */

uint64_t rnd(uint64_t *state)
{
	uint64_t z = (*state += 0x9e3779b97f4a7c15ull);

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

/* Torch's first block has the address of its segment: odd blocks share theirs with even ones. */
static uint32_t space_of(uint32_t block)
{
	return block & 1 ? GT_SPACE_TORCH : GT_SPACE_DRIVER;
}

static uint64_t address_of(uint32_t block)
{
	return 0x7f1200000000ull + (uint64_t)(block / 2) * 0x200000;
}

uint64_t model_key(uint32_t block)
{
	return GT_KEY(address_of(block), space_of(block));
}

static uint32_t mask_of(uint32_t block)
{
	if (block & 1)
		return GT_MASK_TORCH | GT_MASK_IN_USE;
	return block % 4 ? GT_MASK_RESERVED : GT_MASK_RESERVED | GT_MASK_IN_USE;
}

static uint32_t api_of(uint32_t block)
{
	return block & 1 ? GT_API_TORCH : GT_API_MEM_ALLOC;
}

/* ---- the program ---------------------------------------------------------------------------- */

/* A block belongs to one lane at a time, and always to the same: its address decides. */
static uint32_t lane_of(const struct program *p, uint32_t block)
{
	return p->lanes == 1 ? 0 : (block / 2) % 5 == 0;
}

static void choose(struct program *p, struct call *c, bool *live, uint64_t *r)
{
	uint32_t dice = rnd(r) % 100;

	c->block = rnd(r) % p->blocks;
	c->device = (int)lane_of(p, c->block);
	c->native = 1 + rnd(r) % p->stacks;
	c->stream = rnd(r) % 4 ? 0 : 1 + rnd(r) % FAKE_STREAMS;
	c->size = rnd(r) % 8 ? (1 + rnd(r) % 64) * 512 : 1 + rnd(r) % 4096;
	if (dice < 3)
		c->kind = CALL_NOTE;
	else if (!live[c->block])
		c->kind = dice < 6 ? CALL_FREE_UNKNOWN : CALL_ALLOC;
	else if (dice < 10)
		c->kind = CALL_ALLOC; /* the free was not seen */
	else if (dice < 15)
		c->kind = CALL_FREE_REFUSED;
	else
		c->kind = CALL_FREE;
	if (c->kind == CALL_FREE && rnd(r) % 100 < p->grow)
		c->kind = CALL_NOTE;
	if (c->kind == CALL_ALLOC)
		live[c->block] = true;
	if (c->kind == CALL_FREE)
		live[c->block] = false;
}

void program_make(struct program *p, uint64_t seed, size_t calls)
{
	bool *live = calloc(p->blocks, sizeof(*live));
	uint64_t r = seed;

	p->calls = calloc(calls, sizeof(*p->calls));
	p->count = calls;
	for (size_t i = 0; i < calls; i++)
		choose(p, &p->calls[i], live, &r);
	free(live);
}

void program_free(struct program *p)
{
	free(p->calls);
	p->calls = NULL;
}

void program_call(const struct program *p, size_t i)
{
	const struct call *c = &p->calls[i];
	uint32_t space = space_of(c->block);
	const struct gt_alloc a = {
		.device = c->device,
		.space = space,
		.mask = mask_of(c->block),
		.api = api_of(c->block),
		.addr = address_of(c->block),
		.size = c->size,
		.stream = c->stream,
		.where.native = c->native,
	};
	struct gt_where none = {0};
	struct gt_freed freed;

	switch (c->kind) {
	case CALL_ALLOC:
		gt_record_alloc(&a);
		break;
	case CALL_FREE: /* says the wrong device now and then */
		gt_record_free(c->native % 7 ? c->device : !c->device, space, a.addr, a.api, none,
			       NULL);
		break;
	case CALL_FREE_UNKNOWN:
		gt_record_free(c->device, space, a.addr, a.api, none, &freed);
		break;
	case CALL_FREE_REFUSED:
		gt_record_free(c->device, space, a.addr, a.api, none, &freed);
		gt_record_unfree(&freed);
		break;
	case CALL_NOTE:
		gt_record_note(GT_OP_MARK, c->device, 0, 0, c->native, 0);
		break;
	}
}

/* ---- what it does --------------------------------------------------------------------------- */

static uint32_t site_for(struct m_lane *l, uint32_t block, uint32_t native)
{
	const struct m_site s = {.native = native,
				 .space = space_of(block),
				 .mask = mask_of(block),
				 .api = api_of(block)};

	for (uint32_t i = 1 + FALLBACK_SITES; i < l->site_count; i++)
		if (l->sites[i].native == s.native && l->sites[i].space == s.space &&
		    l->sites[i].mask == s.mask && l->sites[i].api == s.api)
			return i;
	l->sites = realloc(l->sites, (l->site_count + 1) * sizeof(*l->sites));
	l->sites[l->site_count] = s;
	return l->site_count++;
}

static void emit(struct m_lane *l, uint32_t op, const struct call *c)
{
	struct m_block *b = &l->blocks[c->block];
	struct m_event *e;

	if ((l->event_count & (l->event_count - 1)) == 0)
		l->events =
			realloc(l->events, (l->event_count ? 2 * l->event_count : 1) * sizeof(*e));
	e = &l->events[l->event_count++];
	*e = (struct m_event){.op = op, .block = c->block, .birth_seq = l->event_count};
	if (op == GT_OP_MARK) {
		e->aux = c->native;
		return;
	}
	if (op == GT_OP_UNKNOWN_FREE)
		return;
	if (op == GT_OP_ALLOC)
		*b = (struct m_block){.site = site_for(l, c->block, c->native),
				      .stream = c->stream,
				      .size = c->size,
				      .birth_seq = l->event_count};
	b->live = op == GT_OP_ALLOC || op == GT_OP_UNFREE;
	e->site = b->site;
	e->size = b->size;
	e->stream = b->stream;
	e->birth_seq = b->birth_seq;
}

static void run(struct model *m, struct call *c)
{
	struct m_lane *l = &m->lane[lane_of(m->p, c->block)];

	switch (c->kind) {
	case CALL_ALLOC:
		if (l->blocks[c->block].live)
			emit(l, GT_OP_IMPLICIT_FREE, c);
		emit(l, GT_OP_ALLOC, c);
		break;
	case CALL_FREE:
		emit(l, GT_OP_FREE, c);
		break;
	case CALL_FREE_UNKNOWN:
		emit(l, GT_OP_UNKNOWN_FREE, c);
		break;
	case CALL_FREE_REFUSED:
		emit(l, GT_OP_FREE, c);
		emit(l, GT_OP_UNFREE, c);
		break;
	case CALL_NOTE:
		emit(l, GT_OP_MARK, c);
		break;
	}
}

void model_make(struct model *m, const struct program *p)
{
	memset(m, 0, sizeof(*m));
	m->p = p;
	for (unsigned i = 0; i < 2; i++) {
		struct m_lane *l = &m->lane[i];

		l->blocks = calloc(p->blocks, sizeof(*l->blocks));
		l->site_count = 1 + FALLBACK_SITES;
		l->sites = calloc(l->site_count, sizeof(*l->sites));
		l->sites[1].mask = GT_MASK_RESERVED;
		l->sites[2].mask = GT_MASK_RESERVED | GT_MASK_IN_USE;
		l->sites[3].mask = GT_MASK_TORCH | GT_MASK_IN_USE;
	}
	for (size_t i = 0; i < p->count; i++) {
		struct call *c = &p->calls[i];

		run(m, c);
		c->events[0] = m->lane[0].event_count;
		c->events[1] = m->lane[1].event_count;
	}
	for (unsigned i = 0; i < 2; i++)
		m->lane[i].times = calloc(m->lane[i].event_count + 1, sizeof(uint64_t));
	model_rewind(m);
}

void model_rewind(struct model *m)
{
	for (unsigned i = 0; i < 2; i++) {
		struct m_lane *l = &m->lane[i];

		l->seq = 0;
		l->live_blocks = 0;
		memset(&l->ctr, 0, sizeof(l->ctr));
		memset(l->blocks, 0, m->p->blocks * sizeof(*l->blocks));
		memset(l->times, 0, (l->event_count + 1) * sizeof(*l->times));
		for (uint32_t s = 0; s < l->site_count; s++) {
			struct m_site *site = &l->sites[s];

			site->live = site->count = site->ever = site->ever_count = 0;
			memset(site->at, 0, sizeof(site->at));
		}
	}
}

void model_free(struct model *m)
{
	for (unsigned i = 0; i < 2; i++) {
		free(m->lane[i].events);
		free(m->lane[i].blocks);
		free(m->lane[i].sites);
		free(m->lane[i].times);
	}
}

/* ---- the state after each event ------------------------------------------------------------- */

static void totals(struct m_lane *l, uint32_t mask)
{
	for (unsigned k = 0; k < GT_TOTALS; k++) {
		if (l->ctr.cur[k] <= l->ctr.peak[k])
			continue;
		l->ctr.peak[k] = l->ctr.cur[k];
		l->ctr.peak_seq[k] = l->seq;
		for (uint32_t s = 0; s < l->site_count; s++)
			l->sites[s].at[k] = l->sites[s].mask >> k & 1 ? l->sites[s].live : 0;
	}
}

static void block_event(struct m_lane *l, const struct m_event *e)
{
	struct m_block *b = &l->blocks[e->block];
	struct m_site *s = &l->sites[e->site];
	bool comes = e->op == GT_OP_ALLOC || e->op == GT_OP_UNFREE;
	uint64_t delta = comes ? e->size : 0 - e->size;

	*b = (struct m_block){comes, e->site, e->stream, e->size, e->birth_seq};
	s->live += delta;
	s->count += comes ? 1 : -1;
	l->live_blocks += comes ? 1 : -1;
	l->ctr.live_count = l->live_blocks;
	if (e->op == GT_OP_ALLOC) {
		s->ever += e->size;
		s->ever_count++;
		l->ctr.allocs++;
		l->ctr.alloc_bytes += e->size;
		l->ctr.torch_allocs += e->block & 1;
	} else {
		l->ctr.frees += comes ? -1 : 1;
		l->ctr.free_bytes += comes ? 0 - e->size : e->size;
	}
	for (unsigned k = 0; k < GT_TOTALS; k++)
		l->ctr.cur[k] += s->mask >> k & 1 ? delta : 0;
	totals(l, s->mask);
}

void model_advance(struct model *m, uint32_t lane, uint64_t seq)
{
	struct m_lane *l = &m->lane[lane];

	while (l->seq < seq && l->seq < l->event_count) {
		const struct m_event *e = &l->events[l->seq++];

		if (e->op == GT_OP_UNKNOWN_FREE)
			l->ctr.unknown_frees++;
		else if (e->op != GT_OP_MARK)
			block_event(l, e);
		if (e->op == GT_OP_IMPLICIT_FREE)
			l->ctr.implicit_frees++;
	}
}

/* ---- comparing ------------------------------------------------------------------------------ */

static const char *compare_counters(const struct m_lane *l, const struct gt_ctr *c)
{
	struct gt_ctr seen = *c;

	memset(seen.peak_us, 0, sizeof(seen.peak_us));
	for (unsigned k = 0; k < GT_TOTALS; k++) {
		uint64_t q = c->peak_seq[k];

		if (q <= l->event_count && l->times[q] && c->peak_us[k] != l->times[q])
			return "time of a peak";
	}
	return memcmp(&seen, &l->ctr, sizeof(seen)) ? "counters" : NULL;
}

static const char *compare_sites(const struct m_lane *l, const struct ck_lane *seen)
{
	for (uint32_t s = 0; s < l->site_count; s++) {
		const struct m_site *want = &l->sites[s];
		const struct ck_site *got = &seen->sites[s];

		if (s >= seen->site_count) {
			if (want->ever_count)
				return "a used site is not defined";
			continue;
		}
		if (s && (got->def.native != want->native || got->def.space != want->space ||
			  got->def.mask != want->mask || got->def.api != want->api))
			return "definition of a site";
		if (got->line.live != want->live || got->line.live_count != want->count ||
		    got->line.ever != want->ever || got->line.ever_count != want->ever_count)
			return "totals of a site";
		for (unsigned k = 0; k < GT_TOTALS; k++)
			if (ck_at_peak(seen, s, k) != want->at[k])
				return "bytes of a site at a peak";
	}
	return NULL;
}

static uint32_t block_of(uint64_t key)
{
	uint64_t n = (GT_KEY_ADDR(key) - address_of(0)) / 0x200000;

	return (uint32_t)(2 * n + (GT_KEY_SPACE(key) == GT_SPACE_TORCH));
}

static const char *compare_blocks(const struct m_lane *l, uint32_t blocks,
				  const struct ck_lane *seen)
{
	if (seen->block_count != l->live_blocks)
		return "number of live blocks";
	for (size_t i = 0; i < seen->block_count; i++) {
		const struct ck_block *b = &seen->blocks[i];
		uint32_t n = block_of(b->key);
		const struct m_block *want = &l->blocks[n];

		if (n >= blocks || model_key(n) != b->key || !want->live)
			return "a live block that is none";
		if (b->size != want->size || b->stream != want->stream || b->site != want->site)
			return "a live block's fields";
		if (l->times[want->birth_seq] && b->birth_us != l->times[want->birth_seq])
			return "a live block's birth";
	}
	return NULL;
}

static const char *compare_event(struct m_lane *l, const struct ck_event *e)
{
	const struct m_event *want = &l->events[e->seq - 1];
	bool block = want->op != GT_OP_MARK;

	if (e->op != want->op || e->size != want->size || e->site != want->site ||
	    e->stream != want->stream || e->aux != want->aux)
		return "an event";
	if (block && GT_KEY(e->addr, e->space) != model_key(want->block))
		return "an event's key";
	if (l->times[e->seq] && l->times[e->seq] != e->us)
		return "an event's time changed";
	l->times[e->seq] = e->us;
	if (l->times[want->birth_seq] && l->times[want->birth_seq] != e->birth_us)
		return "an event's birth";
	return NULL;
}

static const char *compare_history(struct m_lane *l, const struct ck_lane *seen)
{
	uint64_t before = 0;

	for (size_t i = 0; i < seen->event_count; i++) {
		const struct ck_event *e = &seen->events[i];
		const char *why;

		if (e->seq == 0 || e->seq > l->event_count)
			return "an event that never was";
		why = compare_event(l, e);
		if (why)
			return why;
		if (e->us < before)
			return "time goes back";
		before = e->us;
	}
	if (seen->event_count && seen->events[seen->event_count - 1].seq != l->seq)
		return "history does not reach the last event";
	return NULL;
}

const char *model_event(struct model *m, uint32_t lane, const struct ck_event *e)
{
	struct m_lane *l = &m->lane[lane];

	return e->seq && e->seq <= l->event_count ? compare_event(l, e) : "an event that never was";
}

const char *model_totals(struct model *m, uint32_t lane, const struct ck_lane *seen)
{
	struct m_lane *l = &m->lane[lane];
	const char *why;

	model_advance(m, lane, seen->head.seq);
	if (l->seq != seen->head.seq)
		return "sequence";
	why = compare_counters(l, &seen->ctr);
	return why ? why : compare_sites(l, seen);
}

const char *model_compare(struct model *m, uint32_t lane, const struct ck_lane *seen)
{
	const char *why = model_totals(m, lane, seen);

	if (!why)
		why = compare_history(&m->lane[lane], seen);
	if (!why)
		why = compare_blocks(&m->lane[lane], m->p->blocks, seen);
	return why;
}

/* Undoes one event with nothing but what the event itself says. */
static const char *undo(struct m_block *blocks, const struct ck_event *e)
{
	struct m_block *b;

	if (e->op != GT_OP_ALLOC && e->op != GT_OP_UNFREE && e->op != GT_OP_FREE &&
	    e->op != GT_OP_IMPLICIT_FREE)
		return NULL;
	b = &blocks[block_of(GT_KEY(e->addr, e->space))];
	if (e->op == GT_OP_ALLOC || e->op == GT_OP_UNFREE) {
		if (!b->live)
			return "backward: an allocation of nothing";
		b->live = false;
		return NULL;
	}
	if (b->live)
		return "backward: a free of a live block";
	*b = (struct m_block){true, e->site, e->stream, e->size, 0};
	return NULL;
}

const char *model_backward(struct model *m, uint32_t lane, const struct ck_lane *seen)
{
	struct m_block *blocks = calloc(m->p->blocks, sizeof(*blocks));
	struct m_lane *l = &m->lane[lane];
	const char *why = NULL;

	for (size_t i = 0; i < seen->block_count; i++) {
		const struct ck_block *b = &seen->blocks[i];

		blocks[block_of(b->key)] = (struct m_block){true, b->site, b->stream, b->size, 0};
	}
	for (size_t i = seen->event_count; i-- && !why;)
		why = undo(blocks, &seen->events[i]);
	model_rewind(m);
	model_advance(m, lane, seen->event_count ? seen->events[0].seq - 1 : seen->head.seq);
	for (uint32_t i = 0; i < m->p->blocks && !why; i++)
		if (blocks[i].live != l->blocks[i].live ||
		    (blocks[i].live &&
		     (blocks[i].size != l->blocks[i].size || blocks[i].site != l->blocks[i].site)))
			why = "backward: another live set at the start of the history";
	free(blocks);
	return why;
}
