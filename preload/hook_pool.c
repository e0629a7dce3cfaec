/* SPDX-License-Identifier: MIT */
/*
 * Stream-ordered memory: the wrappers are the GT_POOL rows of hooks.def, the accounting of what
 * they hand out is hook.c's. What a pool itself holds of its device is another series: one block
 * per pool that adds to "reserved", while the memory handed out adds to "in use" only. The driver
 * does not say when a pool grows or shrinks; it is asked after calls that may have done it, at most
 * once per GPUTRACE_SAMPLE_US and never while a stream captures.
 *
 * Pools are asked by one thread at a time; another that comes meanwhile goes on without. Only who
 * changes the list of pools waits for it, so that no destroyed pool is ever asked: the one lock of
 * ours that is held while the driver runs, for a question that takes no lock of a hook. Memory still handed out of a
 * destroyed pool is held by nobody that could be asked: it counts as in use and no more as reserved.
 */
#include "hook.h"

#define GT_POOL GT_WRAP
#include "hooks.def"

#define RESERVED_NOW 5 /* CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT */
#define MAX_POOLS    64

static struct {
	struct gt_lock asking;
	uint32_t count;
	uint64_t last_us;
	uint64_t seen; /* bit per device: its current pool is among them */
	struct gt_backing pool[MAX_POOLS];
} pools;

/* ---- one block whose size changes ------------------------------------------------------------ */

void gt_backing_set(const struct gt_regs *regs, struct gt_backing *b, uint64_t bytes)
{
	struct gt_where where = {0, 0};

	if (bytes == b->bytes)
		return;
	if (bytes || gt_options.stacks & GT_STACKS_FREE)
		where = gt_where_capture(regs);
	if (b->bytes)
		gt_record_free(b->device, b->space, b->key, b->api, where, NULL);
	if (bytes)
		gt_record_alloc(&(struct gt_alloc){.device = b->device,
						   .space = b->space,
						   .mask = GT_MASK_RESERVED,
						   .api = b->api,
						   .addr = b->key,
						   .size = bytes,
						   .where = where});
	b->bytes = bytes;
}

bool gt_sample_due(uint64_t *last, bool now)
{
	uint64_t us;

	if (gt_load_relaxed(&gt_captures))
		return false;
	us = gt_now_us();
	if (!now && gt_load_relaxed(last) && us - gt_load_relaxed(last) < gt_options.sample_us)
		return false;
	gt_store_relaxed(last, us ? us : 1); /* 0 = never */
	return true;
}

/* ---- the pools ------------------------------------------------------------------------------- */

static bool try_asking(void)
{
	return !__atomic_exchange_n(&pools.asking.held, 1, __ATOMIC_ACQUIRE);
}

/* Asking. */
static struct gt_backing *find(void *pool)
{
	for (uint32_t i = 0; i < pools.count; i++)
		if (pools.pool[i].key == (uint64_t)pool)
			return &pools.pool[i];
	return NULL;
}

static void add(void *pool, int device)
{
	if (!pool || find(pool) || pools.count == MAX_POOLS)
		return;
	pools.pool[pools.count] = (struct gt_backing){.device = device,
						      .space = GT_SPACE_POOL,
						      .api = GT_API_POOL,
						      .key = (uint64_t)pool};
	gt_store(&pools.count, pools.count + 1);
}

static void ask_all(const struct gt_regs *regs)
{
	for (uint32_t i = 0; i < pools.count; i++) {
		struct gt_backing *b = &pools.pool[i];
		uint64_t bytes;

		if (!gt_driver.cuMemPoolGetAttribute((void *)b->key, RESERVED_NOW, &bytes))
			gt_backing_set(regs, b, bytes);
	}
}

void gt_pools_sample(const struct gt_regs *regs, bool now)
{
	if (!gt_load(&pools.count) || !gt_driver.cuMemPoolGetAttribute ||
	    !gt_sample_due(&pools.last_us, now) || !try_asking())
		return;
	ask_all(regs);
	gt_unlock(&pools.asking);
}

/* Created, or made the current one of its device. */
void gt_pool_seen(void *pool, int device)
{
	gt_lock(&pools.asking);
	add(pool, device);
	gt_unlock(&pools.asking);
}

static void device_pool_seen(int device)
{
	uint64_t bit = 1ull << device;
	void *pool;

	if (gt_load_relaxed(&pools.seen) & bit || gt_load_relaxed(&gt_captures))
		return;
	if (!gt_driver.cuDeviceGetMemPool || gt_driver.cuDeviceGetMemPool(&pool, device))
		return;
	gt_pool_seen(pool, device);
	__atomic_fetch_or(&pools.seen, bit, __ATOMIC_RELAXED);
}

void gt_pool_used(const struct gt_regs *regs, void *pool, int device)
{
	if (device < 0 || device > 63)
		return;
	if (!pool)
		device_pool_seen(device);
	else if (!find(pool))
		gt_pool_seen(pool, device);
	gt_pools_sample(regs, false);
}

int cuMemPoolDestroy(void *pool)
{
	struct gt_regs regs = GT_REGS_HERE();
	struct gt_backing *b, was = {.key = 0};
	int rc;

	if (!GT_HAVE(cuMemPoolDestroy))
		return GT_CUDA_NOT_INITIALIZED;
	if (!gt_enter_started())
		return gt_driver.cuMemPoolDestroy(pool);
	gt_lock(&pools.asking);
	b = find(pool);
	if (b) {
		was = *b;
		*b = pools.pool[pools.count - 1];
		gt_store(&pools.count, pools.count - 1);
	}
	gt_unlock(&pools.asking);
	rc = gt_driver.cuMemPoolDestroy(pool);
	if (was.key && rc)
		gt_pool_seen(pool, was.device);
	if (was.key) { /* after a refusal the next sample counts it again */
		int err = errno;

		gt_backing_set(&regs, &was, 0);
		errno = err;
	}
	gt_leave();
	return rc;
}

void gt_pool_forget(void)
{
	pools.asking = (struct gt_lock){0};
	pools.count = 0;
	pools.last_us = pools.seen = 0;
}
