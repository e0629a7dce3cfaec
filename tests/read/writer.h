/* SPDX-License-Identifier: MIT */
/*
 * Writes traces for the reader's tests: random event programs, byte for byte as include/gputrace/
 * format.h says, with the full list of events beside it to compare with. It knows nothing of the
 * recorder: that the two agree is what the tests with real traces show.
 */
#ifndef GT_TEST_WRITER_H
#define GT_TEST_WRITER_H

#include "read/trace.h"

struct writer_options {
	uint64_t seed;
	size_t events; /* over all lanes, at least */
	uint32_t lanes;
	uint32_t cap;	 /* staging cells, a power of two */
	uint64_t extent; /* bytes */
	size_t ring;	 /* ring extents at most, then they are recycled */
	uint32_t sites;	 /* per lane */
	size_t live;	 /* blocks alive at once, about, per lane */
	size_t gap_at;	 /* a chunk that is lost after so many seals; 0 = none */
	bool unapplied;	 /* stop right behind the commit of the last event */
	bool resealed;	 /* stop between the two stores of the last seal */
};

struct written { /* a finished file and what is in it */
	uint8_t *bytes;
	size_t size;
	struct written_lane {
		struct gt_event *events; /* all of them, [0] is event 1 */
		size_t count, capacity;
		uint64_t lost_until; /* last event that the gap took; 0 = none */
	} * lanes;
	uint32_t lane_count;
};

struct written *writer_make(const struct writer_options *options);
struct written *writer_free(struct written *written);
int writer_save(const struct written *written, const char *path, size_t length); /* 0 or -1 */

#endif
