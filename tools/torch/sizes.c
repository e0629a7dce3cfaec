/* SPDX-License-Identifier: MIT */
/*
 * See sizes.h. torch cuts a free range from its beginning and joins free neighbours at once, so the
 * range that a block was cut from reached to the next block or to the segment's end. Both lists are
 * sorted arrays: a device has hundreds of segments, and a segment of large blocks holds tens.
 * Small blocks are never left larger than they were rounded to, so they are not kept here.
 * Called by rewind.c and events.c.
 */
#include <string.h>

#include "torch/memory.h"
#include "torch/sizes.h"

#define GRAIN	    512u
#define LARGE_BLOCK ((uint64_t)10 << 20)
#define MIB	    ((uint64_t)1 << 20)
#define MANY	    65536u /* more are not kept: no card has room for them, and insertion is a move */

struct block {
	uint64_t addr, end;
};

struct segment {
	uint64_t addr, end;
	struct block *blocks; /* by address */
	size_t count, capacity;
};

struct gt_cuts {
	const struct gt_torch_settings *settings;
	struct segment *segments; /* by address */
	size_t count, capacity;
};

/* ---- rounding ------------------------------------------------------------------------------ */

static uint64_t up_to(uint64_t size, uint64_t grain)
{
	return (size + grain - 1) / grain * grain;
}

/* The setting for sizes of this power of two. */
static uint64_t divisions_of(const struct gt_torch_settings *settings, uint64_t size)
{
	const int power = 63 - __builtin_clzll(size) - 20;

	return settings->divisions[power < 0 ? 0 : power > 15 ? 15 : power];
}

uint64_t gt_torch_round(const struct gt_torch_settings *settings, uint64_t requested)
{
	uint64_t divisions, power, part;

	if (requested <= GRAIN)
		return GRAIN;
	divisions = divisions_of(settings, requested);
	if (divisions < 2 || divisions > MIB || requested <= GRAIN * divisions)
		return up_to(requested, GRAIN);
	power = (uint64_t)1 << (63 - __builtin_clzll(requested));
	part = power >> (63 - __builtin_clzll(divisions));
	return requested == power ? power : up_to(requested, part ? part : power);
}

uint64_t gt_torch_segment_size(uint64_t rounded)
{
	if (rounded <= GT_TORCH_SMALL)
		return 2 * MIB;
	return rounded < LARGE_BLOCK ? 20 * MIB : up_to(rounded, 2 * MIB);
}

/* ---- segments ------------------------------------------------------------------------------ */

struct gt_cuts *gt_cuts_new(const struct gt_torch_settings *settings)
{
	struct gt_cuts *cuts = calloc(1, sizeof(*cuts));

	if (cuts)
		cuts->settings = settings;
	return cuts;
}

struct gt_cuts *gt_cuts_free(struct gt_cuts *cuts)
{
	if (!cuts)
		return NULL;
	for (size_t i = 0; i < cuts->count; i++)
		free(cuts->segments[i].blocks);
	free(cuts->segments);
	free(cuts);
	return NULL;
}

/* How many segments begin at or before the address. */
static size_t segments_up_to(const struct gt_cuts *cuts, uint64_t addr)
{
	size_t low = 0, high = cuts->count;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (cuts->segments[middle].addr <= addr)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static struct segment *segment_at(const struct gt_cuts *cuts, uint64_t addr)
{
	const size_t after = segments_up_to(cuts, addr);

	return after && addr < cuts->segments[after - 1].end ? &cuts->segments[after - 1] : NULL;
}

int gt_cuts_segment(struct gt_cuts *cuts, uint64_t addr, uint64_t size)
{
	const size_t at = segments_up_to(cuts, addr);

	if (cuts->count >= MANY)
		return 0;
	if (gt_torch_grow(&cuts->segments, &cuts->capacity, cuts->count, sizeof(*cuts->segments)))
		return -1;
	memmove(&cuts->segments[at + 1], &cuts->segments[at],
		(cuts->count - at) * sizeof(*cuts->segments));
	cuts->segments[at] = (struct segment){.addr = addr, .end = addr + size};
	cuts->count++;
	return 0;
}

void gt_cuts_segment_gone(struct gt_cuts *cuts, uint64_t addr)
{
	struct segment *segment = segment_at(cuts, addr);
	size_t at;

	if (!segment || segment->addr != addr)
		return;
	at = (size_t)(segment - cuts->segments);
	free(segment->blocks);
	cuts->count--;
	memmove(segment, segment + 1, (cuts->count - at) * sizeof(*segment));
}

/* ---- blocks -------------------------------------------------------------------------------- */

/* How many blocks begin before the address. */
static size_t blocks_before(const struct segment *segment, uint64_t addr)
{
	size_t low = 0, high = segment->count;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (segment->blocks[middle].addr < addr)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

int gt_cuts_block(struct gt_cuts *cuts, uint64_t addr, uint64_t size)
{
	struct segment *segment = size > GT_TORCH_SMALL ? segment_at(cuts, addr) : NULL;
	size_t at;

	if (!segment || segment->count >= MANY)
		return 0;
	at = blocks_before(segment, addr);
	if (gt_torch_grow(&segment->blocks, &segment->capacity, segment->count,
			  sizeof(*segment->blocks)))
		return -1;
	memmove(&segment->blocks[at + 1], &segment->blocks[at],
		(segment->count - at) * sizeof(*segment->blocks));
	segment->blocks[at] = (struct block){addr, addr + size};
	segment->count++;
	return 0;
}

void gt_cuts_block_gone(struct gt_cuts *cuts, uint64_t addr)
{
	struct segment *segment = segment_at(cuts, addr);
	size_t at = segment ? blocks_before(segment, addr) : 0;

	if (!segment || at >= segment->count || segment->blocks[at].addr != addr)
		return;
	segment->count--;
	memmove(&segment->blocks[at], &segment->blocks[at + 1],
		(segment->count - at) * sizeof(*segment->blocks));
}

uint64_t gt_cuts_size(const struct gt_cuts *cuts, uint64_t addr, uint64_t requested)
{
	const uint64_t rounded = gt_torch_round(cuts->settings, requested);
	const struct segment *segment = segment_at(cuts, addr);
	uint64_t end;
	size_t next;

	if (!segment || cuts->settings->expandable || rounded <= GT_TORCH_SMALL)
		return rounded;
	next = blocks_before(segment, addr + 1);
	end = next < segment->count ? segment->blocks[next].addr : segment->end;
	if (end - addr < rounded)
		return rounded;
	if (rounded < cuts->settings->max_split && end - addr - rounded > MIB)
		return rounded;
	return end - addr;
}
