/* SPDX-License-Identifier: MIT */
/* What the programs of this folder that allocate have in common: the driver's names, random traffic. */
#ifndef TRAFFIC_H
#define TRAFFIC_H

#include <stdint.h>
#include <stdlib.h>
#include <time.h>

int cuInit(unsigned int flags);
int cuDevicePrimaryCtxRetain(void **ctx, int device);
int cuCtxSetCurrent(void *ctx);
int cuMemAlloc_v2(uint64_t *ptr, size_t size);
int cuMemFree_v2(uint64_t ptr);

static inline double traffic_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec * 1e9 + ts.tv_nsec;
}

static inline uint64_t traffic_next(void)
{
	static uint64_t x = 88172645463325252ull;

	x ^= x << 13;
	x ^= x >> 7;
	return x ^= x << 17;
}

/*
 * Frees one of the n live blocks, any, and allocates another in its place. The place of the next pair is asked for:
 * without a recorder between the pairs the processor does that by itself, so the miss would count as ours.
 */
static inline void traffic_pair(uint64_t *live, long n)
{
	static uint64_t ahead = 1;
	uint64_t r = ahead;
	uint64_t *p = &live[(r >> 32) * n >> 32];

	ahead = traffic_next();
	__builtin_prefetch(&live[(ahead >> 32) * n >> 32], 1);

	if (cuMemFree_v2(*p) || cuMemAlloc_v2(p, 512 * (1 + r % 4096)))
		abort();
}

/* n live blocks. */
static inline uint64_t *traffic_start(long n)
{
	uint64_t *live = calloc(n, sizeof(*live));
	void *ctx;

	if (!live || cuInit(0) || cuDevicePrimaryCtxRetain(&ctx, 0) || cuCtxSetCurrent(ctx))
		exit(1);
	for (long i = 0; i < n; i++)
		if (cuMemAlloc_v2(&live[i], 512))
			exit(1);
	return live;
}

static inline int traffic_by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

#endif
