/* SPDX-License-Identifier: MIT */
/*
 * A stream-ordered pool that never gives anything back, with a small block kept in each of its
 * chunks: what it holds is of no use to a plain allocation. Exit status 1 when that is refused.
 */
#include <cuda.h>
#include <stdint.h>

#define CHUNKS 200

__attribute__((noinline)) static int fill_pool(CUdeviceptr kept[CHUNKS])
{
	CUdeviceptr scratch[CHUNKS];

	for (int i = 0; i < CHUNKS; i++)
		if (cuMemAllocAsync(&kept[i], 1 << 20, 0) || /* the fault: async_pool */
		    cuMemAllocAsync(&scratch[i], 31 << 20, 0))
			return -1;
	for (int i = 0; i < CHUNKS; i++)
		cuMemFreeAsync(scratch[i], 0);
	return 0;
}

int main(void)
{
	CUdeviceptr kept[CHUNKS], weights;
	uint64_t never = UINT64_MAX;
	CUmemoryPool pool;
	CUcontext ctx;

	if (cuInit(0) || cuDevicePrimaryCtxRetain(&ctx, 0) || cuCtxSetCurrent(ctx) ||
	    cuDeviceGetDefaultMemPool(&pool, 0) ||
	    cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &never) ||
	    fill_pool(kept))
		return 2;
	return cuMemAlloc(&weights, (size_t)4 << 30) ? 1 : 2;
}
