/* SPDX-License-Identifier: MIT */
/*
 * device.c - devices of the runtime: the lazy start, the current device, properties.
 */
#include "rt.h"

#include <string.h>

#define MAX_DEVICES 16

static __thread int current; /* device of this thread */
static CUcontext primary[MAX_DEVICES];

/* The retain happens once per device. */
static cudaError_t context_of(int device, CUcontext *ret_ctx)
{
	CUresult rc;

	*ret_ctx = __atomic_load_n(&primary[device], __ATOMIC_ACQUIRE);
	if (*ret_ctx)
		return cudaSuccess;
	rc = DRV(cuDevicePrimaryCtxRetain)(ret_ctx, device);
	if (rc)
		return rt_fail((cudaError_t)rc);
	__atomic_store_n(&primary[device], *ret_ctx, __ATOMIC_RELEASE);
	return cudaSuccess;
}

/* Every thread makes the context current for itself. */
static cudaError_t use_device(int device)
{
	CUcontext ctx, now = NULL;
	cudaError_t rc = context_of(device, &ctx);

	if (rc)
		return rc;
	DRV(cuCtxGetCurrent)(&now);
	return now == ctx ? cudaSuccess : rt_result(DRV(cuCtxSetCurrent)(ctx));
}

cudaError_t rt_enter(void)
{
	cudaError_t rc = rt_load();

	return rc ? rc : use_device(current);
}

cudaError_t CUDARTAPI cudaGetDeviceCount(int *count)
{
	cudaError_t rc = rt_load();

	return rc ? rc : rt_result(DRV(cuDeviceGetCount)(count));
}

cudaError_t CUDARTAPI cudaGetDevice(int *device)
{
	cudaError_t rc = rt_load();

	if (!rc)
		*device = current;
	return rc;
}

static cudaError_t check_device(int device)
{
	int count = 0;
	cudaError_t rc = cudaGetDeviceCount(&count);

	if (!rc && (device < 0 || device >= count))
		rc = rt_fail(cudaErrorInvalidDevice);
	return rc;
}

cudaError_t CUDARTAPI cudaSetDevice(int device)
{
	cudaError_t rc = check_device(device);

	if (rc)
		return rc;
	current = device;
	return use_device(device);
}

cudaError_t CUDARTAPI cudaDeviceReset(void)
{
	int device = current;
	cudaError_t rc = rt_load();

	if (rc)
		return rc;
	__atomic_store_n(&primary[device], NULL, __ATOMIC_RELEASE);
	DRV(cuCtxSetCurrent)(NULL);
	return rt_result(DRV(cuDevicePrimaryCtxReset)(device));
}

cudaError_t CUDARTAPI cudaDeviceSynchronize(void)
{
	RT_CALL(cuCtxSynchronize, );
}

static int attribute(int device, CUdevice_attribute which)
{
	int value = 0;

	DRV(cuDeviceGetAttribute)(&value, which, device);
	return value;
}

cudaError_t CUDARTAPI cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr which, int device)
{
	cudaError_t rc = check_device(device);

	/* The two enumerations have the same numbers. */
	return rc ? rc
		  : rt_result(DRV(cuDeviceGetAttribute)(value, (CUdevice_attribute)which, device));
}

static void get_limits(struct cudaDeviceProp *prop, int device)
{
	prop->sharedMemPerBlock =
		(size_t)attribute(device, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
	prop->sharedMemPerBlockOptin =
		(size_t)attribute(device, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
	prop->sharedMemPerMultiprocessor =
		(size_t)attribute(device, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
	prop->regsPerBlock = attribute(device, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK);
	prop->regsPerMultiprocessor =
		attribute(device, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR);
	prop->maxThreadsPerBlock = attribute(device, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
	prop->maxThreadsPerMultiProcessor =
		attribute(device, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
	prop->maxBlocksPerMultiProcessor =
		attribute(device, CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR);
	prop->maxThreadsDim[0] = attribute(device, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X);
	prop->maxThreadsDim[1] = attribute(device, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y);
	prop->maxThreadsDim[2] = attribute(device, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z);
	prop->maxGridSize[0] = attribute(device, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X);
	prop->maxGridSize[1] = attribute(device, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y);
	prop->maxGridSize[2] = attribute(device, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z);
	prop->memPitch = (size_t)attribute(device, CU_DEVICE_ATTRIBUTE_MAX_PITCH);
}

static void get_features(struct cudaDeviceProp *prop, int device)
{
	prop->warpSize = attribute(device, CU_DEVICE_ATTRIBUTE_WARP_SIZE);
	prop->major = attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
	prop->minor = attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
	prop->multiProcessorCount = attribute(device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
	prop->textureAlignment = (size_t)attribute(device, CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT);
	prop->totalConstMem = (size_t)attribute(device, CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY);
	prop->l2CacheSize = attribute(device, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
	prop->memoryBusWidth = attribute(device, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
	prop->pciBusID = attribute(device, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID);
	prop->asyncEngineCount = attribute(device, CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT);
	prop->canMapHostMemory = 1;
	prop->unifiedAddressing = 1;
	prop->managedMemory = 1;
	prop->concurrentManagedAccess = 1;
	prop->concurrentKernels = 1;
	prop->cooperativeLaunch = 1;
	prop->streamPrioritiesSupported = 1;
	prop->memoryPoolsSupported = 1;
	prop->hostRegisterSupported = 1;
}

cudaError_t CUDARTAPI cudaGetDeviceProperties(struct cudaDeviceProp *prop, int device)
{
	cudaError_t rc = check_device(device);

	if (rc)
		return rc;
	memset(prop, 0, sizeof(*prop));
	DRV(cuDeviceGetName)(prop->name, sizeof(prop->name), device);
	DRV(cuDeviceTotalMem_v2)(&prop->totalGlobalMem, device);
	DRV(cuDeviceGetUuid)((CUuuid *)&prop->uuid, device);
	get_limits(prop, device);
	get_features(prop, device);
	return cudaSuccess;
}

cudaError_t CUDARTAPI cudaDriverGetVersion(int *version)
{
	cudaError_t rc = rt_load();

	/* Unlike every other call this one also works where there is no device. */
	if (!rt_driver.cuDriverGetVersion)
		return rc;
	return rt_result(DRV(cuDriverGetVersion)(version));
}

cudaError_t CUDARTAPI cudaRuntimeGetVersion(int *version)
{
	*version = CUDART_VERSION;
	return cudaSuccess;
}

cudaError_t CUDARTAPI cudaDeviceCanAccessPeer(int *can, int device, int peer)
{
	RT_CALL(cuDeviceCanAccessPeer, can, device, peer);
}

/* Needs a context on the peer, and makes one. */
cudaError_t CUDARTAPI cudaDeviceEnablePeerAccess(int peer, unsigned int flags)
{
	CUcontext ctx;
	cudaError_t rc = check_device(peer);

	rc = rc ? rc : context_of(peer, &ctx);
	if (rc)
		return rc;
	RT_CALL(cuCtxEnablePeerAccess, ctx, flags);
}

cudaError_t CUDARTAPI cudaDeviceDisablePeerAccess(int peer)
{
	CUcontext ctx;
	cudaError_t rc = check_device(peer);

	rc = rc ? rc : context_of(peer, &ctx);
	if (rc)
		return rc;
	RT_CALL(cuCtxDisablePeerAccess, ctx);
}

cudaError_t CUDARTAPI cudaDeviceGetP2PAttribute(int *value, enum cudaDeviceP2PAttr which,
						int device, int peer)
{
	RT_CALL(cuDeviceGetP2PAttribute, value, (CUdevice_P2PAttribute)which, device, peer);
}

cudaError_t CUDARTAPI cudaDeviceGetPCIBusId(char *id, int len, int device)
{
	RT_CALL(cuDeviceGetPCIBusId, id, len, device);
}

cudaError_t CUDARTAPI cudaDeviceGetByPCIBusId(int *device, const char *id)
{
	RT_CALL(cuDeviceGetByPCIBusId, device, id);
}

cudaError_t CUDARTAPI cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
	RT_CALL(cuCtxGetStreamPriorityRange, least, greatest);
}

cudaError_t CUDARTAPI cudaDeviceGetLimit(size_t *value, enum cudaLimit limit)
{
	RT_CALL(cuCtxGetLimit, value, (CUlimit)limit);
}

cudaError_t CUDARTAPI cudaDeviceSetLimit(enum cudaLimit limit, size_t value)
{
	RT_CALL(cuCtxSetLimit, (CUlimit)limit, value);
}

cudaError_t CUDARTAPI cudaGetDeviceFlags(unsigned int *flags)
{
	RT_CALL(cuCtxGetFlags, flags);
}

cudaError_t CUDARTAPI cudaSetDeviceFlags(unsigned int flags)
{
	cudaError_t rc = rt_load();

	return rc ? rc : rt_result(DRV(cuDevicePrimaryCtxSetFlags_v2)(current, flags));
}
