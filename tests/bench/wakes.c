/* SPDX-License-Identifier: MIT */
/*
 * A neighbour that touches nothing of a recorded program: ten times a second it computes for a while, as gputrace
 * live does beside it. What a program loses beside this one it loses to any process that wakes as often.
 *
 * usage: wakes MICROSECONDS    until it is killed
 */
#include <stdlib.h>
#include <time.h>
#include "traffic.h"

int main(int argc, char **argv)
{
	const struct timespec pause = {.tv_nsec = 100000000};
	const double ns = argc > 1 ? atof(argv[1]) * 1000 : 0;

	for (;;) {
		double until = traffic_ns(CLOCK_PROCESS_CPUTIME_ID) + ns;

		while (traffic_ns(CLOCK_PROCESS_CPUTIME_ID) < until)
			;
		nanosleep(&pause, NULL);
	}
}
