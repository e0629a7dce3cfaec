/* SPDX-License-Identifier: MIT */
/*
 * steps.c - does what its standard input says, a line at a time, and answers "done" to each:
 *
 *	keep N BYTES	allocates N blocks and keeps them
 *	grow N BYTES	the same from another line of code
 *	churn N BYTES	allocates and frees a block, N times
 *	fast N BYTES	as churn, but goes on until the process is killed; no answer after "done"
 *
 * usage: steps DEVICE
 */
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void take(size_t bytes)
{
	CUdeviceptr block;

	if (cuMemAlloc(&block, bytes))
		abort();
}

__attribute__((noinline)) static void keep(long n, size_t bytes)
{
	for (long i = 0; i < n; i++)
		take(bytes);
}

__attribute__((noinline)) static void grow(long n, size_t bytes)
{
	for (long i = 0; i < n; i++)
		take(bytes);
	__asm__ volatile("# grow"); /* or the compiler makes one function of the two */
}

__attribute__((noinline)) static void churn(long n, size_t bytes)
{
	CUdeviceptr block;

	for (long i = 0; i < n; i++)
		if (cuMemAlloc(&block, bytes) || cuMemFree(block))
			abort();
}

static void act(const char *what, long n, size_t bytes)
{
	if (strcmp(what, "keep") == 0)
		keep(n, bytes);
	else if (strcmp(what, "grow") == 0)
		grow(n, bytes);
	else
		churn(n, bytes);
}

int main(int argc, char **argv)
{
	CUcontext context;
	char what[16];
	long n, bytes;

	if (argc != 2 || cuInit(0) || cuDevicePrimaryCtxRetain(&context, atoi(argv[1])) ||
	    cuCtxSetCurrent(context))
		return 2;
	while (scanf("%15s %ld %ld", what, &n, &bytes) == 3) {
		int forever = strcmp(what, "fast") == 0;

		if (!forever)
			act(what, n, (size_t)bytes);
		puts("done");
		fflush(stdout);
		while (forever)
			churn(n, (size_t)bytes);
	}
	return 0;
}
