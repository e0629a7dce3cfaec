/* SPDX-License-Identifier: MIT */
/*
 * gtsim.h - the simulator's own books: what is really allocated, by device and by family. Tests
 * compare what a tracer says with them. libcuda.so.1 of the simulator exports the functions; they
 * need no context and are not part of the CUDA API.
 *
 * Bytes are those the program asked for, except: pool_reserved and graph_reserved are what the
 * driver took from the device for its pools (used is part of it), context and module are what
 * GT_SIM_CONTEXT_COST and GT_SIM_MODULE_COST say, foreign is memory that belongs to another process
 * and takes nothing from our device, others is GT_SIM_OTHERS.
 */
#ifndef GT_SIM_BOOKS_H
#define GT_SIM_BOOKS_H

#include <stddef.h>

/* The last two, and vmm of host-located handles, are in the books of device -1, the host. */
#define GT_SIM_FAMILIES(X)                \
	X(PLAIN, plain)                   \
	X(MANAGED, managed)               \
	X(POOL_USED, pool_used)           \
	X(POOL_RESERVED, pool_reserved)   \
	X(VMM, vmm)                       \
	X(ARRAY, array)                   \
	X(GRAPH_USED, graph_used)         \
	X(GRAPH_RESERVED, graph_reserved) \
	X(CONTEXT, context)               \
	X(MODULE, module)                 \
	X(FOREIGN, foreign)               \
	X(OTHERS, others)                 \
	X(PINNED, pinned)                 \
	X(REGISTERED, registered)

enum gt_sim_family {
#define GT_SIM_FAMILY(upper, lower) GT_SIM_##upper,
	GT_SIM_FAMILIES(GT_SIM_FAMILY)
#undef GT_SIM_FAMILY
		GT_SIM_FAMILY_COUNT
};

struct gt_sim_books {
	size_t bytes[GT_SIM_FAMILY_COUNT], count[GT_SIM_FAMILY_COUNT];
};

/* 0, or -1 for a device that does not exist. */
int gtSimBooks(int device, struct gt_sim_books *ret_books);

/* All that the program asked for and has not freed: plain, managed, pool_used, vmm, array and
 * graph_used of a device; pinned, registered and vmm of the host. */
int gtSimLedger(int device, size_t *ret_bytes, size_t *ret_count);

/* What the device has given away, to whomever, and how much it has. */
int gtSimDeviceMemory(int device, size_t *ret_used, size_t *ret_total);

/* In how many other processes this block of ours is open. */
int gtSimIpcOpens(unsigned long long ptr);

#endif
