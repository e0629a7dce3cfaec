/* SPDX-License-Identifier: MIT */
/*
 * green.c - green contexts: a share of a device's processors with the primary context's memory.
 *
 * A green context retains the primary one, and what is allocated while it is current belongs to the
 * primary one, so its end frees nothing. The shares are counted and nothing more.
 */
#include "sim.h"

#include <stdlib.h>

#define PROCESSORS 132
#define LEAST	   8

struct CUdevResourceDesc_st {
	unsigned int processors;
};

struct CUgreenCtx_st {
	struct CUctx_st ctx;
	unsigned int processors;
};

static CUdevResource share_of(unsigned int processors)
{
	CUdevResource resource = {.type = CU_DEV_RESOURCE_TYPE_SM};

	resource.sm.smCount = processors;
	return resource;
}

CUresult CUDAAPI cuDeviceGetDevResource(CUdevice dev, CUdevResource *resource,
					CUdevResourceType type)
{
	CUresult rc = sim_check_device(dev);

	if (rc)
		return rc;
	if (!resource || type != CU_DEV_RESOURCE_TYPE_SM)
		return CUDA_ERROR_INVALID_RESOURCE_TYPE;
	*resource = share_of(PROCESSORS);
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDevSmResourceSplitByCount(CUdevResource *result, unsigned int *groups,
					     const CUdevResource *input, CUdevResource *remaining,
					     unsigned int flags, unsigned int least)
{
	unsigned int size = least < LEAST ? LEAST : (least + LEAST - 1) / LEAST * LEAST;
	unsigned int fit;

	SIM_ENTER();
	if (!groups || !input || input->type != CU_DEV_RESOURCE_TYPE_SM)
		return CUDA_ERROR_INVALID_VALUE;
	fit = input->sm.smCount / size;
	if (!result || *groups > fit)
		*groups = fit;
	for (unsigned int i = 0; result && i < *groups; i++)
		result[i] = share_of(size);
	if (remaining)
		*remaining = share_of(input->sm.smCount - *groups * size);
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDevResourceGenerateDesc(CUdevResourceDesc *desc, CUdevResource *resources,
					   unsigned int count)
{
	SIM_ENTER();
	if (!desc || !resources || !count)
		return CUDA_ERROR_INVALID_VALUE;
	*desc = calloc(1, sizeof(**desc));
	if (!*desc)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (unsigned int i = 0; i < count; i++)
		(*desc)->processors += resources[i].sm.smCount;
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGreenCtxCreate(CUgreenCtx *green, CUdevResourceDesc desc, CUdevice dev,
				  unsigned int flags)
{
	struct CUgreenCtx_st *made;
	CUcontext primary;
	CUresult rc;

	SIM_ENTER();
	if (!green || !desc || flags != CU_GREEN_CTX_DEFAULT_STREAM)
		return CUDA_ERROR_INVALID_VALUE;
	rc = cuDevicePrimaryCtxRetain(&primary, dev);
	if (rc)
		return rc;
	made = calloc(1, sizeof(*made));
	if (!made) {
		cuDevicePrimaryCtxRelease_v2(dev);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*made = (struct CUgreenCtx_st){
		{.device = dev, .owner = primary, .alive = true, .id = sim_context_id()},
		desc->processors};
	*green = made;
	return CUDA_SUCCESS;
}

/* The object stays, like that of any destroyed context. */
CUresult CUDAAPI cuGreenCtxDestroy(CUgreenCtx green)
{
	SIM_ENTER();
	if (!green || !green->ctx.alive)
		return CUDA_ERROR_INVALID_CONTEXT;
	green->ctx.alive = false;
	return cuDevicePrimaryCtxRelease_v2(green->ctx.device);
}

CUresult CUDAAPI cuCtxFromGreenCtx(CUcontext *ctx, CUgreenCtx green)
{
	SIM_ENTER();
	if (!ctx || !green || !green->ctx.alive)
		return CUDA_ERROR_INVALID_CONTEXT;
	*ctx = &green->ctx;
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGreenCtxGetDevResource(CUgreenCtx green, CUdevResource *resource,
					  CUdevResourceType type)
{
	SIM_ENTER();
	if (!green || !resource || type != CU_DEV_RESOURCE_TYPE_SM)
		return CUDA_ERROR_INVALID_RESOURCE_TYPE;
	*resource = share_of(green->processors);
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGreenCtxGetId(CUgreenCtx green, unsigned long long *id)
{
	SIM_ENTER();
	if (!green || !id)
		return CUDA_ERROR_INVALID_VALUE;
	*id = green->ctx.id;
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGreenCtxStreamCreate(CUstream *stream, CUgreenCtx green, unsigned int flags,
					int priority)
{
	CUresult rc;

	SIM_ENTER();
	if (!green || flags != CU_STREAM_NON_BLOCKING)
		return CUDA_ERROR_INVALID_VALUE;
	rc = cuCtxPushCurrent_v2(&green->ctx);
	rc = rc ? rc : cuStreamCreateWithPriority(stream, flags, priority);
	cuCtxPopCurrent_v2(NULL);
	return rc;
}

CUresult CUDAAPI cuGreenCtxRecordEvent(CUgreenCtx green, CUevent event)
{
	return green ? cuEventRecord(event, NULL) : CUDA_ERROR_INVALID_VALUE;
}

CUresult CUDAAPI cuGreenCtxWaitEvent(CUgreenCtx green, CUevent event)
{
	SIM_ENTER();
	return green && event ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult CUDAAPI cuStreamGetCtx_v2(CUstream stream, CUcontext *ctx, CUgreenCtx *green)
{
	CUcontext found;
	CUresult rc = cuStreamGetCtx(stream, &found);

	if (rc)
		return rc;
	if (green)
		*green = found->owner ? (CUgreenCtx)found : NULL;
	if (ctx)
		*ctx = found->owner ? found->owner : found;
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuStreamGetGreenCtx(CUstream stream, CUgreenCtx *green)
{
	return cuStreamGetCtx_v2(stream, NULL, green);
}
