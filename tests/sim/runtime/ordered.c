/* SPDX-License-Identifier: MIT */
/*
 * ordered.c - the runtime functions that take a stream, or work on the default one.
 *
 * Compiled twice: with CUDA_API_PER_THREAD_DEFAULT_STREAM the header renames them to the _ptsz and
 * _ptds forms, which programs built that way call, and they call the driver's own such forms.
 */
#include "rt.h"

#include <string.h>

#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM
#define TWIN(symbol, suffix) ((__typeof__(&symbol))rt_driver.symbol##suffix)
#else
#define TWIN(symbol, suffix) DRV(symbol)
#endif

#define CALL_TWIN(symbol, suffix, ...)                                                     \
	do {                                                                               \
		cudaError_t enter_rc = rt_enter();                                         \
		return enter_rc ? enter_rc : rt_result(TWIN(symbol, suffix)(__VA_ARGS__)); \
	} while (0)

/* A call with a stream, and one that has the default stream built in. */
#define RT_ORDERED(symbol, ...) CALL_TWIN(symbol, _ptsz, __VA_ARGS__)
#define RT_LEGACY(symbol, ...)	CALL_TWIN(symbol, _ptds, __VA_ARGS__)

cudaError_t CUDARTAPI cudaMallocAsync(void **ptr, size_t size, cudaStream_t stream)
{
	cudaError_t rc = rt_enter();

	if (rc || !ptr)
		return rc ? rc : rt_fail(cudaErrorInvalidValue);
	*ptr = NULL;
	if (!size)
		return cudaSuccess;
	return rt_result(TWIN(cuMemAllocAsync, _ptsz)((CUdeviceptr *)ptr, size, stream));
}

cudaError_t CUDARTAPI cudaFreeAsync(void *ptr, cudaStream_t stream)
{
	RT_ORDERED(cuMemFreeAsync, RT_PTR(ptr), stream);
}

cudaError_t CUDARTAPI cudaMallocFromPoolAsync(void **ptr, size_t size, cudaMemPool_t pool,
					      cudaStream_t stream)
{
	RT_ORDERED(cuMemAllocFromPoolAsync, (CUdeviceptr *)ptr, size, pool, stream);
}

cudaError_t CUDARTAPI cudaMemcpy(void *to, const void *from, size_t size, enum cudaMemcpyKind kind)
{
	RT_LEGACY(cuMemcpy, RT_PTR(to), RT_PTR(from), size);
}

cudaError_t CUDARTAPI cudaMemcpyAsync(void *to, const void *from, size_t size,
				      enum cudaMemcpyKind kind, cudaStream_t stream)
{
	RT_ORDERED(cuMemcpyAsync, RT_PTR(to), RT_PTR(from), size, stream);
}

cudaError_t CUDARTAPI cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from,
					size_t from_pitch, size_t width, size_t height,
					enum cudaMemcpyKind kind, cudaStream_t stream)
{
	CUDA_MEMCPY2D copy = {
		.srcMemoryType = CU_MEMORYTYPE_DEVICE,
		.srcDevice = RT_PTR(from),
		.srcPitch = from_pitch,
		.dstMemoryType = CU_MEMORYTYPE_DEVICE,
		.dstDevice = RT_PTR(to),
		.dstPitch = to_pitch,
		.WidthInBytes = width,
		.Height = height,
	};

	RT_ORDERED(cuMemcpy2DAsync_v2, &copy, stream);
}

cudaError_t CUDARTAPI cudaMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch,
				   size_t width, size_t height, enum cudaMemcpyKind kind)
{
	return cudaMemcpy2DAsync(to, to_pitch, from, from_pitch, width, height, kind, NULL);
}

cudaError_t CUDARTAPI cudaMemset(void *ptr, int value, size_t size)
{
	RT_LEGACY(cuMemsetD8_v2, RT_PTR(ptr), (unsigned char)value, size);
}

cudaError_t CUDARTAPI cudaMemsetAsync(void *ptr, int value, size_t size, cudaStream_t stream)
{
	RT_ORDERED(cuMemsetD8Async, RT_PTR(ptr), (unsigned char)value, size, stream);
}

cudaError_t CUDARTAPI cudaMemset2DAsync(void *ptr, size_t pitch, int value, size_t width,
					size_t height, cudaStream_t stream)
{
	RT_ORDERED(cuMemsetD2D8Async, RT_PTR(ptr), pitch, (unsigned char)value, width, height,
		   stream);
}

cudaError_t CUDARTAPI cudaStreamQuery(cudaStream_t stream)
{
	RT_ORDERED(cuStreamQuery, stream);
}

cudaError_t CUDARTAPI cudaStreamSynchronize(cudaStream_t stream)
{
	RT_ORDERED(cuStreamSynchronize, stream);
}

cudaError_t CUDARTAPI cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event,
					  unsigned int flags)
{
	RT_ORDERED(cuStreamWaitEvent, stream, event, flags);
}

cudaError_t CUDARTAPI cudaStreamGetPriority(cudaStream_t stream, int *priority)
{
	RT_ORDERED(cuStreamGetPriority, stream, priority);
}

cudaError_t CUDARTAPI cudaStreamGetFlags(cudaStream_t stream, unsigned int *flags)
{
	RT_ORDERED(cuStreamGetFlags, stream, flags);
}

cudaError_t CUDARTAPI cudaStreamGetId(cudaStream_t stream, unsigned long long *id)
{
	RT_ORDERED(cuStreamGetId, stream, id);
}

cudaError_t CUDARTAPI cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *data)
{
	RT_ORDERED(cuLaunchHostFunc, stream, function, data);
}

cudaError_t CUDARTAPI cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback,
					    void *data, unsigned int flags)
{
	RT_ORDERED(cuStreamAddCallback, stream, (CUstreamCallback)(void *)callback, data, flags);
}

cudaError_t CUDARTAPI cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
	RT_ORDERED(cuEventRecord, event, stream);
}

cudaError_t CUDARTAPI cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream,
					       unsigned int flags)
{
	RT_ORDERED(cuEventRecordWithFlags, event, stream, flags);
}

cudaError_t CUDARTAPI cudaMemcpyToSymbol(const void *symbol, const void *from, size_t size,
					 size_t offset, enum cudaMemcpyKind kind)
{
	memcpy((char *)(uintptr_t)symbol + offset, from, size);
	return rt_enter();
}

cudaError_t CUDARTAPI cudaMemcpyFromSymbol(void *to, const void *symbol, size_t size, size_t offset,
					   enum cudaMemcpyKind kind)
{
	memcpy(to, (const char *)symbol + offset, size);
	return rt_enter();
}

cudaError_t CUDARTAPI cudaLaunchKernel(const void *function, dim3 grid, dim3 block, void **args,
				       size_t shared, cudaStream_t stream)
{
	CUfunction kernel;
	cudaError_t rc = rt_kernel(function, &kernel);

	if (rc)
		return rc;
	return rt_result(TWIN(cuLaunchKernel, _ptsz)(kernel, grid.x, grid.y, grid.z, block.x,
						     block.y, block.z, (unsigned int)shared, stream,
						     args, NULL));
}

cudaError_t CUDARTAPI cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *function,
					  void **args)
{
	return cudaLaunchKernel(function, config->gridDim, config->blockDim, args,
				config->dynamicSmemBytes, config->stream);
}

cudaError_t CUDARTAPI cudaLaunchCooperativeKernel(const void *function, dim3 grid, dim3 block,
						  void **args, size_t shared, cudaStream_t stream)
{
	return cudaLaunchKernel(function, grid, block, args, shared, stream);
}

cudaError_t CUDARTAPI cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode)
{
	RT_ORDERED(cuStreamBeginCapture_v2, stream, (CUstreamCaptureMode)mode);
}

cudaError_t CUDARTAPI cudaStreamBeginCaptureToGraph(cudaStream_t stream, cudaGraph_t graph,
						    const cudaGraphNode_t *deps,
						    const cudaGraphEdgeData *edges, size_t count,
						    enum cudaStreamCaptureMode mode)
{
	RT_ORDERED(cuStreamBeginCaptureToGraph, stream, graph, deps, (const CUgraphEdgeData *)edges,
		   count, (CUstreamCaptureMode)mode);
}

cudaError_t CUDARTAPI cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph)
{
	RT_ORDERED(cuStreamEndCapture, stream, graph);
}

cudaError_t CUDARTAPI cudaStreamIsCapturing(cudaStream_t stream,
					    enum cudaStreamCaptureStatus *status)
{
	RT_ORDERED(cuStreamIsCapturing, stream, (CUstreamCaptureStatus *)status);
}

#if CUDART_VERSION >= 13000
cudaError_t CUDARTAPI cudaStreamGetCaptureInfo(cudaStream_t stream,
					       enum cudaStreamCaptureStatus *status,
					       unsigned long long *id, cudaGraph_t *graph,
					       const cudaGraphNode_t **deps,
					       const cudaGraphEdgeData **edges, size_t *count)
{
	RT_ORDERED(cuStreamGetCaptureInfo_v3, stream, (CUstreamCaptureStatus *)status,
		   (cuuint64_t *)id, graph, deps, (const CUgraphEdgeData **)edges, count);
}

cudaError_t CUDARTAPI cudaStreamUpdateCaptureDependencies(cudaStream_t stream,
							  cudaGraphNode_t *deps,
							  const cudaGraphEdgeData *edges,
							  size_t count, unsigned int flags)
{
	RT_ORDERED(cuStreamUpdateCaptureDependencies_v2, stream, deps,
		   (const CUgraphEdgeData *)edges, count, flags);
}
#else
cudaError_t CUDARTAPI cudaStreamGetCaptureInfo(cudaStream_t stream,
					       enum cudaStreamCaptureStatus *status,
					       unsigned long long *id, cudaGraph_t *graph,
					       const cudaGraphNode_t **deps, size_t *count)
{
	RT_ORDERED(cuStreamGetCaptureInfo_v2, stream, (CUstreamCaptureStatus *)status,
		   (cuuint64_t *)id, graph, deps, count);
}

cudaError_t CUDARTAPI cudaStreamUpdateCaptureDependencies(cudaStream_t stream,
							  cudaGraphNode_t *deps, size_t count,
							  unsigned int flags)
{
	RT_ORDERED(cuStreamUpdateCaptureDependencies, stream, deps, count, flags);
}
#endif

cudaError_t CUDARTAPI cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream)
{
	RT_ORDERED(cuGraphLaunch, exec, stream);
}

cudaError_t CUDARTAPI cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t stream)
{
	RT_ORDERED(cuGraphUpload, exec, stream);
}

cudaError_t CUDARTAPI cudaGraphInstantiateWithParams(cudaGraphExec_t *exec, cudaGraph_t graph,
						     cudaGraphInstantiateParams *params)
{
	RT_ORDERED(cuGraphInstantiateWithParams, exec, graph,
		   (CUDA_GRAPH_INSTANTIATE_PARAMS *)params);
}
