/* SPDX-License-Identifier: MIT */
/*
 * arena.c - the addresses of one device: who has which.
 *
 * Called by mem.c only, under the device's lock. It charges nothing and knows no limits.
 *
 * One range is reserved per device, VA_FACTOR times its memory so that fragmentation of addresses
 * never looks like lack of memory, and cut into granules of 2 MiB. Requests of 1 MiB and more take
 * whole granules, first fit; smaller ones share a granule (a slab) in units of 512 bytes, first fit
 * as well. So addresses are reused as early as the real driver reuses them, and every look-up is an
 * index into a table.
 */
#include "sim.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define VA_FACTOR	  4
#define UNITS		  (SIM_GRANULE / SIM_UNIT)
#define WORDS		  (UNITS / 64)
#define UNITS_OF(size)	  (((size) + SIM_UNIT - 1) / SIM_UNIT)
#define GRANULES_OF(size) (((size) + SIM_GRANULE - 1) / SIM_GRANULE)

struct sim_slab {
	struct sim_slab *next, **link; /* among the slabs that may have room */
	size_t granule;
	size_t used;	     /* units */
	size_t fails;	     /* a request of so many units was refused since the last free */
	uint64_t map[WORDS]; /* units in use */
	struct sim_block blocks[UNITS];
};

struct sim_granule {
	struct sim_block block; /* of the run that starts here */
	size_t run;		/* granules of that run, 0: none starts here */
	size_t back;		/* granules to the start of the run this one is in */
	bool busy;
	struct sim_slab *slab;
};

int sim_arena_init(struct sim_arena *arena, size_t bytes)
{
	size_t granules = VA_FACTOR * GRANULES_OF(bytes ? bytes : 1);
	char *raw = mmap(NULL, (granules + 1) * SIM_GRANULE, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (raw == MAP_FAILED)
		return -1;
	madvise(raw, (granules + 1) * SIM_GRANULE, MADV_DONTDUMP);
	arena->base = (char *)(((uintptr_t)raw + SIM_GRANULE - 1) & ~(SIM_GRANULE - 1));
	arena->granules = granules;
	arena->map = calloc(granules, sizeof(*arena->map));
	return arena->map ? 0 : -1;
}

static size_t find_run(const struct sim_arena *arena, size_t wanted)
{
	size_t free_run = 0;

	for (size_t i = arena->lowest; i < arena->granules; i++) {
		if (arena->map[i].busy) {
			i += arena->map[i].run ? arena->map[i].run - 1 : 0;
			free_run = 0;
		} else if (++free_run == wanted) {
			return i + 1 - wanted;
		}
	}
	return arena->granules;
}

/* Returns the first granule, or arena->granules when there is no such run. */
static size_t take_run(struct sim_arena *arena, size_t wanted)
{
	size_t first = find_run(arena, wanted);

	if (first == arena->granules)
		return first;
	for (size_t i = 0; i < wanted; i++) {
		arena->map[first + i].busy = true;
		arena->map[first + i].back = i;
	}
	arena->map[first].run = wanted;
	arena->taken += wanted * SIM_GRANULE;
	if (first == arena->lowest)
		arena->lowest = first + wanted;
	return first;
}

static void give_run(struct sim_arena *arena, size_t first)
{
	size_t run = arena->map[first].run;

	arena->taken -= run * SIM_GRANULE;
	memset(&arena->map[first], 0, run * sizeof(*arena->map));
	if (first < arena->lowest)
		arena->lowest = first;
}

static void slab_link(struct sim_arena *arena, struct sim_slab *slab)
{
	slab->next = arena->partial;
	slab->link = &arena->partial;
	if (slab->next)
		slab->next->link = &slab->next;
	arena->partial = slab;
}

static void slab_unlink(struct sim_slab *slab)
{
	if (!slab->link)
		return;
	*slab->link = slab->next;
	if (slab->next)
		slab->next->link = slab->link;
	slab->link = NULL;
}

static bool unit_used(const struct sim_slab *slab, size_t unit)
{
	return slab->map[unit / 64] >> unit % 64 & 1;
}

/* First fit; whole words of used units are skipped at once. UNITS when there is no room. */
static size_t find_units(const struct sim_slab *slab, size_t wanted)
{
	size_t free_run = 0;

	for (size_t unit = 0; unit < UNITS; unit++) {
		if (unit % 64 == 0 && slab->map[unit / 64] == UINT64_MAX) {
			unit += 63;
			free_run = 0;
		} else if (unit_used(slab, unit)) {
			free_run = 0;
		} else if (++free_run == wanted) {
			return unit + 1 - wanted;
		}
	}
	return UNITS;
}

static void mark_units(struct sim_slab *slab, size_t first, size_t count)
{
	for (size_t unit = first; unit < first + count; unit++)
		slab->map[unit / 64] ^= (uint64_t)1 << unit % 64;
}

static struct sim_slab *new_slab(struct sim_arena *arena)
{
	struct sim_slab *slab;
	size_t granule = take_run(arena, 1);

	if (granule == arena->granules)
		return NULL;
	slab = calloc(1, sizeof(*slab));
	if (!slab) {
		give_run(arena, granule);
		return NULL;
	}
	slab->granule = granule;
	slab->fails = UNITS + 1;
	arena->map[granule].slab = slab;
	slab_link(arena, slab);
	return slab;
}

/* The slab with room for so many units, and the first of them; NULL: a new slab is needed. */
static struct sim_slab *find_slab(const struct sim_arena *arena, size_t units, size_t *ret_first)
{
	for (struct sim_slab *slab = arena->partial; slab; slab = slab->next) {
		size_t first = units < slab->fails ? find_units(slab, units) : UNITS;

		if (first < UNITS) {
			*ret_first = first;
			return slab;
		}
		if (units < slab->fails)
			slab->fails = units;
	}
	return NULL;
}

static struct sim_block *alloc_small(struct sim_arena *arena, size_t size, CUdeviceptr *ret_ptr)
{
	size_t units = UNITS_OF(size);
	size_t first = 0;
	struct sim_slab *slab = find_slab(arena, units, &first);

	if (!slab)
		slab = new_slab(arena);
	if (!slab)
		return NULL;
	mark_units(slab, first, units);
	slab->used += units;
	if (slab->used == UNITS)
		slab_unlink(slab);
	slab->blocks[first].size = size;
	*ret_ptr = (CUdeviceptr)(uintptr_t)arena->base + slab->granule * SIM_GRANULE +
		   first * SIM_UNIT;
	return &slab->blocks[first];
}

/* Whole granules, however small the request. */
struct sim_block *sim_arena_alloc_run(struct sim_arena *arena, size_t size, CUdeviceptr *ret_ptr)
{
	size_t first = take_run(arena, GRANULES_OF(size));

	if (first == arena->granules)
		return NULL;
	arena->map[first].block.size = size;
	*ret_ptr = (CUdeviceptr)(uintptr_t)arena->base + first * SIM_GRANULE;
	return &arena->map[first].block;
}

struct sim_block *sim_arena_alloc(struct sim_arena *arena, size_t size, CUdeviceptr *ret_ptr)
{
	return size < SIM_SMALL ? alloc_small(arena, size, ret_ptr)
				: sim_arena_alloc_run(arena, size, ret_ptr);
}

static struct sim_block *slab_find(struct sim_slab *slab, size_t offset, size_t *ret_back)
{
	size_t unit = offset / SIM_UNIT;
	size_t first = unit;

	if (!unit_used(slab, unit))
		return NULL;
	while (!slab->blocks[first].size)
		first--;
	*ret_back = offset - first * SIM_UNIT;
	return &slab->blocks[first];
}

/* The block that holds this address, and where it starts. */
struct sim_block *sim_arena_find(struct sim_arena *arena, CUdeviceptr ptr, CUdeviceptr *ret_start)
{
	size_t offset = (size_t)(ptr - (uintptr_t)arena->base);
	struct sim_granule *granule = &arena->map[offset / SIM_GRANULE];
	struct sim_block *block;
	size_t back;

	if (!granule->busy)
		return NULL;
	if (granule->slab) {
		block = slab_find(granule->slab, offset % SIM_GRANULE, &back);
	} else {
		block = &granule[-(ptrdiff_t)granule->back].block;
		back = granule->back * SIM_GRANULE + offset % SIM_GRANULE;
	}
	if (!block || back >= block->size)
		return NULL;
	*ret_start = ptr - back;
	return block;
}

/* Returns with the slab's granule free when this was its last block. */
static void free_small(struct sim_arena *arena, struct sim_slab *slab, size_t first)
{
	size_t units = UNITS_OF(slab->blocks[first].size);

	memset(&slab->blocks[first], 0, sizeof(slab->blocks[first]));
	mark_units(slab, first, units);
	slab->used -= units;
	slab->fails = UNITS + 1;
	if (!slab->link)
		slab_link(arena, slab);
	if (slab->used)
		return;
	slab_unlink(slab);
	give_run(arena, slab->granule);
	free(slab);
}

void sim_arena_free(struct sim_arena *arena, CUdeviceptr start)
{
	size_t offset = (size_t)(start - (uintptr_t)arena->base);
	struct sim_granule *granule = &arena->map[offset / SIM_GRANULE];

	if (granule->slab)
		free_small(arena, granule->slab, offset % SIM_GRANULE / SIM_UNIT);
	else
		give_run(arena, offset / SIM_GRANULE);
}

/* The first block of the slab at or after this unit; UNITS: none. */
static size_t next_unit(const struct sim_slab *slab, size_t unit)
{
	while (unit < UNITS && !slab->blocks[unit].size)
		unit++;
	return unit;
}

/* The first block that starts after this address (0: of all), in order; 0 when there is none. */
CUdeviceptr sim_arena_next(struct sim_arena *arena, CUdeviceptr after, struct sim_block **ret_block)
{
	size_t offset = after ? (size_t)(after - (uintptr_t)arena->base) + 1 : 0;
	size_t unit = (offset % SIM_GRANULE + SIM_UNIT - 1) / SIM_UNIT;

	for (size_t i = offset / SIM_GRANULE; i < arena->granules; i++, unit = 0) {
		struct sim_granule *granule = &arena->map[i];
		CUdeviceptr start = (CUdeviceptr)(uintptr_t)arena->base + i * SIM_GRANULE;

		if (granule->slab)
			unit = next_unit(granule->slab, unit);
		if (granule->slab ? unit == UNITS : unit || !granule->block.size)
			continue;
		*ret_block = granule->slab ? &granule->slab->blocks[unit] : &granule->block;
		return start + unit * SIM_UNIT;
	}
	return 0;
}
