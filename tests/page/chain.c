/* SPDX-License-Identifier: MIT */
/*
 * chain.c - a training of any length, for pages of any size: like steps, one after the other.
 *
 *	chain EVENTS SITES
 *
 * A step is announced, allocates 1,200 blocks from SITES call sites, sizes a little different from step
 * to step, and frees them in another order; every hundredth block of the first steps is kept. In the
 * middle of the run 4200 MiB are asked for and given back at once: a spike of microseconds that a page
 * must not lose. Prints the bytes at the spike. It is asked for through libtorch_double.so, so that
 * the tool takes the program for one with torch and looks for steps.
 */
#include <cuda.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include "gputrace/gputrace.h"
#include "../prog/sites.h"

#define BLOCKS 1200
#define SPIKE  ((size_t)4200 << 20)

CUresult gt_torch_double(CUresult (*alloc)(CUdeviceptr *, size_t), CUdeviceptr *ptr, size_t size);

static uint64_t random_state = 88172645463325252ull;
static size_t in_use;

static uint64_t next_random(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

__attribute__((noinline)) static void spike(void)
{
	CUdeviceptr ptr;

	if (gt_torch_double(cuMemAlloc, &ptr, SPIKE))
		exit(1);
	printf("%zu\n", in_use + SPIKE);
	cuMemFree(ptr);
}

static void step(size_t number, size_t sites, CUdeviceptr *blocks, size_t *sizes)
{
	gputrace_step();
	for (size_t i = 0; i < BLOCKS; i++) {
		sizes[i] = ((i * 7919 % 64) + 1) * 16384 + (next_random() % 64) * 512;
		if (descend(&blocks[i], sizes[i], i * 31 % sites + 2))
			exit(1);
		in_use += sizes[i];
	}
	for (size_t k = 0; k < BLOCKS; k++) {
		size_t i = BLOCKS - 1 - (k ^ 1); /* not quite backwards */

		if (number < 8 && i % 100 == 0)
			continue;
		cuMemFree(blocks[i]);
		in_use -= sizes[i];
	}
}

int main(int argc, char **argv)
{
	size_t events = argc > 1 ? strtoull(argv[1], NULL, 10) : 100000;
	size_t sites = argc > 2 ? strtoull(argv[2], NULL, 10) : 2000;
	size_t steps = events / (2 * BLOCKS) + 1;
	CUdeviceptr blocks[BLOCKS];
	size_t sizes[BLOCKS];
	CUcontext context;

	if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context))
		return 1;
	for (size_t i = 0; i < steps; i++) {
		step(i, sites, blocks, sizes);
		if (i == steps / 2)
			spike();
	}
	return 0;
}
