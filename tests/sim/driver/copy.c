/* SPDX-License-Identifier: MIT */
/*
 * copy.c - copies and fills. Device memory is host memory, so every direction is one memcpy.
 *
 * A fill with zero gives whole pages back instead of writing them: a program that clears 6 GB of
 * "device" memory must not take 6 GB from the host.
 */
#include "sim.h"

#include <string.h>
#include <sys/mman.h>

#define PAGE ((uintptr_t)4096)

CUresult sim_copy(CUdeviceptr to, CUdeviceptr from, size_t size)
{
	SIM_ENTER();
	if (size && (!to || !from))
		return CUDA_ERROR_INVALID_VALUE;
	if (size)
		memmove((void *)(uintptr_t)to, (const void *)(uintptr_t)from, size);
	return CUDA_SUCCESS;
}

#define AT(pointer) ((CUdeviceptr)(uintptr_t)(pointer))

static CUresult copy_on(CUstream stream, CUdeviceptr to, CUdeviceptr from, size_t size)
{
	return sim_is_captured(stream) ? sim_capture_copy(stream, to, from, size)
				       : sim_copy(to, from, size);
}

CUresult CUDAAPI cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t size)
{
	return sim_copy(to, from, size);
}

CUresult CUDAAPI cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream)
{
	return copy_on(stream, to, from, size);
}

CUresult CUDAAPI cuMemcpyPeer(CUdeviceptr to, CUcontext to_ctx, CUdeviceptr from,
			      CUcontext from_ctx, size_t size)
{
	return sim_copy(to, from, size);
}

CUresult CUDAAPI cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_ctx, CUdeviceptr from,
				   CUcontext from_ctx, size_t size, CUstream stream)
{
	return copy_on(stream, to, from, size);
}

CUresult CUDAAPI cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t size)
{
	return sim_copy(to, AT(from), size);
}

CUresult CUDAAPI cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t size, CUstream s)
{
	return copy_on(s, to, AT(from), size);
}

CUresult CUDAAPI cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t size)
{
	return sim_copy(AT(to), from, size);
}

CUresult CUDAAPI cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t size, CUstream stream)
{
	return copy_on(stream, AT(to), from, size);
}

CUresult CUDAAPI cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t size)
{
	return sim_copy(to, from, size);
}

CUresult CUDAAPI cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream s)
{
	return copy_on(s, to, from, size);
}

static CUdeviceptr end_of(CUmemorytype type, const void *host, CUdeviceptr device, size_t x,
			  size_t y, size_t pitch)
{
	return (type == CU_MEMORYTYPE_HOST ? AT(host) : device) + y * pitch + x;
}

CUresult CUDAAPI cuMemcpy2D_v2(const CUDA_MEMCPY2D *c)
{
	CUdeviceptr from = end_of(c->srcMemoryType, c->srcHost, c->srcDevice, c->srcXInBytes,
				  c->srcY, c->srcPitch);
	CUdeviceptr to = end_of(c->dstMemoryType, c->dstHost, c->dstDevice, c->dstXInBytes, c->dstY,
				c->dstPitch);
	CUresult rc = CUDA_SUCCESS;

	if (c->srcMemoryType == CU_MEMORYTYPE_ARRAY || c->dstMemoryType == CU_MEMORYTYPE_ARRAY)
		return CUDA_ERROR_NOT_SUPPORTED;
	for (size_t row = 0; row < c->Height && !rc; row++)
		rc = sim_copy(to + row * c->dstPitch, from + row * c->srcPitch, c->WidthInBytes);
	return rc;
}

CUresult CUDAAPI cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D *c)
{
	return cuMemcpy2D_v2(c);
}

CUresult CUDAAPI cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *c, CUstream stream)
{
	return sim_is_captured(stream) ? sim_capture_plain(stream, CU_GRAPH_NODE_TYPE_MEMCPY)
				       : cuMemcpy2D_v2(c);
}

static void clear(char *start, size_t size)
{
	char *first = (char *)(((uintptr_t)start + PAGE - 1) & ~(PAGE - 1));
	char *last = (char *)((uintptr_t)(start + size) & ~(PAGE - 1));

	if (first >= last || madvise(first, (size_t)(last - first), MADV_DONTNEED)) {
		memset(start, 0, size);
		return;
	}
	memset(start, 0, (size_t)(first - start));
	memset(last, 0, (size_t)(start + size - last));
}

/* Only the simulator's own anonymous memory may be dropped; pinned memory can be a file. */
static bool may_drop(CUdeviceptr ptr)
{
	return sim_device_of(ptr) != NULL;
}

CUresult sim_fill(CUdeviceptr to, const void *value, size_t width, size_t count)
{
	char *at = (char *)(uintptr_t)to;
	uint32_t zero = 0;

	SIM_ENTER();
	if (count && !to)
		return CUDA_ERROR_INVALID_VALUE;
	if (!memcmp(value, &zero, width) && may_drop(to)) {
		clear(at, count * width);
		return CUDA_SUCCESS;
	}
	for (size_t i = 0; i < count; i++)
		memcpy(at + i * width, value, width);
	return CUDA_SUCCESS;
}

static CUresult fill_on(CUstream stream, CUdeviceptr to, uint32_t value, size_t width, size_t count)
{
	return sim_is_captured(stream) ? sim_capture_fill(stream, to, value, width, count)
				       : sim_fill(to, &value, width, count);
}

CUresult CUDAAPI cuMemsetD8_v2(CUdeviceptr to, unsigned char value, size_t count)
{
	return sim_fill(to, &value, sizeof(value), count);
}

CUresult CUDAAPI cuMemsetD16_v2(CUdeviceptr to, unsigned short value, size_t count)
{
	return sim_fill(to, &value, sizeof(value), count);
}

CUresult CUDAAPI cuMemsetD32_v2(CUdeviceptr to, unsigned int value, size_t count)
{
	return sim_fill(to, &value, sizeof(value), count);
}

CUresult CUDAAPI cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream s)
{
	return fill_on(s, to, value, sizeof(value), count);
}

CUresult CUDAAPI cuMemsetD16Async(CUdeviceptr to, unsigned short value, size_t count, CUstream s)
{
	return fill_on(s, to, value, sizeof(value), count);
}

CUresult CUDAAPI cuMemsetD32Async(CUdeviceptr to, unsigned int value, size_t count, CUstream s)
{
	return fill_on(s, to, value, sizeof(value), count);
}

CUresult CUDAAPI cuMemsetD2D8_v2(CUdeviceptr to, size_t pitch, unsigned char value, size_t width,
				 size_t height)
{
	CUresult rc = CUDA_SUCCESS;

	for (size_t row = 0; row < height && !rc; row++)
		rc = sim_fill(to + row * pitch, &value, sizeof(value), width);
	return rc;
}

CUresult CUDAAPI cuMemsetD2D8Async(CUdeviceptr to, size_t pitch, unsigned char value, size_t width,
				   size_t height, CUstream stream)
{
	return sim_is_captured(stream) ? sim_capture_plain(stream, CU_GRAPH_NODE_TYPE_MEMSET)
				       : cuMemsetD2D8_v2(to, pitch, value, width, height);
}

/* Hints about managed memory have nothing to act on. */
CUresult CUDAAPI cuMemAdvise(CUdeviceptr ptr, size_t count, CUmem_advise advice, CUdevice device)
{
	SIM_ENTER();
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemAdvise_v2(CUdeviceptr ptr, size_t count, CUmem_advise advice,
				CUmemLocation location)
{
	SIM_ENTER();
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemPrefetchAsync(CUdeviceptr ptr, size_t count, CUdevice device, CUstream stream)
{
	SIM_ENTER();
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemPrefetchAsync_v2(CUdeviceptr ptr, size_t count, CUmemLocation location,
				       unsigned int flags, CUstream stream)
{
	SIM_ENTER();
	return CUDA_SUCCESS;
}
