/* SPDX-License-Identifier: MIT */
/*
 * self.h - the frame of the simulator's self test: cases, each in a process of its own because the
 * simulator reads its environment once.
 */
#ifndef GT_SIM_SELF_H
#define GT_SIM_SELF_H

#define __CUDA_API_VERSION_INTERNAL /* every ABI version under its own name */
#include <cuda.h>

#include "../gtsim.h"

#include <stddef.h>
#include <stdint.h>

#define MIB ((size_t)1 << 20)

struct self_case {
	const char *name;
	void (*run)(void);
	const char *env; /* "NAME=value NAME=value" for this case */
};

/* End with an entry without a name. */
extern const struct self_case self_resolver_cases[], self_memory_cases[], self_object_cases[],
	self_pool_cases[], self_graph_cases[], self_share_cases[], self_context_cases[];

/* Ends the case with a message unless both are equal. */
void self_equal(const char *file, int line, const char *what, long long got, long long wanted);

#define EQUAL(got, wanted)                                                \
	self_equal(__FILE__, __LINE__, #got, (long long)(uintptr_t)(got), \
		   (long long)(uintptr_t)(wanted))
#define OK(call)   self_equal(__FILE__, __LINE__, #call, (long long)(call), 0)
#define TRUE(cond) self_equal(__FILE__, __LINE__, #cond, !(cond), 0)

/* cuInit and the first device's primary context, current. */
CUcontext self_start(void);
size_t self_free_bytes(void);

/* One line of the simulator's books. */
size_t self_bytes(int device, enum gt_sim_family family);

#endif
