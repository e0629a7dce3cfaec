/* SPDX-License-Identifier: MIT */
/*
 * contexts.c - what goes with a context and what stays, green contexts, modules, peers.
 */
#include "self.h"

static void make_some_of_all(void)
{
	CUDA_ARRAY_DESCRIPTOR desc = {1024, 1024, CU_AD_FORMAT_FLOAT, 1};
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
				    .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
	CUmemGenericAllocationHandle handle;
	CUfunction function;
	CUdeviceptr ptr;
	CUmodule module;
	CUarray array;
	void *host;

	OK(cuMemAlloc_v2(&ptr, 1000));
	OK(cuMemAlloc_v2(&ptr, 3 * MIB));
	OK(cuMemAllocManaged(&ptr, 4 * MIB, CU_MEM_ATTACH_GLOBAL));
	OK(cuMemAllocAsync(&ptr, 5000, NULL));
	OK(cuMemHostAlloc(&host, 6000, 0));
	OK(cuMemCreate(&handle, 2 * MIB, &prop, 0));
	OK(cuArrayCreate_v2(&array, &desc));
	OK(cuModuleLoadData(&module, "image"));
	OK(cuModuleGetFunction(&function, module, "kernel"));
}

/* The books of device 0 and the host, without their contexts: pools and handles are left. */
static void only_pools_and_handles(void)
{
	EQUAL(self_bytes(0, GT_SIM_PLAIN), 0);
	EQUAL(self_bytes(0, GT_SIM_MANAGED), 0);
	EQUAL(self_bytes(0, GT_SIM_ARRAY), 0);
	EQUAL(self_bytes(0, GT_SIM_MODULE), 0);
	EQUAL(self_bytes(-1, GT_SIM_PINNED), 0);
	EQUAL(self_bytes(0, GT_SIM_VMM), 2 * MIB);
	EQUAL(self_bytes(0, GT_SIM_POOL_USED), 5000);
}

static void end_of_created(void)
{
	CUcontext primary = self_start(), made;
	CUdeviceptr kept, lost;

	OK(cuMemAlloc_v2(&kept, 7000));
	OK(cuCtxCreate_v2(&made, 0, 0));
	OK(cuMemAlloc_v2(&lost, 100));
	make_some_of_all();
	EQUAL(self_bytes(0, GT_SIM_MODULE), 9 * MIB);
	OK(cuCtxDestroy_v2(made));
	EQUAL(self_bytes(0, GT_SIM_PLAIN), 7000);
	EQUAL(cuMemFree_v2(lost), CUDA_ERROR_INVALID_VALUE);
	EQUAL(cuCtxDestroy_v2(made), CUDA_ERROR_INVALID_CONTEXT);
	OK(cuMemFree_v2(kept));
	only_pools_and_handles();
	EQUAL(cuCtxDestroy_v2(primary), CUDA_ERROR_INVALID_CONTEXT);
}

static void end_of_primary(void)
{
	CUcontext primary = self_start();
	CUdeviceptr ptr;
	void *host;

	make_some_of_all();
	OK(cuMemAlloc_v2(&ptr, 100));
	OK(cuDevicePrimaryCtxReset_v2(0));
	only_pools_and_handles();
	EQUAL(cuMemFree_v2(ptr), CUDA_ERROR_CONTEXT_IS_DESTROYED);
	EQUAL(cuMemHostAlloc(&host, 1, 0), CUDA_ERROR_CONTEXT_IS_DESTROYED);
	EQUAL(cuMemAllocAsync(&ptr, 1, NULL), CUDA_ERROR_CONTEXT_IS_DESTROYED);
	OK(cuDevicePrimaryCtxRetain(&primary, 0));
	EQUAL(cuMemFree_v2(ptr), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemAlloc_v2(&ptr, 100));
	OK(cuCtxSetCurrent(NULL));
	EQUAL(cuMemFree_v2(ptr), CUDA_ERROR_INVALID_CONTEXT);
	EQUAL(cuMemFreeAsync(ptr, NULL), CUDA_ERROR_INVALID_CONTEXT);
}

/* A free may come from any context; the memory is its own device's. */
static void other_device(void)
{
	CUcontext first = self_start(), second;
	CUdeviceptr ptr[2];
	int device;

	OK(cuMemAlloc_v2(&ptr[0], 3 * MIB));
	OK(cuDevicePrimaryCtxRetain(&second, 1));
	OK(cuCtxSetCurrent(second));
	OK(cuMemAllocAsync(&ptr[1], 1000, NULL));
	OK(cuPointerGetAttribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, ptr[0]));
	EQUAL(device, 0);
	OK(cuMemFree_v2(ptr[0]));
	EQUAL(self_bytes(0, GT_SIM_PLAIN), 0);
	EQUAL(cuMemFree_v2(ptr[0]), CUDA_ERROR_INVALID_VALUE);
	OK(cuCtxSetCurrent(first));
	OK(cuMemFreeAsync(ptr[1], NULL));
	EQUAL(self_bytes(1, GT_SIM_POOL_USED), 0);
	EQUAL(self_bytes(0, GT_SIM_POOL_RESERVED), 0);
}

static void peers(void)
{
	CUcontext first = self_start(), second;

	OK(cuDevicePrimaryCtxRetain(&second, 1));
	EQUAL(cuCtxEnablePeerAccess(second, 1), CUDA_ERROR_INVALID_VALUE);
	EQUAL(cuCtxEnablePeerAccess(first, 0), CUDA_ERROR_INVALID_DEVICE);
	EQUAL(cuCtxDisablePeerAccess(second), CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
	OK(cuCtxEnablePeerAccess(second, 0));
	EQUAL(cuCtxEnablePeerAccess(second, 0), CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
	OK(cuCtxDisablePeerAccess(second));
}

static void green(void)
{
	CUdevResource whole, part, rest;
	CUdevResourceDesc desc;
	unsigned int groups = 1;
	CUgreenCtx made, found;
	CUdeviceptr ptr;
	CUstream stream;
	CUcontext ctx;

	OK(cuInit(0));
	OK(cuDeviceGetDevResource(0, &whole, CU_DEV_RESOURCE_TYPE_SM));
	OK(cuDevSmResourceSplitByCount(&part, &groups, &whole, &rest, 0, 30));
	EQUAL(groups, 1);
	EQUAL(part.sm.smCount, 32);
	EQUAL(rest.sm.smCount, 100);
	OK(cuDevResourceGenerateDesc(&desc, &part, 1));
	EQUAL(self_bytes(0, GT_SIM_CONTEXT), 0);
	OK(cuGreenCtxCreate(&made, desc, 0, CU_GREEN_CTX_DEFAULT_STREAM));
	EQUAL(self_bytes(0, GT_SIM_CONTEXT), 300 * MIB);
	OK(cuCtxFromGreenCtx(&ctx, made));
	OK(cuCtxSetCurrent(ctx));
	OK(cuMemAlloc_v2(&ptr, 1000));
	OK(cuGreenCtxStreamCreate(&stream, made, CU_STREAM_NON_BLOCKING, 0));
	OK(cuStreamGetGreenCtx(stream, &found));
	EQUAL(found, made);
	/* The primary context lives on, and what was allocated is its own. */
	OK(cuDevicePrimaryCtxRetain(&ctx, 0));
	OK(cuGreenCtxDestroy(made));
	EQUAL(cuMemAlloc_v2(&ptr, 1000), CUDA_ERROR_CONTEXT_IS_DESTROYED);
	EQUAL(self_bytes(0, GT_SIM_PLAIN), 1000);
	OK(cuDevicePrimaryCtxRelease_v2(0));
	EQUAL(self_bytes(0, GT_SIM_PLAIN), 0);
	EQUAL(self_bytes(0, GT_SIM_CONTEXT), 0);
}

/* Costs nothing until it is used, in each context once. */
static void modules(void)
{
	CUfunction function, same;
	CUlibrary library;
	CUmodule module;
	CUkernel kernel;
	CUcontext made;

	self_start();
	OK(cuModuleLoadData(&module, "image"));
	EQUAL(self_free_bytes(), 64 * MIB);
	OK(cuModuleGetFunction(&function, module, "one"));
	OK(cuModuleGetFunction(&same, module, "one"));
	EQUAL(function, same);
	EQUAL(self_free_bytes(), 55 * MIB);
	OK(cuLibraryLoadData(&library, "image", NULL, NULL, 0, NULL, NULL, 0));
	OK(cuLibraryGetKernel(&kernel, library, "two"));
	EQUAL(self_bytes(0, GT_SIM_MODULE), 9 * MIB);
	OK(cuLaunchKernel((CUfunction)kernel, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
	EQUAL(self_bytes(0, GT_SIM_MODULE), 18 * MIB);
	OK(cuKernelGetFunction(&function, kernel));
	EQUAL(self_bytes(0, GT_SIM_MODULE), 18 * MIB);
	OK(cuCtxCreate_v2(&made, 0, 0));
	OK(cuKernelGetFunction(&function, kernel));
	EQUAL(self_bytes(0, GT_SIM_MODULE), 27 * MIB);
	OK(cuCtxDestroy_v2(made));
	EQUAL(self_bytes(0, GT_SIM_MODULE), 18 * MIB);
	OK(cuLibraryUnload(library));
	EQUAL(cuLibraryUnload(library), CUDA_ERROR_INVALID_HANDLE);
	OK(cuModuleUnload(module));
	EQUAL(cuModuleUnload(module), CUDA_ERROR_INVALID_HANDLE);
	EQUAL(self_free_bytes(), 64 * MIB);
}

static void eager_modules(void)
{
	CUmodule module;

	self_start();
	OK(cuModuleLoadData(&module, "image"));
	EQUAL(self_bytes(0, GT_SIM_MODULE), 40 * MIB);
	EQUAL(cuModuleLoadData(&module, "image"), CUDA_ERROR_OUT_OF_MEMORY);
}

const struct self_case self_context_cases[] = {
	{"end-of-created", end_of_created, "GT_SIM_MODULE_COST=9M"},
	{"end-of-primary", end_of_primary, NULL},
	{"other-device", other_device, NULL},
	{"peers", peers, NULL},
	{"green-contexts", green, "GT_SIM_CONTEXT_COST=300M"},
	{"modules", modules, "GT_SIM_MODULE_COST=9M GT_SIM_CAPACITY=64M"},
	{"eager-modules", eager_modules,
	 "GT_SIM_MODULE_COST=40M GT_SIM_CAPACITY=64M CUDA_MODULE_LOADING=EAGER"},
	{NULL, NULL, NULL},
};
