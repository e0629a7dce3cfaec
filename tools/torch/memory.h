/* SPDX-License-Identifier: MIT */
/*
 * Memory for tools/torch, and for nobody else: arrays that grow, and pieces that are given back all
 * at once, the items of pickled lists and decoded texts by the million. NULL or -1 means no memory;
 * sizes come from files, so nobody ends the program for want of it.
 */
#ifndef GT_TORCH_MEMORY_H
#define GT_TORCH_MEMORY_H

#include <stdlib.h>

/* Room for one more: grows *array (of *capacity elements of size bytes) to hold count + 1. */
static inline int gt_torch_grow(void *array, size_t *capacity, size_t count, size_t size)
{
	void **p = array, *bigger;
	const size_t want = *capacity ? *capacity * 2 : 64;

	if (count < *capacity)
		return 0;
	bigger = reallocarray(*p, want, size);
	if (!bigger)
		return -1;
	*p = bigger;
	*capacity = want;
	return 0;
}

#define GT_ARENA_CHUNK ((size_t)1 << 16)

struct gt_arena {
	struct gt_arena *next;
	size_t used, size;
	_Alignas(16) char bytes[];
};

static inline void *gt_arena_take(struct gt_arena **arena, size_t size)
{
	const size_t need = (size + 7) & ~(size_t)7;
	struct gt_arena *chunk = *arena;
	void *taken;

	if (!chunk || chunk->size - chunk->used < need) {
		const size_t room = need > GT_ARENA_CHUNK ? need : GT_ARENA_CHUNK;

		chunk = malloc(sizeof(*chunk) + room);
		if (!chunk)
			return NULL;
		*chunk = (struct gt_arena){.next = *arena, .size = room};
		*arena = chunk;
	}
	taken = chunk->bytes + chunk->used;
	chunk->used += need;
	return taken;
}

static inline void gt_arena_free(struct gt_arena *arena)
{
	while (arena) {
		struct gt_arena *next = arena->next;

		free(arena);
		arena = next;
	}
}

#endif
