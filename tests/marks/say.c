/* SPDX-License-Identifier: MIT */
/*
 * say MODE [SEED]: a program that tells gputrace about itself, and knows what it told. Its output, one
 * line per range in the order of their begins, is what the trace must say:
 *
 *	NAME KIND THREAD DEPTH PEAK0 PEAK1     bytes on each of two devices; THREAD: main or other
 *
 * random   allocations on two devices in nested ranges, windows and steps; marks of another thread
 * early    ranges before the first CUDA call: open ones, closed ones, marks
 * without  marks, no CUDA
 * fork     steps in the parent, then in a child
 * window-lost  more windows than are kept open, ended in order
 */
#include <cuda.h>
#include <gputrace/gputrace.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define DEVICES 2
#define RANGES	16384
#define BLOCKS	64

struct range {
	char name[32];
	const char *kind, *thread;
	int depth, open;
	uint64_t peak[DEVICES];
};

static struct range ranges[RANGES];
static int range_count, stack[64], depth, windows[64], window_depth, last_step = -1;
static uint64_t now[DEVICES];
static uint32_t state;

static uint32_t random_below(uint32_t n)
{
	state = state * 1664525u + 1013904223u;
	return (state >> 8) % n;
}

static void check(CUresult rc, const char *what)
{
	if (rc == CUDA_SUCCESS)
		return;
	fprintf(stderr, "%s: %d\n", what, rc);
	exit(1);
}

/* ---- what is told ---------------------------------------------------------------------------- */

static int add(const char *name, const char *kind, const char *thread, int at)
{
	struct range *r = &ranges[range_count];

	snprintf(r->name, sizeof(r->name), "%s", name);
	r->kind = kind;
	r->thread = thread;
	r->depth = at;
	r->open = strcmp(kind, "mark") != 0;
	memcpy(r->peak, now, sizeof(now));
	return range_count++;
}

static void push(const char *name)
{
	stack[depth] = add(name, "range", "main", depth);
	depth++;
	gputrace_push(name);
}

static void pop(void)
{
	ranges[stack[--depth]].open = 0;
	gputrace_pop();
}

static void window_begin(const char *name)
{
	windows[window_depth++] = add(name, "window", "main", 0);
	gputrace_window_begin(name);
}

static void window_end(void)
{
	ranges[windows[--window_depth]].open = 0;
	gputrace_window_end();
}

static void step(void)
{
	char name[16];

	snprintf(name, sizeof(name), "%d", last_step < 0 ? 1 : atoi(ranges[last_step].name) + 1);
	if (last_step >= 0)
		ranges[last_step].open = 0;
	last_step = add(name, "step", "main", 0);
	gputrace_step();
}

static void mark(const char *name)
{
	add(name, "mark", "main", 0);
	gputrace_mark(name);
}

static void changed(int device)
{
	for (int i = 0; i < range_count; i++)
		if (ranges[i].open && now[device] > ranges[i].peak[device])
			ranges[i].peak[device] = now[device];
}

static void print_ranges(void)
{
	for (int i = 0; i < range_count; i++)
		printf("%s %s %s %d %llu %llu\n", ranges[i].name, ranges[i].kind, ranges[i].thread,
		       ranges[i].depth, (unsigned long long)ranges[i].peak[0],
		       (unsigned long long)ranges[i].peak[1]);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static CUcontext contexts[DEVICES];
static struct {
	CUdeviceptr ptr;
	size_t size;
	int device;
} blocks[BLOCKS];

static void open_devices(void)
{
	check(cuInit(0), "cuInit");
	for (int i = 0; i < DEVICES; i++)
		check(cuDevicePrimaryCtxRetain(&contexts[i], i), "cuDevicePrimaryCtxRetain");
}

static void change_block(int i)
{
	int device = blocks[i].ptr ? blocks[i].device : (int)random_below(DEVICES);

	check(cuCtxSetCurrent(contexts[device]), "cuCtxSetCurrent");
	if (blocks[i].ptr) {
		check(cuMemFree(blocks[i].ptr), "cuMemFree");
		blocks[i].ptr = 0;
		now[device] -= blocks[i].size;
		return;
	}
	blocks[i].size = 512 * (1 + random_below(4096));
	blocks[i].device = device;
	check(cuMemAlloc(&blocks[i].ptr, blocks[i].size), "cuMemAlloc");
	now[device] += blocks[i].size;
	changed(device);
}

/* ---- modes ----------------------------------------------------------------------------------- */

/* Ranges of the other thread are in nobody's way: begun and ended while main waits. */
static void *other_thread(void *arg)
{
	int outer = add("other outer", "range", "other", 0), inner;

	(void)arg;
	gputrace_push("other outer");
	inner = add("other inner", "range", "other", 1);
	gputrace_push("other inner");
	gputrace_pop();
	gputrace_pop();
	ranges[inner].open = ranges[outer].open = 0;
	return NULL;
}

static void call_other(void)
{
	pthread_t thread;

	if (!pthread_create(&thread, NULL, other_thread, NULL))
		pthread_join(thread, NULL);
}

static void random_action(void)
{
	static const char *const names[] = {"load", "forward", "backward", "optimizer"};
	uint32_t dice = random_below(100);

	if (dice < 80)
		change_block((int)random_below(BLOCKS));
	else if (dice < 85 && depth < 12)
		push(names[random_below(4)]);
	else if (dice < 90 && depth)
		pop();
	else if (dice < 92 && window_depth < 8)
		window_begin("window");
	else if (dice < 94 && window_depth)
		window_end();
	else if (dice < 96)
		step();
	else
		mark("mark");
}

static void run_random(int actions)
{
	open_devices();
	for (int i = 0; i < actions; i++) {
		random_action();
		if (i % 1000 == 500)
			call_other();
	}
}

/* A closed range from before the first CUDA call has held nothing and is not in the trace. */
static void run_early(void)
{
	gputrace_push("closed");
	gputrace_pop();
	gputrace_window_begin("closed window");
	gputrace_window_end();
	mark("start");
	window_begin("whole");
	push("outer");
	step();
	push("inner");
	run_random(400);
	while (depth)
		pop();
}

static void run_without(void)
{
	for (int i = 0; i < 1000; i++) {
		gputrace_step();
		gputrace_push("a");
		gputrace_window_begin("b");
		gputrace_mark("c");
	}
	puts("fine");
}

static void run_fork(void)
{
	pid_t child;

	open_devices();
	change_block(0);
	step();
	step();
	child = fork();
	if (child == 0) {
		gputrace_step();
		gputrace_push("child");
		_exit(0);
	}
	waitpid(child, NULL, 0);
	step();
}

static void run_windows(void)
{
	open_devices();
	for (int i = 0; i < 100; i++) {
		gputrace_window_begin("deep");
		change_block(0);
	}
	for (int i = 0; i < 100; i++)
		gputrace_window_end();
	window_begin("last");
	change_block(1);
	window_end();
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";

	state = argc > 2 ? (uint32_t)atoi(argv[2]) : 1;
	if (!strcmp(mode, "random"))
		run_random(argc > 3 ? atoi(argv[3]) : 4000);
	else if (!strcmp(mode, "early"))
		run_early();
	else if (!strcmp(mode, "without"))
		run_without();
	else if (!strcmp(mode, "fork"))
		run_fork();
	else if (!strcmp(mode, "windows"))
		run_windows();
	else
		return 2;
	print_ranges();
	return 0;
}
