/* SPDX-License-Identifier: MIT */
/* See check.h. */
#include <stdlib.h>
#include <string.h>
#include <zstd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>
#include "check.h"

/* ---- extents -------------------------------------------------------------------------------- */

const char *ck_open(struct ck_file *f, const void *base, uint64_t size)
{
	const struct gt_header *h = base;
	uint64_t at = GT_HEADER_SIZE;

	memset(f, 0, offsetof(struct ck_file, extents));
	memset(f->kinds, 0, sizeof(f->kinds));
	f->extent_count = 0;
	f->base = base;
	f->size = size;
	f->header = h;
	if (size < GT_HEADER_SIZE || memcmp(h->magic, GT_MAGIC, 8) || h->end > size)
		return "header";
	while (at < h->end) {
		const struct gt_extent *e = (const void *)(f->base + at);

		if (e->kind < 1 || e->kind > 6)
			return "extent of no kind";
		if (e->offset != at || e->length < 4096 || e->length % 4096 ||
		    e->length > h->end - at)
			return "extent fields";
		if (e->used < sizeof(*e) || e->used > e->length)
			return "extent used";
		f->kinds[e->kind]++;
		f->extents[f->extent_count++] = *e;
		at += e->length;
	}
	return NULL;
}

static const struct gt_extent *next_of(const struct ck_file *f, size_t *i, uint32_t kind,
				       uint32_t lane)
{
	for (; *i < f->extent_count; ++*i)
		if (f->extents[*i].kind == kind && f->extents[*i].lane == lane)
			return &f->extents[(*i)++];
	return NULL;
}

bool ck_has_lane(const struct ck_file *f, uint32_t lane)
{
	size_t i = 0;
	const struct gt_extent *e = next_of(f, &i, GT_EXTENT_LANE, lane);

	return e && ((const struct gt_lane *)(f->base + e->offset + sizeof(*e)))->cap;
}

/* ---- columns -------------------------------------------------------------------------------- */

struct bytes {
	const uint8_t *p, *end;
	bool bad;
};

static uint64_t varint(struct bytes *b)
{
	uint64_t v = 0;

	for (unsigned shift = 0; shift < 70; shift += 7) {
		if (b->p == b->end)
			break;
		v |= (uint64_t)(*b->p & 127) << shift;
		if (!(*b->p++ & 128))
			return v;
	}
	b->bad = true;
	return 0;
}

static uint64_t value(struct bytes *b, unsigned coding, uint64_t *before)
{
	uint64_t z;

	switch (coding) {
	case GT_CODE_BYTES:
		if (b->p == b->end) {
			b->bad = true;
			return 0;
		}
		return *b->p++;
	case GT_CODE_PLAIN:
		return varint(b);
	default:
		z = varint(b);
		*before += z >> 1 ^ (0 - (z & 1));
		return coding == GT_CODE_ROTATED ? *before << 9 | *before >> 55 : *before;
	}
}

static void assign(struct ck_event *e, unsigned id, uint64_t v)
{
	switch (id) {
	case GT_COL_OP:
		e->op = v;
		break;
	case GT_COL_SPACE:
		e->space = v;
		break;
	case GT_COL_TIME:
		e->us = v;
		break;
	case GT_COL_THREAD:
		e->thread = v;
		break;
	case GT_COL_ADDR:
		e->addr = v;
		break;
	case GT_COL_SIZE:
		e->size = v;
		break;
	case GT_COL_STREAM:
		e->stream = v;
		break;
	case GT_COL_AGE:
		e->birth_us = v;
		break;
	case GT_COL_BIRTH_THREAD:
		e->birth_thread = v;
		break;
	case GT_COL_SITE:
		e->site = v;
		break;
	case GT_COL_FREE_SITE:
		e->free_site = v;
		break;
	case GT_COL_AUX:
		e->aux = v;
		break;
	case GT_COL_EXTRA:
		e->extra = v;
		break;
	}
}

/* How many events before the alloc of the block stands that event i of the chunk ends. */
static uint32_t backs[GT_MAX_CHUNK_EVENTS];

/* Has event i a value in this column? */
static bool has_value(const struct ck_event *e, unsigned id, uint32_t i)
{
	bool whole = id == GT_COL_SPACE || id == GT_COL_ADDR || id == GT_COL_SIZE ||
		     id == GT_COL_STREAM || id == GT_COL_AGE || id == GT_COL_BIRTH_THREAD ||
		     id == GT_COL_SITE;

	if (id == GT_COL_BACK)
		return e[i].op == GT_OP_FREE || e[i].op == GT_OP_IMPLICIT_FREE;
	return !whole || !backs[i];
}

static const char *column(const struct gt_column *c, struct bytes *b, uint32_t count,
			  struct ck_event *ret)
{
	uint64_t before = 0, v = 0;

	if (c->coding == GT_CODE_CONST)
		v = varint(b);
	for (uint32_t i = 0; i < count; i++) {
		if (!has_value(ret, c->id, i))
			continue;
		if (c->coding != GT_CODE_CONST)
			v = value(b, c->coding, &before);
		if (c->id == GT_COL_BACK)
			backs[i] = (uint32_t)v;
		else
			assign(&ret[i], c->id, v);
	}
	if (b->bad)
		return "column ends early";
	return b->p == b->end ? NULL : "column is longer than its values";
}

/* What event i of the chunk has from an event before; the n events before the chunk, oldest first. */
static const char *take_back(struct ck_event *ret, uint32_t i, const struct ck_event *before,
			     size_t n)
{
	const struct ck_event *from;

	if (backs[i] > n + i)
		return "back to before the extent";
	from = backs[i] <= i ? &ret[i - backs[i]] : &before[n + i - backs[i]];
	if (from->op != GT_OP_ALLOC || from->seq != ret[i].seq - backs[i])
		return "back to what is no alloc";
	ret[i].space = from->space;
	ret[i].addr = from->addr;
	ret[i].size = from->size;
	ret[i].stream = from->stream;
	ret[i].site = from->site;
	ret[i].birth_us = from->us;
	ret[i].birth_thread = from->thread;
	return NULL;
}

static const char *columns(const uint8_t *raw, const uint8_t *end, uint32_t count,
			   struct ck_event *ret)
{
	const char *why;

	while (raw < end) {
		struct gt_column c;
		struct bytes b;

		if (end - raw < (long)sizeof(c))
			return "column head";
		memcpy(&c, raw, sizeof(c));
		b = (struct bytes){raw + sizeof(c), raw + sizeof(c) + c.length, false};
		if (c.length > (size_t)(end - raw) - sizeof(c) || !c.id || c.id >= GT_COLS)
			return "column length";
		why = column(&c, &b, count, ret);
		if (why)
			return why;
		raw = b.end;
	}
	return NULL;
}

const char *ck_columns(const uint8_t *raw, size_t length, uint64_t first_seq, uint32_t count,
		       const struct ck_event *before, size_t before_count, struct ck_event *ret)
{
	const char *why;

	memset(ret, 0, count * sizeof(*ret));
	memset(backs, 0, count * sizeof(*backs));
	why = columns(raw, raw + length, count, ret);
	for (uint32_t i = 0; i < count; i++) {
		ret[i].seq = first_seq + i;
		ret[i].birth_us = ret[i].us - ret[i].birth_us;
	}
	for (uint32_t i = 0; !why && i < count; i++)
		if (backs[i])
			why = take_back(ret, i, before, before_count);
	return why;
}

/* ---- history -------------------------------------------------------------------------------- */

static void add_event(struct ck_lane *l, const struct ck_event *e)
{
	if ((l->event_count & (l->event_count - 1)) == 0)
		l->events =
			realloc(l->events, (l->event_count ? 2 * l->event_count : 1) * sizeof(*e));
	l->events[l->event_count++] = *e;
}

/* History without a gap; where some was given up (counted), it starts behind the gap. */
static const char *follows(struct ck_lane *l, uint64_t seq)
{
	uint64_t last = l->event_count ? l->events[l->event_count - 1].seq : seq - 1;

	if (last + 1 == seq)
		return NULL;
	if (last >= seq || !l->head.lost)
		return "gap or overlap in the history";
	l->event_count = l->extent_from = 0;
	return NULL;
}

static const char *chunk(const struct gt_chunk *c, ZSTD_DCtx *z, struct ck_lane *l)
{
	static uint8_t raw[1 << 20];
	static struct ck_event events[GT_MAX_CHUNK_EVENTS];
	ZSTD_outBuffer out = {raw, sizeof(raw), 0};
	ZSTD_inBuffer in = {c + 1, c->packed, 0};
	const char *why;

	if (XXH64(c + 1, c->packed, 0) != c->hash)
		return "chunk hash";
	while (in.pos < in.size || out.pos < c->raw)
		if (ZSTD_isError(ZSTD_decompressStream(z, &out, &in)))
			return "chunk does not decompress";
		else if (in.pos == in.size && out.pos < c->raw && out.pos == out.size)
			return "chunk too long";
	if (out.pos != c->raw || !c->events || c->events > GT_MAX_CHUNK_EVENTS)
		return "chunk raw length";
	why = ck_columns(raw, c->raw, c->first_seq, c->events, l->events + l->extent_from,
			 l->event_count - l->extent_from, events);
	if (why)
		return why;
	if (events[0].us != c->first_us || events[c->events - 1].us != c->last_us)
		return "chunk times";
	for (uint32_t i = 0; i < c->events; i++) {
		why = follows(l, events[i].seq);
		if (why)
			return why;
		add_event(l, &events[i]);
	}
	return NULL;
}

const char *ck_ring_extent(const struct ck_file *f, const struct gt_extent *e, struct ck_lane *l,
			   uint32_t lane)
{
	ZSTD_DCtx *z = ZSTD_createDCtx();
	uint64_t at = sizeof(*e);
	const char *why = NULL;

	l->extent_from = l->event_count;
	while (!why && at < e->used) {
		const struct gt_chunk *c = (const void *)(f->base + e->offset + at);

		if (e->used - at < sizeof(*c) || c->magic != GT_CHUNK_MAGIC)
			why = "chunk head";
		else if (c->packed > e->used - at - sizeof(*c))
			why = "chunk length";
		else if (c->lane != lane)
			why = "chunk of another lane";
		else if (at == sizeof(*e) && c->first_seq != e->first_seq)
			why = "chunk is not the extent's first";
		else
			why = chunk(c, z, l);
		at += sizeof(*c) + (c->packed + 7) / 8 * 8;
	}
	ZSTD_freeDCtx(z);
	return why;
}

/* In the order of their fills. */
static const char *read_chunks(const struct ck_file *f, uint32_t lane, struct ck_lane *l)
{
	uint64_t done = 0;

	for (;;) {
		const struct gt_extent *best = NULL, *e;
		const char *why;
		size_t i = 0;

		while ((e = next_of(f, &i, GT_EXTENT_RING, lane)))
			if (e->serial > done && !(e->gen & 1) &&
			    (!best || e->serial < best->serial))
				best = e;
		if (!best)
			return NULL;
		why = ck_ring_extent(f, best, l, lane);
		if (why)
			return why;
		done = best->serial;
	}
}

struct ck_event ck_event_of(const struct gt_cell *c)
{
	return (struct ck_event){
		.seq = c->seq_op >> 8,
		.op = c->seq_op & 255,
		.us = GT_LOW48(c->time_thread),
		.thread = GT_HIGH16(c->time_thread),
		.addr = GT_KEY_ADDR(c->key),
		.space = GT_KEY_SPACE(c->key),
		.size = GT_LOW48(c->size_stream),
		.stream = GT_HIGH16(c->size_stream),
		.birth_us = GT_LOW48(c->birth),
		.birth_thread = GT_HIGH16(c->birth),
		.site = c->site,
		.free_site = c->free_site,
		.aux = c->aux,
		.extra = c->extra,
	};
}

/* Cells that a chunk has too are dropped: a kill between the two stores of a seal leaves both. */
static const char *read_cells(const struct gt_cell *cells, struct ck_lane *l)
{
	uint64_t have = l->event_count ? l->events[l->event_count - 1].seq : 0;
	const char *why;

	if (l->head.seq - l->head.sealed > l->head.cap)
		return "more events staged than cells";
	for (uint64_t q = l->head.sealed + 1; q <= l->head.seq; q++) {
		struct ck_event e = ck_event_of(&cells[q & (l->head.cap - 1)]);

		if (e.seq != q)
			return "cell of another event";
		if (q <= have)
			continue;
		why = follows(l, q);
		if (why)
			return why;
		add_event(l, &e);
	}
	return NULL;
}

/* ---- sites and blocks ----------------------------------------------------------------------- */

static const char *defs_extent(const struct ck_file *f, const struct gt_extent *e, uint32_t lane,
			       struct ck_lane *l)
{
	for (uint64_t at = sizeof(*e); at < e->used;) {
		const struct gt_rec *r = (const void *)(f->base + e->offset + at);
		const struct gt_rec_site *s = (const void *)r;

		if (e->used - at < sizeof(*r) || r->length < sizeof(*r) || r->length % 8 ||
		    r->length > e->used - at || !r->kind || r->kind > GT_REC_CONTEXT)
			return "definition";
		at += r->length;
		if (r->kind != GT_REC_SITE || s->lane != lane)
			continue;
		if (s->index != l->site_count)
			return "sites are not defined in order";
		if ((l->site_count & (l->site_count - 1)) == 0)
			l->sites = realloc(l->sites, 2 * l->site_count * sizeof(*l->sites));
		l->sites[l->site_count++] = (struct ck_site){.def = *s};
	}
	return NULL;
}

static const char *read_defs(const struct ck_file *f, uint32_t lane, struct ck_lane *l)
{
	const struct gt_extent *e;
	const char *why = NULL;
	uint64_t order = 0;

	l->sites = calloc(1, sizeof(*l->sites));
	l->site_count = 1;
	for (bool found = true; found && !why; order++) {
		size_t i = 0;

		found = false;
		while (!why && (e = next_of(f, &i, GT_EXTENT_DEFS, GT_LANE_NONE)))
			if (e->first_index == order) {
				found = true;
				why = defs_extent(f, e, lane, l);
			}
	}
	return why ? why : order - 1 == f->kinds[GT_EXTENT_DEFS] ? NULL : "definitions' order";
}

static const char *read_sites(const struct ck_file *f, uint32_t lane, struct ck_lane *l)
{
	const struct gt_redo *redo = &l->head.redo[l->head.seq & 1];
	const struct gt_extent *e;
	size_t i = 0, seen = 0;

	while ((e = next_of(f, &i, GT_EXTENT_SITES, lane))) {
		const struct gt_site *s = (const void *)(f->base + e->offset + sizeof(*e));
		size_t n = (e->length - sizeof(*e)) / sizeof(*s);

		for (size_t k = 0; k < n; k++) {
			if (e->first_index + k >= l->site_count) {
				if (s[k].last_seq || s[k].live || s[k].ever)
					return "totals of an undefined site";
				continue;
			}
			l->sites[e->first_index + k].line = s[k];
			seen++;
		}
	}
	if (l->head.seq && redo->site != UINT32_MAX) {
		if (redo->site >= l->site_count)
			return "redo of an undefined site";
		l->sites[redo->site].line = redo->line;
	}
	return seen == l->site_count || !l->head.seq ? NULL : "sites without totals";
}

/* What the last event did to its slot may not have been done. */
static struct gt_slot overlay(const struct gt_slot *slot, uint64_t index, const struct gt_cell *c)
{
	struct gt_slot s = *slot;
	unsigned op = c->seq_op & 255;

	if (c->slot != index)
		return s;
	if (op == GT_OP_ALLOC || op == GT_OP_UNFREE)
		s = (struct gt_slot){c->key, c->size_stream, c->birth, c->site, 0};
	else if (op == GT_OP_FREE || op == GT_OP_IMPLICIT_FREE)
		s.key = 0;
	return s;
}

static const char *read_blocks(const struct ck_file *f, uint32_t lane, const struct gt_cell *cells,
			       struct ck_lane *l)
{
	const struct gt_cell none = {.slot = UINT32_MAX};
	const struct gt_cell *last = l->head.seq ? &cells[l->head.seq & (l->head.cap - 1)] : &none;
	const struct gt_extent *e;
	size_t i = 0;

	while ((e = next_of(f, &i, GT_EXTENT_LIVE, lane))) {
		const struct gt_slot *slots = (const void *)(f->base + e->offset + sizeof(*e));
		size_t n = (e->length - sizeof(*e)) / sizeof(*slots);

		l->blocks = realloc(l->blocks, (l->block_count + n) * sizeof(*l->blocks));
		for (size_t k = 0; k < n; k++) {
			struct gt_slot s = overlay(&slots[k], e->first_index + k, last);

			if (!s.key)
				continue;
			if (s.site >= l->site_count)
				return "block of an undefined site";
			l->blocks[l->block_count++] = (struct ck_block){
				.key = s.key,
				.size = GT_LOW48(s.size_stream),
				.stream = GT_HIGH16(s.size_stream),
				.birth_us = GT_LOW48(s.birth),
				.thread = GT_HIGH16(s.birth),
				.site = s.site,
			};
		}
	}
	return NULL;
}

const char *ck_lane(const struct ck_file *f, uint32_t lane, bool history, struct ck_lane *ret)
{
	size_t i = 0;
	const struct gt_extent *e = next_of(f, &i, GT_EXTENT_LANE, lane);
	const struct gt_cell *cells;
	const char *why;

	memset(ret, 0, sizeof(*ret));
	if (!e)
		return "no such lane";
	ret->head = *(const struct gt_lane *)(f->base + e->offset + sizeof(*e));
	cells = (const void *)(f->base + e->offset + GT_CELLS_OFFSET);
	if (!ret->head.cap || ret->head.cap & (ret->head.cap - 1) ||
	    GT_CELLS_OFFSET + ret->head.cap * sizeof(*cells) > e->length)
		return "cells";
	ret->ctr = ret->head.ctr[ret->head.seq & 1];
	why = read_defs(f, lane, ret);
	if (!why)
		why = read_sites(f, lane, ret);
	if (!why)
		why = read_blocks(f, lane, cells, ret);
	if (!why && history)
		why = read_chunks(f, lane, ret);
	if (!why)
		why = read_cells(cells, ret);
	return why;
}

void ck_lane_free(struct ck_lane *l)
{
	free(l->blocks);
	free(l->sites);
	free(l->events);
	memset(l, 0, sizeof(*l));
}

uint64_t ck_at_peak(const struct ck_lane *l, size_t site, unsigned k)
{
	const struct ck_site *s = &l->sites[site];

	if (!(s->def.mask >> k & 1))
		return 0;
	return s->line.last_seq <= l->ctr.peak_seq[k] ? s->line.live : s->line.at[k];
}
