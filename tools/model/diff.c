/* SPDX-License-Identifier: MIT */
/*
 * See diff.h. Every row of A and of B becomes part of exactly one row here, so the differences add
 * up to the difference of the sums by construction. Rows without a partner by their exact key are
 * paired by coarser keys, one to one, largest with largest: a line that moved keeps its bytes.
 */
#include "model/diff.h"

#include <stdlib.h>
#include <string.h>
#include <uthash.h>
#include "model/xalloc.h"

struct bucket {
	char *key;
	size_t row;
	UT_hash_handle hh;
};

struct join {
	enum gt_by by;
	struct bucket *buckets;
	struct gt_diff diff;
};

struct single {	    /* a row that has no partner yet */
	size_t row; /* in the join */
	bool in_b;
	char *key;
	uint64_t bytes;
};

/* Only rows that name code are of one category by their making. */
static char *key_of(const struct join *join, const struct gt_row *row, const char *key)
{
	return gt_xasprintf("%d %d %s", row->torch, gt_by_code(join->by) ? row->category : 0, key);
}

static struct gt_diff_row *row_for(struct join *join, const struct gt_row *row)
{
	char *key = key_of(join, row, row->label.key);
	struct bucket *bucket;

	HASH_FIND_STR(join->buckets, key, bucket);
	if (bucket) {
		free(key);
		return &join->diff.rows[bucket->row];
	}
	bucket = gt_xcalloc(1, sizeof(*bucket));
	bucket->key = key;
	bucket->row = join->diff.count;
	HASH_ADD_KEYPTR(hh, join->buckets, key, strlen(key), bucket);
	return GT_PUSH(join->diff.rows, join->diff.count);
}

static void add_rows(struct join *join, const struct gt_rows *a, const struct gt_rows *b)
{
	for (size_t i = 0; i < a->count; i++) {
		struct gt_diff_row *row = row_for(join, &a->rows[i]);

		row->a = &a->rows[i];
		row->bytes_a = row->a->bytes;
		join->diff.bytes_a += row->bytes_a;
	}
	for (size_t i = 0; i < b->count; i++) {
		struct gt_diff_row *row = row_for(join, &b->rows[i]);

		row->b = &b->rows[i];
		row->bytes_b = row->b->bytes;
		join->diff.bytes_b += row->bytes_b;
	}
}

static uint64_t change(const struct gt_diff_row *row)
{
	return row->bytes_a > row->bytes_b ? row->bytes_a - row->bytes_b
					   : row->bytes_b - row->bytes_a;
}

static int by_change(const void *a, const void *b)
{
	const struct gt_diff_row *x = a, *y = b;
	const struct gt_row *p = x->b ? x->b : x->a, *q = y->b ? y->b : y->a;

	if (change(x) != change(y))
		return change(x) < change(y) ? 1 : -1;
	if (x->bytes_b != y->bytes_b)
		return x->bytes_b < y->bytes_b ? 1 : -1;
	return strcmp(p->label.key, q->label.key);
}

/* ---- coarser keys ---------------------------------------------------------------------------- */

static int by_key(const void *a, const void *b)
{
	const struct single *x = a, *y = b;
	int order = strcmp(x->key, y->key);

	if (order)
		return order;
	if (x->bytes != y->bytes)
		return x->bytes < y->bytes ? 1 : -1;
	return x->row < y->row ? -1 : x->row > y->row;
}

/* In the order of their keys at the level, the larger of a key first. 0: nothing to pair. */
static size_t list_singles(const struct join *join, const struct gt_diff_side *a,
			   const struct gt_diff_side *b, int level, struct single **ret)
{
	size_t count = 0;

	for (size_t i = 0; i < join->diff.count; i++) {
		const struct gt_diff_row *row = &join->diff.rows[i];
		const struct gt_diff_side *side = row->b ? b : a;
		const struct gt_row *of = row->b ? row->b : row->a;
		struct single *single;
		char *loose;

		if (!row->a == !row->b)
			continue;
		loose = gt_label_loose(side->symbols, side->trace, of->named, join->by, level);
		if (!loose)
			break;
		single = GT_PUSH(*ret, count);
		single->row = i;
		single->in_b = row->b;
		single->bytes = of->bytes;
		single->key = key_of(join, of, loose);
		free(loose);
	}
	if (count)
		qsort(*ret, count, sizeof(**ret), by_key);
	return count;
}

/* From the run of equal keys that begins at first: the nth of A with the nth of B. */
static size_t pair_run(struct join *join, const struct single *singles, size_t first, size_t count,
		       int level)
{
	size_t end = first, a = first, b = first;

	while (end < count && !strcmp(singles[end].key, singles[first].key))
		end++;
	for (;; a++, b++) {
		struct gt_diff_row *row, *other;

		while (a < end && singles[a].in_b)
			a++;
		while (b < end && !singles[b].in_b)
			b++;
		if (a >= end || b >= end)
			return end;
		row = &join->diff.rows[singles[b].row];
		other = &join->diff.rows[singles[a].row];
		row->a = other->a;
		row->bytes_a = other->bytes_a;
		row->loosened = level;
		*other = (struct gt_diff_row){0};
	}
}

static void drop_empty(struct gt_diff *diff)
{
	size_t kept = 0;

	for (size_t i = 0; i < diff->count; i++)
		if (diff->rows[i].a || diff->rows[i].b)
			diff->rows[kept++] = diff->rows[i];
	diff->count = kept;
}

static void pair_loosely(struct join *join, const struct gt_diff_side *a,
			 const struct gt_diff_side *b)
{
	for (int level = 1; level <= GT_LOOSEST; level++) {
		struct single *singles = NULL;
		size_t count = list_singles(join, a, b, level, &singles);

		for (size_t i = 0; i < count;)
			i = pair_run(join, singles, i, count, level);
		for (size_t i = 0; i < count; i++)
			free(singles[i].key);
		free(singles);
		drop_empty(&join->diff);
	}
}

struct gt_diff gt_diff_rows(const struct gt_diff_side *a, const struct gt_diff_side *b,
			    enum gt_by by)
{
	struct join join = {.by = by};
	struct bucket *bucket, *next;

	add_rows(&join, a->rows, b->rows);
	HASH_ITER(hh, join.buckets, bucket, next) {
		HASH_DEL(join.buckets, bucket);
		free(bucket->key);
		free(bucket);
	}
	pair_loosely(&join, a, b);
	if (join.diff.count)
		qsort(join.diff.rows, join.diff.count, sizeof(*join.diff.rows), by_change);
	return join.diff;
}

void gt_diff_clear(struct gt_diff *diff)
{
	free(diff->rows);
	*diff = (struct gt_diff){0};
}
