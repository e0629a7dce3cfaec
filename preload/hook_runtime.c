/* SPDX-License-Identifier: MIT */
/*
 * Functions of a shared libcudart that are observed and never counted: the driver call that follows
 * inside libcudart is the one that counts, but there the caller is always libcudart. So the caller
 * of the runtime function is left in thread-local memory for the time of the call. Events tell when
 * torch's blocks are free (hook_pending.c). A library that has the runtime inside (static) does not
 * come by here, which is right: it is not torch's allocator.
 */
#include "hook.h"

int cudaMalloc(void **out, size_t size)
{
	uint64_t pc = (uint64_t)__builtin_return_address(0), outer = gt_thread.runtime_pc;
	int (*real)(void **, size_t) = gt_runtime_find(pc, "cudaMalloc");
	int rc;

	if (!real)
		return GT_CUDA_NOT_INITIALIZED;
	gt_thread.runtime_pc = pc;
	rc = real(out, size);
	gt_thread.runtime_pc = outer;
	return rc;
}

int cudaEventRecord(void *event, gt_stream stream)
{
	uint64_t pc = (uint64_t)__builtin_return_address(0);
	int (*real)(void *, gt_stream) = gt_runtime_find(pc, "cudaEventRecord");
	int rc;

	if (!real)
		return GT_CUDA_NOT_INITIALIZED;
	rc = real(event, stream);
	if (!rc)
		gt_event_recorded(pc, event);
	return rc;
}

/* Both say, with success, that the event is over. */
#define OVER(name)                                                   \
	int name(void *event)                                        \
	{                                                            \
		uint64_t pc = (uint64_t)__builtin_return_address(0); \
		int (*real)(void *) = gt_runtime_find(pc, #name);    \
		int rc;                                              \
                                                                     \
		if (!real)                                           \
			return GT_CUDA_NOT_INITIALIZED;              \
		rc = real(event);                                    \
		if (!rc)                                             \
			gt_event_over(pc, event);                    \
		return rc;                                           \
	}

OVER(cudaEventQuery)
OVER(cudaEventSynchronize)
