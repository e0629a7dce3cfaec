/* SPDX-License-Identifier: MIT */
/*
 * Cost of one cuMemAlloc/cuMemFree pair, ELF-linked, on whatever libcuda.so.1 is found and with whatever
 * is preloaded. The bench runs it bare, with the nop library and with the recorder and subtracts.
 *
 * usage: hook PAIRS DEPTH LIVE    prints the median of 7 rounds, ns per pair
 * DEPTH frames stand between main and the pair; LIVE blocks are alive all the time.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

int cuInit(unsigned int flags);
int cuDevicePrimaryCtxRetain(void **ctx, int device);
int cuCtxSetCurrent(void *ctx);
int cuMemAlloc_v2(uint64_t *ptr, size_t size);
int cuMemFree_v2(uint64_t ptr);

#define ROUNDS 7

static double now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1e9 + ts.tv_nsec;
}

/* Frees the oldest of the live blocks first, as a ring; returns the time of one pair. */
static double round_of(long pairs, uint64_t *live, long n)
{
	double begin = now_ns();

	for (long i = 0; i < pairs; i++) {
		uint64_t *p = &live[i % n];

		if (cuMemFree_v2(*p) || cuMemAlloc_v2(p, 512 * (1 + i % 97)))
			abort();
	}
	return (now_ns() - begin) / pairs;
}

__attribute__((noinline)) static double at_depth(int depth, long pairs, uint64_t *live, long n)
{
	double r;

	if (depth > 0)
		r = at_depth(depth - 1, pairs, live, n);
	else
		r = round_of(pairs, live, n);
	__asm__ volatile("" : "+x"(r)); /* no tail call: the frame must be there */
	return r;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
	long pairs = argc > 1 ? atol(argv[1]) : 100000;
	int depth = argc > 2 ? atoi(argv[2]) : 0;
	long n = argc > 3 ? atol(argv[3]) : 1000;
	uint64_t *live = calloc(n, sizeof(*live));
	double rounds[ROUNDS];
	void *ctx;

	if (!live || cuInit(0) || cuDevicePrimaryCtxRetain(&ctx, 0) || cuCtxSetCurrent(ctx))
		return 1;
	for (long i = 0; i < n; i++) {
		if (cuMemAlloc_v2(&live[i], 512))
			return 1;
	}
	for (int i = 0; i < ROUNDS; i++)
		rounds[i] = at_depth(depth, pairs, live, n);
	qsort(rounds, ROUNDS, sizeof(rounds[0]), by_value);
	printf("%.1f\n", rounds[ROUNDS / 2]);
	return 0;
}
