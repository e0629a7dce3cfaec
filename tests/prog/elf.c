/* SPDX-License-Identifier: MIT */
/* elf.c - work() through calls that the dynamic linker binds to libcuda.so.1. */
#include "work.h"

#define CALL(type, function) ((__typeof__(((struct calls *)0)->type))(void *)(function))

int main(void)
{
	const struct calls calls = {
		.alloc = CALL(alloc, cuMemAlloc),
		.alloc_pitch = CALL(alloc_pitch, cuMemAllocPitch),
		.alloc_managed = CALL(alloc_managed, cuMemAllocManaged),
		.alloc_async = CALL(alloc_async, cuMemAllocAsync),
		.free = CALL(free, cuMemFree),
		.free_async = CALL(free_async, cuMemFreeAsync),
		.mem_info = CALL(mem_info, cuMemGetInfo),
	};

	if (start((int (*)(unsigned int))(void *)cuInit,
		  (int (*)(CUcontext *, CUdevice))(void *)cuDevicePrimaryCtxRetain,
		  (int (*)(CUcontext))(void *)cuCtxSetCurrent))
		return 2;
	return work(&calls);
}
