/* SPDX-License-Identifier: MIT */
/*
 * Virtual memory management: physical memory (handles) and where it is mapped. Bytes are charged
 * when a handle is created, once however often it is mapped, and come back when nothing refers to
 * it any more: the program may release a handle while mappings keep its memory alive, and unmap
 * later, or ask for the handle of an address and hold that. So handles and mappings are kept in the
 * table, with a count of references per handle. Mappings are recorded as address ranges without
 * bytes.
 *
 * A handle that came from another process, or from no memory of its own (multicast), is known but
 * never charged; what is mapped of it is shown as somebody else's. The driver may be asked nothing
 * about the size of such a handle.
 *
 * As elsewhere a free is recorded before the real call and taken back if that is refused.
 */
#include "hook.h"
#include "table.h"

#define LOCATION_DEVICE 1 /* CU_MEM_LOCATION_TYPE_DEVICE */

/* gt_entry.of of a handle: whose memory it is. Of a mapping it is the handle. */
enum { OURS = 0, IMPORTED = 1, MULTICAST = 2 };

#define GT_VMM GT_WRAP
#include "hooks.def"

static uint64_t handle_key(uint64_t handle)
{
	return GT_KEY(handle, GT_SPACE_HANDLE);
}

/* ---- handles --------------------------------------------------------------------------------- */

static int location_device(const struct gt_vmm_prop *prop)
{
	if (!prop)
		return GT_DEVICE_UNKNOWN;
	return prop->location_type == LOCATION_DEVICE ? prop->location_id : GT_DEVICE_HOST;
}

int cuMemCreate(gt_handle *out, size_t size, const struct gt_vmm_prop *prop,
		unsigned long long flags)
{
	struct gt_regs regs = GT_REGS_HERE();
	struct gt_request q = {.api = GT_API_MEM_CREATE, .space = GT_SPACE_HANDLE, .size = size};

	if (!GT_HAVE(cuMemCreate))
		return GT_CUDA_NOT_INITIALIZED;
	if (!gt_enter())
		return gt_driver.cuMemCreate(out, size, prop, flags);
	q.owner = GT_ON_DEVICE(location_device(prop));
	q.rc = gt_driver.cuMemCreate(out, size, prop, flags);
	q.key = q.rc ? 0 : *out;
	gt_hook_answered(&regs, &q);
	gt_leave();
	if (!q.rc && gt_enter_started()) {
		gt_table_put(&(struct gt_entry){.key = handle_key(q.key),
						.of = OURS,
						.size = size,
						.device = q.owner.device});
		gt_leave();
	}
	return q.rc;
}

/* Gives up one reference, and records the free if it was the last; *ret serves to undo that. */
struct dropped {
	struct gt_entry entry; /* key 0: not a handle that we know */
	struct gt_freed freed;
	bool last;
};

static void handle_drop(const struct gt_regs *regs, enum gt_api api, uint64_t handle,
			struct dropped *ret)
{
	ret->entry.key = 0;
	ret->freed.lane = GT_LANE_NONE;
	ret->last = gt_table_unref(handle_key(handle), &ret->entry);
	if (ret->last && ret->entry.of == OURS)
		gt_hook_free(regs, api, GT_SPACE_HANDLE, handle, &ret->freed);
}

static void handle_undrop(const struct gt_regs *regs, int rc, const struct dropped *dropped)
{
	if (dropped->last)
		gt_table_put(&dropped->entry);
	else if (dropped->entry.key)
		gt_table_ref(dropped->entry.key);
	gt_hook_freed(regs, rc, GT_API_MEM_CREATE, &dropped->freed);
}

int cuMemRelease(gt_handle handle)
{
	struct gt_regs regs = GT_REGS_HERE();
	struct dropped dropped;
	int rc;

	if (!GT_HAVE(cuMemRelease))
		return GT_CUDA_NOT_INITIALIZED;
	if (!gt_enter_started())
		return gt_driver.cuMemRelease(handle);
	handle_drop(&regs, GT_API_MEM_CREATE, handle, &dropped);
	if (!dropped.entry.key) /* from before us: an unknown free */
		gt_hook_free(&regs, GT_API_MEM_CREATE, GT_SPACE_HANDLE, handle, &dropped.freed);
	rc = gt_driver.cuMemRelease(handle);
	if (rc)
		handle_undrop(&regs, rc, &dropped);
	gt_leave();
	return rc;
}

/* The handle of mapped memory, to be released by the program like one that it has made. */
int cuMemRetainAllocationHandle(gt_handle *out, void *ptr)
{
	int rc;

	if (!GT_HAVE(cuMemRetainAllocationHandle))
		return GT_CUDA_NOT_INITIALIZED;
	if (!gt_enter_started())
		return gt_driver.cuMemRetainAllocationHandle(out, ptr);
	rc = gt_driver.cuMemRetainAllocationHandle(out, ptr);
	if (!rc)
		gt_table_ref(handle_key(*out));
	gt_leave();
	return rc;
}

/* The same handle may come in twice. */
static void foreign_handle(uint64_t handle, uint64_t whose)
{
	int err = errno;

	if (gt_enter_started()) {
		if (!gt_table_ref(handle_key(handle)))
			gt_table_put(&(struct gt_entry){.key = handle_key(handle),
							.of = whose,
							.device = gt_current_device()});
		gt_leave();
	}
	errno = err;
}

int cuMemImportFromShareableHandle(gt_handle *out, void *os_handle, int type)
{
	int rc;

	if (!GT_HAVE(cuMemImportFromShareableHandle))
		return GT_CUDA_NOT_INITIALIZED;
	rc = gt_driver.cuMemImportFromShareableHandle(out, os_handle, type);
	if (!rc)
		foreign_handle(*out, IMPORTED);
	return rc;
}

int cuMulticastCreate(gt_handle *out, const void *prop)
{
	int rc;

	if (!GT_HAVE(cuMulticastCreate))
		return GT_CUDA_NOT_INITIALIZED;
	rc = gt_driver.cuMulticastCreate(out, prop);
	if (!rc)
		foreign_handle(*out, MULTICAST);
	return rc;
}

/* ---- mappings -------------------------------------------------------------------------------- */

/* What is mapped of somebody else's memory is shown as such, by its address. */
static enum gt_space mapping_space(uint64_t handle)
{
	struct gt_entry of;

	if (gt_table_get(handle_key(handle), &of) && of.of == IMPORTED)
		return GT_SPACE_IPC;
	return GT_SPACE_MAPPING;
}

static void mapped(const struct gt_regs *regs, uint64_t ptr, uint64_t size, uint64_t handle)
{
	struct gt_entry of = {.device = GT_DEVICE_UNKNOWN};
	int err = errno;

	if (!gt_begin(true))
		return;
	gt_table_get(handle_key(handle), &of);
	gt_table_put(&(struct gt_entry){.key = GT_KEY(ptr, GT_SPACE_MAPPING),
					.of = handle,
					.size = size,
					.device = of.device});
	gt_record_alloc(&(struct gt_alloc){.device = of.device,
					   .space = mapping_space(handle),
					   .api = GT_API_MEM_MAP,
					   .addr = ptr,
					   .size = size,
					   .where = gt_where_capture(regs)});
	gt_end();
	errno = err;
}

int cuMemMap(gt_ptr ptr, size_t size, size_t offset, gt_handle handle, unsigned long long flags)
{
	struct gt_regs regs = GT_REGS_HERE();
	int rc;

	if (!GT_HAVE(cuMemMap))
		return GT_CUDA_NOT_INITIALIZED;
	if (!gt_enter_started())
		return gt_driver.cuMemMap(ptr, size, offset, handle, flags);
	gt_table_ref(handle_key(
		handle)); /* before: another thread may release it as soon as it is mapped */
	rc = gt_driver.cuMemMap(ptr, size, offset, handle, flags);
	if (!rc) {
		mapped(&regs, ptr, size, handle);
	} else {
		struct dropped dropped;

		handle_drop(&regs, GT_API_MEM_MAP, handle, &dropped);
	}
	gt_leave();
	return rc;
}

/* Do the mappings that we know of fill the range exactly? Then the driver has no objection. */
static bool covered(uint64_t ptr, uint64_t size)
{
	struct gt_entry m;
	uint64_t at = ptr;

	while (at - ptr < size && gt_table_get(GT_KEY(at, GT_SPACE_MAPPING), &m))
		at += m.size;
	return at - ptr == size;
}

static void unmap_range(const struct gt_regs *regs, uint64_t ptr, uint64_t size)
{
	struct gt_entry m;
	struct dropped dropped;
	struct gt_freed freed;

	for (uint64_t at = ptr; at - ptr < size && gt_table_take(GT_KEY(at, GT_SPACE_MAPPING), &m);
	     at += m.size) {
		gt_hook_free(regs, GT_API_MEM_MAP, mapping_space(m.of), at, &freed);
		handle_drop(regs, GT_API_MEM_MAP, m.of, &dropped);
	}
}

/*
 * One call may take any number of mappings away, too many to keep each for undoing. A range that
 * the known mappings fill exactly can only be refused by a driver that has failed as a whole; it is
 * recorded before the call, as every free. Any other range is recorded once the driver has agreed.
 */
int cuMemUnmap(gt_ptr ptr, size_t size)
{
	struct gt_regs regs = GT_REGS_HERE();
	bool before;
	int rc;

	if (!GT_HAVE(cuMemUnmap))
		return GT_CUDA_NOT_INITIALIZED;
	if (!gt_enter_started())
		return gt_driver.cuMemUnmap(ptr, size);
	before = covered(ptr, size);
	if (before)
		unmap_range(&regs, ptr, size);
	rc = gt_driver.cuMemUnmap(ptr, size);
	if (!rc && !before)
		unmap_range(&regs, ptr, size);
	gt_leave();
	return rc;
}
