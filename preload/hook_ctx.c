/* SPDX-License-Identifier: MIT */
/*
 * Contexts: each is defined once, with who made it and, where that can be measured, what it took
 * from the device. The driver tells free memory only through a current context, so there is a
 * "before" only if another context on the device was current; without one the sample taken right
 * afterwards bounds it from above. The wrappers are the GT_CTX rows of hooks.def.
 *
 * When a context ends the driver takes back what was allocated in it: plain and managed memory,
 * arrays, pinned host memory, what was opened from other processes. Memory of pools, graphs and
 * handles stays. Which block belongs to which context is the driver's to say, while the context
 * lives; so nothing is kept per block, and the end of a context costs one question per live block.
 * For arrays and modules, which have no address to ask about, the table has the answer.
 */
#include "hook.h"
#include "table.h"

#define ATTRIBUTE_CONTEXT 1 /* CU_POINTER_ATTRIBUTE_CONTEXT */

uint32_t gt_measuring, gt_disturbed;

#define GT_CTX GT_WRAP
#include "hooks.def"

/* ---- what a context, or a module, takes ------------------------------------------------------ */

void gt_measure_begin(struct gt_measure *m)
{
	uint64_t total;

	m->free = GT_UNKNOWN_BYTES;
	m->alone = !__atomic_fetch_add(&gt_measuring, 1, __ATOMIC_ACQ_REL);
	gt_store(&gt_disturbed, !m->alone);
	if (gt_current_device() == m->device && !gt_load_relaxed(&gt_captures))
		gt_hook_memory(&m->free, &total);
}

void gt_measure_end(struct gt_measure *m)
{
	m->alone = m->alone && !gt_load(&gt_disturbed);
	__atomic_fetch_sub(&gt_measuring, 1, __ATOMIC_ACQ_REL);
}

/* Each libcudart of a process retains the primary context; only the first one makes it. */
static bool primary_active(int device)
{
	uint32_t ignored;
	int active;

	return !gt_driver.cuDevicePrimaryCtxGetState ||
	       gt_driver.cuDevicePrimaryCtxGetState(device, &ignored, &active) || active;
}

void gt_hook_context_before(struct gt_measure *m, int device, uint32_t flags)
{
	int err = errno;

	m->device = device;
	m->created = !(flags & GT_CONTEXT_PRIMARY) || !primary_active(device);
	if (m->created)
		gt_measure_begin(m);
	errno = err;
}

/* Free memory as the new context sees it, also if it did not become current (a primary one). */
static void sample(gt_context context, int device, uint32_t flags, uint64_t *ret_free,
		   uint64_t *ret_total)
{
	bool push = flags & GT_CONTEXT_PRIMARY;

	*ret_free = *ret_total = GT_UNKNOWN_BYTES;
	if (gt_load_relaxed(&gt_captures) ||
	    (flags & GT_CONTEXT_GREEN && gt_current_device() != device))
		return;
	if (push && (!gt_driver.cuCtxPushCurrent_v2 || !gt_driver.cuCtxPopCurrent_v2 ||
		     gt_driver.cuCtxPushCurrent_v2(context)))
		return;
	gt_hook_memory(ret_free, ret_total);
	if (push)
		gt_driver.cuCtxPopCurrent_v2(&context);
}

static void context_made(const struct gt_measure *m, const struct gt_regs *regs, gt_context context,
			 uint32_t flags)
{
	struct gt_where where = gt_where_capture(regs);
	struct gt_rec_context rec = {
		.rec.kind = GT_REC_CONTEXT,
		.handle = (uint64_t)context,
		.us = gt_now_us(),
		.bytes = INT64_MIN,
		.device = m->device,
		.flags = flags,
		.native = where.native,
		.python = where.python,
		.thread = gt_def_thread(),
	};
	uint64_t free, total;

	sample(context, m->device, flags, &free, &total);
	if (m->free != GT_UNKNOWN_BYTES && free != GT_UNKNOWN_BYTES)
		rec.bytes = (int64_t)(m->free - free);
	if (m->alone)
		rec.flags |= GT_CONTEXT_ALONE;
	gt_hook_device(m->device);
	gt_def_append(&rec.rec, sizeof(rec), NULL, 0, NULL, 0);
	if (free != GT_UNKNOWN_BYTES)
		gt_record_note(GT_OP_SAMPLE, m->device, 0, total, 0, free);
}

static void context_refused(const struct gt_measure *m, const struct gt_regs *regs, int rc)
{
	gt_record_refusal(&(struct gt_refusal){.device = m->device,
					       .space = GT_SPACE_CONTEXT,
					       .api = GT_API_CONTEXT,
					       .result = rc,
					       .device_free = GT_UNKNOWN_BYTES,
					       .device_total = GT_UNKNOWN_BYTES,
					       .torch_allocated = GT_UNKNOWN_BYTES,
					       .torch_reserved = GT_UNKNOWN_BYTES,
					       .where = gt_where_capture(regs)});
}

void gt_hook_context_after(struct gt_measure *m, const struct gt_regs *regs, int rc,
			   gt_context context, uint32_t flags)
{
	int err = errno;

	if (m->created)
		gt_measure_end(m);
	if (m->created && gt_begin(!rc)) {
		if (rc)
			context_refused(m, regs, rc);
		else
			context_made(m, regs, context, flags);
	}
	if (!rc && flags & GT_CONTEXT_PRIMARY && gt_begin(false))
		gt_table_put(&(struct gt_entry){.key = GT_KEY(m->device + 1, GT_SIDE_PRIMARY),
						.of = (uint64_t)context});
	gt_end();
	errno = err;
}

/* ---- what goes with it ----------------------------------------------------------------------- */

void gt_context_owns(uint64_t key, int device)
{
	gt_context context;

	if (gt_driver.cuCtxGetCurrent && !gt_driver.cuCtxGetCurrent(&context))
		gt_table_put(
			&(struct gt_entry){.key = key, .of = (uint64_t)context, .device = device});
}

static bool belongs(uint64_t key, gt_context context)
{
	struct gt_entry entry;
	gt_context of;

	switch (GT_KEY_SPACE(key)) {
	case GT_SPACE_ARRAY:
	case GT_SPACE_MODULE:
		return gt_table_get(key, &entry) && entry.of == (uint64_t)context;
	case GT_SPACE_DRIVER:
	case GT_SPACE_HOST:
	case GT_SPACE_IPC:
		return gt_driver.cuPointerGetAttribute &&
		       !gt_driver.cuPointerGetAttribute(&of, ATTRIBUTE_CONTEXT, GT_KEY_ADDR(key)) &&
		       of == context;
	default:
		return false;
	}
}

static bool keep(struct gt_end *end, uint64_t key)
{
	size_t more = end->room ? end->room : 512;
	uint64_t *keys;

	if (end->count == end->room) {
		keys = gt_remap(end->keys, end->room * sizeof(key), more * sizeof(key));
		if (!keys)
			return false;
		end->keys = keys;
		end->room += more;
	}
	end->keys[end->count++] = key;
	return true;
}

static void gather(struct gt_end *end, gt_context context)
{
	uint64_t keys[256];

	for (uint32_t lane = 0; lane < GT_MAX_LANES; lane++) {
		uint32_t at = 0, n;

		while ((n = gt_live_keys(lane, false, &at, keys, 256)))
			for (uint32_t i = 0; i < n; i++)
				if (belongs(keys[i], context) && !keep(end, keys[i]))
					return gt_count_lost(GT_LOST_EVENTS);
	}
}

static void record_end(struct gt_end *end, const struct gt_regs *regs)
{
	struct gt_where where = {0, 0};

	end->freed = end->count ? gt_map(end->count * sizeof(*end->freed)) : NULL;
	if (gt_options.stacks & GT_STACKS_FREE)
		where = gt_where_capture(regs);
	for (size_t i = 0; i < end->count; i++) {
		struct gt_freed *freed = end->freed ? &end->freed[i] : NULL;

		gt_record_free(end->device, GT_KEY_SPACE(end->keys[i]), GT_KEY_ADDR(end->keys[i]),
			       GT_API_CONTEXT, where, freed);
	}
}

/* A release ends the context only if it was the last: that shows afterwards. */
void gt_hook_end_before(struct gt_end *end, const struct gt_regs *regs, gt_context context,
			int device, enum gt_end_way way)
{
	struct gt_entry primary;
	int err = errno;

	*end = (struct gt_end){.way = way, .device = device};
	gt_thread.busy = 1;
	if (way != GT_END_DESTROY) {
		context = NULL;
		if (gt_table_get(GT_KEY(device + 1, GT_SIDE_PRIMARY), &primary))
			context = (gt_context)primary.of;
	}
	if (context)
		gather(end, context);
	if (way != GT_END_RELEASE)
		record_end(end, regs);
	gt_end();
	errno = err;
}

static void forget_arrays(const struct gt_end *end)
{
	for (size_t i = 0; i < end->count; i++)
		gt_table_take(end->keys[i], NULL);
}

void gt_hook_end_after(struct gt_end *end, const struct gt_regs *regs, int rc)
{
	int err = errno;

	gt_thread.busy = 1;
	if (end->way == GT_END_RELEASE && !rc && !primary_active(end->device))
		record_end(end, regs);
	if (!rc && end->freed)
		forget_arrays(end);
	if (rc && rc != GT_CUDA_DEINITIALIZED)
		for (size_t i = 0; end->freed && i < end->count; i++)
			gt_record_unfree(&end->freed[i]);
	gt_unmap(end->freed, end->count * sizeof(*end->freed));
	gt_unmap(end->keys, end->room * sizeof(*end->keys));
	gt_end();
	errno = err;
}
