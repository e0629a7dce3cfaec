/* SPDX-License-Identifier: MIT */
/*
 * context.c - contexts: the primary one of each device, created ones, and the thread's stack.
 *
 * A context costs GT_SIM_CONTEXT_COST bytes of its device from its first retain until its end,
 * which no allocation shows: the memory that real contexts take in the same way.
 */
#include "sim.h"

#include <stdlib.h>

#define STACK_DEPTH 64

static __thread struct CUctx_st *stack[STACK_DEPTH];
static __thread int depth; /* entries in use; the last one is current */
static unsigned long long next_id = 1;

CUresult sim_current(struct CUctx_st **ret_ctx)
{
	struct CUctx_st *ctx;

	SIM_ENTER();
	ctx = depth ? stack[depth - 1] : NULL;
	if (!ctx)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!ctx->alive)
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	*ret_ctx = ctx;
	return CUDA_SUCCESS;
}

CUresult sim_current_device(struct sim_device **ret_device)
{
	struct CUctx_st *ctx;
	CUresult rc = sim_current(&ctx);

	if (!rc)
		*ret_device = &sim.device[ctx->device];
	return rc;
}

unsigned long long sim_context_id(void)
{
	return __atomic_fetch_add(&next_id, 1, __ATOMIC_RELAXED);
}

/* Under the device's lock: the context comes to life and takes its memory. */
static CUresult open_context(struct CUctx_st *ctx)
{
	CUresult rc = sim_charge(&sim.device[ctx->device], sim.context_cost);

	if (rc)
		return rc;
	sim_book(&sim.device[ctx->device].books, GT_SIM_CONTEXT, sim.context_cost);
	ctx->alive = true;
	ctx->id = sim_context_id();
	return CUDA_SUCCESS;
}

/* All that was allocated with it goes with it, except pools and physical handles. */
static void close_context(struct CUctx_st *ctx)
{
	struct sim_device *device = &sim.device[ctx->device];

	sim_array_free_all(ctx);
	sim_module_free_all(ctx);
	pthread_mutex_lock(&device->lock);
	ctx->alive = false;
	ctx->refs = 0;
	ctx->peers = 0;
	sim_mem_free_all(ctx);
	sim_uncharge(device, sim.context_cost);
	sim_unbook(&device->books, GT_SIM_CONTEXT, sim.context_cost);
	pthread_mutex_unlock(&device->lock);
	sim_host_free_all(ctx);
	sim_foreign_free_all(ctx);
}

CUresult CUDAAPI cuDevicePrimaryCtxRetain(CUcontext *pctx, CUdevice dev)
{
	CUresult rc = sim_check_device(dev);
	struct sim_device *device = &sim.device[dev];

	if (rc)
		return rc;
	pthread_mutex_lock(&device->lock);
	if (!device->primary.alive)
		rc = open_context(&device->primary);
	if (!rc) {
		device->primary.refs++;
		*pctx = &device->primary;
	}
	pthread_mutex_unlock(&device->lock);
	return rc;
}

CUresult CUDAAPI cuDevicePrimaryCtxRelease_v2(CUdevice dev)
{
	CUresult rc = sim_check_device(dev);
	struct sim_device *device = &sim.device[dev];
	bool last = false;

	if (rc)
		return rc;
	pthread_mutex_lock(&device->lock);
	if (!device->primary.alive)
		rc = CUDA_ERROR_INVALID_CONTEXT;
	else
		last = --device->primary.refs == 0;
	pthread_mutex_unlock(&device->lock);
	if (last)
		close_context(&device->primary);
	return rc;
}

CUresult CUDAAPI cuDevicePrimaryCtxRelease(CUdevice dev)
{
	return cuDevicePrimaryCtxRelease_v2(dev);
}

CUresult CUDAAPI cuDevicePrimaryCtxReset_v2(CUdevice dev)
{
	CUresult rc = sim_check_device(dev);

	if (!rc && sim.device[dev].primary.alive)
		close_context(&sim.device[dev].primary);
	return rc;
}

CUresult CUDAAPI cuDevicePrimaryCtxReset(CUdevice dev)
{
	return cuDevicePrimaryCtxReset_v2(dev);
}

CUresult CUDAAPI cuDevicePrimaryCtxSetFlags_v2(CUdevice dev, unsigned int flags)
{
	CUresult rc = sim_check_device(dev);

	if (!rc)
		sim.device[dev].primary.flags = flags;
	return rc;
}

CUresult CUDAAPI cuDevicePrimaryCtxSetFlags(CUdevice dev, unsigned int flags)
{
	return cuDevicePrimaryCtxSetFlags_v2(dev, flags);
}

CUresult CUDAAPI cuDevicePrimaryCtxGetState(CUdevice dev, unsigned int *flags, int *active)
{
	CUresult rc = sim_check_device(dev);

	if (rc)
		return rc;
	*flags = sim.device[dev].primary.flags;
	*active = sim.device[dev].primary.alive;
	return CUDA_SUCCESS;
}

static CUresult push(struct CUctx_st *ctx)
{
	if (depth == STACK_DEPTH)
		return CUDA_ERROR_OUT_OF_MEMORY;
	stack[depth++] = ctx;
	return CUDA_SUCCESS;
}

static CUresult create(CUcontext *pctx, unsigned int flags, CUdevice dev)
{
	CUresult rc = sim_check_device(dev);
	struct CUctx_st *ctx;

	if (rc)
		return rc;
	ctx = calloc(1, sizeof(*ctx));
	if (!ctx)
		return CUDA_ERROR_OUT_OF_MEMORY;
	ctx->device = dev;
	ctx->flags = flags;
	ctx->refs = 1;
	pthread_mutex_lock(&sim.device[dev].lock);
	rc = open_context(ctx);
	pthread_mutex_unlock(&sim.device[dev].lock);
	rc = rc ? rc : push(ctx);
	if (rc)
		free(ctx);
	else
		*pctx = ctx;
	return rc;
}

CUresult CUDAAPI cuCtxCreate(CUcontext *pctx, unsigned int flags, CUdevice dev)
{
	return create(pctx, flags, dev);
}

CUresult CUDAAPI cuCtxCreate_v2(CUcontext *pctx, unsigned int flags, CUdevice dev)
{
	return create(pctx, flags, dev);
}

CUresult CUDAAPI cuCtxCreate_v3(CUcontext *pctx, CUexecAffinityParam *params, int count,
				unsigned int flags, CUdevice dev)
{
	return count && !params ? CUDA_ERROR_INVALID_VALUE : create(pctx, flags, dev);
}

CUresult CUDAAPI cuCtxCreate_v4(CUcontext *pctx, CUctxCreateParams *params, unsigned int flags,
				CUdevice dev)
{
	return create(pctx, flags, dev);
}

/* The object stays: another thread may still have it current and must be told so. */
CUresult CUDAAPI cuCtxDestroy_v2(CUcontext ctx)
{
	SIM_ENTER();
	if (!ctx || ctx->primary || ctx->owner || !ctx->alive)
		return CUDA_ERROR_INVALID_CONTEXT;
	close_context(ctx);
	if (depth && stack[depth - 1] == ctx)
		depth--;
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxDestroy(CUcontext ctx)
{
	return cuCtxDestroy_v2(ctx);
}

CUresult CUDAAPI cuCtxDetach(CUcontext ctx)
{
	return cuCtxDestroy_v2(ctx);
}

CUresult CUDAAPI cuCtxPushCurrent_v2(CUcontext ctx)
{
	SIM_ENTER();
	return ctx ? push(ctx) : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult CUDAAPI cuCtxPushCurrent(CUcontext ctx)
{
	return cuCtxPushCurrent_v2(ctx);
}

CUresult CUDAAPI cuCtxPopCurrent_v2(CUcontext *pctx)
{
	SIM_ENTER();
	if (!depth || !stack[depth - 1])
		return CUDA_ERROR_INVALID_CONTEXT;
	depth--;
	if (pctx)
		*pctx = stack[depth];
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxPopCurrent(CUcontext *pctx)
{
	return cuCtxPopCurrent_v2(pctx);
}

/* Replaces the top of the stack; NULL empties it. */
CUresult CUDAAPI cuCtxSetCurrent(CUcontext ctx)
{
	SIM_ENTER();
	if (depth)
		depth--;
	return ctx ? push(ctx) : CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxGetCurrent(CUcontext *pctx)
{
	SIM_ENTER();
	*pctx = depth ? stack[depth - 1] : NULL;
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxGetDevice(CUdevice *device)
{
	struct CUctx_st *ctx;
	CUresult rc = sim_current(&ctx);

	if (!rc)
		*device = ctx->device;
	return rc;
}

CUresult CUDAAPI cuCtxGetDevice_v2(CUdevice *device, CUcontext ctx)
{
	if (!ctx)
		return cuCtxGetDevice(device);
	SIM_ENTER();
	*device = ctx->device;
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxGetFlags(unsigned int *flags)
{
	struct CUctx_st *ctx;
	CUresult rc = sim_current(&ctx);

	if (!rc)
		*flags = ctx->flags;
	return rc;
}

CUresult CUDAAPI cuCtxGetId(CUcontext ctx, unsigned long long *id)
{
	CUresult rc = ctx ? CUDA_SUCCESS : sim_current(&ctx);

	if (!rc)
		*id = ctx->id;
	return rc;
}

CUresult CUDAAPI cuCtxGetApiVersion(CUcontext ctx, unsigned int *version)
{
	SIM_ENTER();
	*version = 3020;
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxSynchronize_v2(CUcontext ctx)
{
	CUresult rc = ctx ? CUDA_SUCCESS : sim_current(&ctx);

	rc = rc ? rc : sim_capture_unsafe();
	if (!rc)
		sim_pool_sync(&sim.device[ctx->device]);
	return rc;
}

CUresult CUDAAPI cuCtxSynchronize(void)
{
	return cuCtxSynchronize_v2(NULL);
}

CUresult CUDAAPI cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
	struct CUctx_st *ctx;
	CUresult rc = sim_current(&ctx);

	if (rc)
		return rc;
	if (least)
		*least = 0;
	if (greatest)
		*greatest = -5;
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxGetLimit(size_t *value, CUlimit limit)
{
	struct CUctx_st *ctx;
	CUresult rc = sim_current(&ctx);

	if (!rc)
		*value = limit == CU_LIMIT_STACK_SIZE ? 1024 : (size_t)8 << 20;
	return rc;
}

CUresult CUDAAPI cuCtxSetLimit(CUlimit limit, size_t value)
{
	return cuCtxSynchronize();
}

CUresult CUDAAPI cuCtxGetCacheConfig(CUfunc_cache *config)
{
	*config = CU_FUNC_CACHE_PREFER_NONE;
	return cuCtxSynchronize();
}

CUresult CUDAAPI cuCtxSetCacheConfig(CUfunc_cache config)
{
	return cuCtxSynchronize();
}

/* Every device can reach every other; a context may ask for each of them once. */
static CUresult check_peer(CUcontext peer, struct CUctx_st **ret_ctx)
{
	CUresult rc = sim_current(ret_ctx);

	if (rc)
		return rc;
	if (!peer || !peer->alive)
		return CUDA_ERROR_INVALID_CONTEXT;
	return peer->device == (*ret_ctx)->device ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags)
{
	struct CUctx_st *ctx;
	CUresult rc = check_peer(peer, &ctx);

	if (rc || flags)
		return rc ? rc : CUDA_ERROR_INVALID_VALUE;
	if (ctx->peers & 1U << peer->device)
		return CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
	ctx->peers |= 1U << peer->device;
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxDisablePeerAccess(CUcontext peer)
{
	struct CUctx_st *ctx;
	CUresult rc = check_peer(peer, &ctx);

	if (rc)
		return rc;
	if (!(ctx->peers & 1U << peer->device))
		return CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
	ctx->peers &= ~(1U << peer->device);
	return CUDA_SUCCESS;
}
