/* SPDX-License-Identifier: MIT */
/*
 * pools.c - memory pools: reserved and used, what is kept and when it is given back.
 */
#include "self.h"

static uint64_t figure(CUmemoryPool pool, CUmemPool_attribute attribute)
{
	uint64_t value = 7;

	OK(cuMemPoolGetAttribute(pool, attribute, &value));
	return value;
}

#define USED(pool)     figure(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT)
#define RESERVED(pool) figure(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT)

static CUmemoryPool make_pool(int device, size_t max)
{
	const CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
				      .location = {CU_MEM_LOCATION_TYPE_DEVICE, device},
				      .maxSize = max};
	CUmemoryPool pool;

	OK(cuMemPoolCreate(&pool, &props));
	return pool;
}

static void figures(void)
{
	CUmemoryPool pool;
	CUdeviceptr ptr[2];
	uint64_t zero = 0, one = 1;

	self_start();
	OK(cuDeviceGetDefaultMemPool(&pool, 0));
	OK(cuMemAllocFromPoolAsync(&ptr[0], 5000, pool, NULL));
	OK(cuMemAllocAsync(&ptr[1], 40 * MIB, NULL));
	EQUAL(USED(pool), 5000 + 40 * MIB);
	EQUAL(RESERVED(pool), 72 * MIB);
	EQUAL(self_free_bytes(), (8192 - 72) * MIB);
	EQUAL(self_bytes(0, GT_SIM_POOL_USED), 5000 + 40 * MIB);
	EQUAL(self_bytes(0, GT_SIM_POOL_RESERVED), 72 * MIB);
	OK(cuMemFreeAsync(ptr[0], NULL));
	EQUAL(cuMemFreeAsync(ptr[0], NULL), CUDA_ERROR_INVALID_VALUE);
	EQUAL(cuMemFree_v2(ptr[1] + 512), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemFreeAsync(ptr[1], NULL));
	EQUAL(USED(pool), 0);
	EQUAL(RESERVED(pool), 72 * MIB);
	EQUAL(figure(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH), 5000 + 40 * MIB);
	OK(cuStreamSynchronize(NULL));
	EQUAL(RESERVED(pool), 0);
	EQUAL(figure(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH), 72 * MIB);
	EQUAL(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &one),
	      CUDA_ERROR_INVALID_VALUE);
	OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &zero));
	EQUAL(figure(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH), 0);
	EQUAL(figure(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH), 72 * MIB);
	EQUAL(self_free_bytes(), 8192 * MIB);
}

/* What is below the threshold stays through every wait, and is used again. */
static void threshold(void)
{
	uint64_t keep = 40 * MIB;
	CUdeviceptr ptr[3], again;
	CUmemoryPool pool;

	self_start();
	pool = make_pool(0, 0);
	OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep));
	for (int i = 0; i < 3; i++)
		OK(cuMemAllocFromPoolAsync(&ptr[i], 32 * MIB, pool, NULL));
	for (int i = 0; i < 3; i++)
		OK(cuMemFreeAsync(ptr[i], NULL));
	EQUAL(RESERVED(pool), 96 * MIB);
	OK(cuCtxSynchronize());
	EQUAL(RESERVED(pool), 64 * MIB); /* without one chunk more it would be below */
	OK(cuMemAllocFromPoolAsync(&again, 32 * MIB, pool, NULL));
	EQUAL(RESERVED(pool), 64 * MIB);
	TRUE(again == ptr[0] || again == ptr[1] || again == ptr[2]);
	OK(cuMemPoolTrimTo(pool, 0));
	EQUAL(RESERVED(pool), 32 * MIB);
	OK(cuMemFreeAsync(again, NULL));
	OK(cuMemPoolTrimTo(pool, 32 * MIB));
	EQUAL(RESERVED(pool), 32 * MIB);
	OK(cuMemPoolTrimTo(pool, 1));
	EQUAL(RESERVED(pool), 32 * MIB);
	OK(cuMemPoolTrimTo(pool, 0));
	EQUAL(RESERVED(pool), 0);
}

/* What pools hold for nothing never makes another request fail. */
static void reclaimed(void)
{
	uint64_t all = UINT64_MAX;
	CUmemoryPool pool;
	CUdeviceptr ptr, plain;

	self_start();
	OK(cuDeviceGetDefaultMemPool(&pool, 0));
	OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &all));
	OK(cuMemAllocAsync(&ptr, 40 * MIB, NULL));
	OK(cuMemFreeAsync(ptr, NULL));
	OK(cuCtxSynchronize());
	EQUAL(self_free_bytes(), 24 * MIB);
	OK(cuMemAlloc_v2(&plain, 30 * MIB));
	EQUAL(RESERVED(pool), 0);
	EQUAL(self_free_bytes(), 34 * MIB);
	OK(cuMemAllocAsync(&ptr, MIB, NULL));
	EQUAL(RESERVED(pool), 32 * MIB);
	/* No room for a whole chunk: just enough. */
	OK(cuMemAlloc_v2(&plain, 2 * MIB));
	EQUAL(cuMemAllocAsync(&plain, 40 * MIB, NULL), CUDA_ERROR_OUT_OF_MEMORY);
	EQUAL(USED(pool), MIB);
}

static void limit(void)
{
	CUmemoryPool pool;
	CUdeviceptr ptr;

	self_start();
	pool = make_pool(0, 10 * MIB);
	OK(cuMemAllocFromPoolAsync(&ptr, 6 * MIB, pool, NULL));
	EQUAL(RESERVED(pool), 6 * MIB);
	EQUAL(cuMemAllocFromPoolAsync(&ptr, 6 * MIB, pool, NULL), CUDA_ERROR_OUT_OF_MEMORY);
	OK(cuMemAllocFromPoolAsync(&ptr, 4 * MIB, pool, NULL));
}

/* Blocks of a destroyed pool can be used and freed; its handle cannot. */
static void destroyed(void)
{
	CUmemoryPool pool, current;
	CUdeviceptr ptr, other;
	uint64_t value;

	self_start();
	pool = make_pool(0, 0);
	OK(cuDeviceSetMemPool(0, pool));
	EQUAL(cuDeviceSetMemPool(1, pool), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemAllocAsync(&ptr, MIB, NULL));
	EQUAL(USED(pool), MIB);
	OK(cuMemPoolDestroy(pool));
	OK(cuDeviceGetMemPool(&current, 0));
	TRUE(current != pool);
	EQUAL(cuMemPoolDestroy(current), CUDA_ERROR_INVALID_VALUE); /* the default one */
	EQUAL(cuMemPoolDestroy(pool), CUDA_ERROR_INVALID_VALUE);
	EQUAL(cuMemPoolTrimTo(pool, 0), CUDA_ERROR_INVALID_VALUE);
	EQUAL(cuMemAllocFromPoolAsync(&other, MIB, pool, NULL), CUDA_ERROR_INVALID_VALUE);
	EQUAL(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &value),
	      CUDA_ERROR_INVALID_VALUE);
	EQUAL(self_bytes(0, GT_SIM_POOL_RESERVED), 32 * MIB);
	OK(cuMemFreeAsync(ptr, NULL));
	EQUAL(self_bytes(0, GT_SIM_POOL_RESERVED), 0);
	EQUAL(self_free_bytes(), 8192 * MIB);
	EQUAL(cuMemFreeAsync(ptr, NULL), CUDA_ERROR_INVALID_VALUE);
}

static void access_rights(void)
{
	CUmemAccessDesc desc = {{CU_MEM_LOCATION_TYPE_DEVICE, 1}, CU_MEM_ACCESS_FLAGS_PROT_READ};
	CUmemAccess_flags flags;
	CUmemoryPool pool;

	self_start();
	pool = make_pool(0, 0);
	OK(cuMemPoolGetAccess(&flags, pool, &desc.location));
	EQUAL(flags, CU_MEM_ACCESS_FLAGS_PROT_NONE);
	OK(cuMemPoolSetAccess(pool, &desc, 1));
	OK(cuMemPoolGetAccess(&flags, pool, &desc.location));
	EQUAL(flags, CU_MEM_ACCESS_FLAGS_PROT_READ);
	desc.location.id = 0;
	EQUAL(cuMemPoolSetAccess(pool, &desc, 1), CUDA_ERROR_INVALID_DEVICE);
	desc.location.id = 2;
	EQUAL(cuMemPoolSetAccess(pool, &desc, 1), CUDA_ERROR_INVALID_DEVICE);
}

static void addresses(void)
{
	CUmemoryPool pool = NULL;
	CUdeviceptr ptr[2], base;
	size_t size;

	self_start();
	OK(cuMemAllocAsync(&ptr[0], 1000, NULL));
	OK(cuMemAllocAsync(&ptr[1], 1000, NULL));
	EQUAL(ptr[1] - ptr[0], 1024);
	OK(cuMemGetAddressRange_v2(&base, &size, ptr[1] + 999));
	EQUAL(base, ptr[1]);
	EQUAL(size, 1000);
	OK(cuPointerGetAttribute(&pool, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, ptr[0]));
	EQUAL(USED(pool), 2000);
}

const struct self_case self_pool_cases[] = {
	{"pool-figures", figures, NULL},
	{"pool-threshold", threshold, NULL},
	{"pool-reclaimed", reclaimed, "GT_SIM_CAPACITY=64M"},
	{"pool-limit", limit, NULL},
	{"pool-destroyed", destroyed, NULL},
	{"pool-access", access_rights, NULL},
	{"pool-addresses", addresses, NULL},
	{NULL, NULL, NULL},
};
