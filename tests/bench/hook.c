/* SPDX-License-Identifier: MIT */
/*
 * Cost of one cuMemFree/cuMemAlloc pair, ELF-linked, on whatever libcuda.so.1 is found and with
 * whatever is preloaded. The bench runs it bare, with the nop library and with the recorder and
 * subtracts.
 *
 * usage: hook PAIRS DEPTH LIVE [ROUNDS [NEAR]]    prints the median of the rounds, ns of processor time
 *
 * DEPTH frames stand between main and the pair; LIVE blocks are alive all the time, the one that
 * goes is any of them, and sizes are random: nothing that compresses or predicts well. With NEAR the block
 * that goes is one of so many that lie together, and the place moves on slowly: recent blocks go first, as
 * in training.
 */
#include <stdio.h>
#include "traffic.h"

#define MAX_ROUNDS 99

static long near; /* 0: any block */

/* The time of one pair. */
static double round_of(long pairs, uint64_t *live, long n)
{
	double begin = traffic_ns(CLOCK_PROCESS_CPUTIME_ID);

	for (long i = 0; !near && i < pairs; i++)
		traffic_pair(live, n);
	for (long i = 0; near && i < pairs; i++)
		traffic_pair(live + i / 16 % (n - near + 1), near);
	return (traffic_ns(CLOCK_PROCESS_CPUTIME_ID) - begin) / pairs;
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

int main(int argc, char **argv)
{
	long pairs = argc > 1 ? atol(argv[1]) : 100000;
	int depth = argc > 2 ? atoi(argv[2]) : 0;
	long n = argc > 3 ? atol(argv[3]) : 1000;
	long count = argc > 4 ? atol(argv[4]) : 7;
	double rounds[MAX_ROUNDS];
	uint64_t *live;

	near = argc > 5 ? atol(argv[5]) : 0;
	if (n < 1 || near < 0 || near > n || count < 1 || count > MAX_ROUNDS)
		return 1;
	live = traffic_start(n);
	for (int i = 0; i < count; i++)
		rounds[i] = at_depth(depth, pairs, live, n);
	qsort(rounds, count, sizeof(rounds[0]), traffic_by_value);
	printf("%.1f\n", rounds[count / 2]);
	return 0;
}
