/* SPDX-License-Identifier: MIT */
/* The table of live blocks against an array that is searched from its beginning. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include "model/keyed.h"

#define KEYS 3000

struct element {
	uint64_t key;
	uint32_t value;
};

static size_t count_all(const struct gt_keyed *keyed)
{
	size_t count = 0;

	for (struct element *e = NULL; (e = gt_keyed_next(keyed, e));)
		count++;
	return count;
}

static void check_all(const struct gt_keyed *keyed, const uint32_t *values)
{
	size_t count = 0;

	for (uint64_t key = 0; key < KEYS; key++) {
		const struct element *e = gt_keyed_find(keyed, key << 16);

		cr_assert_eq(e != NULL, values[key] != 0, "key %lu", (unsigned long)key);
		cr_assert(!e || e->value == values[key], "key %lu", (unsigned long)key);
		count += e != NULL;
	}
	cr_assert_eq(count, keyed->used);
	cr_assert_eq(count_all(keyed), count);
}

/* More puts than removals at first, then fewer, so that it grows and runs of elements have holes. */
Test(keyed, what_was_put_is_found_until_it_is_removed)
{
	struct gt_keyed keyed = {.size = sizeof(struct element)};
	static uint32_t values[KEYS];

	srand(1);
	for (uint32_t i = 1; i <= 60000; i++) {
		uint64_t key = (uint64_t)rand() % KEYS;
		struct element *e = gt_keyed_find(&keyed, key << 16);

		if ((uint32_t)rand() % 60000 > i) {
			e = gt_keyed_put(&keyed, key << 16);
			cr_assert_eq(e->value, values[key]);
			e->value = values[key] = i;
		} else if (e) {
			gt_keyed_remove(&keyed, e);
			values[key] = 0;
		}
		if (i % 4000 == 0)
			check_all(&keyed, values);
	}
	gt_keyed_clear(&keyed);
	cr_assert_null(gt_keyed_find(&keyed, 0));
	cr_assert_eq(count_all(&keyed), 0);
}

Test(keyed, zero_is_a_key)
{
	struct gt_keyed keyed = {.size = sizeof(struct element)};

	cr_assert_null(gt_keyed_find(&keyed, 0));
	gt_keyed_put(&keyed, 0);
	cr_assert_not_null(gt_keyed_find(&keyed, 0));
	cr_assert_eq(keyed.used, 1);
	gt_keyed_clear(&keyed);
}
