/* SPDX-License-Identifier: MIT */
/*
 * Cost of one native stack capture, caches warm, in ns: medians of 21 times 2,000 calls. Prints a
 * line per depth and method, the unwinders of others beside ours.
 *
 *   same stack       gt_where_capture again and again: all of the last stack is verified
 *   other inner part gt_where_capture from two places in turn: three frames are walked, the rest is
 *                    verified
 *   walk             the walk alone, without a last stack to compare with
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unwind.h>
#include "../../preload/unwind.h"
#include "../stacks/check.h"

enum { CALLS = 2000, TIMES = 21, ROOM = 256 };

static int (*unw_backtrace)(void **, int);
static struct gt_frame frames[ROOM + 1], scratch[ROOM + 1];
static uint64_t chain[ROOM + 1];
static struct gt_stack walker = {
	.depth = ROOM + 1, .frames = frames, .scratch = scratch, .chain = chain};
static void *pcs[ROOM];
static volatile unsigned sink;

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* ---- what is measured ------------------------------------------------------------------------ */

static __attribute__((noinline)) void same_stack(void)
{
	struct gt_regs regs = GT_REGS_HERE();

	sink += gt_where_capture(&regs).native;
}

static __attribute__((noinline)) void left(void)
{
	same_stack();
	sink++;
}

static __attribute__((noinline)) void right(void)
{
	left();
	sink++;
}

static __attribute__((noinline)) void other_inner_part(void)
{
	static unsigned turn;

	if (++turn & 1)
		left();
	else
		right();
	sink++;
}

static __attribute__((noinline)) void walk(void)
{
	struct gt_regs regs = GT_REGS_HERE();
	uint32_t kept;

	walker.n = 0;
	gt_walk(&walker, &regs, &kept);
	sink += walker.pushed;
}

static void libunwind(void)
{
	sink += (unsigned)unw_backtrace(pcs, ROOM);
}

static _Unwind_Reason_Code count(struct _Unwind_Context *context, void *arg)
{
	sink += (unsigned)_Unwind_GetIP(context);
	return _URC_NO_REASON;
}

static void libgcc(void)
{
	_Unwind_Backtrace(count, NULL);
}

static const struct {
	const char *name;
	void (*call)(void);
	unsigned calls;
} methods[] = {
	{"same stack", same_stack, CALLS},
	{"other inner part", other_inner_part, CALLS},
	{"walk", walk, CALLS},
	{"libunwind unw_backtrace", libunwind, CALLS},
	{"libgcc _Unwind_Backtrace", libgcc, CALLS / 20},
};

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double measure(void (*call)(void), unsigned calls)
{
	double ns[TIMES];

	for (unsigned t = 0; t < TIMES; t++) {
		uint64_t began = now();

		for (unsigned i = 0; i < calls; i++)
			call();
		ns[t] = (double)(now() - began) / calls;
	}
	qsort(ns, TIMES, sizeof(*ns), by_value);
	return ns[TIMES / 2];
}

static __attribute__((noinline)) void descend(unsigned more, unsigned depth)
{
	if (more) {
		descend(more - 1, depth);
		sink++;
		return;
	}
	for (unsigned i = 0; i < sizeof(methods) / sizeof(*methods); i++)
		if (methods[i].call != libunwind || unw_backtrace)
			printf("unwind %3u frames: %-26s %8.1f ns\n", depth, methods[i].name,
			       measure(methods[i].call, methods[i].calls));
}

int main(void)
{
	static const unsigned depths[] = {16, 26, 56, 96};
	void *handle = dlopen("libunwind.so.8", RTLD_LAZY | RTLD_LOCAL);

	if (handle)
		*(void **)&unw_backtrace = dlsym(handle, "unw_backtrace");
	double_start(ROOM, GT_UNWIND_AUTO);
	for (unsigned i = 0; i < sizeof(depths) / sizeof(*depths); i++) {
		unsigned outside;

		walk(); /* main and what is outside of it */
		outside = walker.pushed + 2;
		descend(depths[i] - outside, depths[i]);
	}
	return 0;
}
