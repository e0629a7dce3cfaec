/* SPDX-License-Identifier: MIT */
/*
 * traffic.c - random allocations and frees in any number, from many call sites and threads.
 *
 *	traffic [--events N] [--live N] [--seed N] [--sites N] [--threads N] [--devices N]
 *		[--max BYTES] [--log FILE] [--hold]
 *
 * Each thread has its own random numbers and `live` slots and makes `events` successful calls: a
 * random slot is freed when it holds a block, else filled. So with --events N --threads T there
 * are exactly N x T events, and runs with the same seed make the same ones (a thread works on
 * device thread % devices). Sizes are log-uniform from 1 byte to `max`, call sites are those of sites.h.
 *
 * Prints per device: allocations, frees, live blocks, live bytes and, with one thread, the highest
 * bytes. --log writes one line per event (thread, + or -, device, address, size, site), in the
 * order of each thread. --hold waits for a line on stdin before the end.
 */
#include <cuda.h>
#include <getopt.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include "sites.h"

#define MAX_THREADS 64
#define MAX_DEVICES 16

struct block {
	CUdeviceptr ptr;
	size_t size;
};

struct worker {
	pthread_t thread;
	int index, device;
	uint64_t random;
	struct block *slots;
	size_t allocs, frees, bytes, peak;
	CUresult rc;
};

static size_t events = 1000, live = 100, sites = 16, max_size = 1 << 20;
static unsigned long long seed = 1;
static int threads = 1, devices = 1;
static FILE *log_file;

/* xorshift64*: the same everywhere, unlike rand(). */
static uint64_t next_random(struct worker *w)
{
	w->random ^= w->random >> 12;
	w->random ^= w->random << 25;
	w->random ^= w->random >> 27;
	return w->random * 0x2545F4914F6CDD1DULL;
}

static size_t random_size(struct worker *w)
{
	uint64_t random = next_random(w);
	int bits = 0;

	while (max_size >> bits > 1)
		bits++;
	return 1 + (random >> 8) % (((size_t)1 << random % (unsigned int)(bits + 1)) < max_size
					    ? (size_t)1 << random % (unsigned int)(bits + 1)
					    : max_size);
}

static void write_log(const struct worker *w, char what, const struct block *block, size_t site)
{
	if (log_file)
		fprintf(log_file, "%d %c %d %llx %zu %zu\n", w->index, what, w->device,
			(unsigned long long)block->ptr, block->size, site);
}

static CUresult fill_slot(struct worker *w, struct block *slot)
{
	size_t site = next_random(w) % sites;
	CUresult rc;

	slot->size = random_size(w);
	rc = descend(&slot->ptr, slot->size, site + 2);
	if (rc) {
		slot->ptr = 0;
		return rc;
	}
	w->allocs++;
	w->bytes += slot->size;
	if (w->bytes > w->peak)
		w->peak = w->bytes;
	write_log(w, '+', slot, site);
	return CUDA_SUCCESS;
}

static CUresult empty_slot(struct worker *w, struct block *slot)
{
	CUresult rc;

	write_log(w, '-', slot, 0);
	rc = cuMemFree(slot->ptr);
	if (rc)
		return rc;
	w->frees++;
	w->bytes -= slot->size;
	slot->ptr = 0;
	return CUDA_SUCCESS;
}

static void *run(void *arg)
{
	struct worker *w = arg;
	CUcontext ctx;

	w->rc = cuDevicePrimaryCtxRetain(&ctx, w->device);
	w->rc = w->rc ? w->rc : cuCtxSetCurrent(ctx);
	for (size_t i = 0; i < events && !w->rc; i++) {
		struct block *slot = &w->slots[next_random(w) % live];

		w->rc = slot->ptr ? empty_slot(w, slot) : fill_slot(w, slot);
	}
	return NULL;
}

static int parse(int argc, char **argv)
{
	static const struct option options[] = {
		{"events", 1, NULL, 'e'}, {"live", 1, NULL, 'l'},    {"seed", 1, NULL, 's'},
		{"sites", 1, NULL, 'k'},  {"threads", 1, NULL, 't'}, {"devices", 1, NULL, 'd'},
		{"max", 1, NULL, 'm'},	  {"log", 1, NULL, 'o'},     {"hold", 0, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	int hold = 0, option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (option) {
		case 'e':
			events = strtoull(optarg, NULL, 0);
			break;
		case 'l':
			live = strtoull(optarg, NULL, 0);
			break;
		case 's':
			seed = strtoull(optarg, NULL, 0);
			break;
		case 'k':
			sites = strtoull(optarg, NULL, 0);
			break;
		case 't':
			threads = atoi(optarg);
			break;
		case 'd':
			devices = atoi(optarg);
			break;
		case 'm':
			max_size = strtoull(optarg, NULL, 0);
			break;
		case 'o':
			log_file = fopen(optarg, "we");
			break;
		case 'h':
			hold = 1;
			break;
		default:
			return -1;
		}
	}
	if (!live || !sites || !max_size || threads < 1 || threads > MAX_THREADS || devices < 1 ||
	    devices > MAX_DEVICES)
		return -1;
	return hold;
}

static int start_worker(struct worker *w, int index)
{
	w->index = index;
	w->device = index % devices;
	w->random = (seed + 1) * 0x9E3779B97F4A7C15ULL + (uint64_t)index * 0xD1B54A32D192ED03ULL;
	w->slots = calloc(live, sizeof(*w->slots));
	return w->slots ? pthread_create(&w->thread, NULL, run, w) : -1;
}

static void print_device(const struct worker *workers, int device)
{
	size_t allocs = 0, frees = 0, bytes = 0, peak = 0;

	for (int i = 0; i < threads; i++) {
		if (workers[i].device != device)
			continue;
		allocs += workers[i].allocs;
		frees += workers[i].frees;
		bytes += workers[i].bytes;
		peak = workers[i].peak;
	}
	printf("device %d allocations %zu frees %zu live %zu bytes %zu", device, allocs, frees,
	       allocs - frees, bytes);
	if (threads <= devices)
		printf(" peak %zu", peak);
	putchar('\n');
}

int main(int argc, char **argv)
{
	static struct worker workers[MAX_THREADS];
	int hold = parse(argc, argv);
	CUresult rc = CUDA_SUCCESS;

	if (hold < 0 || cuInit(0)) {
		fprintf(stderr, "%s: wrong arguments or no device, see the top of its source\n",
			argv[0]);
		return 2;
	}
	for (int i = 0; i < threads; i++) {
		if (start_worker(&workers[i], i))
			return 2;
	}
	for (int i = 0; i < threads; i++) {
		pthread_join(workers[i].thread, NULL);
		rc = workers[i].rc ? workers[i].rc : rc;
	}
	if (log_file)
		fclose(log_file);
	for (int device = 0; device < devices; device++)
		print_device(workers, device);
	fflush(stdout);
	if (hold)
		getchar();
	if (rc)
		fprintf(stderr, "stopped early: error %d\n", (int)rc);
	return rc ? 1 : 0;
}
