/* SPDX-License-Identifier: MIT */
/*
 * A ring extent decompressed: one zstd frame that was flushed after each chunk, so a streaming
 * decoder yields every committed chunk whether or not the frame was ever finished. It can only be
 * decoded from its beginning; the raw bytes of one extent are therefore kept whole (a few MB),
 * which is also what makes walking backward cheap. An extent that has grown is continued where
 * decoding stopped.
 */
#include <stdlib.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>
#include <zstd.h>
#include "read/reader.h"

#define WINDOW_LOG_MAX 24 /* a frame cannot make us allocate a larger window */
#define RAW_PER_EVENT  (10 * (GT_COLS - 1))
#define RAW_PER_CHUNK  (64 * GT_COLS)
#define RAW_PER_PACKED 1024 /* beyond any real traffic: a bound for crafted files */

const char *gt_chunk_bad(const struct gt_chunk *c, uint32_t lane, uint64_t room)
{
	if (c->magic != GT_CHUNK_MAGIC)
		return "no chunk where one must begin";
	if (c->lane != lane)
		return "a chunk of another lane";
	if (c->packed > room - sizeof(*c) || gt_chunk_span(c) > room)
		return "a chunk is longer than its extent";
	if (c->events == 0 || c->events > GT_MAX_CHUNK_EVENTS)
		return "a chunk's number of events is not sane";
	if (c->first_seq == 0 || c->first_seq > UINT64_MAX >> 8)
		return "a chunk's first event is not sane";
	if (c->raw == 0 || c->raw > (uint64_t)c->events * RAW_PER_EVENT + RAW_PER_CHUNK)
		return "a chunk's raw length is not sane";
	return NULL;
}

/* The decoder is kept from extent to extent: its window is the expensive part of it. */
static int reset(struct gt_zstd_frame *frame, const struct gt_extent *extent)
{
	if (!frame->stream) {
		frame->stream = ZSTD_createDCtx();
		if (!frame->stream)
			return -1;
		ZSTD_DCtx_setParameter(frame->stream, ZSTD_d_windowLogMax, WINDOW_LOG_MAX);
	}
	ZSTD_DCtx_reset(frame->stream, ZSTD_reset_session_only);
	frame->offset = extent->offset;
	frame->gen = extent->gen;
	frame->used = sizeof(*extent);
	frame->raw_length = 0;
	frame->chunk_count = 0;
	return 0;
}

/* Doubling here too: raw bytes are known chunk by chunk only. */
static int reserve(uint8_t **buffer, size_t *capacity, size_t want)
{
	uint8_t *bigger;

	if (want <= *capacity)
		return 0;
	if (want < *capacity * 2)
		want = *capacity * 2;
	bigger = realloc(*buffer, want);
	if (!bigger)
		return -1;
	*buffer = bigger;
	*capacity = want;
	return 0;
}

/* Exactly the raw bytes that the header promises must come out of the packed ones, all of them. */
static bool unpack(struct gt_zstd_frame *frame, const struct gt_chunk *chunk, const uint8_t *packed)
{
	ZSTD_inBuffer in = {packed, chunk->packed, 0};
	ZSTD_outBuffer out = {frame->raw + frame->raw_length, chunk->raw, 0};
	size_t taken, made, left;

	do {
		taken = in.pos;
		made = out.pos;
		left = ZSTD_decompressStream(frame->stream, &out, &in);
		if (ZSTD_isError(left))
			return false;
	} while (in.pos > taken || out.pos > made);
	return in.pos == in.size && out.pos == out.size;
}

/*
 * The checksum comes before the decompressor, which then only ever sees what the recorder wrote (or
 * a forger; zstd is made for those). Returns NULL or what is wrong.
 */
static const char *add_chunk(struct gt_zstd_frame *frame, const struct gt_extent *extent,
			     uint64_t at, const uint8_t *bytes, struct gt_chunk *ret)
{
	const uint64_t limit = extent->length * RAW_PER_PACKED;
	const char *bad;

	if (extent->used - at < sizeof(*ret))
		return "a chunk's header is cut";
	memcpy(ret, bytes, sizeof(*ret));
	bad = gt_chunk_bad(ret, extent->lane, extent->used - at);
	if (bad)
		return bad;
#ifndef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
	if (XXH64(bytes + sizeof(*ret), ret->packed, 0) != ret->hash)
		return "a chunk's checksum does not match";
#endif
	if (frame->raw_length + ret->raw > limit)
		return "a chunk's raw length is not sane";
	if (reserve(&frame->raw, &frame->raw_capacity, frame->raw_length + ret->raw) ||
	    gt_grow(&frame->chunks, &frame->chunk_capacity, frame->chunk_count,
		    sizeof(*frame->chunks)))
		return "not enough memory";
	if (!unpack(frame, ret, bytes + sizeof(*ret)))
		return "a chunk does not decompress";
	frame->chunks[frame->chunk_count++] = (struct gt_chunk_at){
		.first_seq = ret->first_seq,
		.offset = extent->offset + at,
		.raw = frame->raw_length,
		.raw_length = ret->raw,
		.events = ret->events,
	};
	frame->raw_length += ret->raw;
	return NULL;
}

/* The new bytes come out under the generation's protection; only then are they looked at. */
static int copy_new(struct gt_zstd_frame *frame, const struct gt_source *source,
		    const struct gt_extent *extent, struct gt_error *err)
{
	const uint64_t length = extent->used - frame->used;

	if (reserve(&frame->packed, &frame->packed_capacity, length))
		return gt_fail_memory(err, source->path);
	if (gt_source_copy(source, extent->offset + frame->used, frame->packed, length))
		return gt_fail(err, source->path, "was cut while it was read");
	if (gt_source_word(source, extent->offset + offsetof(struct gt_extent, gen)) != extent->gen)
		return GT_RECYCLED;
	return 0;
}

/*
 * After any failure the frame holds nothing: a stream that stopped in the middle cannot go on, and
 * the next load starts from the beginning of its extent.
 */
int gt_zstd_frame_load(struct gt_zstd_frame *frame, const struct gt_source *source,
		       const struct gt_extent *extent, struct gt_error *err)
{
	bool same = frame->offset == extent->offset && frame->gen == extent->gen &&
		    frame->used <= extent->used;
	const uint8_t *bytes;
	struct gt_chunk chunk;
	const char *bad;
	uint64_t start;
	int rc;

	if (same && frame->used == extent->used)
		return 0;
	if (!same && reset(frame, extent))
		return gt_fail_memory(err, source->path);
	rc = copy_new(frame, source, extent, err);
	start = frame->used;
	for (bytes = frame->packed; !rc && frame->used < extent->used;
	     frame->used += gt_chunk_span(&chunk)) {
		bad = add_chunk(frame, extent, frame->used, bytes + (frame->used - start), &chunk);
		if (bad) {
			rc = gt_damaged(err, source->path, extent->offset + frame->used, "%s", bad);
			break;
		}
	}
	if (rc)
		frame->offset = 0;
	return rc;
}

void gt_zstd_frame_free(struct gt_zstd_frame *frame)
{
	ZSTD_freeDCtx(frame->stream);
	free(frame->packed);
	free(frame->raw);
	free(frame->chunks);
	memset(frame, 0, sizeof(*frame));
}
