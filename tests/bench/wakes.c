/* SPDX-License-Identifier: MIT */
/*
 * A neighbour that touches nothing of a recorded program: ten times a second it computes for a while, as gputrace
 * live does beside it. What a program loses beside this one it loses to any process that wakes as often.
 *
 * usage: wakes MICROSECONDS    until it is killed
 */
#include <stdlib.h>
#include <time.h>

static double used_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return ts.tv_sec * 1e6 + ts.tv_nsec / 1e3;
}

int main(int argc, char **argv)
{
	const struct timespec pause = {.tv_nsec = 100000000};
	const double us = argc > 1 ? atof(argv[1]) : 0;

	for (;;) {
		double until = used_us() + us;

		while (used_us() < until)
			;
		nanosleep(&pause, NULL);
	}
}
