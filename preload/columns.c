/* SPDX-License-Identifier: MIT */
/*
 * A chunk's events as columns (format.h): what one field does over time repeats itself far better
 * than what one event looks like. The end of a block says how many events before it was allocated,
 * if that event is in the same extent: then nothing of the block is written twice, and what is
 * written repeats itself, because a block of a training step lives for as many events in each step,
 * but not for as many microseconds. A column whose values are all the same is one value, or nothing
 * when that is zero, and in most programs most columns are. Pure: memory in, memory out; called by
 * ring.c with GT_RAW_MAX bytes of room.
 */
#include "recorder.h"

/* id, coding, value. All values but AGE are bits of the cell: what `varies` relies on. */
#define OF_ALL(X)                                   \
	X(THREAD, DELTA, GT_HIGH16(c->time_thread)) \
	X(FREE_SITE, DELTA, c->free_site)           \
	X(AUX, PLAIN, c->aux)                       \
	X(EXTRA, PLAIN, c->extra)                   \
	X(TIME, DELTA, GT_LOW48(c->time_thread))

/* Of the events that do not refer to another. */
#define OF_WHOLE(X)                                 \
	X(SPACE, BYTES, GT_KEY_SPACE(c->key))       \
	X(STREAM, DELTA, GT_HIGH16(c->size_stream)) \
	X(BIRTH_THREAD, DELTA, GT_HIGH16(c->birth)) \
	X(SITE, DELTA, c->site)                     \
	X(SIZE, ROTATED, GT_LOW48(c->size_stream))  \
	X(ADDR, ROTATED, GT_KEY_ADDR(c->key))       \
	X(AGE, PLAIN, GT_LOW48(c->time_thread) - GT_LOW48(c->birth))

/* So that each column has a loop of its own, with its value and coding known. */
#define INLINE static inline __attribute__((always_inline))

/*
 * LEB128. Lengths of random values are not predictable, so up to eight bytes are made without a
 * branch: the bits in groups of seven, each group moved to its byte, and the bytes behind the last
 * written too, since something else follows or there is room.
 */
INLINE uint8_t *put_varint(uint8_t *p, uint64_t v)
{
	unsigned more = (63 - (unsigned)__builtin_clzll(v | 1)) * 37 >> 8; /* a seventh, to 63 */

	while (gt_unlikely(v >> 56)) { /* at most three rounds */
		*p++ = (uint8_t)(v | 128);
		v >>= 7;
		more--;
	}
	v = (v & 0x000000000fffffff) | (v & 0x00fffffff0000000) << 4;
	v = (v & 0x00003fff00003fff) | (v & 0x0fffc0000fffc000) << 2;
	v = (v & 0x007f007f007f007f) | (v & 0x3f803f803f803f80) << 1;
	v |= 0x8080808080808080 & ((1ull << 8 * more) - 1);
	__builtin_memcpy(p, &v, sizeof(v));
	return p + more + 1;
}

INLINE uint64_t zigzag(uint64_t d)
{
	return d << 1 ^ (uint64_t)((int64_t)d >> 63);
}

INLINE uint64_t rotate(uint64_t v)
{
	return v >> 9 | v << 55;
}

INLINE const struct gt_cell *cell_of_all(const struct gt_staged *s, uint32_t i)
{
	return &s->cells[(s->first + i) & (s->cap - 1)];
}

INLINE const struct gt_cell *cell_of_whole(const struct gt_staged *s, uint32_t i)
{
	return &s->cells[s->whole[i]];
}

typedef uint64_t get_fn(const struct gt_staged *s, uint32_t i);

INLINE uint8_t *put_values(uint8_t *p, const struct gt_staged *s, uint32_t count, get_fn *get,
			   enum gt_column_coding coding)
{
	uint64_t before = 0;

	for (uint32_t i = 0; i < count; i++) {
		uint64_t v = get(s, i);

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

/* A column with its head; unless it varies all its values are the first. */
INLINE uint8_t *put_column(uint8_t *p, const struct gt_staged *s, uint32_t count,
			   enum gt_column_id id, enum gt_column_coding coding, get_fn *get,
			   bool varies)
{
	struct gt_column *head = (struct gt_column *)p;
	struct gt_column h = {.id = (uint8_t)id, .coding = GT_CODE_CONST};
	uint8_t *from = p + sizeof(*head);

	if (!count || (!varies && !get(s, 0)))
		return p;
	if (varies) {
		h.coding = (uint8_t)coding;
		p = put_values(from, s, count, get, coding);
	} else {
		p = put_varint(from, get(s, 0));
	}
	h.length = (uint32_t)(p - from);
	__builtin_memcpy(head, &h, sizeof(h));
	return p;
}

#define PUT(id, coding)                                                                          \
	static __attribute__((noinline))                                                         \
	uint8_t *put_##id(uint8_t *p, const struct gt_staged *s, uint32_t count, bool varies)    \
	{                                                                                        \
		return put_column(p, s, count, GT_COL_##id, GT_CODE_##coding, get_##id, varies); \
	}
#define COLUMN(id, coding, value, cell_of)                              \
	INLINE uint64_t value_##id(const struct gt_cell *c)             \
	{                                                               \
		return value;                                           \
	}                                                               \
	INLINE uint64_t get_##id(const struct gt_staged *s, uint32_t i) \
	{                                                               \
		return value_##id(cell_of(s, i));                       \
	}                                                               \
	PUT(id, coding)

COLUMN(OP, BYTES, c->seq_op & 255, cell_of_all)
#define X(id, coding, value) COLUMN(id, coding, value, cell_of_all)
OF_ALL(X)
#undef X
#define X(id, coding, value) COLUMN(id, coding, value, cell_of_whole)
OF_WHOLE(X)
#undef X

INLINE uint64_t get_BACK(const struct gt_staged *s, uint32_t i)
{
	return s->back[i];
}
PUT(BACK, PLAIN)

struct shape {
	uint32_t whole, backs;	/* values in s->whole, s->back */
	bool refers;		/* one of s->back is not 0 */
	struct gt_cell differs; /* bits in which any cell differs from the first of its columns */
};

/*
 * How many events before, for the end of a block. Only half of the number of the event that began
 * it is known, but a block that is younger than the extent has no more than these bits between.
 */
INLINE uint32_t back_of(const struct gt_staged *s, const struct gt_cell *c, uint32_t at)
{
	bool here = s->born[at] && GT_LOW48(c->birth) > s->from_us;
	uint32_t back = (uint32_t)(c->seq_op >> 8) - s->born[at];

	return here && back <= GT_BACK_MAX ? back : 0;
}

/* Which events refer to others; without a branch, since programs free when they like. */
static void find_backs(const struct gt_staged *s, struct shape *ret)
{
	uint32_t whole = 0, backs = 0, any = 0;

	for (uint32_t i = 0; i < s->count; i++) {
		uint32_t at = (uint32_t)((s->first + i) & (s->cap - 1)), back;
		const struct gt_cell *c = &s->cells[at];
		bool ends =
			(c->seq_op & 255) == GT_OP_FREE || (c->seq_op & 255) == GT_OP_IMPLICIT_FREE;

		back = ends ? back_of(s, c, at) : 0;
		s->back[backs] = back;
		backs += ends;
		s->whole[whole] = (uint16_t)at;
		whole += !back;
		any |= back;
	}
	ret->whole = whole;
	ret->backs = backs;
	ret->refers = any != 0;
}

/* Cells two words at a time, for the question in which bits any differs from the first. */
typedef uint64_t words __attribute__((vector_size(16), may_alias));

INLINE words word_of(const struct gt_cell *c, size_t offset)
{
	return *(const words *)((const char *)c + offset);
}

static void find_differences(const struct gt_staged *s, struct shape *ret)
{
	const struct gt_cell *first = cell_of_all(s, 0), *whole = cell_of_whole(s, 0);
	words d[4] = {0};
	uint64_t age = 0;

	_Static_assert(offsetof(struct gt_cell, key) == 16 &&
			       offsetof(struct gt_cell, free_site) == 48,
		       "of all events the words before and behind those of the block");
	for (uint32_t i = 0; i < s->count; i++) {
		d[0] |= word_of(cell_of_all(s, i), 0) ^ word_of(first, 0);
		d[3] |= word_of(cell_of_all(s, i), 48) ^ word_of(first, 48);
	}
	for (uint32_t i = 0; i < ret->whole; i++) {
		const struct gt_cell *c = cell_of_whole(s, i);

		d[1] |= word_of(c, 16) ^ word_of(whole, 16);
		d[2] |= word_of(c, 32) ^ word_of(whole, 32);
		age |= c->time_thread ^ c->birth;
	}
	__builtin_memcpy(&ret->differs, d, sizeof(d));
	/* So that value_AGE of the result is zero exactly when every age is. */
	ret->differs.birth =
		GT_PACK(ret->differs.time_thread - GT_LOW48(age), GT_HIGH16(ret->differs.birth));
}

/* Op and back first: they say which events the other columns have values of. */
size_t gt_columns_encode(uint8_t *out, const struct gt_staged *s)
{
	struct shape shape;
	const struct gt_cell *d = &shape.differs;
	uint8_t *p = out;

	find_backs(s, &shape);
	find_differences(s, &shape);
	p = put_OP(p, s, s->count, value_OP(d) != 0);
	p = put_BACK(p, s, shape.refers ? shape.backs : 0, true);
#define X(id, coding, value) p = put_##id(p, s, s->count, value_##id(d) != 0);
	OF_ALL(X)
#undef X
#define X(id, coding, value) p = put_##id(p, s, shape.whole, value_##id(d) != 0);
	OF_WHOLE(X)
#undef X
	return (size_t)(p - out);
}
