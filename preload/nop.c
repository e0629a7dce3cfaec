/* SPDX-License-Identifier: MIT */
/*
 * libgputrace-nop.so: the same exported names through the same resolution (resolve.c,
 * hook_runtime.c), recording nothing. What it costs is the price of standing in the way: the
 * baseline that the recording library is compared with.
 */
#include "elf.h"
#include "hook.h"

#define NOP_DRIVER(kind, name, result, parameters, arguments, rule)                        \
	result name parameters                                                             \
	{                                                                                  \
		return GT_HAVE(name) ? gt_driver.name arguments : GT_CUDA_NOT_INITIALIZED; \
	}

#define NOP_TORCH(kind, name, result, parameters, arguments, rule)                            \
	result name parameters                                                                \
	{                                                                                     \
		static result(*real) parameters;                                              \
                                                                                              \
		if (!gt_load(&real))                                                          \
			gt_store(&real, (result(*) parameters)gt_elf_in("libc10.so", #name)); \
		if (gt_load(&real))                                                           \
			real arguments;                                                       \
	}

/* Zero of whatever type: nothing for void, failure for InitializeInjectionNvtx2. */
#define NOP_MARKS(kind, name, result, parameters, arguments, rule) \
	result name parameters                                     \
	{                                                          \
		return (result)0;                                  \
	}

#define GT_DRIVER    NOP_DRIVER
#define GT_TORCH     NOP_TORCH
#define GT_MARKS     NOP_MARKS
#define GT_PROC(...) /* resolve.c has these */
#include "hooks.def"

void gt_modules_closing(void)
{
}

void gt_modules_closed(void)
{
}

void gt_event_recorded(uint64_t pc, void *event)
{
}

void gt_event_over(uint64_t pc, void *event)
{
}
