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

cudaError_t CUDARTAPI cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode)
{
	RT_CALL(cuThreadExchangeStreamCaptureMode, (CUstreamCaptureMode *)mode);
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
