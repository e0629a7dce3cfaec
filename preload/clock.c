/* SPDX-License-Identifier: MIT */
/*
 * Trace time: microseconds since the file was opened, read once per event inside a lane's lock.
 */
#include <time.h>
#include "recorder.h"

void gt_clock_start(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	gt_file->real_us = (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
	gt_file->mono_us = gt_mono_us();
}

void gt_clock_anchor(void)
{
}

uint64_t gt_now_us(void)
{
	return gt_mono_us() - gt_file->mono_us;
}
