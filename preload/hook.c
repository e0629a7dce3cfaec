/* SPDX-License-Identifier: MIT */
/*
 * The accounting that all wrappers share: whose device, which totals, what to do with a refusal.
 * May call the real driver's queries and the recorder; holds no lock of ours while it does.
 * Everything in here runs between gt_enter and gt_leave and leaves errno as the real function set
 * it.
 *
 * Frees are recorded before the real call: afterwards another thread may already have been given
 * the same address. The price is that a refused free must be given back (gt_record_unfree), with
 * two exceptions. DEINITIALIZED: the driver has shut down and taken all memory back; the program
 * gave up its pointer in good order, so the block counts as freed, not as a leak.
 * CONTEXT_IS_DESTROYED: the block went with its context. Every other refusal leaves the memory
 * where it was.
 */
#include <string.h>
#include <unistd.h>

#include "hook.h"
#include "table.h"

#define ATTRIBUTE_DEVICE_ORDINAL 9 /* CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL */

/* A call from inside a hook. Under our own code it can only come from a signal handler: that is
 * loss. */
bool gt_enter_nested(void)
{
	if (gt_thread.busy)
		gt_count_lost(GT_LOST_EVENTS);
	return false;
}

bool gt_enter_started(void)
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

/* ---- devices --------------------------------------------------------------------------------- */

int gt_current_device(void)
{
	int device;

	if (!gt_driver.cuCtxGetDevice || gt_driver.cuCtxGetDevice(&device) || device < 0)
		return GT_DEVICE_UNKNOWN;
	return device;
}

/* NULL, 1 (legacy) and 2 (per thread) are default streams: those of the current context. */
static int stream_device(gt_stream stream)
{
	int device;

	if ((uintptr_t)stream > 2 && gt_driver.cuStreamGetDevice &&
	    !gt_driver.cuStreamGetDevice(stream, &device) && device >= 0)
		return device;
	return gt_current_device();
}

static int pool_device(const struct gt_request *q)
{
	int device;

	if (!q->rc && gt_driver.cuPointerGetAttribute &&
	    !gt_driver.cuPointerGetAttribute(&device, ATTRIBUTE_DEVICE_ORDINAL, q->key) &&
	    device >= 0)
		return device;
	return stream_device(q->owner.stream);
}

static int owner_device(const struct gt_request *q)
{
	if (q->owner.kind == GT_OWNER_DEVICE)
		return q->owner.device;
	if (q->owner.kind == GT_OWNER_STREAM)
		return stream_device(q->owner.stream);
	if (q->owner.kind == GT_OWNER_POOL)
		return pool_device(q);
	return gt_current_device();
}

static struct gt_lock devices_lock;
static uint64_t devices_defined; /* bit per ordinal, of this process's trace */

static bool device_defined(int ordinal)
{
	return gt_load(&devices_defined) >> ordinal & 1;
}

/* The driver is asked before the lock is taken: foreign code never runs under a lock of ours. */
static __attribute__((noinline)) void define_device(int ordinal)
{
	uint8_t uuid[16] = {0};
	char name[128] = "";
	size_t total = 0;

	if (!gt_driver.cuDeviceTotalMem_v2 || gt_driver.cuDeviceTotalMem_v2(&total, ordinal))
		total = 0;
	if (!gt_driver.cuDeviceGetUuid_v2 || gt_driver.cuDeviceGetUuid_v2(uuid, ordinal))
		if (!gt_driver.cuDeviceGetUuid || gt_driver.cuDeviceGetUuid(uuid, ordinal))
			memset(uuid, 0, sizeof(uuid));
	if (!gt_driver.cuDeviceGetName || gt_driver.cuDeviceGetName(name, sizeof(name), ordinal))
		name[0] = 0;
	gt_lock(&devices_lock);
	if (!device_defined(ordinal)) {
		gt_def_device(ordinal, total, uuid, name);
		gt_store(&devices_defined, devices_defined | 1ull << ordinal);
	}
	gt_unlock(&devices_lock);
}

void gt_hook_device(int ordinal)
{
	if (ordinal >= 0 && ordinal <= 63 && gt_unlikely(!device_defined(ordinal)))
		define_device(ordinal);
}

void gt_hook_memory(uint64_t *ret_free, uint64_t *ret_total)
{
	size_t free, total;

	*ret_free = *ret_total = GT_UNKNOWN_BYTES;
	if (gt_driver.cuMemGetInfo_v2 && !gt_driver.cuMemGetInfo_v2(&free, &total)) {
		*ret_free = free;
		*ret_total = total;
	}
}

/* What the program was told about the current device: a sample that costs nothing. */
void gt_hook_sample(const size_t *free, const size_t *total)
{
	static uint64_t last_us;
	int device = gt_current_device();

	if (!free || !total || device < 0 || !gt_sample_due(&last_us, false))
		return;
	gt_hook_device(device);
	gt_record_note(GT_OP_SAMPLE, device, 0, *total, 0, *free);
}

/* ---- allocations ----------------------------------------------------------------------------- */

/* Without torch's own cache each allocation is a tensor, not a segment that tensors share. */
static bool torch_caches(void)
{
	static int answer; /* 0 not asked, 1 yes, 2 no */

	if (!answer) {
		answer = 1;
		for (char **e = environ; e && *e; e++)
			if (!strncmp(*e, "PYTORCH_NO_CUDA_MEMORY_CACHING=", 31))
				answer = 2;
	}
	return answer == 1;
}

/*
 * Does torch's caching allocator subdivide this one? It asks for segments through cudaMalloc (seen
 * by hook_runtime.c, because the driver's direct caller is then libcudart) or through cuMemCreate.
 */
static bool is_segment(const struct gt_regs *regs, enum gt_api api)
{
	uint64_t pc = api == GT_API_MEM_CREATE ? regs->pc : gt_thread.runtime_pc;

	if ((api != GT_API_MEM_ALLOC && api != GT_API_MEM_CREATE) || !pc)
		return false;
	return gt_caller_is(pc, "libc10_cuda") && torch_caches();
}

/* Is it out of a pool, whose backing is a series of its own? */
static bool from_pool(const struct gt_request *q)
{
	return q->owner.kind == GT_OWNER_STREAM || q->owner.kind == GT_OWNER_POOL;
}

static uint32_t mask_of(const struct gt_regs *regs, const struct gt_request *q)
{
	switch (q->space) {
	case GT_SPACE_IPC:
	case GT_SPACE_MAPPING:
	case GT_SPACE_RANGE:
		return 0;
	default:
		if (is_segment(regs, q->api))
			return GT_MASK_RESERVED;
		if (from_pool(q) && gt_driver.cuMemPoolGetAttribute)
			return GT_MASK_IN_USE;
		return GT_MASK_RESERVED | GT_MASK_IN_USE;
	}
}

/* Memory of others whose address cuMemFree takes back: pointers out of imported pools, mapped
 * buffers. Until there is one, frees need no second look. */
static bool foreign_pointers;

static void granted(const struct gt_regs *regs, const struct gt_request *q, int device)
{
	struct gt_alloc a = {
		.device = device,
		.space = q->space,
		.mask = mask_of(regs, q),
		.api = q->api,
		.addr = q->key,
		.size = q->size,
		.stream = gt_def_stream(device, (uint64_t)q->owner.stream),
		.where = gt_where_capture(regs),
	};

	if (q->space == GT_SPACE_IPC || q->space == GT_SPACE_MAPPING)
		gt_store_relaxed(&foreign_pointers, true);
	if (q->space == GT_SPACE_ARRAY)
		gt_context_owns(GT_KEY(q->key, q->space), device);
	gt_record_alloc(&a);
	if (from_pool(q))
		gt_pool_used(regs, q->owner.pool, device);
}

/* While a stream captures, questions to the driver could end the capture: leave free and total out.
 */
static bool captures(gt_stream stream)
{
	int status = 0;

	if (!stream || !gt_driver.cuStreamIsCapturing)
		return false;
	return gt_driver.cuStreamIsCapturing(stream, &status) != 0 || status != 0;
}

static void refused(const struct gt_regs *regs, const struct gt_request *q, int device)
{
	struct gt_refusal r = {
		.device = device,
		.space = q->space,
		.api = q->api,
		.size = q->size,
		.result = q->rc,
		.device_free = GT_UNKNOWN_BYTES,
		.device_total = GT_UNKNOWN_BYTES,
		.torch_allocated = GT_UNKNOWN_BYTES,
		.torch_reserved = GT_UNKNOWN_BYTES,
	};

	if (q->rc == GT_CUDA_OUT_OF_MEMORY && gt_current_device() == device &&
	    !captures(q->owner.stream))
		gt_hook_memory(&r.device_free, &r.device_total);
	gt_pools_sample(regs, true); /* the driver has looked there first */
	r.where = gt_where_capture(regs);
	gt_record_refusal(&r);
}

void gt_hook_answered(const struct gt_regs *regs, const struct gt_request *q)
{
	int err = errno, device;
	void *graph;

	if (!gt_begin(!q->rc)) {
		errno = err;
		return;
	}
	if (gt_unlikely(gt_load_relaxed(&gt_measuring)))
		gt_store_relaxed(&gt_disturbed, 1);
	device = owner_device(q);
	gt_hook_device(device);
	if (!q->rc && from_pool(q) && gt_graph_captured(q->owner.stream, &graph))
		gt_graph_node_alloc(regs, graph, q->key, q->size, device);
	else if (q->rc)
		refused(regs, q, device);
	else
		granted(regs, q, device);
	gt_end();
	errno = err;
}

/* ---- frees ----------------------------------------------------------------------------------- */

/* Where is the block that a free names? A module that took nothing is in no space. */
static bool find_space(enum gt_space *space, uint64_t key)
{
	static const enum gt_space others[] = {GT_SPACE_DRIVER, GT_SPACE_IPC, GT_SPACE_MAPPING};
	uint64_t size;
	int device;

	if (*space == GT_SPACE_MODULE)
		return gt_lookup(gt_current_device(), *space, key, &device, &size);
	if (*space != GT_SPACE_DRIVER || gt_likely(!gt_load_relaxed(&foreign_pointers)))
		return true;
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		if (!gt_lookup(gt_current_device(), others[i], key, &device, &size))
			continue;
		*space = others[i];
		break;
	}
	return true;
}

void gt_hook_free(const struct gt_regs *regs, enum gt_api api, enum gt_space space, uint64_t key,
		  struct gt_freed *ret)
{
	struct gt_where where = {0, 0};
	int err = errno;

	ret->lane = GT_LANE_NONE;
	if (!key || !gt_begin(false)) { /* freeing NULL is legal and does nothing */
		errno = err;
		return;
	}
	if (gt_unlikely(gt_load_relaxed(&gt_measuring)))
		gt_store_relaxed(&gt_disturbed, 1);
	if (gt_options.stacks & GT_STACKS_FREE)
		where = gt_where_capture(regs);
	if (find_space(&space, key))
		gt_record_free(gt_current_device(), space, key, api, where, ret);
	gt_end();
	errno = err;
}

static void settled(const struct gt_regs *regs, enum gt_api api, const struct gt_freed *freed)
{
	if (api == GT_API_ARRAY || api == GT_API_MIPMAP || api == GT_API_MODULE)
		gt_table_take(freed->key, NULL);
	if (api != GT_API_MEM_FREE && api != GT_API_MEM_FREE_ASYNC)
		return;
	gt_pool_freed(GT_KEY_ADDR(freed->key));
	gt_pools_sample(regs, false);
}

void gt_hook_freed(const struct gt_regs *regs, int rc, enum gt_api api,
		   const struct gt_freed *freed)
{
	int err = errno;

	if (freed->lane == GT_LANE_NONE)
		return;
	if (gt_likely(!rc)) {
		gt_thread.busy = 1;
		settled(regs, api, freed);
		gt_end();
		errno = err;
		return;
	}
	if (rc == GT_CUDA_DEINITIALIZED || rc == GT_CUDA_CONTEXT_IS_DESTROYED)
		return;
	if (gt_begin(false))
		gt_record_unfree(freed);
	gt_end();
	errno = err;
}

/* A forked child has its own trace, and its parent's locks may have been held when it was made. */
void gt_hooks_fork_child(void)
{
	devices_lock = (struct gt_lock){0};
	devices_defined = 0;
	gt_thread = (struct gt_thread){0};
	gt_table_forget();
	gt_pool_forget();
	gt_graph_forget();
	gt_torch_forget();
	gt_pending_forget();
}
