/* SPDX-License-Identifier: MIT */
/*
 * See diff.h. A key is in A, in B or in both, so the rows' differences add up to the difference of
 * the sums by construction.
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
	struct bucket *buckets;
	struct gt_diff diff;
};

static struct gt_diff_row *row_for(struct join *join, const struct gt_row *row)
{
	char *key = gt_xasprintf("%d %d %s", row->torch, row->category, row->label.key);
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

struct gt_diff gt_diff_rows(const struct gt_rows *a, const struct gt_rows *b)
{
	struct join join = {0};
	struct bucket *bucket, *next;

	add_rows(&join, a, b);
	HASH_ITER(hh, join.buckets, bucket, next) {
		HASH_DEL(join.buckets, bucket);
		free(bucket->key);
		free(bucket);
	}
	if (join.diff.count)
		qsort(join.diff.rows, join.diff.count, sizeof(*join.diff.rows), by_change);
	return join.diff;
}

void gt_diff_clear(struct gt_diff *diff)
{
	free(diff->rows);
	*diff = (struct gt_diff){0};
}
