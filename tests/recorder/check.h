/* SPDX-License-Identifier: MIT */
/*
 * A second reader of trace files, for the recorder's tests only: small, slow, and written from
 * format.h without looking at tools/read. It reads the file of a dead or stopped process; every
 * function returns NULL or says in words what is wrong with the file.
 */
#ifndef GT_CHECK_H
#define GT_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <gputrace/format.h>

struct ck_event {
	uint64_t seq, us, birth_us;
	uint64_t addr, size, extra;
	uint32_t op, space, thread, birth_thread, stream, site, free_site, aux;
};

struct ck_block {
	uint64_t key, size, birth_us;
	uint32_t stream, thread, site;
};

struct ck_site {
	struct gt_rec_site def; /* index 0 = never defined */
	struct gt_site line;	/* after the redo line */
};

struct ck_lane { /* one lane after its last event */
	struct gt_lane head;
	struct gt_ctr ctr;
	struct ck_block *blocks;
	size_t block_count;
	struct ck_site *sites;
	size_t site_count;
	struct ck_event *events; /* history, oldest first; the last one is head.seq */
	size_t event_count;
	size_t extent_from; /* of them the first of the extent that is read */
};

struct ck_file {
	const uint8_t *base;
	uint64_t size;
	const struct gt_header *header;
	struct gt_extent extents[4096]; /* headers, copied; offset is checked */
	size_t extent_count;
	uint64_t kinds[8]; /* extents of each kind */
};

const char *ck_open(struct ck_file *f, const void *base, uint64_t size);
bool ck_has_lane(const struct ck_file *f, uint32_t lane);
/* history: whether to decode the chunks (the cells are always read). */
const char *ck_lane(const struct ck_file *f, uint32_t lane, bool history, struct ck_lane *ret);
void ck_lane_free(struct ck_lane *l);
/* Adds the events of one ring extent, read from f->base + e->offset. */
const char *ck_ring_extent(const struct ck_file *f, const struct gt_extent *e, struct ck_lane *l,
			   uint32_t lane);
struct ck_event ck_event_of(const struct gt_cell *cell);

/* Columns of one chunk -> events; raw of length bytes; the events of its extent before it. */
const char *ck_columns(const uint8_t *raw, size_t length, uint64_t first_seq, uint32_t count,
		       const struct ck_event *before, size_t before_count, struct ck_event *ret);

/* Bytes of site s when total k was at its peak. */
uint64_t ck_at_peak(const struct ck_lane *l, size_t site, unsigned k);

#endif
