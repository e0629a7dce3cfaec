/* SPDX-License-Identifier: MIT */
/*
 * mem.c - device memory: plain, pitched and managed allocations, capacity, and the ledger.
 *
 * Capacity is exact: a device's free memory is its capacity less its contexts, the granules its
 * allocations occupy and its physical handles (vmm.c). Managed memory is not charged, as it may
 * live on the host. gtSimLedger() tells tests what is really allocated.
 */
#include "sim.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#define PITCH 512

int gtSimLedger(int ordinal, size_t *bytes, size_t *count);
int gtSimDeviceMemory(int ordinal, size_t *used, size_t *total);

/* GT_SIM_FAIL_NTH=n: the n-th request for device memory, counted over all devices, is refused. */
bool sim_fail_now(void)
{
	static long requests;
	long nth = atol(sim_env("GT_SIM_FAIL_NTH", "0"));

	return nth && __atomic_add_fetch(&requests, 1, __ATOMIC_RELAXED) == nth;
}

/*
 * Every request for device memory ends here. GT_SIM_KILL_REFUSED=n: the process is killed, as by an
 * out-of-memory killer, inside the n-th request that is refused.
 */
CUresult sim_answer(CUresult rc)
{
	static long refused;

	if (rc == CUDA_ERROR_OUT_OF_MEMORY && __atomic_add_fetch(&refused, 1, __ATOMIC_RELAXED) ==
						      atol(sim_env("GT_SIM_KILL_REFUSED", "0")))
		kill(getpid(), SIGKILL);
	return rc;
}

/* Under the device's lock. */
CUresult sim_charge(struct sim_device *device, size_t bytes)
{
	if (bytes > device->capacity - device->charged)
		return CUDA_ERROR_OUT_OF_MEMORY;
	device->charged += bytes;
	return CUDA_SUCCESS;
}

void sim_uncharge(struct sim_device *device, size_t bytes)
{
	device->charged -= bytes;
}

struct sim_device *sim_device_of(CUdeviceptr ptr)
{
	for (int i = 0; i < sim.devices; i++) {
		const struct sim_arena *arena = &sim.device[i].arena;

		if (ptr - (uintptr_t)arena->base < arena->granules * SIM_GRANULE)
			return &sim.device[i];
	}
	return NULL;
}

/* A small managed block shares a slab with plain ones, so it is charged like them. */
static bool is_charged(enum sim_kind kind, size_t size)
{
	return kind != SIM_MANAGED || size < SIM_SMALL;
}

static CUresult alloc_locked(struct sim_device *device, size_t size, enum sim_kind kind,
			     CUmemoryPool pool, CUdeviceptr *ret_ptr)
{
	size_t before = device->arena.taken;
	struct sim_block *block = sim_arena_alloc(&device->arena, size, ret_ptr);
	CUresult rc = CUDA_SUCCESS;

	if (!block)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (is_charged(kind, size))
		rc = sim_charge(device, device->arena.taken - before);
	if (rc) {
		sim_arena_free(&device->arena, *ret_ptr);
		return rc;
	}
	block->kind = kind;
	block->pool = pool;
	device->bytes += size;
	device->count++;
	if (pool)
		sim_pool_account(pool, (ptrdiff_t)size);
	return CUDA_SUCCESS;
}

CUresult sim_mem_alloc(struct sim_device *device, size_t size, enum sim_kind kind,
		       CUmemoryPool pool, CUdeviceptr *ret_ptr)
{
	CUdeviceptr ptr;
	CUresult rc;

	if (!ret_ptr || !size)
		return CUDA_ERROR_INVALID_VALUE;
	if (sim_fail_now() || size > device->capacity * 2)
		return sim_answer(CUDA_ERROR_OUT_OF_MEMORY);
	pthread_mutex_lock(&device->lock);
	rc = alloc_locked(device, size, kind, pool, &ptr);
	pthread_mutex_unlock(&device->lock);
	if (!rc)
		*ret_ptr = ptr;
	return sim_answer(rc);
}

static CUresult free_locked(struct sim_device *device, CUdeviceptr ptr)
{
	size_t before = device->arena.taken;
	CUdeviceptr start;
	struct sim_block *found = sim_arena_find(&device->arena, ptr, &start);
	struct sim_block block;

	if (!found || start != ptr)
		return CUDA_ERROR_INVALID_VALUE;
	block = *found;
	if (block.pool)
		sim_pool_account(block.pool, -(ptrdiff_t)block.size);
	sim_arena_free(&device->arena, ptr);
	if (is_charged(block.kind, block.size))
		sim_uncharge(device, before - device->arena.taken);
	device->bytes -= block.size;
	device->count--;
	return CUDA_SUCCESS;
}

CUresult sim_mem_free(CUdeviceptr ptr)
{
	struct sim_device *device;
	CUresult rc;

	SIM_ENTER();
	device = sim_device_of(ptr);
	if (!device)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&device->lock);
	rc = free_locked(device, ptr);
	pthread_mutex_unlock(&device->lock);
	return rc;
}

static CUresult alloc_here(CUdeviceptr *ptr, size_t size, enum sim_kind kind)
{
	struct sim_device *device;
	CUresult rc = sim_current_device(&device);

	return rc ? rc : sim_mem_alloc(device, size, kind, NULL, ptr);
}

CUresult CUDAAPI cuMemAlloc_v2(CUdeviceptr *ptr, size_t size)
{
	return alloc_here(ptr, size, SIM_DEVICE);
}

/* The ABI of 32-bit device addresses: it can only ever hand out what fits, which is nothing. */
CUresult CUDAAPI cuMemAlloc(CUdeviceptr_v1 *ptr, unsigned int size)
{
	CUdeviceptr whole;
	CUresult rc = alloc_here(&whole, size, SIM_DEVICE);

	if (rc)
		return rc;
	if (whole > UINT32_MAX) {
		sim_mem_free(whole);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*ptr = (CUdeviceptr_v1)whole;
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemAllocPitch_v2(CUdeviceptr *ptr, size_t *pitch, size_t width, size_t height,
				    unsigned int element)
{
	size_t row = (width + PITCH - 1) / PITCH * PITCH;
	size_t size;
	CUresult rc;

	if (!pitch || !width || (element != 4 && element != 8 && element != 16) ||
	    __builtin_mul_overflow(row, height, &size))
		return CUDA_ERROR_INVALID_VALUE;
	rc = alloc_here(ptr, size, SIM_DEVICE);
	if (!rc)
		*pitch = row;
	return rc;
}

CUresult CUDAAPI cuMemAllocManaged(CUdeviceptr *ptr, size_t size, unsigned int flags)
{
	if (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST)
		return CUDA_ERROR_INVALID_VALUE;
	return alloc_here(ptr, size, SIM_MANAGED);
}

/* Also legal on what cuMemAllocManaged and cuMemAllocAsync returned; NULL is refused. */
CUresult CUDAAPI cuMemFree_v2(CUdeviceptr ptr)
{
	return sim_mem_free(ptr);
}

CUresult CUDAAPI cuMemFree(CUdeviceptr_v1 ptr)
{
	return sim_mem_free(ptr);
}

CUresult CUDAAPI cuMemGetInfo_v2(size_t *free_bytes, size_t *total)
{
	struct sim_device *device;
	CUresult rc = sim_current_device(&device);

	if (rc)
		return rc;
	pthread_mutex_lock(&device->lock);
	if (free_bytes)
		*free_bytes = device->capacity - device->charged;
	if (total)
		*total = device->capacity;
	pthread_mutex_unlock(&device->lock);
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemGetInfo(unsigned int *free_bytes, unsigned int *total)
{
	size_t whole_free, whole_total;
	CUresult rc = cuMemGetInfo_v2(&whole_free, &whole_total);

	if (rc)
		return rc;
	*free_bytes = (unsigned int)whole_free;
	*total = (unsigned int)whole_total;
	return CUDA_SUCCESS;
}

/* For tests: the bytes asked for and not freed, and their number; ordinal -1 is pinned memory. */
int gtSimLedger(int ordinal, size_t *bytes, size_t *count)
{
	if (ordinal < -1 || ordinal >= sim.devices)
		return -1;
	if (ordinal == -1) {
		sim_host_ledger(bytes, count);
		return 0;
	}
	pthread_mutex_lock(&sim.device[ordinal].lock);
	*bytes = sim.device[ordinal].bytes;
	*count = sim.device[ordinal].count;
	pthread_mutex_unlock(&sim.device[ordinal].lock);
	return 0;
}

/* For the simulated management library: what the device has given away, to whomever. */
int gtSimDeviceMemory(int ordinal, size_t *used, size_t *total)
{
	if (ordinal < 0 || ordinal >= sim.devices)
		return -1;
	pthread_mutex_lock(&sim.device[ordinal].lock);
	*used = sim.device[ordinal].charged;
	*total = sim.device[ordinal].capacity;
	pthread_mutex_unlock(&sim.device[ordinal].lock);
	return 0;
}
