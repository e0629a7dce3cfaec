/* SPDX-License-Identifier: MIT */
/*
 * See coarse.h. Only blocks that touch are joined, so that what is free between them stays where it is. A
 * joined block has the site of its first one. Called from cmd/snapshot.c.
 */
#include "model/coarse.h"

#include <stdlib.h>

uint64_t gt_coarse_below(unsigned int level)
{
	static const uint64_t below[GT_COARSE_LEVELS + 1] = {
		0, 4 << 10, 64 << 10, 1 << 20, 16 << 20, UINT64_MAX, UINT64_MAX};

	return below[level];
}

static int by_place(const void *a, const void *b)
{
	const struct gt_block *x = a, *y = b;

	if (x->addr != y->addr)
		return x->addr < y->addr ? -1 : 1;
	return (int)x->space - (int)y->space;
}

static bool joins(const struct gt_block *open, const struct gt_block *block, unsigned int level)
{
	return open->addr + open->size == block->addr && open->stream == block->stream &&
	       open->pool == block->pool && block->size < gt_coarse_below(level) &&
	       (open->site == block->site || level == GT_COARSE_LEVELS);
}

static void join(struct gt_block *open, const struct gt_block *block)
{
	const bool known = open->requested && block->requested;

	open->requested = known ? open->requested + block->requested : 0;
	open->size += block->size;
	if (block->birth_us > open->birth_us)
		open->birth_us = block->birth_us;
}

/* A driver allocation between two blocks is the segment of the second. */
size_t gt_coarse_blocks(struct gt_block *blocks, size_t count, unsigned int level)
{
	struct gt_block *open = NULL;
	size_t kept = 0;

	if (level && count)
		qsort(blocks, count, sizeof(*blocks), by_place);
	for (size_t i = 0; i < count; i++) {
		const struct gt_block block = blocks[i];

		if (open && block.space == GT_SPACE_TORCH && joins(open, &block, level)) {
			join(open, &block);
			continue;
		}
		blocks[kept] = block;
		if (block.space == GT_SPACE_TORCH)
			open = block.size < gt_coarse_below(level) ? &blocks[kept] : NULL;
		else if (block.space == GT_SPACE_DRIVER)
			open = NULL;
		kept++;
	}
	return kept;
}
