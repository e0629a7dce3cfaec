/* SPDX-License-Identifier: MIT */
/* C between Python and Python, and at the innermost end: called by nest.py through ctypes. */
#include <dlfcn.h>
#include <stddef.h>

int nest_call(int (*callback)(int), int n);
int nest_alloc(size_t size);

int nest_call(int (*callback)(int), int n)
{
	return callback(n) + 1; /* no tail call */
}

int nest_alloc(size_t size)
{
	int (*alloc)(unsigned long long *, size_t);
	unsigned long long address;
	void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);

	*(void **)&alloc = driver ? dlsym(driver, "cuMemAlloc_v2") : NULL;
	return alloc ? alloc(&address, size) : -1;
}
