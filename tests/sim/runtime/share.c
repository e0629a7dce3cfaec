/* SPDX-License-Identifier: MIT */
/*
 * share.c - arrays, memory of other processes and APIs, and pools that cross processes.
 */
#include "rt.h"

/* A runtime format is bits for each channel; the driver's is one format and a number of them. */
static bool format_of(const struct cudaChannelFormatDesc *desc, CUDA_ARRAY3D_DESCRIPTOR *ret)
{
	bool is_signed = desc->f == cudaChannelFormatKindSigned;
	bool is_float = desc->f == cudaChannelFormatKindFloat;

	ret->NumChannels =
		(unsigned int)((desc->x > 0) + (desc->y > 0) + (desc->z > 0) + (desc->w > 0));
	switch (desc->x) {
	case 8:
		ret->Format = is_signed ? CU_AD_FORMAT_SIGNED_INT8 : CU_AD_FORMAT_UNSIGNED_INT8;
		return !is_float;
	case 16:
		ret->Format = is_float	  ? CU_AD_FORMAT_HALF
			      : is_signed ? CU_AD_FORMAT_SIGNED_INT16
					  : CU_AD_FORMAT_UNSIGNED_INT16;
		return true;
	case 32:
		ret->Format = is_float	  ? CU_AD_FORMAT_FLOAT
			      : is_signed ? CU_AD_FORMAT_SIGNED_INT32
					  : CU_AD_FORMAT_UNSIGNED_INT32;
		return true;
	default:
		return false;
	}
}

static cudaError_t describe(const struct cudaChannelFormatDesc *desc, struct cudaExtent extent,
			    unsigned int flags, CUDA_ARRAY3D_DESCRIPTOR *ret)
{
	*ret = (CUDA_ARRAY3D_DESCRIPTOR){.Width = extent.width,
					 .Height = extent.height,
					 .Depth = extent.depth,
					 .Flags = flags};
	return desc && format_of(desc, ret) ? cudaSuccess
					    : rt_fail(cudaErrorInvalidChannelDescriptor);
}

cudaError_t CUDARTAPI cudaMalloc3DArray(cudaArray_t *array,
					const struct cudaChannelFormatDesc *desc,
					struct cudaExtent extent, unsigned int flags)
{
	CUDA_ARRAY3D_DESCRIPTOR whole;
	cudaError_t rc = describe(desc, extent, flags, &whole);

	if (rc)
		return rc;
	RT_CALL(cuArray3DCreate_v2, (CUarray *)array, &whole);
}

cudaError_t CUDARTAPI cudaMallocArray(cudaArray_t *array, const struct cudaChannelFormatDesc *desc,
				      size_t width, size_t height, unsigned int flags)
{
	CUDA_ARRAY3D_DESCRIPTOR whole;
	CUDA_ARRAY_DESCRIPTOR flat;
	cudaError_t rc = describe(desc, (struct cudaExtent){width, height, 0}, flags, &whole);

	if (rc)
		return rc;
	if (flags)
		RT_CALL(cuArray3DCreate_v2, (CUarray *)array, &whole);
	flat = (CUDA_ARRAY_DESCRIPTOR){width, height, whole.Format, whole.NumChannels};
	RT_CALL(cuArrayCreate_v2, (CUarray *)array, &flat);
}

cudaError_t CUDARTAPI cudaFreeArray(cudaArray_t array)
{
	cudaError_t rc = rt_enter();

	return rc || !array ? rc : rt_result(DRV(cuArrayDestroy)((CUarray)array));
}

cudaError_t CUDARTAPI cudaMallocMipmappedArray(cudaMipmappedArray_t *array,
					       const struct cudaChannelFormatDesc *desc,
					       struct cudaExtent extent, unsigned int levels,
					       unsigned int flags)
{
	CUDA_ARRAY3D_DESCRIPTOR whole;
	cudaError_t rc = describe(desc, extent, flags, &whole);

	if (rc)
		return rc;
	RT_CALL(cuMipmappedArrayCreate, (CUmipmappedArray *)array, &whole, levels);
}

cudaError_t CUDARTAPI cudaGetMipmappedArrayLevel(cudaArray_t *array,
						 cudaMipmappedArray_const_t mipmap,
						 unsigned int level)
{
	RT_CALL(cuMipmappedArrayGetLevel, (CUarray *)array, (CUmipmappedArray)(uintptr_t)mipmap,
		level);
}

cudaError_t CUDARTAPI cudaFreeMipmappedArray(cudaMipmappedArray_t array)
{
	cudaError_t rc = rt_enter();

	return rc || !array ? rc : rt_result(DRV(cuMipmappedArrayDestroy)((CUmipmappedArray)array));
}

cudaError_t CUDARTAPI cudaImportExternalMemory(cudaExternalMemory_t *memory,
					       const struct cudaExternalMemoryHandleDesc *desc)
{
	CUDA_EXTERNAL_MEMORY_HANDLE_DESC same;

	if (!desc)
		return rt_fail(cudaErrorInvalidValue);
	same = (CUDA_EXTERNAL_MEMORY_HANDLE_DESC){.type = (CUexternalMemoryHandleType)desc->type,
						  .handle.fd = desc->handle.fd,
						  .size = desc->size,
						  .flags = desc->flags};
	RT_CALL(cuImportExternalMemory, (CUexternalMemory *)memory, &same);
}

cudaError_t CUDARTAPI cudaExternalMemoryGetMappedBuffer(
	void **ptr, cudaExternalMemory_t memory, const struct cudaExternalMemoryBufferDesc *desc)
{
	CUDA_EXTERNAL_MEMORY_BUFFER_DESC same;

	if (!desc)
		return rt_fail(cudaErrorInvalidValue);
	same = (CUDA_EXTERNAL_MEMORY_BUFFER_DESC){
		.offset = desc->offset, .size = desc->size, .flags = desc->flags};
	RT_CALL(cuExternalMemoryGetMappedBuffer, (CUdeviceptr *)ptr, (CUexternalMemory)memory,
		&same);
}

cudaError_t CUDARTAPI cudaDestroyExternalMemory(cudaExternalMemory_t memory)
{
	RT_CALL(cuDestroyExternalMemory, (CUexternalMemory)memory);
}

cudaError_t CUDARTAPI cudaIpcGetMemHandle(cudaIpcMemHandle_t *handle, void *ptr)
{
	RT_CALL(cuIpcGetMemHandle, (CUipcMemHandle *)handle, RT_PTR(ptr));
}

cudaError_t CUDARTAPI cudaIpcOpenMemHandle(void **ptr, cudaIpcMemHandle_t handle,
					   unsigned int flags)
{
	CUipcMemHandle same;

	__builtin_memcpy(&same, &handle, sizeof(same));
	RT_CALL(cuIpcOpenMemHandle_v2, (CUdeviceptr *)ptr, same, flags);
}

cudaError_t CUDARTAPI cudaIpcCloseMemHandle(void *ptr)
{
	RT_CALL(cuIpcCloseMemHandle, RT_PTR(ptr));
}

cudaError_t CUDARTAPI cudaIpcGetEventHandle(cudaIpcEventHandle_t *handle, cudaEvent_t event)
{
	RT_CALL(cuIpcGetEventHandle, (CUipcEventHandle *)handle, event);
}

cudaError_t CUDARTAPI cudaIpcOpenEventHandle(cudaEvent_t *event, cudaIpcEventHandle_t handle)
{
	CUipcEventHandle same;

	__builtin_memcpy(&same, &handle, sizeof(same));
	RT_CALL(cuIpcOpenEventHandle, event, same);
}

cudaError_t CUDARTAPI cudaMemPoolExportToShareableHandle(void *handle, cudaMemPool_t pool,
							 enum cudaMemAllocationHandleType type,
							 unsigned int flags)
{
	RT_CALL(cuMemPoolExportToShareableHandle, handle, pool, (CUmemAllocationHandleType)type,
		flags);
}

cudaError_t CUDARTAPI cudaMemPoolImportFromShareableHandle(cudaMemPool_t *pool, void *handle,
							   enum cudaMemAllocationHandleType type,
							   unsigned int flags)
{
	RT_CALL(cuMemPoolImportFromShareableHandle, pool, handle, (CUmemAllocationHandleType)type,
		flags);
}

cudaError_t CUDARTAPI cudaMemPoolExportPointer(struct cudaMemPoolPtrExportData *data, void *ptr)
{
	RT_CALL(cuMemPoolExportPointer, (CUmemPoolPtrExportData *)data, RT_PTR(ptr));
}

cudaError_t CUDARTAPI cudaMemPoolImportPointer(void **ptr, cudaMemPool_t pool,
					       struct cudaMemPoolPtrExportData *data)
{
	RT_CALL(cuMemPoolImportPointer, (CUdeviceptr *)ptr, pool, (CUmemPoolPtrExportData *)data);
}
