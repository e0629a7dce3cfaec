/* SPDX-License-Identifier: MIT */
/*
 * See writer.h. A file is built in memory in the order in which a recorder would: definitions, then
 * events, each with slot, counters, redo line, cell and commit, then a seal when staging is full.
 * All offsets are kept as numbers, since the buffer moves when it grows.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>
#include <zstd.h>
#include "writer.h"

struct lane {
	uint64_t at;			  /* of the LANE extent in the file */
	uint64_t seq, sealed, chunk_from; /* chunk_from: first event of the ring extent */
	uint64_t us;
	uint64_t ring;	    /* ring extent being filled; 0 = none */
	uint64_t *slots_at; /* LIVE extents */
	size_t slot_extents, slots;
	uint32_t *free_slots;
	size_t free_count;
	uint64_t sites_at;
	struct gt_block *live;
	uint32_t *live_slot;
	uint32_t *live_mask;
	size_t live_count, live_capacity;
	struct gt_ctr ctr;
	ZSTD_CCtx *frame;
	size_t seals;
};

struct writer {
	const struct writer_options *o;
	struct written *out;
	size_t capacity;
	uint64_t rng;
	uint64_t defs; /* the DEFS extent being filled */
	uint64_t defs_count, serial;
	uint64_t *rings; /* ring extents, oldest first */
	size_t ring_count;
	struct lane *lanes;
};

static uint64_t next_random(struct writer *w)
{
	w->rng ^= w->rng << 13;
	w->rng ^= w->rng >> 7;
	w->rng ^= w->rng << 17;
	return w->rng;
}

static uint64_t below(struct writer *w, uint64_t n)
{
	return (next_random(w) >> 11) % n;
}

static void must(bool condition)
{
	if (!condition)
		abort();
}

#define AT(w, type, offset) ((type *)(void *)((w)->out->bytes + (offset)))

static uint64_t reserve(struct writer *w, uint64_t length)
{
	const uint64_t at = w->out->size;

	if (at + length > w->capacity) {
		w->capacity = (at + length) * 2;
		w->out->bytes = realloc(w->out->bytes, w->capacity);
		must(w->out->bytes != NULL);
	}
	memset(w->out->bytes + at, 0, length);
	w->out->size += length;
	return at;
}

static uint64_t new_extent(struct writer *w, uint32_t kind, uint32_t lane, uint64_t length,
			   uint64_t first_index)
{
	const uint64_t at = reserve(w, length);

	*AT(w, struct gt_extent, at) = (struct gt_extent){
		.kind = kind,
		.lane = lane,
		.offset = at,
		.length = length,
		.used = sizeof(struct gt_extent),
		.first_index = first_index,
	};
	AT(w, struct gt_header, 0)->end = w->out->size;
	return at;
}

/* ---- definitions ---------------------------------------------------------------------------- */

static void define(struct writer *w, void *record, size_t size, uint16_t kind, const char *text,
		   size_t length)
{
	const size_t whole = (size + length + 7) & ~7ul;
	struct gt_rec *rec = record;
	struct gt_extent *e = AT(w, struct gt_extent, w->defs);

	if (!w->defs || e->length - e->used < whole) {
		w->defs =
			new_extent(w, GT_EXTENT_DEFS, GT_LANE_NONE, w->o->extent, w->defs_count++);
		e = AT(w, struct gt_extent, w->defs);
	}
	rec->kind = kind;
	rec->length = (uint32_t)whole;
	memcpy(w->out->bytes + w->defs + e->used, record, size);
	memcpy(w->out->bytes + w->defs + e->used + size, text, length);
	e->used += whole;
}

static void define_info(struct writer *w, const char *key, const char *value, size_t length)
{
	struct gt_rec_info info = {.key_length = (uint32_t)strlen(key),
				   .value_length = (uint32_t)length};
	char text[256];

	must(strlen(key) + length < sizeof(text));
	memcpy(text, key, strlen(key));
	memcpy(text + strlen(key), value, length);
	define(w, &info, sizeof(info), GT_REC_INFO, text, strlen(key) + length);
}

static void define_code(struct writer *w)
{
	struct gt_rec_module module = {.id = 1,
				       .path_length = 14,
				       .start = 0x400000,
				       .end = 0x500000,
				       .bias = 0x400000,
				       .build_id = {0xab, 0xcd, 0xef},
				       .build_id_length = 3};
	struct gt_rec_unload unload = {.module = 1, .us = 77};
	struct gt_rec_string string;
	struct gt_rec_node node;

	define(w, &module, sizeof(module), GT_REC_MODULE, "/usr/bin/train", 14);
	for (uint32_t i = 1; i <= 20; i++) {
		node = (struct gt_rec_node){.id = i, .parent = i / 2, .pc = 0x400000ull + i * 64};
		define(w, &node, sizeof(node), GT_REC_NODE, "", 0);
	}
	define(w, &unload, sizeof(unload), GT_REC_UNLOAD, "", 0);
	node = (struct gt_rec_node){.id = 21, .parent = 0, .pc = 0x400040};
	define(w, &node, sizeof(node), GT_REC_NODE, "", 0);
	string = (struct gt_rec_string){.id = 1, .text_length = 8};
	define(w, &string, sizeof(string), GT_REC_STRING, "train.py", 8);
	string = (struct gt_rec_string){.id = 2, .text_length = 6};
	define(w, &string, sizeof(string), GT_REC_STRING, "st\xffp\"\n", 6);
}

static void define_python(struct writer *w)
{
	struct gt_rec_pycode code = {.id = 1, .file = 1, .name = 2, .qualname = 2, .first_line = 7};
	struct gt_rec_pynode node;
	struct gt_rec unknown = {0};

	define(w, &code, sizeof(code), GT_REC_PYCODE, "", 0);
	define(w, &unknown, sizeof(unknown), 900, "of a later version", 18);
	for (uint32_t i = 1; i <= 5; i++) {
		node = (struct gt_rec_pynode){
			.id = i, .parent = i - 1, .code = 1, .line = 10 + (int)i};
		define(w, &node, sizeof(node), GT_REC_PYNODE, "", 0);
	}
}

static void define_process(struct writer *w)
{
	struct gt_rec_device device = {
		.ordinal = 0, .name_length = 9, .total = 8ull << 30, .uuid = {1, 2, 3}};
	struct gt_rec_context context = {
		.handle = 0x1234, .us = 5, .bytes = INT64_MIN, .native = 3, .thread = 1};
	struct gt_rec_thread thread;
	struct gt_rec_stream stream;

	define_info(w, "exe", "/usr/bin/train", 14);
	define_info(w, "cmdline", "train\0--fast", 12);
	for (uint32_t i = 1; i <= 6; i++) {
		thread =
			(struct gt_rec_thread){.id = i, .tid = 1000 + i, .us = i, .name_length = 6};
		define(w, &thread, sizeof(thread), GT_REC_THREAD, "worker", 6);
		stream = (struct gt_rec_stream){.id = i, .device = 0, .handle = 0x7000 + i};
		define(w, &stream, sizeof(stream), GT_REC_STREAM, "", 0);
	}
	define(w, &device, sizeof(device), GT_REC_DEVICE, "Simulated", 9);
	define(w, &context, sizeof(context), GT_REC_CONTEXT, "", 0);
}

static const struct {
	uint8_t space, mask;
	uint16_t api;
} kinds[] = {
	{GT_SPACE_DRIVER, GT_MASK_RESERVED | GT_MASK_IN_USE, GT_API_MEM_ALLOC},
	{GT_SPACE_DRIVER, GT_MASK_RESERVED, GT_API_MEM_ALLOC},
	{GT_SPACE_TORCH, GT_MASK_TORCH | GT_MASK_IN_USE, GT_API_TORCH},
	{GT_SPACE_HOST, GT_MASK_RESERVED | GT_MASK_IN_USE, GT_API_HOST_ALLOC},
};

static void define_sites(struct writer *w, uint32_t lane)
{
	struct gt_rec_site site;

	for (uint32_t i = 1; i <= w->o->sites; i++) {
		site = (struct gt_rec_site){.lane = lane,
					    .index = i,
					    .native = 1 + i % 20,
					    .python = i % 6,
					    .space = kinds[i % 4].space,
					    .mask = kinds[i % 4].mask,
					    .api = kinds[i % 4].api};
		define(w, &site, sizeof(site), GT_REC_SITE, "", 0);
	}
}

/* ---- lanes ---------------------------------------------------------------------------------- */

static uint64_t pages(uint64_t bytes)
{
	return (bytes + 4095) & ~4095ull;
}

static struct gt_lane *head_of(struct writer *w, const struct lane *l)
{
	return AT(w, struct gt_lane, l->at + sizeof(struct gt_extent));
}

static struct gt_site *line_of(struct writer *w, const struct lane *l, uint32_t site)
{
	return AT(w, struct gt_site, l->sites_at + sizeof(struct gt_extent) + site * 64ull);
}

static void start_lane(struct writer *w, uint32_t number)
{
	struct lane *l = &w->lanes[number];

	l->at = new_extent(w, GT_EXTENT_LANE, number, pages(GT_CELLS_OFFSET + w->o->cap * 64ull),
			   0);
	AT(w, struct gt_extent, l->at)->first_seq = 1;
	head_of(w, l)->cap = w->o->cap;
	head_of(w, l)->device = (int32_t)number;
	l->sites_at =
		new_extent(w, GT_EXTENT_SITES, number, pages(64 + (w->o->sites + 1) * 64ull), 0);
	define_sites(w, number);
	l->frame = ZSTD_createCCtx();
	must(l->frame != NULL);
	ZSTD_CCtx_setParameter(l->frame, ZSTD_c_compressionLevel, 1);
	/* Small windows in small files: the reader's is allocated anew for each cursor. */
	ZSTD_CCtx_setParameter(l->frame, ZSTD_c_windowLog, w->o->extent < 65536 ? 14 : 20);
}

static size_t slots_per_extent(const struct writer *w)
{
	return (w->o->extent - sizeof(struct gt_extent)) / sizeof(struct gt_slot);
}

static struct gt_slot *slot_of(struct writer *w, const struct lane *l, uint32_t slot)
{
	const size_t per = slots_per_extent(w);

	return AT(w, struct gt_slot,
		  l->slots_at[slot / per] + sizeof(struct gt_extent) + slot % per * 32);
}

static uint32_t take_slot(struct writer *w, struct lane *l, uint32_t number)
{
	const size_t per = slots_per_extent(w);

	if (l->free_count)
		return l->free_slots[--l->free_count];
	if (l->slots == l->slot_extents * per) {
		l->slots_at = realloc(l->slots_at, (l->slot_extents + 1) * sizeof(*l->slots_at));
		l->free_slots = realloc(l->free_slots,
					(l->slot_extents + 1) * per * sizeof(*l->free_slots));
		must(l->slots_at && l->free_slots);
		l->slots_at[l->slot_extents] =
			new_extent(w, GT_EXTENT_LIVE, number, w->o->extent, l->slots);
		l->slot_extents++;
	}
	return (uint32_t)l->slots++;
}

/* ---- seals ---------------------------------------------------------------------------------- */

static size_t put_varint(uint8_t *to, uint64_t v)
{
	size_t n = 0;

	for (; v >= 128; v >>= 7)
		to[n++] = (uint8_t)(v | 128);
	to[n++] = (uint8_t)v;
	return n;
}

static uint64_t field(const struct gt_event *e, unsigned int id)
{
	const uint64_t fields[GT_COLS] = {
		[GT_COL_OP] = e->op,
		[GT_COL_SPACE] = e->space,
		[GT_COL_TIME] = e->us,
		[GT_COL_THREAD] = e->thread,
		[GT_COL_ADDR] = e->addr,
		[GT_COL_SIZE] = e->size,
		[GT_COL_STREAM] = e->stream,
		[GT_COL_AGE] = e->us - e->birth_us,
		[GT_COL_BIRTH_THREAD] = e->birth_thread,
		[GT_COL_SITE] = e->site,
		[GT_COL_FREE_SITE] = e->free_site,
		[GT_COL_AUX] = e->aux,
		[GT_COL_EXTRA] = e->extra,
	};

	return fields[id];
}

/* Which codings can hold the column: bit per enum gt_column_coding. */
static unsigned int possible(const struct gt_event *events, size_t count, unsigned int id)
{
	unsigned int set = 1u << GT_CODE_DELTA | 1u << GT_CODE_ROTATED | 1u << GT_CODE_PLAIN |
			   1u << GT_CODE_CONST | 1u << GT_CODE_BYTES;

	for (size_t i = 0; i < count; i++) {
		if (field(&events[i], id) != field(&events[0], id))
			set &= ~(1u << GT_CODE_CONST);
		if (field(&events[i], id) > 255)
			set &= ~(1u << GT_CODE_BYTES);
	}
	return set;
}

static size_t put_column(uint8_t *to, const struct gt_event *events, size_t count, unsigned int id,
			 unsigned int coding)
{
	uint64_t value, last = 0;
	size_t n = 0;

	if (coding == GT_CODE_CONST)
		return put_varint(to, field(&events[0], id));
	for (size_t i = 0; i < count; i++) {
		value = field(&events[i], id);
		if (coding == GT_CODE_ROTATED)
			value = value >> 9 | value << 55;
		if (coding == GT_CODE_BYTES)
			to[n++] = (uint8_t)value;
		else if (coding == GT_CODE_PLAIN)
			n += put_varint(to + n, value);
		else
			n += put_varint(to + n, (value - last) << 1 ^
							(uint64_t)((int64_t)(value - last) >> 63));
		last = value;
	}
	return n;
}

/* How many events before, not before number from, is the alloc of the block that e ends? 0 = none. */
static uint64_t back_of(const struct gt_event *e, uint64_t from)
{
	const struct gt_event *a;

	if (gt_op_effect(e->op) >= 0)
		return 0;
	for (uint64_t back = 1; back <= e->seq - from && back <= GT_BACK_MAX; back++) {
		a = e - back;
		if (a->op == GT_OP_ALLOC && a->addr == e->addr && a->space == e->space)
			return a->us == e->birth_us && a->thread == e->birth_thread ? back : 0;
	}
	return 0;
}

/* In a random coding, or not at all where that means the same; value: what field() calls it. */
static size_t put_any(struct writer *w, uint8_t *to, const struct gt_event *events, size_t count,
		      unsigned int id, unsigned int value)
{
	unsigned int set = count ? possible(events, count, value) : 0, coding;
	struct gt_column column = {.id = (uint8_t)id};

	if (!count || ((set & 1u << GT_CODE_CONST) && !field(&events[0], value) && below(w, 2)))
		return 0;
	do
		coding = 1 + (unsigned int)below(w, 5);
	while (!(set >> coding & 1));
	column.coding = (uint8_t)coding;
	column.length = (uint32_t)put_column(to + sizeof(column), events, count, value, coding);
	memcpy(to, &column, sizeof(column));
	return sizeof(column) + column.length;
}

/* Events of the extent begin with number from; every second chunk refers to those before. */
static size_t put_columns(struct writer *w, uint8_t *to, const struct gt_event *events,
			  size_t count, uint64_t from)
{
	struct gt_event *whole = malloc(count * sizeof(*whole));
	struct gt_event *ends = malloc(count * sizeof(*ends)); /* back in extra */
	const bool refers = below(w, 2);
	size_t n, wholes = 0, end_count = 0;

	must(whole && ends);
	for (size_t i = 0; i < count; i++) {
		const uint64_t back = refers && below(w, 4) ? back_of(&events[i], from) : 0;

		if (gt_op_effect(events[i].op) < 0)
			ends[end_count++].extra = back;
		if (!back)
			whole[wholes++] = events[i];
	}
	n = put_any(w, to, events, count, GT_COL_OP, GT_COL_OP);
	n += put_any(w, to + n, ends, end_count, GT_COL_BACK, GT_COL_EXTRA);
	for (unsigned int id = GT_COL_OP + 1; id < GT_COL_BACK; id++)
		n += gt_column_whole(id) ? put_any(w, to + n, whole, wholes, id, id)
					 : put_any(w, to + n, events, count, id, id);
	free(whole);
	free(ends);
	if (below(w, 4) == 0) { /* a column of a later version */
		struct gt_column later = {.id = 200, .coding = 77, .length = 5};

		memcpy(to + n, &later, sizeof(later));
		memset(to + n + sizeof(later), 0xff, later.length);
		n += sizeof(later) + later.length;
	}
	return n;
}

static void open_ring(struct writer *w, uint32_t number)
{
	struct lane *l = &w->lanes[number];
	struct gt_extent *e;
	uint64_t at;

	if (w->ring_count < w->o->ring) {
		at = new_extent(w, GT_EXTENT_RING, number, w->o->extent, 0);
	} else {
		at = w->rings[0];
		memmove(w->rings, w->rings + 1, --w->ring_count * sizeof(*w->rings));
		for (uint32_t i = 0; i < w->o->lanes; i++)
			w->lanes[i].ring = w->lanes[i].ring == at ? 0 : w->lanes[i].ring;
	}
	w->rings[w->ring_count++] = at;
	e = AT(w, struct gt_extent, at);
	e->gen += 2;
	e->lane = number;
	e->used = sizeof(*e);
	e->first_seq = l->sealed + 1;
	e->serial = ++w->serial;
	l->ring = at;
	ZSTD_CCtx_reset(l->frame, ZSTD_reset_session_only);
}

static size_t pack(struct lane *l, uint8_t *to, size_t room, const uint8_t *raw, size_t length)
{
	ZSTD_inBuffer in = {raw, length, 0};
	ZSTD_outBuffer out = {to, room, 0};

	must(ZSTD_compressStream2(l->frame, &out, &in, ZSTD_e_flush) == 0);
	return out.pos;
}

/* Seals all staged events of a lane into one chunk; unsealed: without the last store. */
static void seal(struct writer *w, uint32_t number, bool unsealed)
{
	struct lane *l = &w->lanes[number];
	struct written_lane *log = &w->out->lanes[number];
	const size_t count = l->seq - l->sealed;
	const struct gt_event *events = &log->events[l->sealed];
	uint8_t *raw = malloc(count * 150 + 1024), *packed = malloc(count * 160 + 2048);
	size_t raw_length, packed_length;
	struct gt_chunk chunk;
	struct gt_extent *e;

	must(raw && packed);
	if (w->o->gap_at && ++l->seals == w->o->gap_at) {
		log->lost_until = l->seq;
	} else {
		if (!l->ring || AT(w, struct gt_extent, l->ring)->length -
						AT(w, struct gt_extent, l->ring)->used <
					count * 160 + 2048)
			open_ring(w, number);
		e = AT(w, struct gt_extent, l->ring);
		raw_length = put_columns(w, raw, events, count,
					 e->first_seq > log->lost_until ? e->first_seq
									: log->lost_until + 1);
		packed_length = pack(l, packed, count * 160 + 2048, raw, raw_length);
		e = AT(w, struct gt_extent, l->ring);
		chunk = (struct gt_chunk){
			.magic = GT_CHUNK_MAGIC,
			.lane = number,
			.first_seq = l->sealed + 1,
			.events = (uint32_t)count,
			.raw = (uint32_t)raw_length,
			.packed = (uint32_t)packed_length,
			.first_us = events[0].us,
			.last_us = events[count - 1].us,
			.hash = XXH64(packed, packed_length, 0),
		};
		memcpy(w->out->bytes + l->ring + e->used, &chunk, sizeof(chunk));
		memcpy(w->out->bytes + l->ring + e->used + sizeof(chunk), packed, packed_length);
		e->used += sizeof(chunk) + ((packed_length + 7) & ~7ul);
	}
	free(raw);
	free(packed);
	l->sealed = l->seq;
	if (!unsealed)
		head_of(w, l)->sealed = l->seq;
}

/* ---- events --------------------------------------------------------------------------------- */

static void log_event(struct writer *w, uint32_t lane, const struct gt_event *event)
{
	struct written_lane *log = &w->out->lanes[lane];

	if (log->count == log->capacity) {
		log->capacity = log->capacity ? 2 * log->capacity : 64;
		log->events = realloc(log->events, log->capacity * sizeof(*log->events));
		must(log->events != NULL);
	}
	log->events[log->count++] = *event;
}

static void put_cell(struct writer *w, struct lane *l, const struct gt_event *e, uint32_t slot)
{
	*AT(w, struct gt_cell, l->at + GT_CELLS_OFFSET + (e->seq & (w->o->cap - 1)) * 64) =
		(struct gt_cell){
			.seq_op = e->seq << 8 | e->op,
			.time_thread = GT_PACK(e->us, e->thread),
			.key = GT_KEY(e->addr, e->space),
			.size_stream = GT_PACK(e->size, e->stream),
			.birth = GT_PACK(e->birth_us, e->birth_thread),
			.site = e->site,
			.slot = slot,
			.free_site = e->free_site,
			.aux = e->aux,
			.extra = e->extra,
		};
}

/* The new line of the site and the new counters of an event that adds sign * size. */
static void account(struct lane *l, struct gt_site *line, const struct gt_event *e,
		    unsigned int mask, int sign)
{
	const uint64_t change = sign > 0 ? e->size : 0 - e->size;
	struct gt_ctr *c = &l->ctr;

	for (int k = 0; k < GT_TOTALS; k++) {
		if (line->last_seq <= c->peak_seq[k])
			line->at[k] = line->live;
		if (!(mask >> k & 1))
			continue;
		c->cur[k] += change;
		if (c->cur[k] > c->peak[k]) {
			c->peak[k] = c->cur[k];
			c->peak_us[k] = e->us;
		}
	}
	line->live += change;
	line->live_count += (uint64_t)(int64_t)sign;
	line->last_seq = e->seq;
	line->ever += e->op == GT_OP_ALLOC ? e->size : 0;
	line->ever_count += e->op == GT_OP_ALLOC;
	c->live_count += (uint64_t)(int64_t)sign;
}

static void count_event(struct gt_ctr *c, const struct gt_event *e)
{
	c->allocs += e->op == GT_OP_ALLOC;
	c->alloc_bytes += e->op == GT_OP_ALLOC ? e->size : 0;
	c->torch_allocs += e->op == GT_OP_ALLOC && e->space == GT_SPACE_TORCH;
	c->frees += e->op == GT_OP_FREE || e->op == GT_OP_IMPLICIT_FREE;
	c->free_bytes += e->op == GT_OP_FREE || e->op == GT_OP_IMPLICIT_FREE ? e->size : 0;
	c->frees -= e->op == GT_OP_UNFREE;
	c->free_bytes -= e->op == GT_OP_UNFREE ? e->size : 0;
	c->implicit_frees += e->op == GT_OP_IMPLICIT_FREE;
	c->unknown_frees += e->op == GT_OP_UNKNOWN_FREE;
	c->failed += e->op == GT_OP_FAILED;
}

/* One event with everything it changes. apply: false = stop behind the commit. */
static void commit(struct writer *w, uint32_t number, struct gt_event *e, uint32_t slot, int sign,
		   bool apply)
{
	struct lane *l = &w->lanes[number];
	struct gt_lane *head;
	struct gt_redo redo = {.site = UINT32_MAX};
	uint64_t peaks[GT_TOTALS];

	if (l->seq - l->sealed == w->o->cap)
		seal(w, number, false);
	e->seq = ++l->seq;
	e->lane = number;
	count_event(&l->ctr, e);
	if (sign) {
		redo.site = e->site;
		redo.line = *line_of(w, l, e->site);
		memcpy(peaks, l->ctr.peak, sizeof(peaks));
		account(l, &redo.line, e, kinds[e->site % 4].mask, sign);
		for (int k = 0; k < GT_TOTALS; k++)
			l->ctr.peak_seq[k] =
				l->ctr.peak[k] > peaks[k] ? e->seq : l->ctr.peak_seq[k];
		if (sign > 0)
			*slot_of(w, l, slot) =
				(struct gt_slot){.size_stream = GT_PACK(e->size, e->stream),
						 .birth = GT_PACK(e->birth_us, e->birth_thread),
						 .site = e->site};
		if (sign > 0 && !apply)
			slot_of(w, l, slot)->key = 0;
	}
	head = head_of(w, l);
	put_cell(w, l, e, slot);
	head->ctr[e->seq & 1] = l->ctr;
	head->redo[e->seq & 1] = redo;
	head->seq = e->seq;
	log_event(w, number, e);
	if (!sign || !apply)
		return;
	slot_of(w, l, slot)->key = sign > 0 ? GT_KEY(e->addr, e->space) : 0;
	*line_of(w, l, e->site) = redo.line;
	if (sign < 0)
		l->free_slots[l->free_count++] = slot;
}

static struct gt_event event_now(struct writer *w, struct lane *l, uint8_t op)
{
	l->us += below(w, 3) ? below(w, 20) : below(w, 5000);
	return (struct gt_event){
		.op = op,
		.us = l->us,
		.birth_us = l->us,
		.thread = (uint16_t)below(w, 7),
	};
}

static void do_alloc(struct writer *w, uint32_t number, const struct gt_block *again, bool apply)
{
	struct lane *l = &w->lanes[number];
	struct gt_event e = event_now(w, l, again ? GT_OP_UNFREE : GT_OP_ALLOC);
	const uint32_t slot = take_slot(w, l, number);

	e.site = again ? again->site : 1 + (uint32_t)below(w, w->o->sites);
	e.space = kinds[e.site % 4].space;
	e.addr = again ? again->addr : 0x7f0000000000 + next_random(w) % (1ull << 34) * 512;
	e.size = again	       ? again->size
		 : below(w, 8) ? (1 + below(w, 4096)) * 512
			       : below(w, 1ull << 40);
	e.stream = again ? again->stream : (uint16_t)below(w, 7);
	e.birth_us = again ? again->birth_us : e.us;
	e.birth_thread = again ? again->thread : e.thread;
	if (l->live_count == l->live_capacity) {
		l->live_capacity = l->live_capacity ? 2 * l->live_capacity : 64;
		l->live = realloc(l->live, l->live_capacity * sizeof(*l->live));
		l->live_slot = realloc(l->live_slot, l->live_capacity * sizeof(*l->live_slot));
		must(l->live && l->live_slot);
	}
	commit(w, number, &e, slot, 1, apply);
	l->live_slot[l->live_count] = slot;
	l->live[l->live_count++] = gt_block_of(&e);
}

static struct gt_block do_free(struct writer *w, uint32_t number, bool apply)
{
	struct lane *l = &w->lanes[number];
	const size_t victim = below(w, l->live_count);
	const struct gt_block b = l->live[victim];
	struct gt_event e = event_now(w, l, below(w, 30) ? GT_OP_FREE : GT_OP_IMPLICIT_FREE);

	e.site = b.site;
	e.space = b.space;
	e.addr = b.addr;
	e.size = b.size;
	e.stream = b.stream;
	e.birth_us = b.birth_us;
	e.birth_thread = b.thread;
	e.free_site = below(w, 4) ? 0 : 1 + (uint32_t)below(w, w->o->sites);
	commit(w, number, &e, l->live_slot[victim], -1, apply);
	l->live[victim] = l->live[--l->live_count];
	l->live_slot[victim] = l->live_slot[l->live_count];
	return b;
}

static void do_note(struct writer *w, uint32_t number)
{
	static const uint8_t ops[] = {GT_OP_FAILED, GT_OP_UNKNOWN_FREE, GT_OP_MARK, GT_OP_SAMPLE};
	struct gt_event e = event_now(w, &w->lanes[number], ops[below(w, 4)]);

	e.birth_thread = e.thread;
	e.size = below(w, 1ull << 36);
	e.aux = (uint32_t)below(w, 3);
	e.extra = next_random(w);
	commit(w, number, &e, UINT32_MAX, 0, true);
}

static void do_event(struct writer *w, uint32_t number, bool apply)
{
	struct lane *l = &w->lanes[number];
	struct gt_block freed;

	if (apply && below(w, 40) == 0) {
		do_note(w, number);
	} else if (l->live_count && below(w, 2 * w->o->live) < l->live_count) {
		freed = do_free(w, number, apply);
		if (apply && below(w, 50) == 0)
			do_alloc(w, number, &freed, true);
	} else {
		do_alloc(w, number, NULL, apply);
	}
}

/* ---- the whole ------------------------------------------------------------------------------ */

static void start_file(struct writer *w)
{
	struct gt_header *h;

	reserve(w, GT_HEADER_SIZE);
	h = AT(w, struct gt_header, 0);
	memcpy(h->magic, GT_MAGIC, 8);
	h->version = GT_VERSION;
	h->header_size = GT_HEADER_SIZE;
	h->byte_order = GT_BYTE_ORDER;
	h->end = w->out->size;
	h->pid = 4711;
	strcpy(h->boot_id, "00000000-0000-0000-0000-000000000000");
	strcpy(h->comm, "train");
	strcpy(h->host, "node1");
	define_code(w);
	define_python(w);
	define_process(w);
}

static void free_lane(struct lane *l)
{
	ZSTD_freeCCtx(l->frame);
	free(l->slots_at);
	free(l->free_slots);
	free(l->live);
	free(l->live_slot);
}

struct written *writer_make(const struct writer_options *o)
{
	struct writer w = {.o = o, .rng = o->seed * 2654435761u + 88172645463325252ull};

	w.out = calloc(1, sizeof(*w.out));
	must(w.out != NULL);
	w.out->lanes = calloc(o->lanes, sizeof(*w.out->lanes));
	w.out->lane_count = o->lanes;
	w.lanes = calloc(o->lanes, sizeof(*w.lanes));
	w.rings = calloc(o->ring + 1, sizeof(*w.rings));
	must(w.out->lanes && w.lanes && w.rings);
	start_file(&w);
	for (uint32_t i = 0; i < o->lanes; i++)
		start_lane(&w, i);
	for (size_t i = 0; i < o->events; i++)
		do_event(&w, (uint32_t)below(&w, o->lanes), true);
	for (uint32_t i = 0; i < o->lanes; i++) {
		if (o->resealed)
			seal(&w, i, true);
		else if (o->unapplied)
			do_event(&w, i, false);
		free_lane(&w.lanes[i]);
	}
	free(w.lanes);
	free(w.rings);
	return w.out;
}

struct written *writer_free(struct written *out)
{
	for (uint32_t i = 0; out && i < out->lane_count; i++)
		free(out->lanes[i].events);
	if (out) {
		free(out->lanes);
		free(out->bytes);
	}
	free(out);
	return NULL;
}

int writer_save(const struct written *out, const char *path, size_t length)
{
	FILE *f = fopen(path, "wbe");
	size_t n;

	if (!f)
		return -1;
	n = fwrite(out->bytes, 1, length, f);
	return fclose(f) || n != length ? -1 : 0;
}
