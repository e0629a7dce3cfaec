/* SPDX-License-Identifier: MIT */
/* Parts of the recorder that need no file: columns, index, options, text. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdlib.h>
#include <string.h>
#include "../../preload/recorder.h"
#include "model.h"

/* ---- columns -------------------------------------------------------------------------------- */

static uint64_t wild(uint64_t *r, uint64_t mask)
{
	static const uint64_t edges[] = {0, 1, 127, 128, 511, 512, ~0ull, 1ull << 63, 0x7fffffff};

	return mask & (rnd(r) % 3 ? rnd(r) >> rnd(r) % 64 : edges[rnd(r) % 9]);
}

/* Each field is constant, zero, or wild over the whole chunk: all codings come up. */
static void fill(struct gt_cell *cells, uint32_t cap, uint64_t first, uint32_t count, uint64_t *r)
{
	uint64_t style = rnd(r);
	struct gt_cell same = {0}, c;

	for (uint32_t i = 0; i < count; i++) {
		uint64_t *words = (uint64_t *)&c;

		for (unsigned w = 0; w < sizeof(c) / 8; w++)
			words[w] = style >> 2 * w & 1 ? wild(r, ~0ull) : ((uint64_t *)&same)[w];
		if (style >> 40 & 1)
			c.birth = c.time_thread;
		c.seq_op = (first + i) << 8 | (c.seq_op & 255);
		if (!i)
			same = c;
		cells[(first + i) & (cap - 1)] = c;
	}
}

static bool same_event(const struct ck_event *e, const struct gt_cell *c)
{
	struct ck_event want = ck_event_of(c);

	/* A cell's address has 57 bits, a chunk's 64: the same value. */
	return !memcmp(e, &want, sizeof(want));
}

/* Some ends of blocks are those of an alloc before, as the recorder knows them. */
static void refer(const struct gt_staged *s, uint32_t *born, uint64_t *r)
{
	struct gt_cell *cells = (struct gt_cell *)s->cells, *end, *alloc;

	for (uint32_t i = 0; i < s->count; i++) {
		uint64_t q = s->first + rnd(r) % (i + 1);

		end = &cells[(s->first + i) & (s->cap - 1)];
		alloc = &cells[q & (s->cap - 1)];
		born[(s->first + i) & (s->cap - 1)] = 0;
		if (rnd(r) % 2)
			continue;
		alloc->seq_op = q << 8 | GT_OP_ALLOC;
		born[q & (s->cap - 1)] = 0;
		if (alloc == end || !GT_LOW48(alloc->time_thread))
			continue;
		end->seq_op = (s->first + i) << 8 | (rnd(r) % 2 ? GT_OP_FREE : GT_OP_IMPLICIT_FREE);
		end->key = alloc->key;
		end->size_stream = alloc->size_stream;
		end->birth = alloc->time_thread;
		end->site = alloc->site;
		born[(s->first + i) & (s->cap - 1)] = (uint32_t)q;
	}
}

Test(columns, round_trip)
{
	struct gt_cell *cells = calloc(1024, sizeof(*cells));
	struct ck_event *events = calloc(1024, sizeof(*events));
	uint8_t *raw = malloc(GT_RAW_MAX(1024));
	static uint32_t born[1024], back[1024];
	static uint16_t whole[1024];
	static uint8_t time[GT_RAW_MAX(1024)];
	uint64_t r = 1;

	for (unsigned round = 0; round < 3000; round++) {
		uint32_t cap = 1u << (1 + rnd(&r) % 10);
		uint32_t count = 1 + rnd(&r) % cap;
		uint64_t first = 1 + rnd(&r) % 100000;
		const struct gt_staged staged = {.cells = cells,
						 .born = born,
						 .cap = cap,
						 .count = count,
						 .first = first,
						 .back = back,
						 .whole = whole,
						 .time = time};
		size_t length;
		const char *why;

		fill(cells, cap, first, count, &r);
		refer(&staged, born, &r);
		length = gt_columns_encode(raw, &staged);
		cr_assert(le(sz, length, GT_RAW_MAX(count)));
		why = ck_columns(raw, length, first, count, NULL, 0, events);
		cr_assert(zero(ptr, (void *)why), "%s", why);
		for (uint32_t i = 0; i < count; i++)
			cr_assert(same_event(&events[i], &cells[(first + i) & (cap - 1)]),
				  "round %u, event %u", round, i);
	}
}

/* ---- index ---------------------------------------------------------------------------------- */

static bool find(const struct gt_index *ix, uint32_t hash, uint32_t value, struct gt_probe *ret)
{
	uint32_t found;

	*ret = gt_index_probe(ix, hash);
	while ((found = gt_index_next(ret)) != GT_NONE)
		if (found == value)
			return true;
	return false;
}

static bool holds(const struct gt_index *ix, uint32_t hash, uint32_t value)
{
	struct gt_probe p;

	return find(ix, hash, value, &p);
}

static void take_out(struct gt_index *ix, uint32_t hash, uint32_t value)
{
	struct gt_probe p;

	cr_assert(find(ix, hash, value, &p));
	gt_index_remove(ix, hash, &p);
}

/* Two homes in each table, the first and the last bucket, and few tags: long runs, also round the end. */
static uint32_t crowded(const void *owner, uint32_t value)
{
	(void)owner;
	return (gt_hash(value % 700) & 0xfe000003) | (value & 1 ? 0x01ffff00 : 0);
}

Test(index, random_traffic_with_collisions)
{
	static bool in[4096];
	struct gt_index ix;
	uint64_t r = 3;

	memset(&ix, 0, sizeof(ix));
	cr_assert(zero(int, gt_index_init(&ix, crowded, NULL)));
	for (unsigned i = 0; i < 60000; i++) {
		uint32_t value = rnd(&r) % 4096, hash = crowded(NULL, value);

		if (in[value]) {
			take_out(&ix, hash, value);
		} else {
			cr_assert(gt_index_reserve(&ix, hash));
			gt_index_add(&ix, hash, value);
		}
		in[value] = !in[value];
		if (i % 500)
			continue;
		for (value = 0; value < 4096; value++)
			cr_assert(eq(int, holds(&ix, crowded(NULL, value), value), in[value]));
	}
}

/* What went past a full bucket is counted there, and no more than that: else searches would grow long. */
Test(index, forgets_what_went_past)
{
	struct gt_index ix;

	memset(&ix, 0, sizeof(ix));
	cr_assert(zero(int, gt_index_init(&ix, crowded, NULL)));
	for (uint32_t value = 0; value < 4096; value++) {
		cr_assert(gt_index_reserve(&ix, crowded(NULL, value)));
		gt_index_add(&ix, crowded(NULL, value), value);
	}
	for (uint32_t value = 0; value < 4096; value++)
		take_out(&ix, crowded(NULL, value), value);
	for (unsigned t = 0; t < GT_INDEX_TABLES; t++) {
		cr_assert(zero(u32, ix.table[t].used));
		for (uint32_t i = 0; i < ix.table[t].count; i++)
			cr_assert(zero(u32, ix.table[t].buckets[i].passed));
	}
}

static uint32_t block(const void *owner, uint32_t value)
{
	(void)owner;
	return gt_hash(GT_KEY(0x7f0000000000ull + value * 512ull, GT_SPACE_TORCH));
}

/* Table 0, either of its first two buckets. */
static uint32_t either(const void *owner, uint32_t value)
{
	(void)owner;
	return (value & 1) << 24 | (value & 255);
}

static void put_in(struct gt_index *ix, uint32_t first, unsigned count)
{
	for (uint32_t value = first; count--; value += 2) {
		cr_assert(gt_index_reserve(ix, either(NULL, value)));
		gt_index_add(ix, either(NULL, value), value);
	}
}

static void take_all(struct gt_index *ix, uint32_t first, unsigned count)
{
	for (uint32_t value = first; count--; value += 2)
		take_out(ix, either(NULL, value), value);
}

/*
 * A small table that is never full can have entries past both of its buckets, if they went there at
 * different times. What is not there is searched in vain then, but not for ever.
 */
Test(index, searches_end_where_every_bucket_was_passed, .timeout = 60)
{
	struct gt_index ix;
	const struct gt_bucket *b;

	memset(&ix, 0, sizeof(ix));
	cr_assert(zero(int, gt_index_init(&ix, either, NULL)));
	put_in(&ix, 2, GT_BUCKET + 1); /* one goes to the other bucket */
	take_all(&ix, 2, GT_BUCKET);
	put_in(&ix, 3, GT_BUCKET); /* one comes back */
	b = ix.table[0].buckets;
	cr_assert(eq(u32, ix.table[0].count, 2));
	cr_assert(b[0].passed && b[1].passed);
	cr_assert(holds(&ix, either(NULL, 2 + 2 * GT_BUCKET), 2 + 2 * GT_BUCKET));
	cr_assert(holds(&ix, either(NULL, 1 + 2 * GT_BUCKET), 1 + 2 * GT_BUCKET));
	cr_assert(not(holds(&ix, either(NULL, 100), 100)));
	cr_assert(not(holds(&ix, either(NULL, 101), 101)));
}

/* A million blocks: every table grows on its own, never far from the others, never more than 3/4. */
Test(index, grows_table_by_table)
{
	const uint32_t count = 1000000;
	struct gt_index ix;
	uint32_t largest = 0, smallest = UINT32_MAX;

	memset(&ix, 0, sizeof(ix));
	cr_assert(zero(int, gt_index_init(&ix, block, NULL)));
	for (uint32_t i = 0; i < count; i++) {
		cr_assert(gt_index_reserve(&ix, block(NULL, i)));
		gt_index_add(&ix, block(NULL, i), i);
	}
	for (unsigned t = 0; t < GT_INDEX_TABLES; t++) {
		cr_assert(le(u32, ix.table[t].used, ix.table[t].count * GT_BUCKET / 4 * 3));
		largest = ix.table[t].count > largest ? ix.table[t].count : largest;
		smallest = ix.table[t].count < smallest ? ix.table[t].count : smallest;
	}
	/* What one growth moves is at most this, whatever the number of blocks in all. */
	cr_assert(le(u32, largest * GT_BUCKET, 2 * (count / GT_INDEX_TABLES) * 2));
	cr_assert(ge(u32, smallest * 2, largest));
	for (uint32_t i = 0; i < count; i++)
		cr_assert(holds(&ix, block(NULL, i), i));
}

/* ---- options, text -------------------------------------------------------------------------- */

Test(options, values)
{
	char *env[] = {"GPUTRACE_RING=1M",    "GPUTRACE_MAX=3GiB",	"GPUTRACE_STACKS=native",
		       "GPUTRACE_DEPTH=40",   "GPUTRACE_DIR=/a:/b",	"GPUTRACE_QUIET=1",
		       "GPUTRACE_CELLS=1000", "GPUTRACE_FREE_STACKS=1", NULL};

	gt_options_read(env);
	cr_assert(gt_options.on && gt_options.quiet);
	cr_assert(eq(u64, gt_options.ring, 1 << 20));
	cr_assert(eq(u64, gt_options.max, 3ull << 30));
	cr_assert(eq(u32, gt_options.stacks, GT_STACKS_NATIVE | GT_STACKS_FREE));
	cr_assert(eq(u32, gt_options.depth, 40));
	cr_assert(eq(u32, gt_options.cells, 512));
	cr_assert(eq(str, (char *)gt_options.dir, "/a:/b"));
	cr_assert(zero(ptr, (void *)gt_options_bad));
}

Test(options, nonsense_keeps_the_default_and_is_named)
{
	char *bad[] = {"GPUTRACE_RING=12Q",
		       "GPUTRACE_RING=",
		       "GPUTRACE_RING=-1",
		       "GPUTRACE_RING=1MM",
		       "GPUTRACE_RING=99999999999999999999",
		       "GPUTRACE_RING=1 M"};

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		char *env[] = {bad[i], NULL};

		gt_options_bad = NULL;
		gt_options_read(env);
		cr_assert(eq(u64, gt_options.ring, 256 << 20), "%s", bad[i]);
		/* An empty variable is no value at all. */
		cr_assert(eq(int, gt_options_bad != NULL, bad[i][14] != 0), "%s", bad[i]);
	}
}

/* Whatever is asked for, a chunk that cannot be compressed fits an extent. */
Test(options, cells_fit_the_extent)
{
	char *env[] = {"GPUTRACE_EXTENT=4K", "GPUTRACE_CELLS=65536", NULL};

	gt_options_read(env);
	cr_assert(le(u64, GT_RAW_MAX(gt_options.cells), 4096 - 64 - 64));
	cr_assert(ge(u32, gt_options.cells, 2));
}

Test(text, never_overruns)
{
	char buf[12];
	struct gt_text t = {.buf = buf, .size = 8};

	memset(buf, 'x', sizeof(buf));
	gt_text_i64(&t, INT64_MIN);
	cr_assert(eq(str, buf, "-922337"));
	gt_text_str(&t, "more");
	cr_assert(eq(sz, t.length, 7));
	cr_assert(eq(chr, buf[8], 'x'));
	t.length = 0;
	gt_text_u64(&t, 0);
	cr_assert(eq(str, buf, "0"));
}
