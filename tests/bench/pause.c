/* SPDX-License-Identifier: MIT */
/*
 * How long single calls take: the usual ones, and those in which the recorder seals a chunk, grows
 * its file or waits for it. Prints "NAME NS" for p50, p99, p99.9, p99.99 and max of all
 * cuMemFree/cuMemAlloc pairs, then how many were left out and the longest of these: in them another
 * process had the processor, which says nothing about us. The bench runs it with the nop library as
 * well.
 *
 * usage: pause PAIRS LIVE
 */
#include <stdio.h>
#include <sys/resource.h>
#include "traffic.h"

#define LONG_NS 20000 /* only then is the kernel asked whether somebody else has run */

static long switches(void)
{
	struct rusage u;

	getrusage(RUSAGE_THREAD, &u);
	return u.ru_nivcsw;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		double q;
	} at[] = {{"p50", .5}, {"p99", .99}, {"p99.9", .999}, {"p99.99", .9999}, {"max", 1}};
	long pairs = argc > 1 ? atol(argv[1]) : 1000000, n = argc > 2 ? atol(argv[2]) : 1000;
	double *took = malloc(pairs * sizeof(*took)), apart_max = 0, begin, end;
	long kept = 0, apart = 0, before;
	uint64_t *live = traffic_start(n);

	if (!took)
		return 1;
	before = switches();
	for (long i = 0; i < pairs; i++) {
		begin = traffic_ns(CLOCK_MONOTONIC);
		traffic_pair(live, n);
		end = traffic_ns(CLOCK_MONOTONIC) - begin;
		if (end > LONG_NS && switches() != before) {
			before = switches();
			apart++;
			apart_max = end > apart_max ? end : apart_max;
			continue;
		}
		took[kept++] = end;
	}
	if (!kept)
		return 1;
	qsort(took, kept, sizeof(*took), traffic_by_value);
	for (size_t i = 0; i < sizeof(at) / sizeof(*at); i++)
		printf("%s %.0f\n", at[i].name, took[(long)(at[i].q * (kept - 1))]);
	printf("apart %ld\napart_max %.0f\n", apart, apart_max);
	return 0;
}
