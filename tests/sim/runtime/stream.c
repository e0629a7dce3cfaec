/* SPDX-License-Identifier: MIT */
/*
 * stream.c - streams, events and callbacks of the runtime.
 */
#include "rt.h"

cudaError_t CUDARTAPI cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned int flags,
						   int priority)
{
	RT_CALL(cuStreamCreateWithPriority, stream, flags, priority);
}

cudaError_t CUDARTAPI cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned int flags)
{
	RT_CALL(cuStreamCreate, stream, flags);
}

cudaError_t CUDARTAPI cudaStreamCreate(cudaStream_t *stream)
{
	return cudaStreamCreateWithFlags(stream, 0);
}

cudaError_t CUDARTAPI cudaStreamDestroy(cudaStream_t stream)
{
	RT_CALL(cuStreamDestroy_v2, stream);
}

cudaError_t CUDARTAPI cudaStreamQuery(cudaStream_t stream)
{
	RT_CALL(cuStreamQuery, stream);
}

cudaError_t CUDARTAPI cudaStreamSynchronize(cudaStream_t stream)
{
	RT_CALL(cuStreamSynchronize, stream);
}

cudaError_t CUDARTAPI cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event,
					  unsigned int flags)
{
	RT_CALL(cuStreamWaitEvent, stream, event, flags);
}

cudaError_t CUDARTAPI cudaStreamGetPriority(cudaStream_t stream, int *priority)
{
	RT_CALL(cuStreamGetPriority, stream, priority);
}

cudaError_t CUDARTAPI cudaStreamGetFlags(cudaStream_t stream, unsigned int *flags)
{
	RT_CALL(cuStreamGetFlags, stream, flags);
}

cudaError_t CUDARTAPI cudaStreamGetId(cudaStream_t stream, unsigned long long *id)
{
	RT_CALL(cuStreamGetId, stream, id);
}

cudaError_t CUDARTAPI cudaStreamIsCapturing(cudaStream_t stream,
					    enum cudaStreamCaptureStatus *status)
{
	RT_CALL(cuStreamIsCapturing, stream, (CUstreamCaptureStatus *)status);
}

#if CUDART_VERSION >= 13000
cudaError_t CUDARTAPI cudaStreamGetCaptureInfo(cudaStream_t stream,
					       enum cudaStreamCaptureStatus *status,
					       unsigned long long *id, cudaGraph_t *graph,
					       const cudaGraphNode_t **dependencies,
					       const cudaGraphEdgeData **edges, size_t *count)
#else
cudaError_t CUDARTAPI cudaStreamGetCaptureInfo(cudaStream_t stream,
					       enum cudaStreamCaptureStatus *status,
					       unsigned long long *id, cudaGraph_t *graph,
					       const cudaGraphNode_t **dependencies, size_t *count)
#endif
{
	return cudaStreamIsCapturing(stream, status);
}

cudaError_t CUDARTAPI cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode)
{
	RT_CALL(cuThreadExchangeStreamCaptureMode, (CUstreamCaptureMode *)mode);
}

cudaError_t CUDARTAPI cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *data)
{
	RT_CALL(cuLaunchHostFunc, stream, function, data);
}

cudaError_t CUDARTAPI cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback,
					    void *data, unsigned int flags)
{
	RT_CALL(cuStreamAddCallback, stream, (CUstreamCallback)(void *)callback, data, flags);
}

cudaError_t CUDARTAPI cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int flags)
{
	RT_CALL(cuEventCreate, event, flags);
}

cudaError_t CUDARTAPI cudaEventCreate(cudaEvent_t *event)
{
	return cudaEventCreateWithFlags(event, 0);
}

cudaError_t CUDARTAPI cudaEventDestroy(cudaEvent_t event)
{
	RT_CALL(cuEventDestroy_v2, event);
}

cudaError_t CUDARTAPI cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
	RT_CALL(cuEventRecord, event, stream);
}

cudaError_t CUDARTAPI cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream,
					       unsigned int flags)
{
	RT_CALL(cuEventRecordWithFlags, event, stream, flags);
}

cudaError_t CUDARTAPI cudaEventQuery(cudaEvent_t event)
{
	RT_CALL(cuEventQuery, event);
}

cudaError_t CUDARTAPI cudaEventSynchronize(cudaEvent_t event)
{
	RT_CALL(cuEventSynchronize, event);
}

cudaError_t CUDARTAPI cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t end)
{
	RT_CALL(cuEventElapsedTime, ms, start, end);
}
