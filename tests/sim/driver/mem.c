/* SPDX-License-Identifier: MIT */
/*
 * mem.c - device memory: plain, pitched and managed allocations.
 *
 * A block belongs to the context that was current, and goes when the context goes. Managed memory
 * is not charged, as it may live on the host. Pool, graph and foreign memory can be freed here as
 * well, but their files know what that means.
 */
#include "sim.h"

#include <stdlib.h>

#define PITCH 512

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

static enum gt_sim_family family_of(enum sim_kind kind)
{
	return kind == SIM_ARRAY     ? GT_SIM_ARRAY
	       : kind == SIM_MANAGED ? GT_SIM_MANAGED
				     : GT_SIM_PLAIN;
}

static CUresult alloc_locked(struct CUctx_st *ctx, size_t size, enum sim_kind kind,
			     CUdeviceptr *ret_ptr)
{
	struct sim_device *device = &sim.device[ctx->device];
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
	block->ctx = sim_owner(ctx);
	sim_book(&device->books, family_of(kind), size);
	return CUDA_SUCCESS;
}

CUresult sim_mem_alloc(struct CUctx_st *ctx, size_t size, enum sim_kind kind, CUdeviceptr *ret_ptr)
{
	struct sim_device *device = &sim.device[ctx->device];
	CUdeviceptr ptr;
	CUresult rc;

	if (!ret_ptr || !size)
		return CUDA_ERROR_INVALID_VALUE;
	if (sim_fail_now() || size > device->capacity * 2)
		return sim_answer(CUDA_ERROR_OUT_OF_MEMORY);
	pthread_mutex_lock(&device->lock);
	rc = alloc_locked(ctx, size, kind, &ptr);
	pthread_mutex_unlock(&device->lock);
	if (!rc)
		*ret_ptr = ptr;
	return sim_answer(rc);
}

static void give_back(struct sim_device *device, CUdeviceptr ptr, struct sim_block block)
{
	size_t before = device->arena.taken;

	if (block.kind == SIM_DEVICE)
		sim_ipc_forget(ptr);
	sim_arena_free(&device->arena, ptr);
	if (is_charged(block.kind, block.size))
		sim_uncharge(device, before - device->arena.taken);
	sim_unbook(&device->books, family_of(block.kind), block.size);
}

static CUresult free_locked(struct sim_device *device, CUdeviceptr ptr)
{
	CUdeviceptr start;
	struct sim_block *block = sim_arena_find(&device->arena, ptr, &start);

	if (block && block->kind == SIM_POOL)
		return sim_pool_free(block->chunk, ptr);
	if (block && block->kind == SIM_GRAPH && start == ptr)
		return sim_graph_free(block->graph);
	if (!block || start != ptr || block->kind > SIM_MANAGED)
		return CUDA_ERROR_INVALID_VALUE;
	give_back(device, ptr, *block);
	return CUDA_SUCCESS;
}

CUresult sim_mem_free(CUdeviceptr ptr)
{
	struct sim_device *device = sim_device_of(ptr);
	CUresult rc;

	if (!device)
		return sim_foreign_free(ptr);
	pthread_mutex_lock(&device->lock);
	rc = free_locked(device, ptr);
	pthread_mutex_unlock(&device->lock);
	return rc;
}

void sim_mem_free_array(CUdeviceptr ptr)
{
	struct sim_device *device = sim_device_of(ptr);
	CUdeviceptr start;

	pthread_mutex_lock(&device->lock);
	give_back(device, ptr, *sim_arena_find(&device->arena, ptr, &start));
	pthread_mutex_unlock(&device->lock);
}

/* Under the device's lock: the context is about to end. */
void sim_mem_free_all(struct CUctx_st *ctx)
{
	struct sim_device *device = &sim.device[ctx->device];
	struct sim_block *block = NULL;
	CUdeviceptr ptr = 0;

	while ((ptr = sim_arena_next(&device->arena, ptr, &block))) {
		if (block->kind <= SIM_MANAGED && block->ctx == ctx)
			give_back(device, ptr, *block);
	}
}

static CUresult alloc_here(CUdeviceptr *ptr, size_t size, enum sim_kind kind)
{
	struct CUctx_st *ctx;
	CUresult rc = sim_current(&ctx);

	rc = rc ? rc : sim_capture_unsafe();
	return rc ? rc : sim_mem_alloc(ctx, size, kind, ptr);
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

/* As with cuMemAlloc: no address fits. */
CUresult CUDAAPI cuMemAllocPitch(CUdeviceptr_v1 *ptr, unsigned int *pitch, unsigned int width,
				 unsigned int height, unsigned int element)
{
	CUdeviceptr whole;
	size_t row;
	CUresult rc = cuMemAllocPitch_v2(&whole, &row, width, height, element);

	if (rc)
		return rc;
	sim_mem_free(whole);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult CUDAAPI cuMemAllocManaged(CUdeviceptr *ptr, size_t size, unsigned int flags)
{
	if (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST)
		return CUDA_ERROR_INVALID_VALUE;
	return alloc_here(ptr, size, SIM_MANAGED);
}

/* Takes memory of every kind and device; it waits for the device, so pools are tidied up too. */
CUresult CUDAAPI cuMemFree_v2(CUdeviceptr ptr)
{
	struct sim_device *device;
	CUresult rc = sim_current_device(&device);

	rc = rc ? rc : sim_capture_unsafe();
	rc = rc ? rc : sim_mem_free(ptr);
	if (!rc && __atomic_load_n(&device->books.count[GT_SIM_POOL_RESERVED], __ATOMIC_RELAXED))
		sim_pool_sync(device);
	return rc;
}

CUresult CUDAAPI cuMemFree(CUdeviceptr_v1 ptr)
{
	return cuMemFree_v2(ptr);
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
