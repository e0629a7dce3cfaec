/* SPDX-License-Identifier: MIT */
/*
 * memory.c - allocations of every kind: what they cost, what they return, what is refused.
 */
#include "self.h"

#include <pthread.h>
#include <string.h>

static void ledger(size_t bytes, size_t count)
{
	size_t got_bytes, got_count;

	OK(gtSimLedger(0, &got_bytes, &got_count));
	EQUAL(got_bytes, bytes);
	EQUAL(got_count, count);
}

static void order_of_errors(void)
{
	CUdeviceptr ptr = 7;
	size_t free_bytes, total;

	EQUAL(cuMemAlloc_v2(&ptr, 512), CUDA_ERROR_NOT_INITIALIZED);
	OK(cuInit(0));
	EQUAL(cuMemAlloc_v2(&ptr, 512), CUDA_ERROR_INVALID_CONTEXT);
	EQUAL(cuMemGetInfo_v2(&free_bytes, &total), CUDA_ERROR_INVALID_CONTEXT);
	EQUAL(cuMemAllocManaged(&ptr, 512, CU_MEM_ATTACH_GLOBAL), CUDA_ERROR_INVALID_CONTEXT);
	EQUAL(ptr, 7);
}

static void wrong_frees(void)
{
	CUdeviceptr small, large;

	self_start();
	OK(cuMemAlloc_v2(&small, 2000));
	OK(cuMemAlloc_v2(&large, 5 * MIB));
	EQUAL(cuMemFree_v2(small + 512), CUDA_ERROR_INVALID_VALUE);
	EQUAL(cuMemFree_v2(large + 2 * MIB), CUDA_ERROR_INVALID_VALUE);
	EQUAL(cuMemFree_v2(0x1000), CUDA_ERROR_INVALID_VALUE);
	ledger(2000 + 5 * MIB, 2);
	OK(cuMemFree_v2(small));
	OK(cuMemFree_v2(large));
	EQUAL(cuMemFree_v2(small), CUDA_ERROR_INVALID_VALUE);
	EQUAL(cuMemFree_v2(large), CUDA_ERROR_INVALID_VALUE);
	ledger(0, 0);
}

/* Small blocks share a granule; large ones take whole granules; the limit is exact. */
static void capacity(void)
{
	CUdeviceptr ptr[4], none = 7;

	self_start();
	EQUAL(self_free_bytes(), 64 * MIB);
	OK(cuMemAlloc_v2(&ptr[0], 1));
	EQUAL(self_free_bytes(), 62 * MIB);
	OK(cuMemAlloc_v2(&ptr[1], MIB - 1));
	EQUAL(self_free_bytes(), 62 * MIB);
	EQUAL(ptr[1] % 512, 0);
	OK(cuMemAlloc_v2(&ptr[2], 3 * MIB));
	EQUAL(self_free_bytes(), 58 * MIB);
	EQUAL(ptr[2] % (2 * MIB), 0);
	EQUAL(cuMemAlloc_v2(&none, 58 * MIB + 1), CUDA_ERROR_OUT_OF_MEMORY);
	EQUAL(none, 7);
	OK(cuMemAlloc_v2(&ptr[3], 58 * MIB));
	EQUAL(self_free_bytes(), 0);
	OK(cuMemFree_v2(ptr[0]));
	EQUAL(self_free_bytes(), 0);
	OK(cuMemFree_v2(ptr[1]));
	EQUAL(self_free_bytes(), 2 * MIB);
	OK(cuMemFree_v2(ptr[2]));
	OK(cuMemFree_v2(ptr[3]));
	EQUAL(self_free_bytes(), 64 * MIB);
	ledger(0, 0);
}

static uint64_t next_random(uint64_t *state)
{
	*state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
	return *state >> 33;
}

/* Random traffic: no two live blocks may share a byte, and nothing may be left over. */
#define SLOTS 300

static void no_overlap(void)
{
	static struct {
		CUdeviceptr ptr;
		size_t size;
	} slot[SLOTS];
	uint64_t random = 1;

	self_start();
	for (int i = 0; i < 20000; i++) {
		size_t at = next_random(&random) % SLOTS;

		if (slot[at].ptr) {
			OK(cuMemFree_v2(slot[at].ptr));
			slot[at].ptr = 0;
			continue;
		}
		slot[at].size = 1 + next_random(&random) % ((size_t)1 << next_random(&random) % 23);
		OK(cuMemAlloc_v2(&slot[at].ptr, slot[at].size));
		for (size_t j = 0; j < SLOTS; j++)
			TRUE(j == at || !slot[j].ptr ||
			     slot[j].ptr + slot[j].size <= slot[at].ptr ||
			     slot[at].ptr + slot[at].size <= slot[j].ptr);
	}
	for (size_t j = 0; j < SLOTS; j++) {
		if (slot[j].ptr)
			OK(cuMemFree_v2(slot[j].ptr));
	}
	ledger(0, 0);
	EQUAL(self_free_bytes(), (size_t)8 << 30);
}

static void *hammer(void *arg)
{
	CUdeviceptr ptr[16] = {0};
	uint64_t random = (uintptr_t)arg;

	OK(cuCtxSetCurrent(arg));
	for (int i = 0; i < 20000; i++) {
		CUdeviceptr *p = &ptr[next_random(&random) % 16];

		if (*p)
			OK(cuMemFree_v2(*p));
		if (*p)
			*p = 0;
		else
			OK(cuMemAlloc_v2(p, 1 + next_random(&random) % (3 * MIB)));
	}
	for (int i = 0; i < 16; i++) {
		if (ptr[i])
			OK(cuMemFree_v2(ptr[i]));
	}
	return NULL;
}

static void threads(void)
{
	CUcontext ctx = self_start();
	pthread_t thread[4];

	for (int i = 0; i < 4; i++)
		OK(pthread_create(&thread[i], NULL, hammer, ctx));
	for (int i = 0; i < 4; i++)
		OK(pthread_join(thread[i], NULL));
	ledger(0, 0);
	EQUAL(self_free_bytes(), (size_t)8 << 30);
}

static const CUmemAllocationProp on_device = {
	.type = CU_MEM_ALLOCATION_TYPE_PINNED,
	.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0},
};

static void fail_nth(void)
{
	CUdeviceptr ptr = 7;
	CUmemGenericAllocationHandle handle;

	self_start();
	OK(cuMemAlloc_v2(&ptr, 512));
	OK(cuMemCreate(&handle, 2 * MIB, &on_device, 0));
	EQUAL(cuMemAlloc_v2(&ptr, 512), CUDA_ERROR_OUT_OF_MEMORY);
	OK(cuMemAlloc_v2(&ptr, 512));
	ledger(1024 + 2 * MIB, 3);
}

static void kinds(void)
{
	CUdeviceptr managed, async[2], pitched;
	size_t pitch;

	self_start();
	OK(cuMemAllocManaged(&managed, 100 * MIB, CU_MEM_ATTACH_GLOBAL));
	EQUAL(self_free_bytes(), (size_t)8 << 30);
	EQUAL(cuMemAllocManaged(&managed, MIB, 0), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemAllocAsync(&async[0], 3000, NULL));
	OK(cuMemAllocAsync(&async[1], 5000, NULL));
	OK(cuMemAllocPitch_v2(&pitched, &pitch, 1000, 10, 4));
	EQUAL(pitch, 1024);
	EQUAL(cuMemAllocPitch_v2(&pitched, &pitch, 1000, 10, 5), CUDA_ERROR_INVALID_VALUE);
	ledger(100 * MIB + 3000 + 5000 + 10240, 4);
	/* The plain free takes all of them, the stream-ordered one its own. */
	OK(cuMemFree_v2(managed));
	OK(cuMemFree_v2(async[0]));
	OK(cuMemFreeAsync(async[1], NULL));
	OK(cuMemFree_v2(pitched));
	ledger(0, 0);
}

/* A handle released while mapped lives until it is unmapped. */
static void virtual_memory(void)
{
	CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, 0},
				  CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	CUmemGenericAllocationHandle handle;
	CUdeviceptr ptr;

	self_start();
	OK(cuMemAddressReserve(&ptr, 20 * MIB, 0, 0, 0));
	EQUAL(self_free_bytes(), 64 * MIB);
	EQUAL(cuMemCreate(&handle, 65 * MIB, &on_device, 0), CUDA_ERROR_INVALID_VALUE);
	EQUAL(cuMemCreate(&handle, 66 * MIB, &on_device, 0), CUDA_ERROR_OUT_OF_MEMORY);
	OK(cuMemCreate(&handle, 4 * MIB, &on_device, 0));
	EQUAL(self_free_bytes(), 60 * MIB);
	EQUAL(cuMemSetAccess(ptr, 4 * MIB, &access, 1), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemMap(ptr + 2 * MIB, 4 * MIB, 0, handle, 0));
	EQUAL(cuMemMap(ptr + 4 * MIB, 4 * MIB, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemSetAccess(ptr + 2 * MIB, 4 * MIB, &access, 1));
	memset((void *)(uintptr_t)(ptr + 2 * MIB), 1, 4 * MIB);
	OK(cuMemRelease(handle));
	EQUAL(self_free_bytes(), 60 * MIB);
	EQUAL(cuMemAddressFree(ptr, 20 * MIB), CUDA_ERROR_INVALID_VALUE);
	EQUAL(cuMemUnmap(ptr + 2 * MIB, 2 * MIB), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemUnmap(ptr + 2 * MIB, 4 * MIB));
	EQUAL(self_free_bytes(), 64 * MIB);
	EQUAL(cuMemRelease(handle), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemAddressFree(ptr, 20 * MIB));
	ledger(0, 0);
}

static void fabric_handles(void)
{
	CUmemAllocationProp prop = on_device;
	CUmemGenericAllocationHandle handle;

	self_start();
	prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_FABRIC;
	EQUAL(cuMemCreate(&handle, 2 * MIB, &prop, 0), CUDA_ERROR_NOT_SUPPORTED);
	prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
	OK(cuMemCreate(&handle, 2 * MIB, &prop, 0));
}

static void pinned(void)
{
	static char own[4096];
	void *ptr;
	size_t bytes, count;

	self_start();
	OK(cuMemHostAlloc(&ptr, 12345, 0));
	OK(cuMemHostRegister_v2(own, sizeof(own), 0));
	EQUAL(cuMemHostRegister_v2(own, sizeof(own), 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
	OK(gtSimLedger(-1, &bytes, &count));
	EQUAL(bytes, 12345 + sizeof(own));
	EQUAL(count, 2);
	EQUAL(cuMemFreeHost(own), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemFreeHost(ptr));
	OK(cuMemHostUnregister(own));
	EQUAL(cuMemHostUnregister(own), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
}

static void copies(void)
{
	char in[5000], out[5000];
	CUdeviceptr ptr;

	self_start();
	OK(cuMemAlloc_v2(&ptr, 3 * MIB));
	memset(in, 0x5A, sizeof(in));
	OK(cuMemcpyHtoD_v2(ptr + 100, in, sizeof(in)));
	OK(cuMemcpyDtoD_v2(ptr + MIB, ptr + 100, sizeof(in)));
	OK(cuMemcpyDtoH_v2(out, ptr + MIB, sizeof(out)));
	EQUAL(memcmp(in, out, sizeof(in)), 0);
	OK(cuMemsetD8_v2(ptr + MIB + 1, 0, 4998));
	OK(cuMemcpyDtoH_v2(out, ptr + MIB, sizeof(out)));
	EQUAL(out[0], 0x5A);
	EQUAL(out[1] | out[2500] | out[4998], 0);
	EQUAL(out[4999], 0x5A);
	OK(cuMemsetD32_v2(ptr, 0x01020304, 2));
	OK(cuMemcpyDtoH_v2(out, ptr, 8));
	EQUAL(out[4], 4);
}

const struct self_case self_memory_cases[] = {
	{"errors-before-start", order_of_errors, NULL},
	{"wrong-frees", wrong_frees, NULL},
	{"capacity", capacity, "GT_SIM_CAPACITY=64M"},
	{"no-overlap", no_overlap, NULL},
	{"threads", threads, NULL},
	{"fail-nth", fail_nth, "GT_SIM_FAIL_NTH=3"},
	{"kinds", kinds, NULL},
	{"virtual-memory", virtual_memory, "GT_SIM_CAPACITY=64M"},
	{"fabric-handles", fabric_handles, NULL},
	{"pinned", pinned, NULL},
	{"copies", copies, NULL},
	{NULL, NULL, NULL},
};
