/* SPDX-License-Identifier: MIT */
/*
 * See encode.h. Deflate because browsers can undo it themselves and know no zstd; differences as
 * variable-length numbers because deflate then sees the repetition of a training's steps: a fifth of
 * what plain numbers take, and faster to read than JSON.
 */
#include "page/encode.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include "model/xalloc.h"

struct bytes {
	uint8_t *data;
	size_t count, room;
};

struct encoding {
	struct bytes bytes;
	json_t *columns;
	const char *name;
	size_t begin, rows;
	int64_t before;
};

/* Where so many more can be put. */
static uint8_t *more(struct bytes *bytes, size_t count)
{
	if (bytes->count + count > bytes->room) {
		bytes->room = 2 * (bytes->count + count) + 4096;
		bytes->data = gt_xrealloc(bytes->data, bytes->room, 1);
	}
	return bytes->data + bytes->count;
}

static void put(struct bytes *bytes, const void *data, size_t count)
{
	if (!count)
		return;
	memcpy(more(bytes, count), data, count);
	bytes->count += count;
}

/* ---- columns ------------------------------------------------------------------------------------- */

static void begin(struct encoding *encoding, const char *name)
{
	encoding->name = name;
	encoding->begin = encoding->bytes.count;
	encoding->rows = 0;
	encoding->before = 0;
}

/* As it is: zigzag, then seven bits a byte. */
static void put_plain(struct encoding *encoding, int64_t value)
{
	uint64_t zigzag = ((uint64_t)value << 1) ^ (uint64_t)(value >> 63);
	uint8_t *to = more(&encoding->bytes, 10);

	for (; zigzag > 127; zigzag >>= 7)
		*to++ = (uint8_t)(zigzag | 128);
	*to++ = (uint8_t)zigzag;
	encoding->bytes.count = (size_t)(to - encoding->bytes.data);
	encoding->rows++;
}

static void put_delta(struct encoding *encoding, uint64_t value)
{
	put_plain(encoding, (int64_t)value - encoding->before);
	encoding->before = (int64_t)value;
}

static void end(struct encoding *encoding)
{
	json_array_append_new(encoding->columns,
			      json_pack("[s, I, I]", encoding->name, (json_int_t)encoding->rows,
					(json_int_t)(encoding->bytes.count - encoding->begin)));
}

#define COLUMN(encoding, name, count, value)          \
	do {                                          \
		begin(encoding, name);                \
		for (size_t i = 0; i < (count); i++)  \
			put_delta(encoding, (value)); \
		end(encoding);                        \
	} while (0)

static void put_slices(struct encoding *encoding, const struct gt_page_history *history)
{
	const struct gt_page_slice *s = history->slices;
	size_t count = history->slice_count;

	COLUMN(encoding, "bt", count, s[i].first_us);
	COLUMN(encoding, "bp", count, s[i].top_us - s[i].first_us);
	COLUMN(encoding, "be", count, s[i].last_us - s[i].first_us);
	COLUMN(encoding, "bmax", count, s[i].max);
	COLUMN(encoding, "bdip", count, s[i].max - s[i].min);
	COLUMN(encoding, "blast", count, s[i].max - s[i].last);
	COLUMN(encoding, "bheld", count, s[i].held);
}

static void put_shifts(struct encoding *encoding, const struct gt_chain *chain,
		       const char *const names[])
{
	size_t at = 0;

	begin(encoding, names[3]);
	for (size_t row = 0; row < chain->count; row++) {
		encoding->before = 0;
		for (uint32_t i = 0; i < chain->counts[row]; i++)
			put_delta(encoding, chain->shifts[at++].shown);
	}
	end(encoding);
	begin(encoding, names[4]);
	for (size_t i = 0; i < chain->shift_count; i++)
		put_plain(encoding, chain->shifts[i].bytes);
	end(encoding);
}

static void put_chain(struct encoding *encoding, const struct gt_chain *chain,
		      const char *const names[])
{
	COLUMN(encoding, names[0], chain->count, chain->instants[i].us);
	COLUMN(encoding, names[1], chain->count, chain->instants[i].tag);
	COLUMN(encoding, names[2], chain->count, chain->counts[i]);
	put_shifts(encoding, chain, names);
}

static void put_steps(struct encoding *encoding, const struct gt_page_history *history)
{
	const struct gt_step *s = history->steps.steps + history->first_step;
	size_t count = history->steps.count - history->first_step;

	COLUMN(encoding, "s_t0", count, s[i].from_us);
	COLUMN(encoding, "s_t1", count, s[i].to_us - s[i].from_us);
	COLUMN(encoding, "s_peak", count, s[i].peak);
	COLUMN(encoding, "s_end", count, s[i].end_bytes);
	COLUMN(encoding, "s_held", count, s[i].peak_reserved);
	COLUMN(encoding, "s_allocs", count, s[i].allocs);
	COLUMN(encoding, "s_phase", count, (uint64_t)s[i].peak_phase);
	COLUMN(encoding, "s_cut", count, s[i].cut);
}

/* ---- header, deflate, base64 ---------------------------------------------------------------------- */

static void deflate_into(struct bytes *to, const void *data, size_t count, z_stream *stream,
			 int flush)
{
	uint8_t buffer[65536];

	stream->next_in = (Bytef *)data;
	stream->avail_in = (uInt)count;
	do {
		stream->next_out = buffer;
		stream->avail_out = sizeof(buffer);
		deflate(stream, flush);
		put(to, buffer, sizeof(buffer) - stream->avail_out);
	} while (!stream->avail_out);
}

static struct bytes deflated(const char *header, const struct bytes *columns, int level)
{
	uint32_t length = (uint32_t)strlen(header);
	struct bytes result = {0};
	z_stream stream = {0};

	if (deflateInit2(&stream, level, Z_DEFLATED, -15, 9, Z_DEFAULT_STRATEGY) != Z_OK)
		gt_xchecked(NULL);
	deflate_into(&result, &length, sizeof(length), &stream, Z_NO_FLUSH);
	deflate_into(&result, header, length, &stream, Z_NO_FLUSH);
	deflate_into(&result, columns->data, columns->count, &stream, Z_FINISH);
	deflateEnd(&stream);
	return result;
}

static struct gt_blob base64(const struct bytes *bytes)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	struct gt_blob blob = {.length = (bytes->count + 2) / 3 * 4};
	char *to = blob.text = gt_xcalloc(blob.length + 1, 1);

	for (size_t i = 0; i < bytes->count; i += 3) {
		uint32_t group = (uint32_t)bytes->data[i] << 16;

		group |= i + 1 < bytes->count ? (uint32_t)bytes->data[i + 1] << 8 : 0;
		group |= i + 2 < bytes->count ? bytes->data[i + 2] : 0;
		*to++ = digits[group >> 18];
		*to++ = digits[group >> 12 & 63];
		*to++ = i + 1 < bytes->count ? digits[group >> 6 & 63] : '=';
		*to++ = i + 2 < bytes->count ? digits[group & 63] : '=';
	}
	return blob;
}

struct gt_blob gt_page_encode(const struct gt_page_history *history, json_t *header, int level)
{
	static const char *const names[GT_CHAINS][5] = {
		[GT_CHAIN_HIGH] = {"h_t", "h_b", "h_n", "h_s", "h_v"},
		[GT_CHAIN_NAMED] = {"i_t", "i_b", "i_n", "i_s", "i_v"},
		[GT_CHAIN_ENDS] = {"e_t", "e_b", "e_n", "e_s", "e_v"},
		[GT_CHAIN_PEAKS] = {"p_t", "p_b", "p_n", "p_s", "p_v"},
	};
	struct encoding encoding = {.columns = json_array()};
	struct bytes packed;
	struct gt_blob blob;
	char *text;

	put_slices(&encoding, history);
	for (int kind = 0; kind < GT_CHAINS; kind++)
		put_chain(&encoding, &history->chains[kind], names[kind]);
	put_steps(&encoding, history);
	json_object_set_new(header, "cols", encoding.columns);
	text = gt_xchecked(json_dumps(header, JSON_COMPACT | JSON_ENSURE_ASCII));
	packed = deflated(text, &encoding.bytes, level);
	blob = base64(&packed);
	free(packed.data);
	free(encoding.bytes.data);
	free(text);
	return blob;
}

void gt_blob_clear(struct gt_blob *blob)
{
	free(blob->text);
	*blob = (struct gt_blob){0};
}
