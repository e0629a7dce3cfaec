/* SPDX-License-Identifier: MIT */
/*
 * pool.c - stream-ordered allocation: the pools and their attributes.
 *
 * A pool keeps nothing back yet: a freed block goes to the device at once, so the reserved figure
 * equals the used one, and the release threshold is kept but has no effect.
 */
#include "sim.h"

#include <stdlib.h>

void sim_pool_init(struct CUmemPoolHandle_st *pool, int device)
{
	*pool = (struct CUmemPoolHandle_st){.device = device, .reuse = {1, 1, 1}};
}

void sim_pool_account(CUmemoryPool pool, ptrdiff_t bytes)
{
	pool->used += (uint64_t)bytes;
	if (pool->used > pool->used_high)
		pool->used_high = pool->used;
}

CUresult CUDAAPI cuMemAllocFromPoolAsync(CUdeviceptr *ptr, size_t size, CUmemoryPool pool,
					 CUstream stream)
{
	SIM_ENTER();
	if (!pool)
		return CUDA_ERROR_INVALID_VALUE;
	return sim_mem_alloc(&sim.device[pool->device], size, SIM_ASYNC, pool, ptr);
}

/* The pool is that of the stream's device, whatever is current. */
static CUresult stream_device(CUstream stream, struct sim_device **device)
{
	CUdevice dev;
	CUresult rc = cuStreamGetDevice(stream, &dev);

	if (!rc)
		*device = &sim.device[dev];
	return rc;
}

CUresult CUDAAPI cuMemAllocAsync(CUdeviceptr *ptr, size_t size, CUstream stream)
{
	struct sim_device *device;
	CUresult rc = stream_device(stream, &device);

	return rc ? rc : sim_mem_alloc(device, size, SIM_ASYNC, device->pool, ptr);
}

CUresult CUDAAPI cuMemFreeAsync(CUdeviceptr ptr, CUstream stream)
{
	struct sim_device *device;
	CUresult rc = sim_current_device(&device);

	return rc ? rc : sim_mem_free(ptr);
}

CUresult CUDAAPI cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice dev)
{
	CUresult rc = sim_check_device(dev);

	if (!rc)
		*pool = &sim.device[dev].default_pool;
	return rc;
}

CUresult CUDAAPI cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice dev)
{
	CUresult rc = sim_check_device(dev);

	if (!rc)
		*pool = sim.device[dev].pool;
	return rc;
}

CUresult CUDAAPI cuDeviceSetMemPool(CUdevice dev, CUmemoryPool pool)
{
	CUresult rc = sim_check_device(dev);

	if (rc)
		return rc;
	if (!pool || pool->device != dev)
		return CUDA_ERROR_INVALID_VALUE;
	sim.device[dev].pool = pool;
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *props)
{
	struct CUmemPoolHandle_st *made;

	SIM_ENTER();
	if (!props || props->location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
	    sim_check_device(props->location.id))
		return CUDA_ERROR_INVALID_VALUE;
	made = malloc(sizeof(*made));
	if (!made)
		return CUDA_ERROR_OUT_OF_MEMORY;
	sim_pool_init(made, props->location.id);
	*pool = made;
	return CUDA_SUCCESS;
}

/*
 * The object is kept while blocks are left in it, as they may be freed later; a pool that is the
 * device's current one leaves the default pool in its place.
 */
CUresult CUDAAPI cuMemPoolDestroy(CUmemoryPool pool)
{
	struct sim_device *device;
	bool empty;

	SIM_ENTER();
	if (!pool || pool == &sim.device[pool->device].default_pool)
		return CUDA_ERROR_INVALID_VALUE;
	device = &sim.device[pool->device];
	pthread_mutex_lock(&device->lock);
	if (device->pool == pool)
		device->pool = &device->default_pool;
	empty = !pool->used;
	pthread_mutex_unlock(&device->lock);
	if (empty)
		free(pool);
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemPoolTrimTo(CUmemoryPool pool, size_t keep)
{
	SIM_ENTER();
	return pool ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult get_attribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value)
{
	switch (attribute) {
	case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
		*(int *)value =
			pool->reuse[attribute - CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES];
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
		*(uint64_t *)value = pool->threshold;
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
	case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
		*(uint64_t *)value = pool->used;
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
	case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
		*(uint64_t *)value = pool->used_high;
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

/* The two high-water marks can only be set to 0, which means: start again from now. */
static CUresult set_attribute(CUmemoryPool pool, CUmemPool_attribute attribute, const void *value)
{
	switch (attribute) {
	case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
		pool->reuse[attribute - CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES] =
			*(const int *)value;
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
		pool->threshold = *(const uint64_t *)value;
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
	case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
		if (*(const uint64_t *)value)
			return CUDA_ERROR_INVALID_VALUE;
		pool->used_high = pool->used;
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

static CUresult attribute_locked(CUmemoryPool pool, CUmemPool_attribute attribute, void *value,
				 bool set)
{
	CUresult rc;

	SIM_ENTER();
	if (!pool || !value)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&sim.device[pool->device].lock);
	rc = set ? set_attribute(pool, attribute, value) : get_attribute(pool, attribute, value);
	pthread_mutex_unlock(&sim.device[pool->device].lock);
	return rc;
}

CUresult CUDAAPI cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute,
				       void *value)
{
	return attribute_locked(pool, attribute, value, false);
}

CUresult CUDAAPI cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute,
				       void *value)
{
	return attribute_locked(pool, attribute, value, true);
}

CUresult CUDAAPI cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *map, size_t count)
{
	SIM_ENTER();
	return pool && (map || !count) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult CUDAAPI cuMemPoolGetAccess(CUmemAccess_flags *flags, CUmemoryPool pool,
				    CUmemLocation *location)
{
	SIM_ENTER();
	if (!flags || !pool || !location)
		return CUDA_ERROR_INVALID_VALUE;
	*flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	return CUDA_SUCCESS;
}
