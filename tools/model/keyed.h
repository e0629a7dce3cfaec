/* SPDX-License-Identifier: MIT */
/*
 * What is known of each live block while events go by: elements by key, in one array without holes to
 * allocate. Blocks come and go with every event, and an allocation of our own for each took longer
 * than all else that is done for it.
 */
#ifndef GT_KEYED_H
#define GT_KEYED_H

#include <stddef.h>
#include <stdint.h>

/* Set size to that of the elements, which begin with a uint64_t of the table's own; else zero. */
struct gt_keyed {
	size_t size;
	char *cells;
	size_t mask, used;
};

/* Keys are GT_KEYs: their highest bit does not count. NULL = none. */
void *gt_keyed_find(const struct gt_keyed *keyed, uint64_t key);

/* The element, zeroed when it is new. Like what was found, valid until the next one is put or removed. */
void *gt_keyed_put(struct gt_keyed *keyed, uint64_t key);
void gt_keyed_remove(struct gt_keyed *keyed, void *element);

/* All, in no order: the one behind an element, NULL for the first; NULL = no more. */
void *gt_keyed_next(const struct gt_keyed *keyed, const void *element);

void gt_keyed_clear(struct gt_keyed *keyed);

#endif
