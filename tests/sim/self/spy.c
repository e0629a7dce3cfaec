/* SPDX-License-Identifier: MIT */
/*
 * spy.c - a libcuda.so.1 that writes down what a runtime asks its resolver for, one line per
 * request on stderr, and then has no device. With it a real runtime and the simulated one can be
 * compared without a GPU.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

int cuGetProcAddress(const char *name, void **pfn, int version, uint64_t flags);
int cuGetProcAddress_v2(const char *name, void **pfn, int version, uint64_t flags, int *status);

static int no_device(void)
{
	return 100;
}

static void *answer(const char *name, int version, uint64_t flags)
{
	fprintf(stderr, "\"%s\" %d %d\n", name, version, (int)flags);
	if (!*name)
		return NULL;
	if (!strcmp(name, "cuGetProcAddress"))
		return version < 12000 ? (void *)cuGetProcAddress : (void *)cuGetProcAddress_v2;
	return (void *)no_device;
}

int cuGetProcAddress(const char *name, void **pfn, int version, uint64_t flags)
{
	void *found = answer(name, version, flags);

	if (!found)
		return 500;
	*pfn = found;
	return 0;
}

int cuGetProcAddress_v2(const char *name, void **pfn, int version, uint64_t flags, int *status)
{
	*pfn = answer(name, version, flags);
	if (status)
		*status = !*pfn;
	return 0;
}
