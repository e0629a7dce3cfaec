/* SPDX-License-Identifier: MIT */
/*
 * load.c - how the runtime finds the driver, step by step as the real one does it.
 *
 * dlopen("libcuda.so.1", RTLD_NOW), ONE dlsym for the resolver, then every function through the
 * resolver, all of it before cuInit: first an unknown name ("") as a probe, then cuInit and the
 * resolver itself, then each name with flag 0 and, if it takes a stream, again with flag 2.
 * GT_SIM_CUDART_V1=1 plays the older runtimes (before 12.0), which use the resolver's first ABI.
 */
#include "rt.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>

#define ASK_TWIN_none(name, since, symbol)
#define ASK_TWIN_ptsz(name, since, symbol) \
	{name, since < 7000 ? 7000 : since, 2, offsetof(struct rt_driver, symbol##_ptsz)},
#define ASK_TWIN_ptds(name, since, symbol) \
	{name, since < 7000 ? 7000 : since, 2, offsetof(struct rt_driver, symbol##_ptds)},
#define ASK_rt(name, since, symbol, twin) \
	{name, since, 0, offsetof(struct rt_driver, symbol)}, ASK_TWIN_##twin(name, since, symbol)
#define ASK_rt0(name, since, symbol, twin) {name, since, 0, offsetof(struct rt_driver, symbol)},
#if CUDART_VERSION < 13000
#define ASK_rt12 ASK_rt0
#else
#define ASK_rt12 ASK_drv
#endif
#define ASK_self(name, since, symbol, twin)
#define ASK_drv(name, since, symbol, twin)
#define SIM_FN(name, since, symbol, twin, asked) ASK_##asked(#name, since, symbol, twin)
#define SIM_NO					 SIM_FN

static const struct ask {
	const char *name;
	int version;
	unsigned long long flags;
	size_t slot;
} asks[] = {
#include "../driver/driver.def"
};

struct rt_driver rt_driver;

static __typeof__(&cuGetProcAddress) resolver_v1;
static __typeof__(&cuGetProcAddress_v2) resolver;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static cudaError_t load_rc;

CUresult rt_resolve(const char *name, void **ret_pfn, int version, unsigned long long flags,
		    CUdriverProcAddressQueryResult *ret_status)
{
	CUresult rc;

	if (resolver)
		return resolver(name, ret_pfn, version, flags, ret_status);
	rc = resolver_v1(name, ret_pfn, version, flags);
	*ret_status = rc ? CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND : CU_GET_PROC_ADDRESS_SUCCESS;
	return rc;
}

/*
 * The order is part of the play. The probe and the second ABI came with 12.0; a resolver that is
 * asked for itself must answer with itself, or what follows escapes whoever stands in between.
 */
static void ask_first(bool old)
{
	CUdriverProcAddressQueryResult status;
	void *found = NULL;

	if (!old)
		rt_resolve("", &found, 0, 0, &status);
	rt_resolve("cuInit", &rt_driver.cuInit, 2000, 0, &status);
	if (!rt_resolve("cuGetProcAddress", &found, 11030, 0, &status) && found && old)
		resolver_v1 = (__typeof__(resolver_v1))found;
	if (!old && !rt_resolve("cuGetProcAddress", &found, 12000, 0, &status) && found)
		resolver = (__typeof__(resolver))found;
}

static void ask_all(int newest)
{
	CUdriverProcAddressQueryResult status;

	for (size_t i = 0; i < sizeof(asks) / sizeof(asks[0]); i++) {
		void **slot = (void **)((char *)&rt_driver + asks[i].slot);

		if (asks[i].version <= newest)
			rt_resolve(asks[i].name, slot, asks[i].version, asks[i].flags, &status);
	}
}

static void load(void)
{
	const char *v1 = getenv("GT_SIM_CUDART_V1");
	bool old = v1 && atoi(v1);
	void *handle = dlopen("libcuda.so.1", RTLD_NOW);
	void *found =
		handle ? dlsym(handle, old ? "cuGetProcAddress" : "cuGetProcAddress_v2") : NULL;

	load_rc = cudaErrorInsufficientDriver;
	if (!found)
		return;
	if (old)
		resolver_v1 = (__typeof__(resolver_v1))found;
	else
		resolver = (__typeof__(resolver))found;
	ask_first(old);
	ask_all(old ? 11080 : CUDART_VERSION);
	load_rc = rt_driver.cuInit ? (cudaError_t)DRV(cuInit)(0) : cudaErrorInsufficientDriver;
}

cudaError_t rt_load(void)
{
	pthread_once(&once, load);
	return load_rc ? rt_fail(load_rc) : cudaSuccess;
}
