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
	X(EXTRA, PLAIN, c->extra)

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

	while (gt_unlikely(v >> 56)) { /* at most two rounds */
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

/* Of values that are small nearly always. */
INLINE uint8_t *put_small(uint8_t *p, uint64_t v)
{
	if (gt_unlikely(v >= 128))
		return put_varint(p, v);
	*p = (uint8_t)v;
	return p + 1;
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

typedef uint64_t get_fn(const struct gt_cell *c);
typedef const struct gt_cell *cell_fn(const struct gt_staged *s, uint32_t i);

/* The head of a column that ends at p. */
INLINE uint8_t *put_head(uint8_t *head, uint8_t *p, enum gt_column_id id,
			 enum gt_column_coding coding)
{
	struct gt_column h = {.id = (uint8_t)id,
			      .coding = (uint8_t)coding,
			      .length = (uint32_t)(p - head - sizeof(h))};

	__builtin_memcpy(head, &h, sizeof(h));
	return p;
}

static uint8_t *put_const(uint8_t *p, enum gt_column_id id, uint64_t v)
{
	return v ? put_head(p, put_varint(p + sizeof(struct gt_column), v), id, GT_CODE_CONST) : p;
}

INLINE uint8_t *put_column(uint8_t *head, const struct gt_staged *s, uint32_t count,
			   enum gt_column_id id, enum gt_column_coding coding, cell_fn *cell_of,
			   get_fn *get)
{
	uint8_t *p = head + sizeof(struct gt_column);
	uint64_t before = 0;

	for (uint32_t i = 0; i < count; i++) {
		uint64_t v = get(cell_of(s, i));

		if (coding == GT_CODE_BYTES) {
			*p++ = (uint8_t)v;
		} else if (coding == GT_CODE_PLAIN) {
			p = put_varint(p, v);
		} else {
			if (coding == GT_CODE_ROTATED)
				v = rotate(v);
			p = coding == GT_CODE_ROTATED ? put_varint(p, zigzag(v - before))
						      : put_small(p, zigzag(v - before));
			before = v;
		}
	}
	return put_head(head, p, id, coding);
}

#define COLUMN(id, coding, value, cell_of)                                                        \
	INLINE uint64_t get_##id(const struct gt_cell *c)                                         \
	{                                                                                         \
		return value;                                                                     \
	}                                                                                         \
	static __attribute__((noinline))                                                          \
	uint8_t *put_##id(uint8_t *p, const struct gt_staged *s, uint32_t count,                  \
			  const struct gt_cell *differs)                                          \
	{                                                                                         \
		if (!count)                                                                       \
			return p;                                                                 \
		if (!get_##id(differs))                                                           \
			return put_const(p, GT_COL_##id, get_##id(cell_of(s, 0)));                \
		return put_column(p, s, count, GT_COL_##id, GT_CODE_##coding, cell_of, get_##id); \
	}
#define X(id, coding, value) COLUMN(id, coding, value, cell_of_all)
OF_ALL(X)
#undef X
#define X(id, coding, value) COLUMN(id, coding, value, cell_of_whole)
OF_WHOLE(X)
#undef X

/* Cells two words at a time, for the question in which bits any differs from the first. */
typedef uint64_t words __attribute__((vector_size(16), may_alias));

INLINE words words_of(const struct gt_cell *c, size_t offset)
{
	return *(const words *)((const char *)c + offset);
}

struct scan {		      /* what one pass over all cells finds out, and writes on the way */
	uint8_t *op;	      /* of each event, to the chunk */
	uint8_t *time;	      /* deltas, to s->time: their place is behind back */
	uint64_t before;      /* the time of the event before */
	uint32_t whole, ends; /* values in s->whole, s->back */
	uint32_t refers;      /* s->back or'ed */
	words differs[4];     /* bits in which any cell differs from the first of its columns */
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

/* Without a branch on what an event is, since programs free when they like. */
INLINE void scan_run(struct scan *r, const struct gt_staged *s, uint32_t from, uint32_t to)
{
	const struct gt_cell *first = cell_of_all(s, 0);
	struct scan now = *r; /* in registers */

	for (uint32_t at = from; at < to; at++) {
		const struct gt_cell *c = &s->cells[at];
		uint8_t op = (uint8_t)c->seq_op;
		bool ends = op == GT_OP_FREE || op == GT_OP_IMPLICIT_FREE;
		uint32_t back = ends ? back_of(s, c, at) : 0;

		*now.op++ = op;
		now.time = put_small(now.time, zigzag(GT_LOW48(c->time_thread) - now.before));
		now.before = GT_LOW48(c->time_thread);
		s->back[now.ends] = back;
		now.ends += ends;
		s->whole[now.whole] = (uint16_t)at;
		now.whole += !back;
		now.refers |= back;
		now.differs[0] |= words_of(c, 0) ^ words_of(first, 0);
		now.differs[3] |= words_of(c, 48) ^ words_of(first, 48);
	}
	*r = now;
}

/* Of the words of the block. */
static void scan_whole(struct scan *r, const struct gt_staged *s)
{
	const struct gt_cell *first = cell_of_whole(s, 0);
	uint64_t age = 0, *d = (uint64_t *)r->differs;

	_Static_assert(offsetof(struct gt_cell, key) == 16 &&
			       offsetof(struct gt_cell, free_site) == 48,
		       "of all events the words before and behind those of the block");
	for (uint32_t i = 0; i < r->whole; i++) {
		const struct gt_cell *c = cell_of_whole(s, i);

		r->differs[1] |= words_of(c, 16) ^ words_of(first, 16);
		r->differs[2] |= words_of(c, 32) ^ words_of(first, 32);
		age |= c->time_thread ^ c->birth;
	}
	/* So that get_AGE of it is zero exactly when every age is. */
	d[4] = GT_PACK(d[1] - GT_LOW48(age), GT_HIGH16(d[4]));
}

static uint8_t *put_back(uint8_t *head, const struct gt_staged *s, const struct scan *r)
{
	uint8_t *p = head + sizeof(struct gt_column);

	for (uint32_t i = 0; i < r->ends; i++)
		p = put_varint(p, s->back[i]);
	return put_head(head, p, GT_COL_BACK, GT_CODE_PLAIN);
}

/* Op and back first: they say which events the other columns have values of. */
size_t gt_columns_encode(uint8_t *out, const struct gt_staged *s)
{
	struct scan r = {.op = out + sizeof(struct gt_column), .time = s->time};
	uint32_t at = (uint32_t)(s->first & (s->cap - 1)), behind = s->cap - at;
	const struct gt_cell *d = (const struct gt_cell *)r.differs;
	uint8_t *p = out;

	scan_run(&r, s, at, at + (s->count < behind ? s->count : behind));
	scan_run(&r, s, 0, s->count < behind ? 0 : s->count - behind);
	scan_whole(&r, s);
	p = d->seq_op & 255 ? put_head(out, r.op, GT_COL_OP, GT_CODE_BYTES)
			    : put_const(out, GT_COL_OP, cell_of_all(s, 0)->seq_op & 255);
	if (r.refers)
		p = put_back(p, s, &r);
	__builtin_memcpy(p + sizeof(struct gt_column), s->time, (size_t)(r.time - s->time));
	p = put_head(p, p + sizeof(struct gt_column) + (r.time - s->time), GT_COL_TIME,
		     GT_CODE_DELTA);
#define X(id, coding, value) p = put_##id(p, s, s->count, d);
	OF_ALL(X)
#undef X
#define X(id, coding, value) p = put_##id(p, s, r.whole, d);
	OF_WHOLE(X)
#undef X
	return (size_t)(p - out);
}
