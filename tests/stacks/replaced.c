/* SPDX-License-Identifier: MIT */
/*
 * Allocates device memory in functions of two modules that take turns at one address.
 * usage: replaced MODULE_A MODULE_B TURNS
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

int cuInit(unsigned flags);
int cuDevicePrimaryCtxRetain(void **context, int device);
int cuCtxSetCurrent(void *context);
int cuMemAlloc_v2(unsigned long long *pointer, size_t bytes);

static void allocate(void *bytes)
{
	unsigned long long pointer;

	if (cuMemAlloc_v2(&pointer, *(size_t *)bytes))
		exit(1);
}

int main(int argc, char **argv)
{
	void *context, *last = NULL;
	int same = 0, turns = argc == 4 ? atoi(argv[3]) : 0;

	if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context))
		return 1;
	for (int i = 0; i < turns; i++) {
		void *handle = dlopen(argv[1 + i % 2], RTLD_NOW | RTLD_LOCAL);
		void (*enter)(void (*)(void *), void *);
		size_t bytes = (size_t)(1 + i % 2) << 20;

		*(void **)&enter = dlsym(handle, "enter");
		enter(allocate, &bytes);
		same += (void *)enter == last;
		last = (void *)enter;
		dlclose(handle);
	}
	printf("%d\n", same);
	return 0;
}
