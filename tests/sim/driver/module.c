/* SPDX-License-Identifier: MIT */
/*
 * module.c - modules, libraries, kernels and launches: all of them exist, none does anything.
 *
 * One kind of object stands for a module and its functions alike; a module's functions are found
 * by name so that the same name gives the same handle.
 */
#include "sim.h"

#include <stdlib.h>
#include <string.h>

#define GLOBAL_SIZE 4096

/* Theirs is a header of its own, which not every set of CUDA headers has. */
CUresult CUDAAPI cuProfilerStart(void);
CUresult CUDAAPI cuProfilerStop(void);

struct CUfunc_st {
	char *name;
	struct CUmod_st *module;
	struct CUfunc_st *next;
};

struct CUmod_st {
	struct CUfunc_st *functions;
	char global[GLOBAL_SIZE]; /* every variable of the module */
};

static CUresult new_module(CUmodule *module)
{
	struct CUctx_st *ctx;
	CUresult rc = sim_current(&ctx);

	if (rc)
		return rc;
	*module = calloc(1, sizeof(**module));
	return *module ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult CUDAAPI cuModuleLoad(CUmodule *module, const char *name)
{
	return new_module(module);
}

CUresult CUDAAPI cuModuleLoadData(CUmodule *module, const void *image)
{
	return new_module(module);
}

CUresult CUDAAPI cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int count,
				    CUjit_option *options, void **values)
{
	return new_module(module);
}

CUresult CUDAAPI cuModuleLoadFatBinary(CUmodule *module, const void *image)
{
	return new_module(module);
}

CUresult CUDAAPI cuModuleUnload(CUmodule module)
{
	SIM_ENTER();
	if (!module)
		return CUDA_ERROR_INVALID_HANDLE;
	while (module->functions) {
		struct CUfunc_st *function = module->functions;

		module->functions = function->next;
		free(function->name);
		free(function);
	}
	free(module);
	return CUDA_SUCCESS;
}

/* Under sim.lock. */
static struct CUfunc_st *function_named(struct CUmod_st *module, const char *name)
{
	struct CUfunc_st *function = module->functions;

	while (function && strcmp(function->name, name))
		function = function->next;
	if (function)
		return function;
	function = malloc(sizeof(*function));
	if (!function)
		return NULL;
	*function = (struct CUfunc_st){strdup(name), module, module->functions};
	module->functions = function;
	return function;
}

CUresult CUDAAPI cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
	SIM_ENTER();
	if (!module || !name)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&sim.lock);
	*function = function_named(module, name);
	pthread_mutex_unlock(&sim.lock);
	return *function ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult CUDAAPI cuModuleGetGlobal_v2(CUdeviceptr *ptr, size_t *size, CUmodule module,
				      const char *name)
{
	SIM_ENTER();
	if (!module || !name)
		return CUDA_ERROR_INVALID_VALUE;
	if (ptr)
		*ptr = (uintptr_t)module->global;
	if (size)
		*size = GLOBAL_SIZE;
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuModuleGetLoadingMode(CUmoduleLoadingMode *mode)
{
	SIM_ENTER();
	*mode = CU_MODULE_LAZY_LOADING;
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *options,
				   void **values, unsigned int count,
				   CUlibraryOption *library_options, void **library_values,
				   unsigned int library_count)
{
	return new_module((CUmodule *)library);
}

CUresult CUDAAPI cuLibraryUnload(CUlibrary library)
{
	return cuModuleUnload((CUmodule)library);
}

CUresult CUDAAPI cuLibraryGetModule(CUmodule *module, CUlibrary library)
{
	SIM_ENTER();
	*module = (CUmodule)library;
	return library ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult CUDAAPI cuLibraryGetKernel(CUkernel *kernel, CUlibrary library, const char *name)
{
	return cuModuleGetFunction((CUfunction *)kernel, (CUmodule)library, name);
}

CUresult CUDAAPI cuKernelGetFunction(CUfunction *function, CUkernel kernel)
{
	SIM_ENTER();
	*function = (CUfunction)kernel;
	return kernel ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult CUDAAPI cuFuncGetName(const char **name, CUfunction function)
{
	SIM_ENTER();
	if (!function)
		return CUDA_ERROR_INVALID_VALUE;
	*name = function->name;
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuFuncGetModule(CUmodule *module, CUfunction function)
{
	SIM_ENTER();
	if (!function)
		return CUDA_ERROR_INVALID_VALUE;
	*module = function->module;
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction function)
{
	SIM_ENTER();
	switch (attribute) {
	case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
		*value = 1024;
		break;
	case CU_FUNC_ATTRIBUTE_NUM_REGS:
		*value = 32;
		break;
	case CU_FUNC_ATTRIBUTE_PTX_VERSION:
	case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
		*value = 90;
		break;
	default:
		*value = 0;
	}
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value)
{
	SIM_ENTER();
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuFuncSetCacheConfig(CUfunction function, CUfunc_cache config)
{
	SIM_ENTER();
	return CUDA_SUCCESS;
}

static CUresult launch(const void *function, CUstream stream)
{
	SIM_ENTER();
	if (!function)
		return CUDA_ERROR_INVALID_HANDLE;
	return sim_is_captured(stream) ? sim_capture_plain(stream, CU_GRAPH_NODE_TYPE_KERNEL)
				       : CUDA_SUCCESS;
}

CUresult CUDAAPI cuLaunchKernel(CUfunction function, unsigned int gx, unsigned int gy,
				unsigned int gz, unsigned int bx, unsigned int by, unsigned int bz,
				unsigned int shared, CUstream stream, void **params, void **extra)
{
	return launch(function, stream);
}

CUresult CUDAAPI cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **params,
				  void **extra)
{
	return launch(function, config->hStream);
}

CUresult CUDAAPI cuLaunchCooperativeKernel(CUfunction function, unsigned int gx, unsigned int gy,
					   unsigned int gz, unsigned int bx, unsigned int by,
					   unsigned int bz, unsigned int shared, CUstream stream,
					   void **params)
{
	return launch(function, stream);
}

CUresult CUDAAPI cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks,
								      CUfunction function,
								      int block_size, size_t shared,
								      unsigned int flags)
{
	SIM_ENTER();
	if (block_size < 1)
		return CUDA_ERROR_INVALID_VALUE;
	*blocks = block_size > 2048 ? 0 : 2048 / block_size < 32 ? 2048 / block_size : 32;
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction function,
							     int block_size, size_t shared)
{
	return cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, block_size,
								    shared, 0);
}

CUresult CUDAAPI cuProfilerStart(void)
{
	SIM_ENTER();
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuProfilerStop(void)
{
	SIM_ENTER();
	return CUDA_SUCCESS;
}
