/* SPDX-License-Identifier: MIT */
/*
 * A chunk's events as columns (format.h): what one field does over time repeats itself far better
 * than what one event looks like. A column whose values are all the same is one value, or nothing
 * when that is zero, and in most programs most columns are; one pass over the cells finds that out
 * for all of them. Pure: memory in, memory out; called by ring.c with GT_RAW_MAX bytes of room.
 */
#include "recorder.h"

/* id, coding, value. All values but AGE are bits of the cell: what `varies` relies on. */
#define COLUMNS(X)                                                   \
	X(OP, BYTES, c->seq_op & 255)                                \
	X(SPACE, BYTES, GT_KEY_SPACE(c->key))                        \
	X(THREAD, DELTA, GT_HIGH16(c->time_thread))                  \
	X(STREAM, DELTA, GT_HIGH16(c->size_stream))                  \
	X(BIRTH_THREAD, DELTA, GT_HIGH16(c->birth))                  \
	X(SITE, DELTA, c->site)                                      \
	X(FREE_SITE, DELTA, c->free_site)                            \
	X(SIZE, ROTATED, GT_LOW48(c->size_stream))                   \
	X(ADDR, ROTATED, GT_KEY_ADDR(c->key))                        \
	X(AUX, PLAIN, c->aux)                                        \
	X(EXTRA, PLAIN, c->extra)                                    \
	X(AGE, PLAIN, GT_LOW48(c->time_thread) - GT_LOW48(c->birth)) \
	X(TIME, DELTA, GT_LOW48(c->time_thread))

/* The events of a chunk: two runs of cells, as the ring of cells comes round in between. */
struct span {
	const struct gt_cell *from[2], *to[2];
};

static struct span span_of(const struct gt_cell *cells, uint32_t cap, uint64_t first,
			   uint32_t count)
{
	uint32_t at = (uint32_t)(first & (cap - 1)), behind = cap - at;
	uint32_t n = count < behind ? count : behind;

	return (struct span){{cells + at, cells}, {cells + at + n, cells + (count - n)}};
}

#define EACH_CELL(c, s)                           \
	for (unsigned run_ = 0; run_ < 2; run_++) \
		for (const struct gt_cell *c = (s)->from[run_]; c < (s)->to[run_]; c++)

static inline uint8_t *put_varint(uint8_t *p, uint64_t v)
{
	while (v >= 128) {
		*p++ = (uint8_t)(v | 128);
		v >>= 7;
	}
	*p++ = (uint8_t)v;
	return p;
}

static inline uint64_t zigzag(uint64_t d)
{
	return d << 1 ^ (uint64_t)((int64_t)d >> 63);
}

static inline uint64_t rotate(uint64_t v)
{
	return v >> 9 | v << 55;
}

/* One copy of this loop per column, with get and coding known. */
static inline __attribute__((always_inline)) uint8_t *
put_values(uint8_t *p, const struct span *s, uint64_t (*get)(const struct gt_cell *),
	   enum gt_column_coding coding)
{
	uint64_t before = 0;

	EACH_CELL(c, s)
	{
		uint64_t v = get(c);

		if (coding == GT_CODE_BYTES) {
			*p++ = (uint8_t)v;
			continue;
		}
		if (coding == GT_CODE_PLAIN) {
			p = put_varint(p, v);
			continue;
		}
		if (coding == GT_CODE_ROTATED)
			v = rotate(v);
		p = put_varint(p, zigzag(v - before));
		before = v;
	}
	return p;
}

/* A column with its head; varies = 0: all its values are `value`. */
static inline __attribute__((always_inline)) uint8_t *
put_column(uint8_t *p, const struct span *s, enum gt_column_id id, enum gt_column_coding coding,
	   uint64_t (*get)(const struct gt_cell *), bool varies, uint64_t value)
{
	struct gt_column *head = (struct gt_column *)p;
	struct gt_column h = {.id = (uint8_t)id, .coding = GT_CODE_CONST};
	uint8_t *from = p + sizeof(*head);

	if (!varies && !value)
		return p;
	if (varies) {
		h.coding = (uint8_t)coding;
		p = put_values(from, s, get, coding);
	} else {
		p = put_varint(from, value);
	}
	h.length = (uint32_t)(p - from);
	__builtin_memcpy(head, &h, sizeof(h));
	return p;
}

#define X(id, coding, value)                                                             \
	static uint64_t get_##id(const struct gt_cell *c)                                \
	{                                                                                \
		return value;                                                            \
	}                                                                                \
	static __attribute__((noinline))                                                 \
	uint8_t *put_##id(uint8_t *p, const struct span *s, bool varies)                 \
	{                                                                                \
		return put_column(p, s, GT_COL_##id, GT_CODE_##coding, get_##id, varies, \
				  get_##id(s->from[0]));                                 \
	}
COLUMNS(X)
#undef X

/* Cells word by word, for the question in which bits any differs from the first. */
#define WORDS (sizeof(struct gt_cell) / 8)
typedef uint64_t words __attribute__((vector_size(16), may_alias));

/* Bits in which any cell differs from the first; birth's low part: in which it differs from time.
 */
static struct gt_cell differences(const struct span *s)
{
	const words *first = (const words *)s->from[0];
	struct gt_cell d;
	words all[WORDS / 2] = {0};
	uint64_t age = 0;

	EACH_CELL(c, s)
	{
		_Pragma("GCC unroll 4") /* registers, not an array */
			for (unsigned i = 0; i < WORDS / 2; i++) all[i] |=
			((const words *)c)[i] ^ first[i];
		age |= c->time_thread ^ c->birth;
	}
	__builtin_memcpy(&d, all, sizeof(d));
	/* So that get_AGE of the result is zero exactly when every age is. */
	d.birth = GT_PACK(d.time_thread - GT_LOW48(age), GT_HIGH16(d.birth));
	return d;
}

size_t gt_columns_encode(uint8_t *out, const struct gt_cell *cells, uint32_t cap, uint64_t first,
			 uint32_t count)
{
	const struct span span = span_of(cells, cap, first, count);
	const struct gt_cell d = differences(&span);
	uint8_t *p = out;

#define X(id, coding, value) p = put_##id(p, &span, get_##id(&d) != 0);
	COLUMNS(X)
#undef X
	return (size_t)(p - out);
}
