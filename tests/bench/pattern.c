/* SPDX-License-Identifier: MIT */
/*
 * One pattern, two allocators: pairs of a free and an allocation, random among 1,000 live blocks of
 * random size, in DEPTH frames of C. Compiled with CUDA it uses the driver's, else malloc's, so that a
 * recorder of the heap does on its own ground what ours does on its own. Loaded by pattern.py, since
 * one of the neighbours needs a Python program.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#define LIVE 1000

#ifdef CUDA
int cuInit(unsigned int flags);
int cuDevicePrimaryCtxRetain(void **ctx, int device);
int cuCtxSetCurrent(void *ctx);
int cuMemAlloc_v2(uint64_t *ptr, size_t size);
int cuMemFree_v2(uint64_t ptr);

static void enter(int device)
{
	void *ctx;

	if (cuInit(0) || cuDevicePrimaryCtxRetain(&ctx, device) || cuCtxSetCurrent(ctx))
		abort();
}

static uint64_t take(uint32_t pages)
{
	uint64_t p;

	if (cuMemAlloc_v2(&p, pages * 512ul))
		abort();
	return p;
}

static void give(uint64_t p)
{
	cuMemFree_v2(p);
}
#else
static void enter(int device)
{
	(void)device;
}

static uint64_t take(uint32_t pages)
{
	void *p = malloc(pages);

	__asm__ volatile("" : : "r"(p) : "memory"); /* else the pair is optimised away */
	if (!p)
		abort();
	return (uintptr_t)p;
}

static void give(uint64_t p)
{
	free((void *)(uintptr_t)p);
}
#endif

struct worker {
	pthread_t thread;
	int device;
	long pairs, depth;
	double cpu, wall;
};

int pattern(long pairs, long depth, int threads, double *ret_cpu, double *ret_wall);

static pthread_barrier_t ready;

static double now_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

static void work(struct worker *w)
{
	uint64_t live[LIVE], x = 88172645463325252ull + w->device;
	double cpu, wall;

	for (int i = 0; i < LIVE; i++)
		live[i] = take(1);
	pthread_barrier_wait(&ready);
	cpu = now_ns(CLOCK_THREAD_CPUTIME_ID);
	wall = now_ns(CLOCK_MONOTONIC);
	for (long i = 0; i < w->pairs; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		give(live[(x >> 32) % LIVE]);
		live[(x >> 32) % LIVE] = take(1 + x % 4096);
	}
	w->cpu = (now_ns(CLOCK_THREAD_CPUTIME_ID) - cpu) / w->pairs;
	w->wall = (now_ns(CLOCK_MONOTONIC) - wall) / w->pairs;
	for (int i = 0; i < LIVE; i++)
		give(live[i]);
}

__attribute__((noinline)) static void at_depth(struct worker *w, long depth)
{
	if (depth > 0)
		at_depth(w, depth - 1);
	else
		work(w);
	__asm__ volatile("" : : : "memory"); /* no tail call: the frame must be there */
}

static void *thread(void *arg)
{
	struct worker *w = arg;

	enter(w->device);
	at_depth(w, w->depth);
	return NULL;
}

/* The first worker is the caller, so that the frames above it count too. ns per pair, mean of the threads. */
int pattern(long pairs, long depth, int threads, double *ret_cpu, double *ret_wall)
{
	struct worker w[8] = {0};

	if (threads < 1 || threads > 8 || pairs < 1)
		return -1;
	pthread_barrier_init(&ready, NULL, threads);
	for (int i = 0; i < threads; i++)
		w[i] = (struct worker){.device = i, .pairs = pairs, .depth = depth};
	for (int i = 1; i < threads; i++)
		pthread_create(&w[i].thread, NULL, thread, &w[i]);
	thread(&w[0]);
	for (int i = 0; i < threads; i++) {
		if (i)
			pthread_join(w[i].thread, NULL);
		*ret_cpu += w[i].cpu / threads;
		*ret_wall += w[i].wall / threads;
	}
	pthread_barrier_destroy(&ready);
	return 0;
}
