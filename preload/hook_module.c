/* SPDX-License-Identifier: MIT */
/*
 * Modules and libraries: their code and global variables take device memory that no allocation
 * shows. The driver's free memory is compared before and after the load, where a context is current
 * and nothing captures; the difference is a block in no total, flagged when nothing else came
 * between. A load that takes nothing (the usual case: code is loaded when first used) leaves no
 * trace. The wrappers are the GT_MODULE rows of hooks.def.
 */
#include "hook.h"

#define GT_MODULE GT_WRAP
#include "hooks.def"

void gt_hook_module_before(struct gt_measure *m)
{
	int err = errno;

	m->device = gt_current_device();
	m->created = m->device >= 0 && !gt_load_relaxed(&gt_captures);
	if (m->created)
		gt_measure_begin(m);
	errno = err;
}

static void loaded(const struct gt_measure *m, const struct gt_regs *regs, void *module)
{
	uint64_t free, total;

	gt_hook_memory(&free, &total);
	if (m->free == GT_UNKNOWN_BYTES || free == GT_UNKNOWN_BYTES || free >= m->free)
		return;
	gt_hook_device(m->device);
	gt_context_owns(GT_KEY((uint64_t)module, GT_SPACE_MODULE), m->device);
	gt_record_alloc(&(struct gt_alloc){.device = m->device,
					   .space = GT_SPACE_MODULE,
					   .api = GT_API_MODULE,
					   .addr = (uint64_t)module,
					   .size = m->free - free,
					   .aux = m->alone ? GT_CONTEXT_ALONE : 0,
					   .where = gt_where_capture(regs)});
	gt_record_note(GT_OP_SAMPLE, m->device, 0, total, 0, free);
}

void gt_hook_module_after(struct gt_measure *m, const struct gt_regs *regs, int rc, void *module)
{
	int err = errno;

	if (!m->created)
		return;
	gt_measure_end(m);
	if (!rc && gt_begin(false))
		loaded(m, regs, module);
	gt_end();
	errno = err;
}
