/* SPDX-License-Identifier: MIT */
/*
 * Virtual memory management: physical memory (handles) and where it is mapped. Bytes are charged
 * when a handle is created, once however often it is mapped, and come back when nothing refers to
 * it any more: the program may release a handle while mappings keep its memory alive, and unmap
 * later. So handles and mappings are kept in a table of our own, with a count of references per
 * handle. Mappings are recorded as address ranges without bytes.
 *
 * The table's lock is never held while the driver or the recorder runs. As elsewhere the free is
 * recorded before the real call and taken back if that is refused.
 */
#include "hook.h"

#define LOCATION_DEVICE 1 /* CU_MEM_LOCATION_TYPE_DEVICE */

/* ---- table: open addressing, linear probing, backward shift on removal ----------------------- */

struct vmm_entry {
	uint64_t key;	 /* GT_KEY(handle or address, HANDLE or MAPPING); 0 = empty */
	uint64_t handle; /* of a mapping */
	uint64_t size;
	int32_t device;
	uint32_t refs; /* of a handle: creation not yet released + mappings */
};

static struct gt_lock vmm_lock;
static struct vmm_entry *vmm_table;
static uint64_t vmm_size, vmm_used; /* entries: room, a power of two, and taken */

static uint64_t home(uint64_t key)
{
	return (key * 0x9e3779b97f4a7c15ull >> 20) & (vmm_size - 1);
}

static struct vmm_entry *table_find(uint64_t key)
{
	if (!vmm_table)
		return NULL;
	for (uint64_t i = home(key);; i = (i + 1) & (vmm_size - 1)) {
		if (vmm_table[i].key == key)
			return &vmm_table[i];
		if (!vmm_table[i].key)
			return NULL;
	}
}

static void table_put(const struct vmm_entry *e)
{
	uint64_t i = home(e->key);

	while (vmm_table[i].key && vmm_table[i].key != e->key)
		i = (i + 1) & (vmm_size - 1);
	vmm_used += !vmm_table[i].key;
	vmm_table[i] = *e;
}

static bool table_room(void)
{
	struct vmm_entry *old = vmm_table;
	uint64_t old_size = vmm_size, size = vmm_size ? vmm_size * 2 : 1024;

	if (vmm_table && vmm_used < vmm_size / 2)
		return true;
	vmm_table = gt_map(size * sizeof(*vmm_table));
	if (!vmm_table) {
		vmm_table = old;
		return old && vmm_used < vmm_size - 1;
	}
	vmm_size = size;
	vmm_used = 0;
	for (uint64_t i = 0; i < old_size; i++)
		if (old[i].key)
			table_put(&old[i]);
	gt_unmap(old, old_size * sizeof(*old));
	return true;
}

static void table_remove(struct vmm_entry *e)
{
	uint64_t hole = (uint64_t)(e - vmm_table), mask = vmm_size - 1;

	for (uint64_t i = (hole + 1) & mask; vmm_table[i].key; i = (i + 1) & mask) {
		if (((i - home(vmm_table[i].key)) & mask) < ((i - hole) & mask))
			continue;
		vmm_table[hole] = vmm_table[i];
		hole = i;
	}
	vmm_table[hole].key = 0;
	vmm_used--;
}

/* Keeps an entry, or takes one more reference to a handle that is already there. */
static void vmm_add(const struct vmm_entry *e)
{
	gt_lock(&vmm_lock);
	if (table_room())
		table_put(e);
	else
		gt_count_lost(GT_LOST_EVENTS);
	gt_unlock(&vmm_lock);
}

static bool vmm_get(uint64_t key, struct vmm_entry *ret)
{
	struct vmm_entry *e;

	gt_lock(&vmm_lock);
	e = table_find(key);
	if (e)
		*ret = *e;
	gt_unlock(&vmm_lock);
	return e != NULL;
}

static void vmm_drop(uint64_t key)
{
	struct vmm_entry *e;

	gt_lock(&vmm_lock);
	e = table_find(key);
	if (e)
		table_remove(e);
	gt_unlock(&vmm_lock);
}

static void handle_ref(uint64_t handle)
{
	struct vmm_entry *e;

	gt_lock(&vmm_lock);
	e = table_find(GT_KEY(handle, GT_SPACE_HANDLE));
	if (e)
		e->refs++;
	gt_unlock(&vmm_lock);
}

/* Was it the last reference? Then the entry is gone, and *ret is what it was, to put it back. */
static bool handle_unref(uint64_t handle, struct vmm_entry *ret)
{
	struct vmm_entry *e;
	bool last = false;

	gt_lock(&vmm_lock);
	e = table_find(GT_KEY(handle, GT_SPACE_HANDLE));
	if (e) {
		*ret = *e;
		last = --e->refs == 0;
		if (last)
			table_remove(e);
	}
	gt_unlock(&vmm_lock);
	return last;
}

void gt_vmm_forget(void)
{
	vmm_lock = (struct gt_lock){0};
	vmm_table = NULL; /* not mapped in the child */
	vmm_size = vmm_used = 0;
}

/*
 * As gt_enter, and false while there is no trace of this process: then the table is empty, or, in a
 * child that clone made, not even mapped.
 */
static bool enter(void)
{
	int err = errno;
	bool recording;

	if (!gt_enter())
		return false;
	recording = gt_begin(false);
	gt_end();
	if (!recording)
		gt_leave();
	errno = err;
	return recording;
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
	if (!q.rc && enter()) {
		vmm_add(&(struct vmm_entry){.key = GT_KEY(q.key, GT_SPACE_HANDLE),
					    .size = size,
					    .device = q.owner.device,
					    .refs = 1});
		gt_leave();
	}
	return q.rc;
}

/* Gives up one reference, and records the free if it was the last; *ret serves to undo that. */
struct dropped {
	struct vmm_entry entry; /* key 0: not a handle that we know */
	struct gt_freed freed;
	bool last;
};

static void handle_drop(const struct gt_regs *regs, enum gt_api api, uint64_t handle,
			struct dropped *ret)
{
	ret->entry.key = 0;
	ret->freed.lane = GT_LANE_NONE;
	ret->last = handle_unref(handle, &ret->entry);
	if (ret->last)
		gt_hook_free(regs, api, GT_SPACE_HANDLE, handle, &ret->freed);
}

static void handle_undrop(int rc, const struct dropped *dropped)
{
	if (dropped->last)
		vmm_add(&dropped->entry);
	else if (dropped->entry.key)
		handle_ref(GT_KEY_ADDR(dropped->entry.key));
	gt_hook_freed(rc, &dropped->freed);
}

int cuMemRelease(gt_handle handle)
{
	struct gt_regs regs = GT_REGS_HERE();
	struct dropped dropped;
	int rc;

	if (!GT_HAVE(cuMemRelease))
		return GT_CUDA_NOT_INITIALIZED;
	if (!enter())
		return gt_driver.cuMemRelease(handle);
	handle_drop(&regs, GT_API_MEM_CREATE, handle, &dropped);
	if (!dropped.entry.key) /* imported, or from before us: an unknown free */
		gt_hook_free(&regs, GT_API_MEM_CREATE, GT_SPACE_HANDLE, handle, &dropped.freed);
	rc = gt_driver.cuMemRelease(handle);
	if (rc)
		handle_undrop(rc, &dropped);
	gt_leave();
	return rc;
}

/* ---- mappings -------------------------------------------------------------------------------- */

static void mapped(const struct gt_regs *regs, uint64_t ptr, uint64_t size, uint64_t handle)
{
	struct vmm_entry of = {.device = GT_DEVICE_UNKNOWN};
	int err = errno;

	if (!gt_begin(true))
		return;
	vmm_get(GT_KEY(handle, GT_SPACE_HANDLE), &of);
	vmm_add(&(struct vmm_entry){.key = GT_KEY(ptr, GT_SPACE_MAPPING),
				    .handle = handle,
				    .size = size,
				    .device = of.device});
	gt_record_alloc(&(struct gt_alloc){.device = of.device,
					   .space = GT_SPACE_MAPPING,
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
	if (!enter())
		return gt_driver.cuMemMap(ptr, size, offset, handle, flags);
	handle_ref(handle); /* before: another thread may release it as soon as it is mapped */
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
	struct vmm_entry m;
	uint64_t at = ptr;

	while (at - ptr < size && vmm_get(GT_KEY(at, GT_SPACE_MAPPING), &m))
		at += m.size;
	return at - ptr == size;
}

static void unmap_range(const struct gt_regs *regs, uint64_t ptr, uint64_t size)
{
	struct vmm_entry m;
	struct dropped dropped;
	struct gt_freed freed;

	for (uint64_t at = ptr; at - ptr < size && vmm_get(GT_KEY(at, GT_SPACE_MAPPING), &m);
	     at += m.size) {
		vmm_drop(m.key);
		gt_hook_free(regs, GT_API_MEM_MAP, GT_SPACE_MAPPING, at, &freed);
		handle_drop(regs, GT_API_MEM_MAP, m.handle, &dropped);
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
	if (!enter())
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
