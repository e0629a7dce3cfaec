/* SPDX-License-Identifier: MIT */
/*
 * A torch memory snapshot as it stands in its pickle, checked and in C: segments with their blocks,
 * and each device's list of events. Forms: a dict with "segments" and "device_traces" (torch 2.0 on),
 * or the bare list of segments that 1.13 and older wrote; blocks with "frames", or with "history".
 */
#ifndef GT_TORCH_SHAPE_H
#define GT_TORCH_SHAPE_H

#include "read/build.h"
#include "torch/unpickle.h"

#define GT_TORCH_DEVICES 64

enum gt_torch_action {
	GT_TORCH_OTHER, /* of versions to come, or no change of memory: annotate */
	GT_TORCH_ALLOC,
	GT_TORCH_FREE_REQUESTED,
	GT_TORCH_FREE_COMPLETED,
	GT_TORCH_SEGMENT_ALLOC,
	GT_TORCH_SEGMENT_FREE,
	GT_TORCH_SEGMENT_MAP,
	GT_TORCH_SEGMENT_UNMAP,
	GT_TORCH_SNAPSHOT,
	GT_TORCH_OOM,
};

struct gt_torch_stack {
	uint32_t python; /* innermost node; 0 = no frames */
	bool engine;	 /* of a thread of autograd */
};

struct gt_torch_block {
	uint64_t addr, size, requested;
	struct gt_torch_stack stack;
	bool pending; /* freed, but still used by a stream */
};

struct gt_torch_segment {
	uint64_t addr, size, stream;
	struct gt_torch_stack stack;
	uint32_t pool;
	int device;
	bool small, expandable;
	size_t first, count; /* of its blocks that are not inactive */
};

struct gt_torch_event {
	uint64_t addr, size; /* of an oom addr is what was free */
	uint64_t us, stream;
	uint64_t block; /* of an alloc: all that it took, 0 = not known; filled in by rewind.c */
	struct gt_torch_stack stack;
	uint32_t pool;
	uint8_t action; /* enum gt_torch_action */
};

struct gt_torch_trace { /* of a device */
	struct gt_torch_event *events;
	size_t count;
};

struct gt_torch_settings {	/* what the allocator was told, as far as it decides sizes */
	uint64_t divisions[16]; /* of powers of two from 1 MiB on; 0 = none */
	uint64_t max_split;	/* larger blocks are not cut; UINT64_MAX = all are */
	bool known, expandable;
};

struct gt_torch {
	struct gt_torch_segment *segments; /* as listed */
	size_t segment_count;
	struct gt_torch_block *blocks;
	size_t block_count;
	struct gt_torch_trace traces[GT_TORCH_DEVICES];
	struct gt_torch_settings settings;
	bool timed;	   /* events have times */
	bool native;	   /* there are frames that are not Python's */
	bool free_stacks;  /* there are frees with frames */
	uint64_t start_us; /* the earliest, since 1970 */
};

/* Fills ret; stacks, pools and settings go to the builder. 0, or -1 with err. */
int gt_torch_read(const char *path, struct gt_values *values, struct gt_build *build,
		  struct gt_torch *ret, struct gt_error *err);
void gt_torch_clear(struct gt_torch *torch);

#endif
