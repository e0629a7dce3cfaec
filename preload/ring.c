/* SPDX-License-Identifier: MIT */
/*
 * Sealing: the events staged in a lane's cells become one compressed chunk of a ring extent, which
 * is visible once the extent's `used` covers it; only then may the cells be used again. The chunks
 * of an extent share one zstd frame, flushed after each: training repeats itself step after step,
 * far beyond one chunk, and a dead process leaves a frame that can be read up to its last flush.
 * Runs under the lane's lock. zstd works in memory given to it once and never allocates.
 */
#define ZSTD_STATIC_LINKING_ONLY
#include <string.h>
#include <zstd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>
#include "recorder.h"

/*
 * Level 1 with a hash table of 15 bits: 14 forget a step of 18,000 events before the next one begins
 * (5 % more bytes); 17 gain 1 %, and their 512 KiB drive the program's own data out of the cache.
 *
 * What does not repeat itself is written with less effort: where compression took less than half of
 * the last extent, the next one is written without entropy coding of literals, which is half of
 * zstd's time and gains a tenth at most there.
 */
#define LEVEL	 1
#define HASH_LOG 15
#define FAST	 2 /* target length: literals stay as they are, fewer places are looked up */

static const struct parameter {
	ZSTD_cParameter id;
	int value;
} parameters[] = {
	{ZSTD_c_compressionLevel, LEVEL},
	{ZSTD_c_windowLog, GT_WINDOW_LOG},
	{ZSTD_c_hashLog, HASH_LOG},
};
#define PARAMETERS (sizeof(parameters) / sizeof(*parameters))

static size_t workspace_size(void)
{
	ZSTD_compressionParameters c = ZSTD_getCParams(LEVEL, 0, 0);

	c.windowLog = GT_WINDOW_LOG;
	c.hashLog = HASH_LOG;
	return ZSTD_estimateCStreamSize_usingCParams(c);
}

bool gt_ring_init(struct lane *l)
{
	size_t size = workspace_size();
	struct gt_ring *r = &l->ring;

	r->workspace = gt_map(size);
	r->raw = gt_map(GT_RAW_MAX(l->cap));
	r->born = gt_map(l->cap * sizeof(*r->born));
	r->back = gt_map(l->cap * sizeof(*r->back));
	r->whole = gt_map(l->cap * sizeof(*r->whole));
	r->time = gt_map(GT_RAW_MAX(l->cap));
	if (!r->workspace || !r->raw || !r->born || !r->back || !r->whole || !r->time)
		return false;
	r->context = ZSTD_initStaticCCtx(r->workspace, size);
	if (!r->context)
		return false;
	for (size_t i = 0; i < PARAMETERS; i++)
		if (ZSTD_isError(ZSTD_CCtx_setParameter(r->context, parameters[i].id,
							parameters[i].value)))
			return false;
	return true;
}

static uint64_t room(const struct gt_ring *r)
{
	return r->extent ? gt_options.extent - r->used : 0;
}

void gt_ring_give_up(struct lane *l)
{
	if (l->ring.extent)
		gt_ring_close(l->ring.extent);
	l->ring.extent = NULL;
}

/* Is there room for a chunk of so many raw bytes, whatever zstd makes of them? */
static bool fits(const struct gt_ring *r, size_t raw)
{
	return room(r) >= sizeof(struct gt_chunk) + gt_round_up(ZSTD_compressBound(raw) + 64, 8);
}

static const struct gt_cell *first_cell(const struct lane *l)
{
	return &l->cells[(l->sealed + 1) & (l->cap - 1)];
}

static bool open_extent(struct lane *l)
{
	struct gt_ring *r = &l->ring;

	gt_ring_give_up(l);
	r->extent = gt_ring_take(l->number, l->sealed + 1);
	if (!r->extent)
		return false;
	r->used = sizeof(*r->extent);
	ZSTD_CCtx_reset(r->context, ZSTD_reset_session_only);
	ZSTD_CCtx_setParameter(r->context, ZSTD_c_targetLength,
			       2 * r->packed > r->plain ? FAST : 0);
	r->plain = r->packed = 0;
	r->from_us = GT_LOW48(first_cell(l)->time_thread);
	return true;
}

static size_t encode(struct lane *l)
{
	const struct gt_ring *r = &l->ring;
	const struct gt_staged staged = {
		.cells = l->cells,
		.born = r->born,
		.cap = l->cap,
		.count = (uint32_t)(l->seq - l->sealed),
		.first = l->sealed + 1,
		.from_us = r->from_us,
		.back = r->back,
		.whole = r->whole,
		.time = r->time,
	};

	return gt_columns_encode(r->raw, &staged);
}

/* Appends to the extent's frame up to a flush; the bytes written, 0 = it did not work. */
static size_t compress(struct gt_ring *r, void *to, size_t size, size_t raw)
{
	ZSTD_outBuffer out = {to, size, 0};
	ZSTD_inBuffer in = {r->raw, raw, 0};
	size_t rest = ZSTD_compressStream2(r->context, &out, &in, ZSTD_e_flush);

	return rest || in.pos != raw ? 0 : out.pos;
}

static void fill_chunk(struct gt_chunk *chunk, const struct lane *l, size_t raw, size_t packed)
{
	const struct gt_cell *first = first_cell(l);
	const struct gt_cell *last = &l->cells[l->seq & (l->cap - 1)];
	uint8_t *bytes = (uint8_t *)(chunk + 1);

	*chunk = (struct gt_chunk){
		.magic = GT_CHUNK_MAGIC,
		.lane = l->number,
		.first_seq = l->sealed + 1,
		.events = (uint32_t)(l->seq - l->sealed),
		.raw = (uint32_t)raw,
		.packed = (uint32_t)packed,
		.first_us = GT_LOW48(first->time_thread),
		.last_us = GT_LOW48(last->time_thread),
		.hash = XXH64(bytes, packed, 0),
	};
	memset(bytes + packed, 0, gt_round_up(packed, 8) - packed);
}

static bool write_chunk(struct lane *l)
{
	struct gt_ring *r = &l->ring;
	size_t raw = encode(l), packed;
	struct gt_chunk *chunk;

	if (!fits(r, raw)) {
		if (!open_extent(l))
			return false;
		raw = encode(l); /* nothing refers to another extent */
	}
	if (!fits(r, raw))
		return false;
	chunk = (struct gt_chunk *)((char *)r->extent + r->used);
	if (gt_mutant(GT_MUTANT_USED_FIRST))
		gt_store(&r->extent->used, r->used + sizeof(*chunk));
	packed = compress(r, chunk + 1, room(r) - sizeof(*chunk) - 8, raw);
	if (!packed) {
		gt_ring_give_up(l);
		return false;
	}
	r->used += sizeof(*chunk) + gt_round_up(packed, 8);
	r->plain += raw;
	r->packed += packed;
	if (gt_mutant(GT_MUTANT_USED_FIRST))
		gt_store(&r->extent->used, r->used);
	fill_chunk(chunk, l, raw, packed);
	gt_store(&r->extent->used, r->used);
	return true;
}

/*
 * Between the two stores the events are in both places; readers drop cells that a chunk covers.
 * Without any extent the history has a gap, but the live set and the totals do not.
 */
void gt_ring_seal(struct lane *l)
{
	gt_clock_anchor();
	if (!write_chunk(l)) {
		gt_store_relaxed(&l->file->lost, l->file->lost + (l->seq - l->sealed));
		l->ring.from_us = l->last_us; /* nothing refers to these */
	}
	gt_store(&l->file->sealed, l->seq);
	l->sealed = l->seq;
}
