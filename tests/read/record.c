/* SPDX-License-Identifier: MIT */
/*
 * record LOG SEED EVENTS THREADS LIVE: drives the recorder itself, without a program or CUDA under
 * it, and writes what it asked for to LOG, one line per call, so that a reader can be held to it.
 * With more than one thread each has a device of its own, so that the order inside a lane is known.
 * EVENTS 0: until killed, without a log.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include "../../preload/preload.h"
#include "../recorder/model.h" /* FAKE_STACKS: what fake.c defines */

struct block {
	uint64_t addr, size;
	uint32_t mask;
	enum gt_space space;
};

struct worker {
	pthread_t thread;
	int device;
	uint64_t rng, events;
	size_t live_max, live_count;
	struct block *live;
	FILE *log;
};

static uint64_t below(struct worker *w, uint64_t n)
{
	w->rng ^= w->rng << 13;
	w->rng ^= w->rng >> 7;
	w->rng ^= w->rng << 17;
	return (w->rng >> 11) % n;
}

static void say(const struct worker *w, const char *op, const struct block *b)
{
	if (w->log)
		fprintf(w->log, "%d %s %llu %llu\n", w->device, op, (unsigned long long)b->addr,
			(unsigned long long)b->size);
}

static void do_alloc(struct worker *w)
{
	const bool torch = below(w, 3) != 0;
	struct block b = {
		.addr = 0x7f0000000000ull + below(w, 1 << 26) * 512,
		.size = below(w, 9) ? (1 + below(w, 4096)) * 512 : below(w, 1ull << 36),
		.mask = torch ? GT_MASK_TORCH | GT_MASK_IN_USE : GT_MASK_RESERVED,
		.space = torch ? GT_SPACE_TORCH : GT_SPACE_DRIVER,
	};
	struct gt_alloc a = {
		.device = w->device,
		.space = b.space,
		.mask = b.mask,
		.api = torch ? GT_API_TORCH : GT_API_MEM_ALLOC,
		.addr = b.addr,
		.size = b.size,
		.stream = gt_def_stream(w->device, below(w, 4)),
		.where.native = 1 + (uint32_t)below(w, FAKE_STACKS),
	};

	for (size_t i = 0; i < w->live_count; i++) {
		if (w->live[i].addr == b.addr && w->live[i].space == b.space)
			return;
	}
	gt_record_alloc(&a);
	say(w, "alloc", &b);
	w->live[w->live_count++] = b;
}

static void do_free(struct worker *w)
{
	const size_t victim = below(w, w->live_count);
	const struct block b = w->live[victim];
	struct gt_freed freed;

	gt_record_free(w->device, b.space, b.addr, GT_API_MEM_FREE, (struct gt_where){0}, &freed);
	say(w, "free", &b);
	if (below(w, 50) == 0) {
		gt_record_unfree(&freed);
		say(w, "unfree", &b);
		return;
	}
	w->live[victim] = w->live[--w->live_count];
}

static void *work(void *arg)
{
	struct worker *w = arg;

	for (uint64_t i = 0; !w->events || i < w->events; i++) {
		if (w->live_count < w->live_max && below(w, 2 * w->live_max) >= w->live_count)
			do_alloc(w);
		else
			do_free(w);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	struct worker workers[16] = {0};
	int threads;

	if (argc != 6 || (threads = atoi(argv[4])) < 1 || threads > 16 || !gt_recording())
		return 2;
	for (int i = 0; i < threads; i++) {
		struct worker *w = &workers[i];
		char path[512];

		w->device = i;
		w->rng = strtoull(argv[2], NULL, 0) * 2654435761u + 88172645463325252ull +
			 (uint64_t)i;
		w->events = strtoull(argv[3], NULL, 0);
		w->live_max = strtoull(argv[5], NULL, 0);
		w->live = calloc(w->live_max + 1, sizeof(*w->live));
		snprintf(path, sizeof(path), "%s.%d", argv[1], i);
		w->log = w->events ? fopen(path, "we") : NULL;
		if (!w->live || pthread_create(&w->thread, NULL, work, w))
			return 2;
	}
	for (int i = 0; i < threads; i++) {
		pthread_join(workers[i].thread, NULL);
		if (workers[i].log)
			fclose(workers[i].log);
		free(workers[i].live);
	}
	return 0;
}
