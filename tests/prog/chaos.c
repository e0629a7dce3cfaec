/* SPDX-License-Identifier: MIT */
/*
 * chaos.c - a random program over all ways to get and give back memory, right and wrong ones.
 *
 *	chaos [--calls N] [--seed N] [--every N] [--clean]
 *
 * About one call in ten is a mistake: a second free, a free inside a block, of a wild address, from
 * another device's context, after its context or its pool has ended, more than there is. The same
 * seed makes the same calls. With --every, and on the simulator, each N-th call is followed by a
 * line of JSON with the books (gtsim.h) of the host (-1) and every device, without what is 0:
 * {"call": N, "books": {"DEVICE": {"FAMILY": [BYTES, COUNT]}}}. If a tracer offers gputrace_mark(),
 * it is told "call N" at the same place. With --clean all is given back
 * in the end, and the books are printed once more. The last line counts calls
 * and refusals and says what of each device is in use.
 */
#include "chaos.h"

#include "../sim/gtsim.h"

#include <dlfcn.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

static unsigned long long calls, wanted = 10000, every, refused;
static bool clean;
static uint64_t state;
static struct chaos_thing kept[CHAOS_KINDS][CHAOS_KEPT];
static size_t kept_count[CHAOS_KINDS];
static CUcontext primary[CHAOS_DEVICES];
static int (*books_of)(int, struct gt_sim_books *);
static void (*mark)(const char *);
int chaos_device;

uint64_t chaos_random(uint64_t n)
{
	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	return (state * 0x2545F4914F6CDD1DULL >> 11) % n;
}

size_t chaos_size(size_t most)
{
	size_t limit = 1;

	for (uint64_t doubled = chaos_random(40); doubled && limit < most; doubled--)
		limit *= 2;
	return 1 + chaos_random(limit < most ? limit : most);
}

static void print_books(int device)
{
	static const char *const names[] = {
#define NAME(upper, lower) #lower,
		GT_SIM_FAMILIES(NAME)
#undef NAME
	};
	struct gt_sim_books books;
	const char *comma = "";

	if (books_of(device, &books))
		return;
	printf("%s\"%d\": {", device < 0 ? "" : ", ", device);
	for (int i = 0; i < GT_SIM_FAMILY_COUNT; i++) {
		if (!books.bytes[i] && !books.count[i])
			continue;
		printf("%s\"%s\": [%zu, %zu]", comma, names[i], books.bytes[i], books.count[i]);
		comma = ", ";
	}
	putchar('}');
}

static void checkpoint(void)
{
	char name[32];

	if (mark) {
		snprintf(name, sizeof(name), "call %llu", calls);
		mark(name);
	}
	if (!books_of)
		return;
	printf("{\"call\": %llu, \"books\": {", calls);
	for (int device = -1; device < CHAOS_DEVICES; device++)
		print_books(device);
	puts("}}");
}

CUresult chaos_called(CUresult rc)
{
	calls++;
	refused += rc != CUDA_SUCCESS;
	if (every && calls % every == 0)
		checkpoint();
	return rc;
}

bool chaos_room(enum chaos_kind kind)
{
	return kept_count[kind] < CHAOS_KEPT;
}

void chaos_keep(enum chaos_kind kind, uint64_t value, size_t size)
{
	kept[kind][kept_count[kind]++] = (struct chaos_thing){value, size, chaos_device};
}

bool chaos_take(enum chaos_kind kind, struct chaos_thing *ret)
{
	size_t at;

	if (!kept_count[kind])
		return false;
	at = chaos_random(kept_count[kind]);
	*ret = kept[kind][at];
	kept[kind][at] = kept[kind][--kept_count[kind]];
	return true;
}

void chaos_use_device(int device)
{
	chaos_device = device;
	cuCtxSetCurrent(primary[device]);
}

/* What the device has given away, as it says itself. */
static size_t in_use(int device)
{
	size_t free_bytes = 0, total = 0;

	chaos_use_device(device);
	cuMemGetInfo(&free_bytes, &total);
	return total - free_bytes;
}

static int parse(int argc, char **argv)
{
	static const struct option options[] = {{"calls", 1, NULL, 'c'},
						{"seed", 1, NULL, 's'},
						{"every", 1, NULL, 'e'},
						{"clean", 0, NULL, 'k'},
						{0}};
	unsigned long long seed = 1;
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (option == 'c')
			wanted = strtoull(optarg, NULL, 0);
		else if (option == 's')
			seed = strtoull(optarg, NULL, 0);
		else if (option == 'e')
			every = strtoull(optarg, NULL, 0);
		else if (option == 'k')
			clean = true;
		else
			return -1;
	}
	state = (seed + 1) * 0x9E3779B97F4A7C15ULL;
	return 0;
}

int main(int argc, char **argv)
{
	CUresult rc = CUDA_SUCCESS;

	if (parse(argc, argv) || chaos_start_exporter())
		return 2;
	rc = cuInit(0);
	for (int i = 0; i < CHAOS_DEVICES && !rc; i++)
		rc = cuDevicePrimaryCtxRetain(&primary[i], i);
	if (rc) {
		fprintf(stderr, "%s: no two devices: error %d\n", argv[0], (int)rc);
		return 2;
	}
	books_of = (__typeof__(books_of))dlsym(RTLD_DEFAULT, "gtSimBooks");
	mark = (__typeof__(mark))dlsym(RTLD_DEFAULT, "gputrace_mark");
	chaos_use_device(0);
	while (calls < wanted)
		chaos_do_something();
	if (clean) {
		chaos_clean_up();
		checkpoint();
	}
	printf("{\"calls\": %llu, \"refused\": %llu, \"in_use\": [%zu, %zu]}\n", calls, refused,
	       in_use(0), in_use(1));
	fflush(stdout);
	chaos_stop_exporter();
	return 0;
}
