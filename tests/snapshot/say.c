/* SPDX-License-Identifier: MIT */
/*
 * Writes pickles to standard output for run.py to read back.
 * usage: say pickle        one of each kind of value; run.py has the same list
 *        say viz SEED N    the snapshot of a random program of N events, made in memory
 * The program of a seed allocates and frees segments, torch blocks in them, mappings, memory
 * without an allocator, and also does what only damaged traces do: overlaps, frees of what is not
 * there, times that step back.
 */
#include <stdlib.h>
#include <string.h>

#include "model/segments.h"
#include "out/memory_viz.h"
#include "out/pickle.h"

static void say_integers(struct gt_pickle *pickle)
{
	int shift;

	gt_pickle_list(pickle);
	for (shift = 0; shift < 63; shift++) {
		int64_t power = INT64_C(1) << shift;

		gt_pickle_int(pickle, power - 1);
		gt_pickle_int(pickle, power);
		gt_pickle_int(pickle, -power);
		gt_pickle_int(pickle, -power - 1);
	}
	gt_pickle_int(pickle, INT64_MAX);
	gt_pickle_int(pickle, INT64_MIN);
	gt_pickle_close(pickle);
}

static void say_memo(struct gt_pickle *pickle)
{
	uint32_t kept, memo = 0;
	char text[16];
	int i;

	gt_pickle_list(pickle);
	for (i = 0; i < 600; i++) {
		snprintf(text, sizeof(text), "text %d", i % 300);
		gt_pickle_text(pickle, text);
		gt_pickle_word(pickle, &memo, "word");
	}
	gt_pickle_list(pickle);
	gt_pickle_close(pickle);
	kept = gt_pickle_keep(pickle);
	gt_pickle_again(pickle, kept);
	gt_pickle_close(pickle);
}

static void say_batches(struct gt_pickle *pickle)
{
	static const int sizes[] = {0, 1, 999, 1000, 1001, 2500};
	char key[16];
	size_t i;
	int k;

	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		gt_pickle_list(pickle);
		for (k = 0; k < sizes[i]; k++)
			gt_pickle_int(pickle, k);
		gt_pickle_close(pickle);
		gt_pickle_dict(pickle);
		for (k = 0; k < sizes[i]; k++) {
			snprintf(key, sizeof(key), "k%d", k);
			gt_pickle_text(pickle, key);
			gt_pickle_int(pickle, k);
		}
		gt_pickle_close(pickle);
	}
}

static int say_pickle(void)
{
	struct gt_pickle *pickle = gt_pickle_new(stdout);

	gt_pickle_list(pickle);
	gt_pickle_bool(pickle, true);
	gt_pickle_bool(pickle, false);
	gt_pickle_pair(pickle, -1, 70000);
	gt_pickle_text(pickle, "");
	gt_pickle_text(pickle, "gr\xc3\xbc\xc3\x9f \xf0\x9f\x98\x80");
	say_integers(pickle);
	say_memo(pickle);
	say_batches(pickle);
	gt_pickle_close(pickle);
	return gt_pickle_end(pickle) != 0;
}

/* ---- a random program ---------------------------------------------------------------------- */

enum site { /* of the program's lane */
	    SITE_UNKNOWN,
	    SITE_SEGMENT,
	    SITE_RAW,
	    SITE_TORCH,
	    SITE_MAPPING,
	    SITES,
};

static struct gt_site_def sites[SITES] = {
	[SITE_SEGMENT] = {.native = 1, .space = GT_SPACE_DRIVER, .mask = GT_MASK_RESERVED},
	[SITE_RAW] = {.native = 2,
		      .space = GT_SPACE_DRIVER,
		      .mask = GT_MASK_RESERVED | GT_MASK_IN_USE},
	[SITE_TORCH] = {.native = 3,
			.space = GT_SPACE_TORCH,
			.mask = GT_MASK_TORCH | GT_MASK_IN_USE},
	[SITE_MAPPING] = {.space = GT_SPACE_MAPPING},
};

#define MIB (UINT64_C(1) << 20)

/* Addresses are drawn from few places, so that things meet, overlap and come back. */
static struct gt_event random_event(uint64_t seq, bool mappings)
{
	struct gt_event event = {.seq = seq, .us = seq / 3 - (seq % 7 ? 0 : seq / 50)};
	uint64_t place = (uint64_t)(rand() % 24);

	event.op = rand() % 2 ? GT_OP_ALLOC : rand() % 8 ? GT_OP_FREE : GT_OP_IMPLICIT_FREE;
	event.stream = (uint16_t)(rand() % 3);
	event.site = (uint32_t)(1 + rand() % (SITES - (mappings ? 1 : 2)));
	event.space = sites[event.site].space;
	event.addr = 1024 * MIB;
	if (event.site == SITE_MAPPING) {
		event.addr += 4096 * MIB + place % 12 * 2 * MIB;
		event.size = 2 * MIB;
	} else if (event.site == SITE_TORCH) {
		event.addr += rand() % 4 ? place * 4 * MIB + (uint64_t)(rand() % 8) * MIB / 2
					 : 4096 * MIB + place * MIB;
		event.size = (uint64_t)(1 + rand() % 3) * MIB / 2;
	} else {
		event.addr += place * 4 * MIB;
		event.size = (uint64_t)(1 + rand() % 4) * MIB;
	}
	return event;
}

static int say_viz(unsigned int seed, uint64_t events)
{
	static char odd[] = "/tmp/\xff\xfe odd\n.so";
	struct gt_module modules[2] = {{.start = 0}, {.path = {odd, sizeof(odd) - 1}}};
	struct gt_node nodes[4] = {{0}, {GT_PC_TRUNCATED, 0, 0}, {0x1000, 1, 1}, {0x2000, 2, 0}};
	struct gt_stream_def streams[3] = {
		{0}, {0x55aa00001111, 0}, {UINT64_C(0xfedcba9876543210), 0}};
	struct gt_trace trace = {.modules = modules,
				 .module_count = 2,
				 .nodes = nodes,
				 .node_count = 4,
				 .streams = streams,
				 .stream_count = 3};
	struct gt_trace_lane lane = {.site_defs = sites, .site_count = SITES};
	struct gt_symbols *symbols = gt_symbols_new(&trace);
	struct gt_viz *viz = gt_viz_new(stdout, &trace, symbols);
	struct gt_segments *segments = gt_segments_new(&lane);
	struct gt_segment_list list;
	uint64_t seq;
	int rc;

	trace.header.real_us = UINT64_C(1700000000000000);
	srand(seed);
	gt_viz_device(viz, &lane);
	for (seq = 1; seq <= events; seq++) {
		struct gt_event event = random_event(seq, seed % 2 == 0);

		gt_segments_apply(segments, &event, gt_viz_change, viz);
	}
	gt_segments_list(segments, &list);
	gt_viz_taken(viz, seq / 3, 0);
	gt_viz_segments(viz, &lane, &list);
	gt_viz_setting(viz, "odd", odd, sizeof(odd));
	rc = gt_viz_end(viz);
	gt_segments_list_clear(&list);
	gt_segments_free(segments);
	gt_symbols_free(symbols);
	return rc != 0;
}

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "pickle"))
		return say_pickle();
	if (argc == 4 && !strcmp(argv[1], "viz"))
		return say_viz((unsigned int)atoi(argv[2]), (uint64_t)atoll(argv[3]));
	return 2;
}
