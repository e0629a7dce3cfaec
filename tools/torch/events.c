/* SPDX-License-Identifier: MIT */
/*
 * See events.h. First what was there when the history began, as events that are no history; then the
 * history: segments are driver memory, pieces of expandable ones mappings, blocks are torch's. A free
 * that was not completed at once is pending until it is. At the end the trace must hold what the
 * segments list: what it has beside them was freed between the two looks that torch took. Called by
 * open.c.
 */
#include <stdlib.h>

#include "torch/events.h"
#include "torch/rewind.h"
#include "torch/sizes.h"

#define OUT_OF_MEMORY 2 /* CUDA's number for it */

enum { UNKNOWN_THREAD, MAIN_THREAD, ENGINE_THREAD };

struct telling {
	struct gt_torch *torch;
	struct gt_build *build;
	struct gt_start start;
	struct gt_cuts *cuts;
	int device;
	uint64_t us; /* of the event being told, since the start */
	uint64_t notes;
	bool failed;
};

/* ---- parts --------------------------------------------------------------------------------- */

/*
 * Backward's thread has no Python frames. With C++ frames its stacks say whose they are; without any,
 * an allocation without a frame is its.
 */
static uint16_t thread_of(const struct telling *t, struct gt_torch_stack stack, bool alloc)
{
	if (stack.engine)
		return ENGINE_THREAD;
	if (stack.python)
		return MAIN_THREAD;
	return alloc && !t->torch->native ? ENGINE_THREAD : UNKNOWN_THREAD;
}

static uint32_t site_of(struct telling *t, enum gt_space space, struct gt_torch_stack stack,
			unsigned int mask)
{
	static const uint16_t apis[] = {[GT_SPACE_DRIVER] = GT_API_MEM_ALLOC,
					[GT_SPACE_MAPPING] = GT_API_MEM_MAP,
					[GT_SPACE_TORCH] = GT_API_TORCH};
	const struct gt_site_def site = {
		.python = stack.python,
		.api = apis[space],
		.space = (uint8_t)space,
		.mask = (uint8_t)mask,
	};

	return gt_build_site(t->build, t->device, &site);
}

/* A block that was pending at the start is in no total: it was in use before all this. */
static unsigned int mask_of(enum gt_space space, const struct gt_held *held)
{
	if (space != GT_SPACE_TORCH)
		return GT_MASK_RESERVED;
	return held->pending ? 0 : GT_MASK_TORCH | GT_MASK_IN_USE;
}

static void begin(struct telling *t, enum gt_space space, uint64_t addr, const struct gt_held *held)
{
	struct gt_event event = {
		.op = GT_OP_ALLOC,
		.us = t->us,
		.addr = addr,
		.size = held->size,
		.requested = held->requested,
		.pool = held->pool,
		.space = (uint8_t)space,
		.thread = thread_of(t, held->stack, true),
		.stream = (uint16_t)gt_build_stream(t->build, t->device, held->stream),
		.site = site_of(t, space, held->stack, mask_of(space, held)),
	};

	if (gt_build_alive(t->build, t->device, addr, space)) {
		struct gt_event gone = {.op = GT_OP_IMPLICIT_FREE,
					.us = t->us,
					.addr = addr,
					.space = (uint8_t)space};

		gt_build_event(t->build, t->device, &gone);
	}
	gt_build_event(t->build, t->device, &event);
}

static void end(struct telling *t, enum gt_space space, uint64_t addr, struct gt_torch_stack stack,
		uint32_t aux, uint64_t later)
{
	struct gt_event event = {
		.op = GT_OP_FREE,
		.us = t->us,
		.extra = later,
		.addr = addr,
		.aux = aux,
		.space = (uint8_t)space,
		.thread = thread_of(t, stack, false),
		.free_site = stack.python ? site_of(t, space, stack, 0) : 0,
	};

	gt_build_event(t->build, t->device, &event);
}

/* A block's own state, beside its life: freed, and not yet free. */
static void tell_pending(struct telling *t, enum gt_op op, uint64_t addr, uint64_t size,
			 struct gt_torch_stack stack)
{
	struct gt_event event = {
		.op = (uint8_t)op,
		.us = t->us,
		.addr = addr,
		.size = size,
		.aux = op == GT_OP_PENDING,
		.space = GT_SPACE_TORCH,
		.thread = thread_of(t, stack, false),
		.free_site = stack.python ? site_of(t, GT_SPACE_TORCH, stack, 0) : 0,
	};

	gt_build_event(t->build, t->device, &event);
}

static void keep_cut(struct telling *t, int rc)
{
	t->failed |= rc != 0;
}

/* ---- the start ----------------------------------------------------------------------------- */

static void tell_held(struct telling *t, enum gt_space space)
{
	struct gt_held *held, *next;

	HASH_ITER(hh, t->start.held, held, next) {
		const uint64_t addr = GT_KEY_ADDR(held->key);

		if (GT_KEY_SPACE(held->key) != space)
			continue;
		begin(t, space, addr, held);
		if (space == GT_SPACE_DRIVER)
			keep_cut(t, gt_cuts_segment(t->cuts, addr, held->size));
		if (space == GT_SPACE_TORCH)
			keep_cut(t, gt_cuts_block(t->cuts, addr, held->size));
	}
}

/* Freed before the history, and pending when it began: the first thing that is known in it. */
static void tell_waiting(struct telling *t)
{
	static const struct gt_torch_stack unknown;
	struct gt_held *held, *next;

	HASH_ITER(hh, t->start.held, held, next) {
		const uint64_t addr = GT_KEY_ADDR(held->key);

		if (!held->pending || GT_KEY_SPACE(held->key) != GT_SPACE_TORCH)
			continue;
		end(t, GT_SPACE_TORCH, addr, unknown, GT_FREE_EARLIER, 0);
		tell_pending(t, GT_OP_PENDING, addr, held->size, unknown);
	}
}

static void tell_start(struct telling *t)
{
	if (!t->start.held)
		return;
	tell_held(t, GT_SPACE_DRIVER);
	tell_held(t, GT_SPACE_MAPPING);
	tell_held(t, GT_SPACE_TORCH);
	gt_build_begin(t->build, t->device);
	tell_waiting(t);
}

/* ---- blocks -------------------------------------------------------------------------------- */

static struct gt_held held_of(const struct gt_torch_event *event)
{
	return (struct gt_held){
		.size = event->size,
		.stream = event->stream,
		.stack = event->stack,
		.pool = event->pool,
	};
}

static void tell_alloc(struct telling *t, const struct gt_torch_event *event)
{
	struct gt_held held = held_of(event);

	held.requested = event->size;
	held.size = event->block ? event->block : gt_cuts_size(t->cuts, event->addr, event->size);
	gt_cuts_block_gone(t->cuts, event->addr);
	begin(t, GT_SPACE_TORCH, event->addr, &held);
	keep_cut(t, gt_cuts_block(t->cuts, event->addr, held.size));
	gt_build_outcome(t->build, t->device, GT_OUTCOME_CAUGHT, t->us);
}

/* The second half of a free, if it is the very next event and of the same call; else NULL. */
static const struct gt_torch_event *completion(const struct gt_torch_trace *trace, size_t i)
{
	const struct gt_torch_event *half = &trace->events[i], *next = half + 1;

	return i + 1 < trace->count && next->action == GT_TORCH_FREE_COMPLETED &&
			       next->addr == half->addr &&
			       next->stack.python == half->stack.python && next->us >= half->us
		       ? next
		       : NULL;
}

/* Returns whether the next event, its completion, is told with it. */
static bool tell_free(struct telling *t, const struct gt_torch_trace *trace, size_t i)
{
	const struct gt_torch_event *event = &trace->events[i], *next = completion(trace, i);
	const struct gt_block *block =
		gt_build_alive(t->build, t->device, event->addr, GT_SPACE_TORCH);
	const uint64_t size = block ? block->size : 0;

	end(t, GT_SPACE_TORCH, event->addr, event->stack, 0, next ? next->us - event->us : 0);
	if (!block || next)
		gt_cuts_block_gone(t->cuts, event->addr);
	else
		tell_pending(t, GT_OP_PENDING, event->addr, size, event->stack);
	return next;
}

static void tell_completed(struct telling *t, const struct gt_torch_event *event)
{
	tell_pending(t, GT_OP_SETTLED, event->addr, event->size, event->stack);
	gt_cuts_block_gone(t->cuts, event->addr);
}

/* ---- segments ------------------------------------------------------------------------------ */

static void tell_map(struct telling *t, const struct gt_torch_event *event)
{
	const uint64_t stop = event->addr + event->size;
	struct gt_held held = held_of(event);
	uint64_t addr;

	held.size = gt_piece_size(&t->start, event->size, false);
	for (addr = event->addr; held.size && addr < stop; addr += held.size)
		begin(t, GT_SPACE_MAPPING, addr, &held);
}

static void tell_unmap(struct telling *t, const struct gt_torch_event *event)
{
	const uint64_t stop = event->addr + event->size;
	const struct gt_block *piece;
	uint64_t addr = event->addr;

	while (addr < stop &&
	       (piece = gt_build_alive(t->build, t->device, addr, GT_SPACE_MAPPING))) {
		const uint64_t size = piece->size;

		end(t, GT_SPACE_MAPPING, addr, event->stack, 0, 0);
		addr += size;
	}
}

static void tell_segment(struct telling *t, const struct gt_torch_event *event)
{
	struct gt_held held = held_of(event);

	begin(t, GT_SPACE_DRIVER, event->addr, &held);
	gt_cuts_segment_gone(t->cuts, event->addr);
	keep_cut(t, gt_cuts_segment(t->cuts, event->addr, event->size));
}

/* ---- others -------------------------------------------------------------------------------- */

static void tell_oom(struct telling *t, const struct gt_torch_event *event)
{
	struct gt_report report = {
		.space = GT_SPACE_TORCH,
		.requested = gt_torch_segment_size(event->size),
		.torch_requested = event->size,
		.device_free = event->addr,
		.device_total = GT_UNKNOWN_BYTES,
		.torch_allocated = GT_UNKNOWN_BYTES,
		.torch_reserved = GT_UNKNOWN_BYTES,
		.thread = thread_of(t, event->stack, false),
		.result = OUT_OF_MEMORY,
		.tries = 1,
	};
	struct gt_event told = {
		.op = GT_OP_OOM,
		.us = t->us,
		.size = event->size,
		.extra = event->addr,
		.space = GT_SPACE_TORCH,
		.thread = thread_of(t, event->stack, false),
		.stream = (uint16_t)gt_build_stream(t->build, t->device, event->stream),
		.site = site_of(t, GT_SPACE_TORCH, event->stack, 0),
	};

	gt_build_event(t->build, t->device, &told);
	gt_build_report(t->build, t->device, &report);
}

static void tell_snapshot(struct telling *t, const struct gt_torch_event *event)
{
	struct gt_event told = {
		.op = GT_OP_MARK,
		.us = t->us,
		.size = event->size,
		.aux = gt_build_string(t->build, "snapshot", 8),
		.extra = ++t->notes,
	};

	gt_build_event(t->build, t->device, &told);
}

/* Returns how many events it took. */
static size_t tell_event(struct telling *t, const struct gt_torch_trace *trace, size_t i)
{
	const struct gt_torch_event *event = &trace->events[i];

	switch (event->action) {
	case GT_TORCH_ALLOC:
		tell_alloc(t, event);
		break;
	case GT_TORCH_FREE_REQUESTED:
		return 1 + tell_free(t, trace, i);
	case GT_TORCH_FREE_COMPLETED:
		tell_completed(t, event);
		break;
	case GT_TORCH_SEGMENT_ALLOC:
		tell_segment(t, event);
		break;
	case GT_TORCH_SEGMENT_FREE:
		end(t, GT_SPACE_DRIVER, event->addr, event->stack, 0, 0);
		gt_cuts_segment_gone(t->cuts, event->addr);
		break;
	case GT_TORCH_SEGMENT_MAP:
		tell_map(t, event);
		break;
	case GT_TORCH_SEGMENT_UNMAP:
		tell_unmap(t, event);
		break;
	case GT_TORCH_SNAPSHOT:
		tell_snapshot(t, event);
		break;
	default:
		tell_oom(t, event);
	}
	return 1;
}

static int tell_device(struct telling *t, int device)
{
	const struct gt_torch_trace *trace = &t->torch->traces[device];

	t->device = device;
	t->us = 0;
	t->cuts = gt_cuts_new(&t->torch->settings);
	if (!t->cuts || gt_torch_rewind(t->torch, device, &t->start)) {
		gt_cuts_free(t->cuts);
		return -1;
	}
	tell_start(t);
	for (size_t i = 0; i < trace->count;) {
		/* without times events are a microsecond apart, so that each is a moment */
		t->us = t->torch->timed ? trace->events[i].us - t->torch->start_us : i;
		i += tell_event(t, trace, i);
	}
	gt_start_clear(&t->start);
	gt_cuts_free(t->cuts);
	return t->failed ? -1 : 0;
}

int gt_torch_tell(struct gt_torch *torch, struct gt_build *build)
{
	struct telling t = {.torch = torch, .build = build};
	struct gt_header *header = gt_build_header(build);
	int rc = 0;

	header->real_us = torch->timed ? torch->start_us : 0;
	header->stacks = GT_STACKS_PYTHON | (torch->native ? GT_STACKS_NATIVE : 0) |
			 (torch->free_stacks ? GT_STACKS_FREE : 0);
	gt_build_module(build, "libtorch.so"); /* whose memory it is */
	gt_build_thread(build, 0, "");
	gt_build_thread(build, UINT32_MAX, "pt_autograd_0");
	for (int i = 0; !rc && i < GT_TORCH_DEVICES; i++)
		rc = tell_device(&t, i);
	return rc;
}
