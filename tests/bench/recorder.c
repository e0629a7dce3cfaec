/* SPDX-License-Identifier: MIT */
/*
 * What the recorder itself costs, without hooks and stacks: pairs of a free and an allocation,
 * random among the live blocks, from one thread, in processor time. Prints "name value unit" per
 * figure.
 *
 *   recorder [PAIRS [SHAPE]]		writes to GPUTRACE_DIR, removes its files
 *   recorder threads T D PAIRS		T threads, each on one of D devices: ns of its own processor time,
 *					and how often one of them had to wait for a lock
 *   recorder sealing LIVE PAIRS	sealing alone, ns per event that was sealed
 *
 * The linker puts the two wrappers here before the library's functions of that name.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "../../preload/recorder.h"

#define PAGES 512ull

static double now_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static uint64_t next(uint64_t *x)
{
	*x ^= *x << 13;
	*x ^= *x >> 7;
	return *x ^= *x << 17;
}

/* ---- what is measured inside the library ----------------------------------------------------- */

void __real_gt_ring_seal(struct lane *l);
void __wrap_gt_ring_seal(struct lane *l);
void __real_gt_lock_wait(struct gt_lock *lock);
void __wrap_gt_lock_wait(struct gt_lock *lock);

static double sealing_ns;
static uint64_t sealed, waits;

void __wrap_gt_ring_seal(struct lane *l)
{
	double began = now_ns(CLOCK_THREAD_CPUTIME_ID);

	sealed += l->seq - l->sealed;
	__real_gt_ring_seal(l);
	sealing_ns += now_ns(CLOCK_THREAD_CPUTIME_ID) - began;
}

void __wrap_gt_lock_wait(struct gt_lock *lock)
{
	__atomic_fetch_add(&waits, 1, __ATOMIC_RELAXED);
	__real_gt_lock_wait(lock);
}

/* ---- traffic --------------------------------------------------------------------------------- */

static void allocate(int device, uint64_t *block, uint64_t r, uint32_t sites)
{
	struct gt_alloc a = {
		.device = device,
		.space = GT_SPACE_TORCH,
		.mask = GT_MASK_TORCH | GT_MASK_IN_USE,
		.api = GT_API_TORCH,
		.addr = *block ^ (r & 0xfff) << 24,
		.size = (1 + (r >> 20) % 4096) * PAGES,
		.where.native = 1 + (uint32_t)(r >> 40) % sites,
	};

	*block = a.addr;
	gt_record_alloc(&a);
}

static void pairs(int device, uint64_t *blocks, uint32_t live, uint32_t sites, uint64_t count,
		  uint64_t *x)
{
	for (uint64_t i = 0; i < count; i++) {
		uint64_t r = next(x);
		uint64_t *block = &blocks[(r >> 8) % live];

		gt_record_free(device, GT_SPACE_TORCH, *block, GT_API_TORCH, (struct gt_where){0},
			       NULL);
		allocate(device, block, r, sites);
	}
}

/* In a process of its own: each starts with an empty file. */
static void measure(uint32_t live, uint32_t sites, uint64_t count)
{
	uint64_t *blocks = malloc(live * sizeof(*blocks));
	uint64_t x = 88172645463325252ull, first;
	double began, took;
	struct stat st;

	if (!gt_recording())
		exit(2);
	for (uint32_t i = 0; i < live; i++) {
		blocks[i] = 0x7f0000000000 + i * PAGES;
		allocate(0, &blocks[i], next(&x), sites);
	}
	pairs(0, blocks, live, sites, count / 10, &x);
	stat(gt_file_path, &st);
	first = (uint64_t)st.st_size;
	began = now_ns(CLOCK_PROCESS_CPUTIME_ID);
	pairs(0, blocks, live, sites, count, &x);
	took = now_ns(CLOCK_PROCESS_CPUTIME_ID) - began;
	stat(gt_file_path, &st);
	unlink(gt_file_path);
	printf("recorder-%u-live-%u-sites %.1f ns/event\n", live, sites,
	       took / (2.0 * (double)count));
	printf("recorder-%u-live-%u-sites-file %.2f B/event\n", live, sites,
	       (double)((uint64_t)st.st_size - first) / (2.0 * (double)count));
	fflush(stdout);
}

/* ---- threads --------------------------------------------------------------------------------- */

#define LIVE 1000u

struct worker {
	pthread_t thread;
	int device;
	uint64_t seed, count;
	double took;
};

static pthread_barrier_t ready;

static void *work(void *arg)
{
	struct worker *w = arg;
	uint64_t *blocks = malloc(LIVE * sizeof(*blocks)), x = w->seed;

	for (uint32_t i = 0; i < LIVE; i++) {
		blocks[i] = w->seed << 40 | i * PAGES;
		allocate(w->device, &blocks[i], next(&x), 100);
	}
	pthread_barrier_wait(&ready);
	w->took = now_ns(CLOCK_THREAD_CPUTIME_ID);
	pairs(w->device, blocks, LIVE, 100, w->count, &x);
	w->took = now_ns(CLOCK_THREAD_CPUTIME_ID) - w->took;
	free(blocks);
	return NULL;
}

static int threads(unsigned count, int devices, uint64_t each)
{
	struct worker w[64] = {0};
	double took = 0;

	if (!count || count > 64 || devices < 1 || !gt_recording())
		return 2;
	pthread_barrier_init(&ready, NULL, count);
	for (unsigned i = 0; i < count; i++) {
		w[i] = (struct worker){.device = (int)i % devices, .seed = i + 1, .count = each};
		pthread_create(&w[i].thread, NULL, work, &w[i]);
	}
	for (unsigned i = 0; i < count; i++) {
		pthread_join(w[i].thread, NULL);
		took += w[i].took;
	}
	unlink(gt_file_path);
	printf("waits %llu\nns %.1f\n", (unsigned long long)waits,
	       took / (2.0 * (double)each * count));
	return 0;
}

static int sealing(uint32_t live, uint64_t count)
{
	uint64_t *blocks = calloc(live, sizeof(*blocks)), x = 88172645463325252ull;

	if (!blocks || !live || !gt_recording())
		return 2;
	for (uint32_t i = 0; i < live; i++) {
		blocks[i] = 0x7f0000000000 + i * PAGES;
		allocate(0, &blocks[i], next(&x), 100);
	}
	pairs(0, blocks, live, 100, count / 10, &x);
	sealing_ns = 0;
	sealed = 0;
	pairs(0, blocks, live, 100, count, &x);
	unlink(gt_file_path);
	printf("%.2f\n", sealing_ns / (double)sealed);
	free(blocks);
	return 0;
}

int main(int argc, char **argv)
{
	static const uint32_t shapes[][2] = {
		{1000, 100}, {100000, 100}, {1000000, 100}, {1000, 100000}};
	uint64_t count = argc > 1 ? strtoul(argv[1], NULL, 0) : 2000000;

	if (argc == 5 && !strcmp(argv[1], "threads"))
		return threads((unsigned)atoi(argv[2]), atoi(argv[3]), strtoul(argv[4], NULL, 0));
	if (argc == 4 && !strcmp(argv[1], "sealing"))
		return sealing((uint32_t)strtoul(argv[2], NULL, 0), strtoul(argv[3], NULL, 0));
	for (size_t i = 0; i < sizeof(shapes) / sizeof(*shapes); i++) {
		if (argc > 2 && strtoul(argv[2], NULL, 0) != i)
			continue;
		fflush(stdout);
		if (!fork()) {
			measure(shapes[i][0], shapes[i][1], count);
			_exit(0);
		}
		wait(NULL);
	}
	return 0;
}
