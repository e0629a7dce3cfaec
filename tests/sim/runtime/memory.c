/* SPDX-License-Identifier: MIT */
/*
 * memory.c - allocation, copies and pools of the runtime.
 *
 * A few rules are the runtime's own: 0 bytes is a success that returns NULL, freeing NULL is a
 * success, cudaMallocHost is cuMemHostAlloc, and an unknown address is not an error for
 * cudaPointerGetAttributes.
 */
#include "rt.h"

cudaError_t CUDARTAPI cudaMalloc(void **ptr, size_t size)
{
	cudaError_t rc = rt_enter();

	if (rc || !ptr)
		return rc ? rc : rt_fail(cudaErrorInvalidValue);
	*ptr = NULL;
	return size ? rt_result(DRV(cuMemAlloc_v2)((CUdeviceptr *)ptr, size)) : cudaSuccess;
}

cudaError_t CUDARTAPI cudaFree(void *ptr)
{
	cudaError_t rc = rt_enter();

	return rc || !ptr ? rc : rt_result(DRV(cuMemFree_v2)(RT_PTR(ptr)));
}

cudaError_t CUDARTAPI cudaMallocPitch(void **ptr, size_t *pitch, size_t width, size_t height)
{
	RT_CALL(cuMemAllocPitch_v2, (CUdeviceptr *)ptr, pitch, width, height, 4);
}

cudaError_t CUDARTAPI cudaMalloc3D(struct cudaPitchedPtr *ptr, struct cudaExtent extent)
{
	void *base;
	size_t pitch;
	cudaError_t rc = cudaMallocPitch(&base, &pitch, extent.width, extent.height * extent.depth);

	if (!rc)
		*ptr = (struct cudaPitchedPtr){base, pitch, extent.width, extent.height};
	return rc;
}

cudaError_t CUDARTAPI cudaMallocManaged(void **ptr, size_t size, unsigned int flags)
{
	RT_CALL(cuMemAllocManaged, (CUdeviceptr *)ptr, size, flags);
}

cudaError_t CUDARTAPI cudaHostAlloc(void **ptr, size_t size, unsigned int flags)
{
	RT_CALL(cuMemHostAlloc, ptr, size, flags);
}

cudaError_t CUDARTAPI cudaMallocHost(void **ptr, size_t size)
{
	return cudaHostAlloc(ptr, size, 0);
}

cudaError_t CUDARTAPI cudaFreeHost(void *ptr)
{
	cudaError_t rc = rt_enter();

	return rc || !ptr ? rc : rt_result(DRV(cuMemFreeHost)(ptr));
}

cudaError_t CUDARTAPI cudaHostRegister(void *ptr, size_t size, unsigned int flags)
{
	RT_CALL(cuMemHostRegister_v2, ptr, size, flags);
}

cudaError_t CUDARTAPI cudaHostUnregister(void *ptr)
{
	RT_CALL(cuMemHostUnregister, ptr);
}

cudaError_t CUDARTAPI cudaHostGetDevicePointer(void **ptr, void *host, unsigned int flags)
{
	RT_CALL(cuMemHostGetDevicePointer_v2, (CUdeviceptr *)ptr, host, flags);
}

cudaError_t CUDARTAPI cudaHostGetFlags(unsigned int *flags, void *ptr)
{
	RT_CALL(cuMemHostGetFlags, flags, ptr);
}

cudaError_t CUDARTAPI cudaMemGetInfo(size_t *free_bytes, size_t *total)
{
	RT_CALL(cuMemGetInfo_v2, free_bytes, total);
}

cudaError_t CUDARTAPI cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool, int device)
{
	RT_CALL(cuDeviceGetDefaultMemPool, pool, device);
}

cudaError_t CUDARTAPI cudaDeviceGetMemPool(cudaMemPool_t *pool, int device)
{
	RT_CALL(cuDeviceGetMemPool, pool, device);
}

cudaError_t CUDARTAPI cudaDeviceSetMemPool(int device, cudaMemPool_t pool)
{
	RT_CALL(cuDeviceSetMemPool, device, pool);
}

cudaError_t CUDARTAPI cudaMemPoolCreate(cudaMemPool_t *pool, const struct cudaMemPoolProps *props)
{
	RT_CALL(cuMemPoolCreate, pool, (const CUmemPoolProps *)props);
}

cudaError_t CUDARTAPI cudaMemPoolDestroy(cudaMemPool_t pool)
{
	RT_CALL(cuMemPoolDestroy, pool);
}

cudaError_t CUDARTAPI cudaMemPoolTrimTo(cudaMemPool_t pool, size_t keep)
{
	RT_CALL(cuMemPoolTrimTo, pool, keep);
}

cudaError_t CUDARTAPI cudaMemPoolGetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr which,
					      void *value)
{
	RT_CALL(cuMemPoolGetAttribute, pool, (CUmemPool_attribute)which, value);
}

cudaError_t CUDARTAPI cudaMemPoolSetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr which,
					      void *value)
{
	RT_CALL(cuMemPoolSetAttribute, pool, (CUmemPool_attribute)which, value);
}

cudaError_t CUDARTAPI cudaMemPoolSetAccess(cudaMemPool_t pool, const struct cudaMemAccessDesc *list,
					   size_t count)
{
	RT_CALL(cuMemPoolSetAccess, pool, (const CUmemAccessDesc *)list, count);
}

cudaError_t CUDARTAPI cudaPointerGetAttributes(struct cudaPointerAttributes *attributes,
					       const void *ptr)
{
	unsigned int type = 0;
	int device = -2, managed = 0;
	CUpointer_attribute which[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
				       CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
				       CU_POINTER_ATTRIBUTE_IS_MANAGED};
	void *data[] = {&type, &device, &managed};
	cudaError_t rc = rt_enter();

	rc = rc ? rc : rt_result(DRV(cuPointerGetAttributes)(3, which, data, RT_PTR(ptr)));
	if (rc)
		return rc;
	*attributes = (struct cudaPointerAttributes){
		.type = managed ? cudaMemoryTypeManaged : (enum cudaMemoryType)type,
		.device = device,
		.devicePointer = type ? (void *)(uintptr_t)ptr : NULL,
		.hostPointer =
			type != CU_MEMORYTYPE_DEVICE || managed ? (void *)(uintptr_t)ptr : NULL,
	};
	return cudaSuccess;
}

cudaError_t CUDARTAPI cudaMemcpyPeer(void *to, int to_device, const void *from, int from_device,
				     size_t size)
{
	RT_CALL(cuMemcpy, RT_PTR(to), RT_PTR(from), size);
}

cudaError_t CUDARTAPI cudaMemcpyPeerAsync(void *to, int to_device, const void *from,
					  int from_device, size_t size, cudaStream_t stream)
{
	RT_CALL(cuMemcpyAsync, RT_PTR(to), RT_PTR(from), size, stream);
}
