/* SPDX-License-Identifier: MIT */
/*
 * rt.c - work() through the shared runtime. Here 0 bytes are a success that allocates nothing, as
 * the runtime's cudaMalloc never asks the driver for them.
 */
#include "work.h"

#include <cuda_runtime_api.h>
#include <stdint.h>

static int alloc(CUdeviceptr *ptr, size_t size)
{
	return (int)cudaMalloc((void **)ptr, size);
}

static int alloc_pitch(CUdeviceptr *ptr, size_t *pitch, size_t width, size_t height,
		       unsigned int element)
{
	return (int)cudaMallocPitch((void **)ptr, pitch, width, height);
}

static int alloc_managed(CUdeviceptr *ptr, size_t size, unsigned int flags)
{
	return (int)cudaMallocManaged((void **)ptr, size, flags);
}

static int alloc_async(CUdeviceptr *ptr, size_t size, CUstream stream)
{
	return (int)cudaMallocAsync((void **)ptr, size, stream);
}

static int release(CUdeviceptr ptr)
{
	return (int)cudaFree((void *)(uintptr_t)ptr);
}

static int free_async(CUdeviceptr ptr, CUstream stream)
{
	return (int)cudaFreeAsync((void *)(uintptr_t)ptr, stream);
}

static int mem_info(size_t *free_bytes, size_t *total)
{
	return (int)cudaMemGetInfo(free_bytes, total);
}

int main(void)
{
	const struct calls calls = {
		alloc, alloc_pitch, alloc_managed, alloc_async, release, free_async, mem_info,
	};

	return work(&calls);
}
