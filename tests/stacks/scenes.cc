/* SPDX-License-Identifier: MIT */
/* One set of scenes, compiled several times; NAME and FLAGS come from stacks.mk. */
#include <alloca.h>
#include <stdlib.h>
#include <string.h>
#include "scenes.h"

#define OWN static __attribute__((noinline))

namespace
{

volatile unsigned sink;

/* Keeps the call from becoming a jump. */
OWN void capture()
{
	hook();
	sink = sink + 1;
}

OWN void recursion(unsigned depth)
{
	char local[24];

	memset(local, (int)depth, sizeof(local));
	if (depth)
		recursion(depth - 1);
	capture();
	sink = sink + (unsigned char)local[depth % sizeof(local)];
}

/* Leaves return addresses of earlier calls in the memory that alloca hands out next. */
OWN void litter(unsigned depth)
{
	char local[64];

	memset(local, 1, sizeof(local));
	if (depth)
		litter(depth - 1);
	sink = sink + (unsigned char)local[depth % 64];
}

OWN void vary(unsigned seed, unsigned depth)
{
	char *room = (char *)alloca(16 + (seed * 37 + depth * 91) % 700);

	room[0] = (char)depth;
	if (depth)
		vary(seed * 1103515245u + 12345u, depth - 1);
	if (depth % 3 == 0)
		capture();
	sink = sink + (unsigned char)room[0];
}

OWN void variable_frames(unsigned seed)
{
	litter(seed % 12);
	vary(seed, seed % 9);
	vary(seed / 3, seed % 5);
}

struct alignas(64) wide {
	char bytes[128];
};

OWN void fill(struct wide *w, char *room, unsigned seed)
{
	memset(w->bytes, (int)seed, sizeof(w->bytes));
	room[0] = w->bytes[seed % 128];
}

OWN void realign(unsigned seed, unsigned depth, int a, int b, int c, int d, int e, int on_stack)
{
	struct wide w;
	char *room = (char *)alloca(8 + (seed + depth * 40) % 200);

	fill(&w, room, seed + (unsigned)on_stack);
	capture();
	if (depth)
		realign(seed + 7, depth - 1, b, c, d, e, a, on_stack + 1);
	capture();
	sink = sink + (unsigned char)w.bytes[3] + (unsigned char)room[0];
}

OWN void realigned_frames(unsigned seed)
{
	realign(seed, 1 + seed % 6, 1, 2, 3, 4, 5, 6);
}

OWN void large_frames(unsigned depth)
{
	volatile char local[90000];

	local[0] = local[sizeof(local) - 1] = (char)depth;
	if (depth)
		large_frames(depth - 1);
	capture();
	sink = sink + (unsigned)local[0];
}

int compare(const void *a, const void *b)
{
	if (sink % 4 == 0)
		capture();
	sink = sink + 1;
	return *(const int *)a - *(const int *)b;
}

OWN void callbacks(unsigned seed)
{
	int values[40], key = (int)seed % 100;

	for (unsigned i = 0; i < 40; i++)
		values[i] = (int)((seed * 31 + i * 7919) % 100);
	qsort(values, 40, sizeof(*values), compare);
	bsearch(&key, values, 40, sizeof(*values), compare);
}

struct leaving { /* captures while the stack is being unwound */
	~leaving()
	{
		capture();
	}
};

OWN void fail(unsigned depth)
{
	leaving on_the_way;

	if (!depth)
		throw depth;
	fail(depth - 1);
	capture();
}

OWN void fail_and_catch(unsigned depth)
{
	try {
		fail(depth);
	} catch (unsigned caught) {
		capture();
		if (depth > 2)
			fail_and_catch(depth - 2);
		capture();
	}
}

OWN void exceptions(unsigned depth)
{
	try {
		fail_and_catch(depth);
		try {
			fail(depth);
		} catch (unsigned) {
			capture();
			throw;
		}
	} catch (...) {
		capture();
	}
}

/* Random walks through all of the above: outer parts stay, inner ones change. */
OWN void mixed(unsigned seed, unsigned depth)
{
	for (unsigned i = 0; i < 3; i++) {
		unsigned next = (seed = seed * 1664525u + 1013904223u) >> 16;

		if (next % 7 == 0)
			variable_frames(next);
		else if (next % 7 == 1)
			realign(next, 2, 1, 2, 3, 4, 5, 6);
		else if (next % 7 == 2)
			recursion(next % 10);
		else if (next % 7 == 3)
			callbacks(next);
		else if (next % 7 == 4)
			fail_and_catch(next % 4);
		else if (depth)
			mixed(seed + i, depth - 1);
		capture();
	}
}

} // namespace

extern "C" {
extern const struct scenes NAME;
const struct scenes NAME = {FLAGS,	  recursion, variable_frames, realigned_frames,
			    large_frames, callbacks, exceptions,      mixed};
}
