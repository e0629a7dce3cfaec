/* SPDX-License-Identifier: MIT */
/*
 * Two versions of a shared runtime in one process: each caller must reach its own. Built four
 * times: as either runtime (-DRUNTIME=n), as a library on one of them (-DCALLER) and as the program
 * on the other.
 */
#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>

int cudaMalloc(void **p, size_t size);
int other(void);

#ifdef RUNTIME

int cudaMalloc(void **p, size_t size)
{
	*p = NULL;
	return RUNTIME;
}

#elif defined(CALLER)

int other(void)
{
	void *p;

	return cudaMalloc(&p, 1);
}

#else

int main(void)
{
	int (*library)(void);
	void *p, *h = dlopen("libcaller.so", RTLD_NOW | RTLD_LOCAL);

	if (!h)
		return 1;
	*(void **)&library = dlsym(h, "other");
	for (int i = 0; i < 3; i++)
		printf("program %d library %d\n", cudaMalloc(&p, 1), library());
	return 0;
}

#endif
