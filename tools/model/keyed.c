/* SPDX-License-Identifier: MIT */
/*
 * See keyed.h. Open addressing, half full at most; the elements behind a removed one move up, so that
 * nothing marks where something was. Called by whoever walks over events.
 */
#include "model/keyed.h"

#include <stdlib.h>
#include <string.h>
#include "model/xalloc.h"

#define LEAST 256		  /* cells */
#define TAKEN (UINT64_C(1) << 63) /* in a cell's own word, beside its key: 0 = empty */

static uint64_t *cell_at(const struct gt_keyed *keyed, size_t place)
{
	return (void *)(keyed->cells + place * keyed->size);
}

static size_t home_of(const struct gt_keyed *keyed, uint64_t word)
{
	return (size_t)((word * 0x9e3779b97f4a7c15ull) >> 24) & keyed->mask;
}

/* The cell of the word, or the empty one where it belongs. */
static uint64_t *search(const struct gt_keyed *keyed, uint64_t word)
{
	size_t place = home_of(keyed, word);

	while (*cell_at(keyed, place) && *cell_at(keyed, place) != word)
		place = (place + 1) & keyed->mask;
	return cell_at(keyed, place);
}

void *gt_keyed_find(const struct gt_keyed *keyed, uint64_t key)
{
	uint64_t *cell = keyed->used ? search(keyed, key | TAKEN) : NULL;

	return cell && *cell ? cell : NULL;
}

static void make_room(struct gt_keyed *keyed)
{
	struct gt_keyed old = *keyed;
	size_t count = old.cells ? 2 * (old.mask + 1) : LEAST;

	keyed->mask = count - 1;
	keyed->cells = gt_xcalloc(count, keyed->size);
	for (void *cell = NULL; (cell = gt_keyed_next(&old, cell));)
		memcpy(search(keyed, *(uint64_t *)cell), cell, keyed->size);
	free(old.cells);
}

void *gt_keyed_put(struct gt_keyed *keyed, uint64_t key)
{
	uint64_t *cell;

	if (2 * keyed->used >= keyed->mask)
		make_room(keyed);
	cell = search(keyed, key | TAKEN);
	keyed->used += !*cell;
	*cell = key | TAKEN;
	return cell;
}

void gt_keyed_remove(struct gt_keyed *keyed, void *element)
{
	size_t hole = (size_t)((char *)element - keyed->cells) / keyed->size, place = hole;

	keyed->used--;
	while (*cell_at(keyed, place = (place + 1) & keyed->mask)) {
		size_t home = home_of(keyed, *cell_at(keyed, place));

		if (((place - home) & keyed->mask) < ((place - hole) & keyed->mask))
			continue;
		memcpy(cell_at(keyed, hole), cell_at(keyed, place), keyed->size);
		hole = place;
	}
	memset(cell_at(keyed, hole), 0, keyed->size);
}

void *gt_keyed_next(const struct gt_keyed *keyed, const void *element)
{
	const char *end = keyed->cells ? keyed->cells + (keyed->mask + 1) * keyed->size : NULL;
	char *at = element ? (char *)element + keyed->size : keyed->cells;

	while (at < end && !*(uint64_t *)(void *)at)
		at += keyed->size;
	return at < end ? at : NULL;
}

void gt_keyed_clear(struct gt_keyed *keyed)
{
	free(keyed->cells);
	*keyed = (struct gt_keyed){.size = keyed->size};
}
