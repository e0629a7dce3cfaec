/* SPDX-License-Identifier: MIT */
/*
 * export.c - cuGetExportTable: what the vendor's runtime finds here until it refuses this driver.
 *
 * The runtime asks for private tables, in one order since 11: its own interface, the tools' hooks, the
 * tools' thread data, context storage, one of 12 and newer, and at last the one by which it makes sure
 * that the driver is the vendor's. Ours has nothing to say through any of them, so their functions do
 * nothing; where the runtime wants room for the tools' subscriptions it gets room that nobody
 * subscribes in. The last table's function leaves the runtime's answer as it is: this is not the
 * vendor's driver and does not pretend to be, and the runtime says so to the program with
 * cudaErrorSoftwareValidityNotEstablished (103). That refusal is what the tests are about.
 */
#include "sim.h"

#include <string.h>

#define SLOTS 16
#define ROOM  4096

typedef int slot_fn(void *, void *);

static char room[2][ROOM];

static int nothing(void *a, void *b)
{
	return CUDA_SUCCESS;
}

static int runtime_hooks(void *ret_room, void *ret_size)
{
	*(void **)ret_room = room[0];
	*(size_t *)ret_size = ROOM;
	return CUDA_SUCCESS;
}

static int more_hooks(void *ret_room, void *ret_size)
{
	*(void **)ret_room = room[1];
	*(size_t *)ret_size = ROOM;
	return CUDA_SUCCESS;
}

/* The first word of a table is its size in bytes. */
struct table {
	size_t size;
	slot_fn *slots[SLOTS];
};

static const struct table inert = {sizeof(struct table), {[0 ... SLOTS - 1] = nothing}};
static const struct table hooks = {sizeof(struct table),
				   {nothing, runtime_hooks, nothing, nothing, nothing, more_hooks,
				    [6 ... SLOTS - 1] = nothing}};

static const struct {
	unsigned char id[4];
	const struct table *table;
} tables[] = {
	{{0x6b, 0xd5, 0xfb, 0x6c}, &inert}, {{0xa0, 0x94, 0x79, 0x8c}, &hooks},
	{{0x42, 0xd8, 0x5a, 0x81}, &inert}, {{0xc6, 0x93, 0x33, 0x6e}, &inert},
	{{0x26, 0x3e, 0x88, 0x60}, &inert}, {{0xd4, 0x08, 0x20, 0x55}, &inert},
};

CUresult CUDAAPI cuGetExportTable(const void **table, const CUuuid *id)
{
	if (!table || !id)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
		if (memcmp(tables[i].id, id->bytes, sizeof(tables[i].id)))
			continue;
		*table = tables[i].table;
		return CUDA_SUCCESS;
	}
	return CUDA_ERROR_NOT_FOUND;
}
