/* SPDX-License-Identifier: MIT */
/*
 * Memory that this process uses and does not own: opened from another process, imported from
 * another API. It takes nothing of our device that its owner is not charged for already, so it is
 * shown as blocks and adds to no total. A handle that is open already answers with the same address
 * and counts, so the block ends with the last close.
 */
#include "hook.h"
#include "table.h"

#define GT_IPC GT_WRAP
#include "hooks.def"

uint64_t gt_ipc_size(int rc, const gt_ptr *out)
{
	size_t size;
	gt_ptr base;

	if (rc || !gt_driver.cuMemGetAddressRange_v2 ||
	    gt_driver.cuMemGetAddressRange_v2(&base, &size, *out))
		return 0;
	return size;
}

uint64_t gt_external_size(const struct gt_external *what)
{
	return what ? what->size : 0;
}

static void opened(const struct gt_regs *regs, int rc, const gt_ptr *out)
{
	int err = errno;
	struct gt_request q = {.api = GT_API_IPC_OPEN,
			       .space = GT_SPACE_IPC,
			       .rc = rc,
			       .key = rc ? 0 : *out,
			       .owner = GT_ON_CONTEXT};

	if (!rc && gt_started() && gt_table_ref(GT_KEY(q.key, GT_SPACE_IPC)))
		return;
	q.size = gt_ipc_size(rc, out);
	errno = err;
	gt_hook_answered(regs, &q);
	if (!rc && gt_started())
		gt_table_put(&(struct gt_entry){.key = GT_KEY(q.key, GT_SPACE_IPC),
						.size = q.size,
						.device = gt_current_device()});
	errno = err;
}

#define OPEN(name)                                                         \
	int name(gt_ptr *out, struct gt_ipc_handle handle, uint32_t flags) \
	{                                                                  \
		struct gt_regs regs = GT_REGS_HERE();                      \
		int rc;                                                    \
                                                                           \
		if (!GT_HAVE(name))                                        \
			return GT_CUDA_NOT_INITIALIZED;                    \
		if (!gt_enter())                                           \
			return gt_driver.name(out, handle, flags);         \
		rc = gt_driver.name(out, handle, flags);                   \
		opened(&regs, rc, out);                                    \
		gt_leave();                                                \
		return rc;                                                 \
	}

OPEN(cuIpcOpenMemHandle)
OPEN(cuIpcOpenMemHandle_v2)

int cuIpcCloseMemHandle(gt_ptr ptr)
{
	struct gt_regs regs = GT_REGS_HERE();
	struct gt_freed freed = {.lane = GT_LANE_NONE};
	struct gt_entry entry = {.key = 0};
	bool last;
	int rc;

	if (!GT_HAVE(cuIpcCloseMemHandle))
		return GT_CUDA_NOT_INITIALIZED;
	if (!gt_enter_started())
		return gt_driver.cuIpcCloseMemHandle(ptr);
	last = gt_table_unref(GT_KEY(ptr, GT_SPACE_IPC), &entry);
	if (last || !entry.key)
		gt_hook_free(&regs, GT_API_IPC_OPEN, GT_SPACE_IPC, ptr, &freed);
	rc = gt_driver.cuIpcCloseMemHandle(ptr);
	if (rc && last)
		gt_table_put(&entry);
	else if (rc && entry.key)
		gt_table_ref(entry.key);
	gt_hook_freed(&regs, rc, GT_API_IPC_OPEN, &freed);
	gt_leave();
	return rc;
}
