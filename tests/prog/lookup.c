/* SPDX-License-Identifier: MIT */
/*
 * lookup.c - work() through pointers that are looked up at run time. Built three times:
 * BY=0 dlsym on a dlopen handle, BY=1 cuGetProcAddress, BY=2 cuGetProcAddress_v2.
 */
#include "work.h"

#include <dlfcn.h>
#include <stdio.h>

static void *handle;

/* What a look-up of a name that does not exist says must not depend on who listens. */
static void print_miss(void)
{
	void *found = dlsym(handle, "cuNoSuchFunction");
	const char *text = dlerror();

	printf("miss %s, %s\n", found ? "found" : "null", text ? text : "no text");
}

#if BY == 0

static void *look_up(const char *symbol, const char *name)
{
	return dlsym(handle, symbol);
}

#elif BY == 1

static void *look_up(const char *symbol, const char *name)
{
	static CUresult (*resolve)(const char *, void **, int, cuuint64_t);
	void *found = NULL;

	if (!resolve)
		resolve = (__typeof__(resolve))dlsym(handle, "cuGetProcAddress");
	return resolve(name, &found, 11030, 0) ? NULL : found;
}

#else

static void *look_up(const char *symbol, const char *name)
{
	static __typeof__(&cuGetProcAddress_v2) resolve;
	CUdriverProcAddressQueryResult status;
	void *found = NULL;

	if (!resolve)
		resolve = (__typeof__(resolve))dlsym(handle, "cuGetProcAddress_v2");
	return resolve(name, &found, 12000, 0, &status) ? NULL : found;
}

#endif

#define CALL(type, symbol, name) ((__typeof__(((struct calls *)0)->type))look_up(symbol, name))

int main(void)
{
	struct calls calls;

	handle = dlopen("libcuda.so.1", RTLD_NOW);
	if (!handle) {
		fprintf(stderr, "%s\n", dlerror());
		return 2;
	}
	print_miss();
	calls = (struct calls){
		.alloc = CALL(alloc, "cuMemAlloc_v2", "cuMemAlloc"),
		.alloc_pitch = CALL(alloc_pitch, "cuMemAllocPitch_v2", "cuMemAllocPitch"),
		.alloc_managed = CALL(alloc_managed, "cuMemAllocManaged", "cuMemAllocManaged"),
		.alloc_async = CALL(alloc_async, "cuMemAllocAsync", "cuMemAllocAsync"),
		.free = CALL(free, "cuMemFree_v2", "cuMemFree"),
		.free_async = CALL(free_async, "cuMemFreeAsync", "cuMemFreeAsync"),
		.mem_info = CALL(mem_info, "cuMemGetInfo_v2", "cuMemGetInfo"),
	};
	if (start((int (*)(unsigned int))look_up("cuInit", "cuInit"),
		  (int (*)(CUcontext *, CUdevice))look_up("cuDevicePrimaryCtxRetain",
							  "cuDevicePrimaryCtxRetain"),
		  (int (*)(CUcontext))look_up("cuCtxSetCurrent", "cuCtxSetCurrent")))
		return 2;
	return work(&calls);
}
