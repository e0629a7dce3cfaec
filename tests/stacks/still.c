/* SPDX-License-Identifier: MIT */
/* A frame that leaves its caller's frame pointer alone; compiled without frame pointers. */
#include "scenes.h"

void keeps_fp(void);

static volatile unsigned sink;

__attribute__((noinline)) void keeps_fp(void)
{
	hook();
	sink++;
}
