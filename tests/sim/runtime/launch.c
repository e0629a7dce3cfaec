/* SPDX-License-Identifier: MIT */
/*
 * launch.c - compiled-in kernels: registration, the launch protocol of compiled code, attributes.
 *
 * A kernel does nothing, but it is loaded and launched like any other: all that are compiled in are
 * one library, loaded at the first launch. Variables live in their host shadow.
 */
#include "rt.h"

#include <pthread.h>
#include <string.h>

/* Called by compiled code, declared in no public header. */
void **CUDARTAPI __cudaRegisterFatBinary(void *fatbin);
void CUDARTAPI __cudaRegisterFatBinaryEnd(void **handle);
void CUDARTAPI __cudaUnregisterFatBinary(void **handle);
void CUDARTAPI __cudaRegisterFunction(void **handle, const char *host, char *device,
				      const char *name, int limit, void *tid, void *bid, void *bdim,
				      void *gdim, int *warps);
void CUDARTAPI __cudaRegisterVar(void **handle, char *host, char *device, const char *name, int ext,
				 size_t size, int constant, int global);
char CUDARTAPI __cudaInitModule(void **handle);
cudaError_t CUDARTAPI __cudaGetKernel(cudaKernel_t *kernel, const void *function);
cudaError_t CUDARTAPI __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **args,
					 size_t shared, cudaStream_t stream);
unsigned int CUDARTAPI __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared,
						   cudaStream_t stream);
cudaError_t CUDARTAPI __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared,
						 void *stream);

void **CUDARTAPI __cudaRegisterFatBinary(void *fatbin)
{
	static void *handle[1];

	return handle;
}

void CUDARTAPI __cudaRegisterFatBinaryEnd(void **handle)
{
}

void CUDARTAPI __cudaUnregisterFatBinary(void **handle)
{
}

void CUDARTAPI __cudaRegisterFunction(void **handle, const char *host, char *device,
				      const char *name, int limit, void *tid, void *bid, void *bdim,
				      void *gdim, int *warps)
{
}

void CUDARTAPI __cudaRegisterVar(void **handle, char *host, char *device, const char *name, int ext,
				 size_t size, int constant, int global)
{
}

char CUDARTAPI __cudaInitModule(void **handle)
{
	return 1;
}

static __thread struct configuration {
	dim3 grid, block;
	size_t shared;
	cudaStream_t stream;
} configuration; /* compiled code pops what it has just pushed: one is enough */

unsigned int CUDARTAPI __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared,
						   cudaStream_t stream)
{
	configuration = (struct configuration){grid, block, shared, stream};
	return 0;
}

cudaError_t CUDARTAPI __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared,
						 void *stream)
{
	*grid = configuration.grid;
	*block = configuration.block;
	*shared = configuration.shared;
	*(cudaStream_t *)stream = configuration.stream;
	return cudaSuccess;
}

cudaError_t CUDARTAPI __cudaGetKernel(cudaKernel_t *kernel, const void *function)
{
	*kernel = (cudaKernel_t)(uintptr_t)function;
	return cudaSuccess;
}

/* One kernel stands for all: nobody can tell them apart. */
cudaError_t rt_kernel(const void *host, CUfunction *ret_function)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static const char image[] = "simulated";
	static CUlibrary library;
	static CUkernel kernel;
	cudaError_t rc = rt_enter();

	pthread_mutex_lock(&lock);
	if (!rc && !library)
		rc = rt_result(
			DRV(cuLibraryLoadData)(&library, image, NULL, NULL, 0, NULL, NULL, 0));
	if (!rc && !kernel)
		rc = rt_result(DRV(cuLibraryGetKernel)(&kernel, library, "kernel"));
	pthread_mutex_unlock(&lock);
	return rc ? rc : rt_result(DRV(cuKernelGetFunction)(ret_function, kernel));
}

cudaError_t CUDARTAPI __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **args,
					 size_t shared, cudaStream_t stream)
{
	return cudaLaunchKernel(kernel, grid, block, args, shared, stream);
}

cudaError_t CUDARTAPI cudaFuncGetAttributes(struct cudaFuncAttributes *attributes,
					    const void *function)
{
	memset(attributes, 0, sizeof(*attributes));
	attributes->maxThreadsPerBlock = 1024;
	attributes->numRegs = 32;
	attributes->ptxVersion = 90;
	attributes->binaryVersion = 90;
	attributes->maxDynamicSharedSizeBytes = 232448;
	return rt_enter();
}

cudaError_t CUDARTAPI cudaFuncSetAttribute(const void *function, enum cudaFuncAttribute which,
					   int value)
{
	return rt_enter();
}

cudaError_t CUDARTAPI cudaFuncSetCacheConfig(const void *function, enum cudaFuncCache config)
{
	return rt_enter();
}

cudaError_t CUDARTAPI cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
	int *blocks, const void *function, int block_size, size_t shared, unsigned int flags)
{
	RT_CALL(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, blocks,
		(CUfunction)(uintptr_t)function, block_size, shared, flags);
}

cudaError_t CUDARTAPI cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks,
								    const void *function,
								    int block_size, size_t shared)
{
	return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, block_size,
								      shared, 0);
}

cudaError_t CUDARTAPI cudaGetSymbolAddress(void **ptr, const void *symbol)
{
	*ptr = (void *)(uintptr_t)symbol;
	return rt_enter();
}

/* cuda_profiler_api.h is not in every set of CUDA headers. */
cudaError_t CUDARTAPI cudaProfilerStart(void);
cudaError_t CUDARTAPI cudaProfilerStop(void);

cudaError_t CUDARTAPI cudaProfilerStart(void)
{
	return cudaSuccess;
}

cudaError_t CUDARTAPI cudaProfilerStop(void)
{
	return cudaSuccess;
}
