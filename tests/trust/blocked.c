/* SPDX-License-Identifier: MIT */
/*
 * A driver that waits, and a program whose other threads need the recorder meanwhile: a lock of ours held
 * across a call of the driver would be waited for in vain. Built as libcuda.so.1 with -DDRIVER.
 *
 * usage: blocked       prints the calls that went through while each call waited
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>

int cuInit(unsigned flags);
int cuCtxGetDevice(int *device);
int cuMemAlloc_v2(uint64_t *p, size_t size);
int cuMemFree_v2(uint64_t p);
int cuMemGetInfo_v2(size_t *free, size_t *total);

#define WAITS 0x5000u /* a request of this size, and the free of it */

#ifdef DRIVER

static int asked; /* waiting now */
static int let_go;
int *blocked_asked(void);
int *blocked_let_go(void);

int *blocked_asked(void)
{
	return &asked;
}

int *blocked_let_go(void)
{
	return &let_go;
}

static void wait_here(void)
{
	__atomic_add_fetch(&asked, 1, __ATOMIC_SEQ_CST);
	while (!__atomic_load_n(&let_go, __ATOMIC_SEQ_CST))
		;
}

int cuInit(unsigned flags)
{
	return 0;
}

int cuCtxGetDevice(int *device)
{
	*device = 0;
	return 0;
}

int cuMemGetInfo_v2(size_t *free, size_t *total)
{
	*free = *total = 1 << 30;
	return 0;
}

int cuMemAlloc_v2(uint64_t *p, size_t size)
{
	static uint64_t next = 1 << 20;

	if (size == WAITS)
		wait_here();
	*p = __atomic_fetch_add(&next, 1 << 16, __ATOMIC_SEQ_CST) | (size == WAITS);
	return 0;
}

int cuMemFree_v2(uint64_t p)
{
	if (p & 1)
		wait_here();
	return 0;
}

#else

int *blocked_asked(void);
int *blocked_let_go(void);

static uint64_t slow;

static void *waiting_alloc(void *arg)
{
	cuMemAlloc_v2(&slow, WAITS);
	return NULL;
}

static void *waiting_free(void *arg)
{
	cuMemFree_v2(slow);
	return NULL;
}

static void around(const char *what, void *(*call)(void *))
{
	pthread_t thread;
	uint64_t p;
	int n = 0;

	*blocked_asked() = *blocked_let_go() = 0;
	pthread_create(&thread, NULL, call, NULL);
	while (!__atomic_load_n(blocked_asked(), __ATOMIC_SEQ_CST))
		;
	/* More than a staging holds: sealing needs its locks too. */
	for (; n < 3000; n++) {
		cuMemAlloc_v2(&p, 512);
		cuMemFree_v2(p);
	}
	dlclose(dlopen("libm.so.6", RTLD_NOW));
	__atomic_store_n(blocked_let_go(), 1, __ATOMIC_SEQ_CST);
	pthread_join(thread, NULL);
	printf("%s %d\n", what, n);
}

int main(void)
{
	cuInit(0);
	around("alloc", waiting_alloc);
	around("free", waiting_free);
	return 0;
}
#endif
