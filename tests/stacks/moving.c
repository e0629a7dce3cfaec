/* SPDX-License-Identifier: MIT */
/*
 * Frames whose frame pointer moves while everything that the walk compares first stays: outer pads,
 * inner takes the rest, so that the call from inner always happens at one stack pointer, from one
 * pc. Only the saved frame pointer tells the activations apart: the old return address, to the
 * other call in outer, is still in the memory that alloca hands out. Compiled with frame pointers.
 */
#include <alloca.h>
#include <stddef.h>
#include "scenes.h"

#define OWN __attribute__((noinline))

void moving(void (*call)(void), unsigned k, unsigned n);
void saves_fp(void);

static volatile unsigned sink;

static OWN void inner(void (*call)(void), size_t room)
{
	volatile char *p = alloca(room);

	p[0] = 1;
	call();
	sink += (unsigned)p[0];
}

static OWN void outer(void (*call)(void), size_t pad, size_t room)
{
	volatile char *p = alloca(pad);

	p[0] = 1;
	if (pad & 64) {
		inner(call, room);
		sink++;
	} else {
		inner(call, room);
		p[0]++;
	}
	sink += (unsigned)p[0];
}

void moving(void (*call)(void), unsigned k, unsigned n)
{
	outer(call, 64 * (size_t)(k + 1), 64 * (size_t)(n - k + 1));
	sink++;
}

OWN void saves_fp(void)
{
	hook();
	sink++;
}
