/* SPDX-License-Identifier: MIT */
/*
 * The pairs of hook.c without an end, slice by slice, so that what goes on beside the program for a part of the time can
 * be told from the rest of the same run: two runs differ by more.
 *
 * usage: slices PAIRS DEPTH LIVE SECONDS    a line per slice: when it began by CLOCK_MONOTONIC, ns; ns of
 * processor time per pair
 */
#include <stdio.h>
#include "traffic.h"

__attribute__((noinline)) static void at_depth(int depth, long pairs, uint64_t *live, long n,
					       double until)
{
	double began, used;

	if (depth > 0) {
		at_depth(depth - 1, pairs, live, n, until);
		__asm__ volatile(""); /* no tail call: the frame must be there */
		return;
	}
	while ((began = traffic_ns(CLOCK_MONOTONIC)) < until) {
		used = traffic_ns(CLOCK_PROCESS_CPUTIME_ID);
		for (long i = 0; i < pairs; i++)
			traffic_pair(live, n);
		used = traffic_ns(CLOCK_PROCESS_CPUTIME_ID) - used;
		printf("%.0f %.2f\n", began, used / pairs);
	}
}

int main(int argc, char **argv)
{
	long n = argc > 3 ? atol(argv[3]) : 0;

	if (argc != 5 || n < 1)
		return 1;
	setvbuf(stdout, NULL, _IOFBF, 1 << 16);
	at_depth(atoi(argv[2]), atol(argv[1]), traffic_start(n), n,
		 traffic_ns(CLOCK_MONOTONIC) + atof(argv[4]) * 1e9);
	return 0;
}
