/* SPDX-License-Identifier: MIT */
/*
 * module.c - modules, libraries, kernels and launches: all of them exist, none does anything.
 *
 * A module costs GT_SIM_MODULE_COST bytes of its context's device from the first use of one of its
 * functions or variables on (with CUDA_MODULE_LOADING=EAGER from its load on). A library is not
 * bound to a context: it has a module in every context that uses it. Under sim.lock.
 */
#include "sim.h"

#include <stdlib.h>
#include <string.h>

#define GLOBAL_SIZE 4096

/* Theirs is a header of its own, which not every set of CUDA headers has. */
CUresult CUDAAPI cuProfilerStart(void);
CUresult CUDAAPI cuProfilerStop(void);

/* A function of a module, or a kernel of a library: a launch takes both. */
struct CUfunc_st {
	char *name;
	struct CUmod_st *module;
	struct CUlib_st *library;
	struct CUfunc_st *next;
};

struct CUmod_st {
	struct CUctx_st *ctx;
	struct CUlib_st *library; /* whose module in this context it is */
	bool loaded;
	struct CUfunc_st *functions;
	struct CUmod_st *next;
	char global[GLOBAL_SIZE]; /* every variable of the module */
};

struct CUlib_st {
	struct CUfunc_st *kernels;
	struct CUlib_st *next;
};

static struct CUmod_st *modules;
static struct CUlib_st *libraries;

static bool is_eager(void)
{
	return !strcmp(sim_env("CUDA_MODULE_LOADING", "LAZY"), "EAGER");
}

static CUresult load(struct CUmod_st *module)
{
	struct sim_device *device = &sim.device[module->ctx->device];
	CUresult rc = CUDA_SUCCESS;

	if (module->loaded)
		return CUDA_SUCCESS;
	pthread_mutex_lock(&device->lock);
	rc = sim_charge(device, sim.module_cost);
	if (!rc)
		sim_book(&device->books, GT_SIM_MODULE, sim.module_cost);
	pthread_mutex_unlock(&device->lock);
	module->loaded = !rc;
	return rc;
}

static void unload(const struct CUmod_st *module)
{
	struct sim_device *device = &sim.device[module->ctx->device];

	if (!module->loaded)
		return;
	pthread_mutex_lock(&device->lock);
	sim_uncharge(device, sim.module_cost);
	sim_unbook(&device->books, GT_SIM_MODULE, sim.module_cost);
	pthread_mutex_unlock(&device->lock);
}

static void free_functions(struct CUfunc_st *function)
{
	while (function) {
		struct CUfunc_st *next = function->next;

		free(function->name);
		free(function);
		function = next;
	}
}

static struct CUmod_st **find_module(const struct CUmod_st *module)
{
	struct CUmod_st **link = &modules;

	while (*link && *link != module)
		link = &(*link)->next;
	return *link ? link : NULL;
}

static struct CUlib_st **find_library(const struct CUlib_st *library)
{
	struct CUlib_st **link = &libraries;

	while (*link && *link != library)
		link = &(*link)->next;
	return *link ? link : NULL;
}

static void drop_module(struct CUmod_st **link)
{
	struct CUmod_st *module = *link;

	*link = module->next;
	unload(module);
	free_functions(module->functions);
	free(module);
}

static CUresult add_module(struct CUctx_st *ctx, struct CUlib_st *library, struct CUmod_st **ret)
{
	struct CUmod_st *module = calloc(1, sizeof(*module));
	CUresult rc;

	if (!module)
		return CUDA_ERROR_OUT_OF_MEMORY;
	module->ctx = ctx;
	module->library = library;
	rc = is_eager() ? load(module) : CUDA_SUCCESS;
	if (rc) {
		free(module);
		return rc;
	}
	module->next = modules;
	modules = module;
	*ret = module;
	return CUDA_SUCCESS;
}

/* The library's module in this context. */
static CUresult module_in(struct CUctx_st *ctx, struct CUlib_st *library, struct CUmod_st **ret)
{
	struct CUmod_st *module = modules;

	while (module && (module->ctx != ctx || module->library != library))
		module = module->next;
	if (!module)
		return add_module(ctx, library, ret);
	*ret = module;
	return CUDA_SUCCESS;
}

static CUresult new_module(CUmodule *module)
{
	struct CUctx_st *ctx;
	CUresult rc = sim_current(&ctx);

	if (rc)
		return rc;
	pthread_mutex_lock(&sim.lock);
	rc = add_module(sim_owner(ctx), NULL, module);
	pthread_mutex_unlock(&sim.lock);
	return sim_answer(rc);
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
	struct CUmod_st **link;

	SIM_ENTER();
	pthread_mutex_lock(&sim.lock);
	link = find_module(module);
	if (link && !module->library)
		drop_module(link);
	else
		link = NULL;
	pthread_mutex_unlock(&sim.lock);
	return link ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

/* The same name gives the same handle. */
static struct CUfunc_st *named(struct CUfunc_st **list, const char *name)
{
	struct CUfunc_st *function = *list;

	while (function && strcmp(function->name, name))
		function = function->next;
	if (function)
		return function;
	function = calloc(1, sizeof(*function));
	if (!function)
		return NULL;
	function->name = strdup(name);
	function->next = *list;
	*list = function;
	return function;
}

static CUresult function_of(CUfunction *function, CUmodule module, const char *name)
{
	CUresult rc = load(module);

	if (rc)
		return rc;
	*function = named(&module->functions, name);
	if (!*function)
		return CUDA_ERROR_OUT_OF_MEMORY;
	(*function)->module = module;
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
	CUresult rc = CUDA_ERROR_INVALID_HANDLE;

	SIM_ENTER();
	if (!function || !name)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&sim.lock);
	if (find_module(module))
		rc = function_of(function, module, name);
	pthread_mutex_unlock(&sim.lock);
	return sim_answer(rc);
}

CUresult CUDAAPI cuModuleGetGlobal_v2(CUdeviceptr *ptr, size_t *size, CUmodule module,
				      const char *name)
{
	CUresult rc = CUDA_ERROR_INVALID_HANDLE;

	SIM_ENTER();
	if (!name)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&sim.lock);
	if (find_module(module))
		rc = load(module);
	pthread_mutex_unlock(&sim.lock);
	if (rc)
		return sim_answer(rc);
	if (ptr)
		*ptr = (uintptr_t)module->global;
	if (size)
		*size = GLOBAL_SIZE;
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuModuleGetLoadingMode(CUmoduleLoadingMode *mode)
{
	SIM_ENTER();
	*mode = is_eager() ? CU_MODULE_EAGER_LOADING : CU_MODULE_LAZY_LOADING;
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *options,
				   void **values, unsigned int count,
				   CUlibraryOption *library_options, void **library_values,
				   unsigned int library_count)
{
	struct CUlib_st *made;

	SIM_ENTER();
	if (!library || !code)
		return CUDA_ERROR_INVALID_VALUE;
	made = calloc(1, sizeof(*made));
	if (!made)
		return CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_lock(&sim.lock);
	made->next = libraries;
	libraries = made;
	pthread_mutex_unlock(&sim.lock);
	*library = made;
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuLibraryLoadFromFile(CUlibrary *library, const char *file, CUjit_option *options,
				       void **values, unsigned int count,
				       CUlibraryOption *library_options, void **library_values,
				       unsigned int library_count)
{
	return cuLibraryLoadData(library, file, options, values, count, library_options,
				 library_values, library_count);
}

CUresult CUDAAPI cuLibraryUnload(CUlibrary library)
{
	struct CUmod_st **module = &modules;
	struct CUlib_st **link;

	SIM_ENTER();
	pthread_mutex_lock(&sim.lock);
	link = find_library(library);
	while (link && *module) {
		if ((*module)->library == library)
			drop_module(module);
		else
			module = &(*module)->next;
	}
	if (link) {
		*link = library->next;
		free_functions(library->kernels);
		free(library);
	}
	pthread_mutex_unlock(&sim.lock);
	return link ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult CUDAAPI cuLibraryGetModule(CUmodule *module, CUlibrary library)
{
	struct CUctx_st *ctx;
	CUresult rc = sim_current(&ctx);

	if (rc)
		return rc;
	pthread_mutex_lock(&sim.lock);
	rc = find_library(library) ? module_in(sim_owner(ctx), library, module)
				   : CUDA_ERROR_INVALID_HANDLE;
	rc = rc ? rc : load(*module);
	pthread_mutex_unlock(&sim.lock);
	return sim_answer(rc);
}

CUresult CUDAAPI cuLibraryGetKernel(CUkernel *kernel, CUlibrary library, const char *name)
{
	struct CUfunc_st *found = NULL;

	SIM_ENTER();
	if (!kernel || !name)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&sim.lock);
	if (find_library(library))
		found = named(&library->kernels, name);
	if (found)
		found->library = library;
	pthread_mutex_unlock(&sim.lock);
	*kernel = (CUkernel)found;
	return found ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

/* The kernel as a function of the current context, where its library is loaded now. */
CUresult CUDAAPI cuKernelGetFunction(CUfunction *function, CUkernel kernel)
{
	struct CUfunc_st *given = (struct CUfunc_st *)kernel;
	struct CUmod_st *module = NULL;
	struct CUctx_st *ctx;
	CUresult rc = sim_current(&ctx);

	if (rc || !given)
		return rc ? rc : CUDA_ERROR_INVALID_HANDLE;
	pthread_mutex_lock(&sim.lock);
	rc = module_in(sim_owner(ctx), given->library, &module);
	rc = rc ? rc : function_of(function, module, given->name);
	pthread_mutex_unlock(&sim.lock);
	return sim_answer(rc);
}

/* The context is about to end. */
void sim_module_free_all(const struct CUctx_st *ctx)
{
	struct CUmod_st **link = &modules;

	pthread_mutex_lock(&sim.lock);
	while (*link) {
		if ((*link)->ctx == ctx)
			drop_module(link);
		else
			link = &(*link)->next;
	}
	pthread_mutex_unlock(&sim.lock);
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

/* A function is there because its module is loaded. */
CUresult CUDAAPI cuFuncLoad(CUfunction function)
{
	SIM_ENTER();
	return function ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult CUDAAPI cuFuncIsLoaded(CUfunctionLoadingState *state, CUfunction function)
{
	SIM_ENTER();
	if (!state || !function)
		return CUDA_ERROR_INVALID_VALUE;
	*state = CU_FUNCTION_LOADING_STATE_LOADED;
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

static CUresult launch(CUfunction function, CUstream stream)
{
	CUfunction loaded;
	CUresult rc = CUDA_SUCCESS;

	SIM_ENTER();
	if (!function)
		return CUDA_ERROR_INVALID_HANDLE;
	if (function->library)
		rc = cuKernelGetFunction(&loaded, (CUkernel)function);
	if (rc)
		return rc;
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
