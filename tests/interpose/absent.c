/* SPDX-License-Identifier: MIT */
/*
 * A machine without a driver. With the preload the names that it wraps can be found by
 * RTLD_DEFAULT; whoever calls them must be told that there is no driver, and nothing may be
 * recorded or printed.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>

static int call(const char *name)
{
	uint64_t out[2] = {0, 0};
	int (*f)(void *, void *, uint64_t, void *, uint64_t);

	*(void **)&f = dlsym(RTLD_DEFAULT, name);
	return f ? f(&out[0], &out[1], 4096, NULL, 0) : -1;
}

int main(void)
{
	static const char *const names[] = {
		"cuInit",	   "cuMemAlloc_v2",	  "cuMemFree_v2",
		"cuMemAllocAsync", "cuGetProcAddress_v2", "cuMemCreate",
		"cuCtxCreate_v2",  "cudaMalloc"};

	errno = 0;
	printf("driver %d\n", dlopen("libcuda.so.1", RTLD_NOW) != NULL);
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		printf("%s %d errno %d\n", names[i], call(names[i]), errno);
	return 0;
}
