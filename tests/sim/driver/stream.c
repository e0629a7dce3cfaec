/* SPDX-License-Identifier: MIT */
/*
 * stream.c - streams and events.
 *
 * Work is done at the call, so a stream is always empty. An event can be made to look unfinished:
 * with GT_SIM_EVENT_LAG=n it is "not ready" for the first n queries after each record. A stream
 * that is captured (capture.c) does nothing now.
 */
#include "sim.h"

#include <stdlib.h>

static unsigned long long next_id = 3; /* below: the legacy and the per-thread default stream */

/* NULL, CU_STREAM_LEGACY and CU_STREAM_PER_THREAD are not objects. */
static bool is_object(CUstream stream)
{
	return (uintptr_t)stream > 2;
}

CUstream sim_stream(CUstream stream)
{
	static __thread struct CUstream_st per_thread;

	if (stream != CU_STREAM_PER_THREAD)
		return is_object(stream) ? stream : NULL;
	return &per_thread;
}

CUresult CUDAAPI cuStreamCreateWithPriority(CUstream *stream, unsigned int flags, int priority)
{
	struct CUctx_st *ctx;
	struct CUstream_st *made;
	CUresult rc = sim_current(&ctx);

	if (rc)
		return rc;
	made = calloc(1, sizeof(*made));
	if (!made)
		return CUDA_ERROR_OUT_OF_MEMORY;
	made->ctx = ctx;
	made->flags = flags;
	made->priority = priority < -5 ? -5 : priority > 0 ? 0 : priority;
	made->id = __atomic_fetch_add(&next_id, 1, __ATOMIC_RELAXED);
	*stream = made;
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuStreamCreate(CUstream *stream, unsigned int flags)
{
	return cuStreamCreateWithPriority(stream, flags, 0);
}

CUresult CUDAAPI cuStreamDestroy_v2(CUstream stream)
{
	SIM_ENTER();
	if (!is_object(stream))
		return CUDA_ERROR_INVALID_HANDLE;
	sim_capture_leave(stream);
	free(stream);
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuStreamDestroy(CUstream stream)
{
	return cuStreamDestroy_v2(stream);
}

CUresult CUDAAPI cuStreamGetPriority(CUstream stream, int *priority)
{
	SIM_ENTER();
	*priority = is_object(stream) ? stream->priority : 0;
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuStreamGetFlags(CUstream stream, unsigned int *flags)
{
	SIM_ENTER();
	*flags = is_object(stream) ? stream->flags : 0;
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuStreamGetId(CUstream stream, unsigned long long *id)
{
	SIM_ENTER();
	*id = is_object(stream) ? stream->id : (unsigned long long)(uintptr_t)stream;
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuStreamGetCtx(CUstream stream, CUcontext *ctx)
{
	if (!is_object(stream))
		return sim_current(ctx);
	*ctx = stream->ctx;
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuStreamGetDevice(CUstream stream, CUdevice *device)
{
	CUcontext ctx;
	CUresult rc = cuStreamGetCtx(stream, &ctx);

	if (!rc)
		*device = ctx->device;
	return rc;
}

CUresult CUDAAPI cuStreamQuery(CUstream stream)
{
	SIM_ENTER();
	return sim_is_captured(stream) ? sim_capture_refuse(stream) : CUDA_SUCCESS;
}

CUresult CUDAAPI cuStreamSynchronize(CUstream stream)
{
	CUcontext ctx;
	CUresult rc = cuStreamGetCtx(stream, &ctx);

	if (rc)
		return rc;
	if (sim_is_captured(stream))
		return sim_capture_refuse(stream);
	sim_pool_sync(&sim.device[ctx->device]);
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags)
{
	SIM_ENTER();
	return event ? sim_capture_wait(stream, event) : CUDA_ERROR_INVALID_HANDLE;
}

CUresult CUDAAPI cuStreamAddCallback(CUstream stream, CUstreamCallback callback, void *data,
				     unsigned int flags)
{
	SIM_ENTER();
	if (sim_is_captured(stream))
		return sim_capture_refuse(stream);
	callback(stream, CUDA_SUCCESS, data);
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuLaunchHostFunc(CUstream stream, CUhostFn function, void *data)
{
	SIM_ENTER();
	if (sim_is_captured(stream))
		return sim_capture_host(stream, function, data);
	function(data);
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuEventCreate(CUevent *event, unsigned int flags)
{
	struct CUctx_st *ctx;
	CUresult rc = sim_current(&ctx);

	if (rc)
		return rc;
	*event = calloc(1, sizeof(**event));
	if (!*event)
		return CUDA_ERROR_OUT_OF_MEMORY;
	(*event)->ctx = ctx;
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuEventDestroy_v2(CUevent event)
{
	SIM_ENTER();
	if (!event)
		return CUDA_ERROR_INVALID_HANDLE;
	free(event);
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuEventDestroy(CUevent event)
{
	return cuEventDestroy_v2(event);
}

CUresult CUDAAPI cuEventRecord(CUevent event, CUstream stream)
{
	SIM_ENTER();
	if (!event)
		return CUDA_ERROR_INVALID_HANDLE;
	sim_capture_record(event, stream);
	clock_gettime(CLOCK_MONOTONIC, &event->when);
	event->recorded = true;
	event->lag = sim.event_lag;
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned int flags)
{
	return cuEventRecord(event, stream);
}

CUresult CUDAAPI cuEventQuery(CUevent event)
{
	SIM_ENTER();
	if (!event)
		return CUDA_ERROR_INVALID_HANDLE;
	if (sim_capture_has(event))
		return CUDA_ERROR_CAPTURED_EVENT;
	if (event->lag <= 0)
		return CUDA_SUCCESS;
	event->lag--;
	return CUDA_ERROR_NOT_READY;
}

CUresult CUDAAPI cuEventSynchronize(CUevent event)
{
	SIM_ENTER();
	if (!event)
		return CUDA_ERROR_INVALID_HANDLE;
	if (sim_capture_has(event))
		return CUDA_ERROR_CAPTURED_EVENT;
	event->lag = 0;
	sim_pool_sync(&sim.device[event->ctx->device]);
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuEventElapsedTime_v2(float *ms, CUevent start, CUevent end)
{
	SIM_ENTER();
	if (!start || !end || !start->recorded || !end->recorded)
		return CUDA_ERROR_INVALID_HANDLE;
	*ms = (float)(end->when.tv_sec - start->when.tv_sec) * 1e3F +
	      (float)(end->when.tv_nsec - start->when.tv_nsec) * 1e-6F;
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuEventElapsedTime(float *ms, CUevent start, CUevent end)
{
	return cuEventElapsedTime_v2(ms, start, end);
}
