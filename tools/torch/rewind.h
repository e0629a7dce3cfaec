/* SPDX-License-Identifier: MIT */
/*
 * What a device held when a snapshot's history began. The snapshot says only what it held at the end;
 * its events, undone from the last to the first, lead back to the beginning.
 */
#ifndef GT_TORCH_REWIND_H
#define GT_TORCH_REWIND_H

#include <uthash.h>
#include "torch/shape.h"

struct gt_held {      /* a segment, a piece of an expandable one, or a block */
	uint64_t key; /* GT_KEY of its address and space */
	uint64_t size, requested, stream;
	struct gt_torch_stack stack;
	uint32_t pool;
	bool exact;   /* its size is known, not worked out from what was requested */
	bool pending; /* a block that is free but for a stream that uses it */
	UT_hash_handle hh;
};

struct gt_start {
	struct gt_held *held; /* a hash table */
	uint64_t pieces;      /* of expandable segments that may still be made */
};

/* Also tells each alloc whose block lives at the end how large that is. 0, or -1: no memory. */
int gt_torch_rewind(struct gt_torch *torch, int device, struct gt_start *ret);
void gt_start_clear(struct gt_start *start);

/*
 * How torch maps a range of an expandable segment: in pieces of this size. So many pieces are made
 * as a file can be believed to have; then a range is one piece.
 */
uint64_t gt_piece_size(struct gt_start *start, uint64_t size, bool small);

#endif
