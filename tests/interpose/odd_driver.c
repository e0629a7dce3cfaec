/* SPDX-License-Identifier: MIT */
/*
 * A libcuda.so.1 that does what real drivers may and the simulator does not: sets errno on success,
 * calls itself by exported name, is a shim around another library that has the same names, lacks
 * functions, answers what the test asks it to. Built a second time as that inner library (-DINNER).
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <stddef.h>

int cuInit(unsigned flags);

#ifdef INNER

int cuInit(unsigned flags)
{
	return 0;
}

#else

int cuMemAlloc_v2(uint64_t *p, size_t size);
int cuMemAllocPitch_v2(uint64_t *p, size_t *pitch, size_t width, size_t height, unsigned element);
int cuMemFree_v2(uint64_t p);
int cuCtxGetDevice(int *device);
int cuMemGetInfo_v2(size_t *free, size_t *total);
int cuGetProcAddress(const char *name, void **out, int version, uint64_t flags);
int cuGetProcAddress_v2(const char *name, void **out, int version, uint64_t flags, int *status);
void odd_answer(int rc);
void odd_errno(int err);

static uint64_t next = 0x100000000;
static int answer, set_errno, device;

void odd_answer(int rc)
{
	answer = rc;
}

void odd_errno(int err)
{
	set_errno = err;
}

int cuInit(unsigned flags)
{
	void *inner = dlopen("libodd_inner.so", RTLD_NOW | RTLD_LOCAL);
	int (*f)(unsigned);

	if (!inner)
		return 999;
	*(void **)&f = dlsym(inner, "cuInit");
	return f ? f(flags) : 998;
}

int cuCtxGetDevice(int *out)
{
	*out = device;
	return device < 0 ? 201 : 0;
}

int cuMemGetInfo_v2(size_t *free, size_t *total)
{
	if (free)
		*free = 1 << 20;
	if (total)
		*total = 1 << 30;
	return 0;
}

int cuMemAlloc_v2(uint64_t *p, size_t size)
{
	if (set_errno)
		errno = set_errno;
	if (answer)
		return answer;
	*p = next;
	next += (size + 511) / 512 * 512;
	return 0;
}

/* By exported name: this comes back through whatever stands in the way. */
int cuMemAllocPitch_v2(uint64_t *p, size_t *pitch, size_t width, size_t height, unsigned element)
{
	*pitch = (width + 511) / 512 * 512;
	return cuMemAlloc_v2(p, *pitch * height);
}

int cuMemFree_v2(uint64_t p)
{
	if (set_errno)
		errno = set_errno;
	return answer;
}

/* Knows one function besides itself, and answers as its version does to what it does not know. */
static void *known(const char *name)
{
	return !__builtin_strcmp(name, "cuMemAlloc") ? (void *)cuMemAlloc_v2 : NULL;
}

int cuGetProcAddress(const char *name, void **out, int version, uint64_t flags)
{
	void *p = known(name);

	if (flags > 2)
		return 1;
	if (!p)
		return 500; /* and *out stays as it was */
	*out = p;
	return 0;
}

int cuGetProcAddress_v2(const char *name, void **out, int version, uint64_t flags, int *status)
{
	*out = known(name);
	if (status)
		*status = *out ? 0 : 1;
	return flags > 2 ? 1 : 0;
}

#endif
