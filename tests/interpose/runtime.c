/* SPDX-License-Identifier: MIT */
/*
 * Traffic through a shared libcudart, linked by soname: the driver calls happen inside the runtime,
 * through addresses that it got from cuGetProcAddress. Output as reach.c.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>

int cudaMalloc(void **p, size_t size);
int cudaFree(void *p);
int cudaMallocAsync(void **p, size_t size, void *stream);
int cudaFreeAsync(void *p, void *stream);
int cudaMallocManaged(void **p, size_t size, unsigned flags);
int cudaSetDevice(int device);

#define PLAIN	101 /* 149 in all: primes, so that nothing can be counted by halves */
#define ASYNC	37
#define MANAGED 11

static void *p[PLAIN + ASYNC + MANAGED];
static unsigned long long live, live_bytes, peak_bytes, pool_bytes;
static int allocs, frees, refused;

static void show(const char *what, int rc)
{
	printf("%s %d errno %d\n", what, rc, errno);
	errno = 12345;
}

static void add(const char *what, int rc, size_t size)
{
	show(what, rc);
	if (rc) {
		refused++;
		return;
	}
	allocs++;
	live++;
	live_bytes += size;
	if (live_bytes > peak_bytes)
		peak_bytes = live_bytes;
}

static void take(const char *what, int rc, size_t size)
{
	show(what, rc);
	frees++;
	live--;
	live_bytes -= size;
}

int main(void)
{
	void *none = NULL;
	const char *message;

	errno = 12345;
	show("device", cudaSetDevice(0));
	dlerror();
	dlsym(RTLD_DEFAULT, "no_such_function");
	for (int i = 0; i < PLAIN; i++)
		add("malloc", cudaMalloc(&p[i], 3000 + i), 3000 + i);
	for (int i = PLAIN; i < PLAIN + ASYNC; i++)
		add("async", cudaMallocAsync(&p[i], 512 * i, NULL), 512 * i);
	for (int i = PLAIN; i < PLAIN + ASYNC; i++)
		pool_bytes += 512 * i;
	for (int i = PLAIN + ASYNC; i < PLAIN + ASYNC + MANAGED; i++)
		add("managed", cudaMallocManaged(&p[i], 8192, 1), 8192);
	message = dlerror();
	printf("dlerror: %s\n", message ? message : "none");
	for (int i = 0; i < 71; i++)
		take("free", i % 2 ? cudaFree(p[i]) : cudaFreeAsync(p[i], NULL), 3000 + i);
	add("too much", cudaMalloc(&none, 1ull << 46), 0);
	show("null", cudaFree(NULL));
	printf("{\"way\": \"runtime\", \"allocs\": %d, \"frees\": %d, \"refused\": %d, "
	       "\"unknown\": 0, "
	       "\"live\": %llu, \"live_bytes\": %llu, \"peak_bytes\": %llu, \"pool_bytes\": "
	       "%llu}\n",
	       allocs, frees, refused, live, live_bytes, peak_bytes, pool_bytes);
	return 0;
}
