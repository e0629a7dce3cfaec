/* SPDX-License-Identifier: MIT */
/*
 * poolattr.c - which pool a device uses, the attributes of pools, who may use their memory.
 */
#include "sim.h"

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
	if (!sim_pool_known(pool) || pool->device != dev || pool->imported)
		return CUDA_ERROR_INVALID_VALUE;
	sim.device[dev].pool = pool;
	return CUDA_SUCCESS;
}

/* Only pinned memory on a device has pools here, not host or managed memory. */
static CUresult check_location(const CUmemLocation *location, CUmemAllocationType type)
{
	SIM_ENTER();
	if (!location)
		return CUDA_ERROR_INVALID_VALUE;
	if (location->type != CU_MEM_LOCATION_TYPE_DEVICE || type != CU_MEM_ALLOCATION_TYPE_PINNED)
		return CUDA_ERROR_NOT_SUPPORTED;
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemGetDefaultMemPool(CUmemoryPool *pool, CUmemLocation *location,
					CUmemAllocationType type)
{
	CUresult rc = check_location(location, type);

	return rc ? rc : cuDeviceGetDefaultMemPool(pool, location->id);
}

CUresult CUDAAPI cuMemGetMemPool(CUmemoryPool *pool, CUmemLocation *location,
				 CUmemAllocationType type)
{
	CUresult rc = check_location(location, type);

	return rc ? rc : cuDeviceGetMemPool(pool, location->id);
}

CUresult CUDAAPI cuMemSetMemPool(CUmemLocation *location, CUmemAllocationType type,
				 CUmemoryPool pool)
{
	CUresult rc = check_location(location, type);

	return rc ? rc : cuDeviceSetMemPool(location->id, pool);
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
		*(uint64_t *)value = pool->reserved;
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
		*(uint64_t *)value = pool->used;
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
		*(uint64_t *)value = pool->reserved_high;
		return CUDA_SUCCESS;
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
	bool high = attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH ||
		    attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH;

	if (high && *(const uint64_t *)value)
		return CUDA_ERROR_INVALID_VALUE;
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
		pool->reserved_high = pool->reserved;
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
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
	if (!value || !sim_pool_known(pool))
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

/* A pool's own device cannot lose its access. */
CUresult CUDAAPI cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *map, size_t count)
{
	SIM_ENTER();
	if (!sim_pool_known(pool) || (!map && count))
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < count; i++) {
		if (map[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE)
			return CUDA_ERROR_INVALID_VALUE;
		if (sim_check_device(map[i].location.id))
			return CUDA_ERROR_INVALID_DEVICE;
		if (map[i].location.id == pool->device &&
		    map[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
			return CUDA_ERROR_INVALID_DEVICE;
	}
	for (size_t i = 0; i < count; i++)
		pool->access[map[i].location.id] = (unsigned char)map[i].flags;
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemPoolGetAccess(CUmemAccess_flags *flags, CUmemoryPool pool,
				    CUmemLocation *location)
{
	SIM_ENTER();
	if (!flags || !location || !sim_pool_known(pool))
		return CUDA_ERROR_INVALID_VALUE;
	if (location->type != CU_MEM_LOCATION_TYPE_DEVICE || sim_check_device(location->id))
		return CUDA_ERROR_INVALID_DEVICE;
	*flags = pool->access[location->id];
	return CUDA_SUCCESS;
}
