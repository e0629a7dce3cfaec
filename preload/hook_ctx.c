/* SPDX-License-Identifier: MIT */
/*
 * Contexts: each is defined once, with who made it and, where that can be measured, what it took
 * from the device. The driver tells free memory only through a current context, so there is a
 * "before" only if another context on the device was current; without one the sample taken right
 * afterwards bounds it from above. The wrappers are the GT_CTX rows of hooks.def.
 */
#include "hook.h"

uint32_t gt_measuring, gt_disturbed;

#define GT_CTX GT_WRAP
#include "hooks.def"

/* Each libcudart of a process retains the primary context; only the first one makes it. */
static bool will_create(int device, uint32_t flags)
{
	uint32_t ignored;
	int active;

	if (!(flags & GT_CONTEXT_PRIMARY))
		return true;
	if (!gt_driver.cuDevicePrimaryCtxGetState ||
	    gt_driver.cuDevicePrimaryCtxGetState(device, &ignored, &active))
		return false;
	return !active;
}

void gt_hook_context_before(struct gt_measure *m, int device, uint32_t flags)
{
	uint64_t total;
	int err = errno;

	m->device = device;
	m->free = GT_UNKNOWN_BYTES;
	m->created = will_create(device, flags);
	m->alone = m->created && !__atomic_fetch_add(&gt_measuring, 1, __ATOMIC_ACQ_REL);
	if (m->created) {
		gt_store(&gt_disturbed, !m->alone);
		if (gt_current_device() == device)
			gt_hook_memory(&m->free, &total);
	}
	errno = err;
}

/* Free memory as the new context sees it, also if it did not become current (a primary one). */
static void sample(gt_context context, uint32_t flags, uint64_t *ret_free, uint64_t *ret_total)
{
	bool push = flags & GT_CONTEXT_PRIMARY;

	*ret_free = *ret_total = GT_UNKNOWN_BYTES;
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

	sample(context, flags, &free, &total);
	if (m->free != GT_UNKNOWN_BYTES && free != GT_UNKNOWN_BYTES)
		rec.bytes = (int64_t)(m->free - free);
	if (m->alone && !gt_load(&gt_disturbed))
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

void gt_hook_context_after(const struct gt_measure *m, const struct gt_regs *regs, int rc,
			   gt_context context, uint32_t flags)
{
	int err = errno;

	if (!m->created)
		return;
	if (gt_begin(!rc)) {
		if (rc)
			context_refused(m, regs, rc);
		else
			context_made(m, regs, context, flags);
	}
	gt_end();
	__atomic_fetch_sub(&gt_measuring, 1, __ATOMIC_ACQ_REL);
	errno = err;
}
