/* SPDX-License-Identifier: MIT */
/*
 * pointer.c - what the driver knows of an address: its range, kind and device.
 */
#include "sim.h"

static bool arena_range(CUdeviceptr ptr, struct sim_range *ret)
{
	struct sim_device *device = sim_device_of(ptr);
	struct sim_block *block;
	bool found;

	if (!device)
		return false;
	ret->device = (int)(device - sim.device);
	pthread_mutex_lock(&device->lock);
	block = sim_arena_find(&device->arena, ptr, &ret->start);
	found = block && block->kind != SIM_ARRAY;
	if (found) {
		ret->kind = block->kind;
		ret->size = block->size;
		ret->ctx = block->kind <= SIM_MANAGED ? block->ctx : &device->primary;
	}
	if (found && block->kind == SIM_POOL)
		found = sim_pool_range(block->chunk, ptr, ret);
	pthread_mutex_unlock(&device->lock);
	return found;
}

bool sim_find_range(CUdeviceptr ptr, struct sim_range *ret)
{
	char *host;

	*ret = (struct sim_range){.type = CU_MEMORYTYPE_DEVICE};
	if (arena_range(ptr, ret))
		return true;
	if (!sim_foreign_range(ptr, ret) &&
	    !sim_vmm_range(ptr, &ret->start, &ret->size, &ret->device)) {
		ret->type = CU_MEMORYTYPE_HOST;
		if (!sim_host_range((void *)(uintptr_t)ptr, &host, &ret->size, &ret->ctx))
			return false;
		ret->start = (uintptr_t)host;
		ret->device = ret->ctx->device;
		return true;
	}
	ret->ctx = &sim.device[ret->device].primary;
	return true;
}

CUresult CUDAAPI cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *size, CUdeviceptr ptr)
{
	struct sim_range range;

	SIM_ENTER();
	if (!sim_find_range(ptr, &range))
		return CUDA_ERROR_NOT_FOUND;
	if (base)
		*base = range.start;
	if (size)
		*size = range.size;
	return CUDA_SUCCESS;
}

/* The ABI of 32-bit addresses: none of ours is one. */
CUresult CUDAAPI cuMemGetAddressRange(CUdeviceptr_v1 *base, unsigned int *size, CUdeviceptr_v1 ptr)
{
	SIM_ENTER();
	return CUDA_ERROR_NOT_FOUND;
}

static CUresult get_attribute(void *data, CUpointer_attribute attribute,
			      const struct sim_range *range, CUdeviceptr ptr)
{
	switch (attribute) {
	case CU_POINTER_ATTRIBUTE_CONTEXT:
		*(CUcontext *)data = range->ctx;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
		*(unsigned int *)data = range->type;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
	case CU_POINTER_ATTRIBUTE_HOST_POINTER:
		*(CUdeviceptr *)data = ptr;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_IS_MANAGED:
		*(int *)data = range->kind == SIM_MANAGED;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
		*(int *)data = range->device;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
		*(CUdeviceptr *)data = range->start;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
		*(size_t *)data = range->size;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_MAPPED:
		*(int *)data = 1;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
		*(CUmemoryPool *)data = range->pool;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_BUFFER_ID:
		*(unsigned long long *)data = range->start;
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_NOT_SUPPORTED;
	}
}

CUresult CUDAAPI cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr ptr)
{
	struct sim_range range;

	SIM_ENTER();
	if (!data || !sim_find_range(ptr, &range))
		return CUDA_ERROR_INVALID_VALUE;
	return get_attribute(data, attribute, &range, ptr);
}

static void no_attribute(void *data, CUpointer_attribute attribute)
{
	switch (attribute) {
	case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
	case CU_POINTER_ATTRIBUTE_IS_MANAGED:
	case CU_POINTER_ATTRIBUTE_MAPPED:
		*(int *)data = 0;
		return;
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
		*(int *)data = -2;
		return;
	default:
		*(void **)data = NULL;
	}
}

/* Unlike the single form this one succeeds for a foreign address, and answers with zeros. */
CUresult CUDAAPI cuPointerGetAttributes(unsigned int count, CUpointer_attribute *attributes,
					void **data, CUdeviceptr ptr)
{
	struct sim_range range;
	bool found;

	SIM_ENTER();
	found = sim_find_range(ptr, &range);
	for (unsigned int i = 0; i < count; i++) {
		if (!found || get_attribute(data[i], attributes[i], &range, ptr))
			no_attribute(data[i], attributes[i]);
	}
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuPointerSetAttribute(const void *value, CUpointer_attribute attribute,
				       CUdeviceptr ptr)
{
	struct sim_range range;

	SIM_ENTER();
	return sim_find_range(ptr, &range) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
