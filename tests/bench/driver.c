/* SPDX-License-Identifier: MIT */
/*
 * A libcuda.so.1 that does next to nothing: a context for each of a few devices, addresses that only grow. A call
 * costs a few instructions, so what the hooks add can be measured by subtraction without the cost of a
 * driver, or of a simulated one, in the way. For the programs in this folder and the instruction counts
 * of tests/cost; not a CUDA driver in any other sense.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define BASE  0x7f0000000000ull
#define ALIGN 512ull

#define DEVICES 8

static uint64_t top;
static char contexts[DEVICES]; /* only their addresses count */
static __thread char *current = contexts;

int cuInit(unsigned int flags);
int cuDeviceGetCount(int *count);
int cuDevicePrimaryCtxRetain(void **ctx, int device);
int cuCtxSetCurrent(void *ctx);
int cuCtxGetCurrent(void **ctx);
int cuCtxGetDevice(int *device);
int cuDeviceTotalMem_v2(size_t *bytes, int device);
int cuDeviceGetName(char *name, int length, int device);
int cuMemGetInfo_v2(size_t *free, size_t *total);
int cuMemAlloc_v2(uint64_t *ptr, size_t size);
int cuMemFree_v2(uint64_t ptr);

int cuInit(unsigned int flags)
{
	return 0;
}

int cuDeviceGetCount(int *count)
{
	*count = DEVICES;
	return 0;
}

int cuDevicePrimaryCtxRetain(void **ctx, int device)
{
	*ctx = contexts + device;
	return 0;
}

int cuCtxSetCurrent(void *ctx)
{
	current = ctx;
	return 0;
}

int cuCtxGetCurrent(void **ctx)
{
	*ctx = current;
	return 0;
}

int cuCtxGetDevice(int *device)
{
	*device = current - contexts;
	return 0;
}

int cuDeviceTotalMem_v2(size_t *bytes, int device)
{
	*bytes = 1ull << 40;
	return 0;
}

int cuDeviceGetName(char *name, int length, int device)
{
	strncpy(name, "bench", length);
	return 0;
}

int cuMemGetInfo_v2(size_t *free, size_t *total)
{
	*free = *total = 1ull << 40;
	return 0;
}

/* From several threads too; addresses come round again after 128 TiB. */
int cuMemAlloc_v2(uint64_t *ptr, size_t size)
{
	size = (size + ALIGN - 1) / ALIGN * ALIGN;
	*ptr = BASE + __atomic_fetch_add(&top, size, __ATOMIC_RELAXED) % (1ull << 46);
	return 0;
}

int cuMemFree_v2(uint64_t ptr)
{
	return 0;
}
