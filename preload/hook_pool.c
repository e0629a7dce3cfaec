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
 * ours that is held while the driver runs, for a question that takes no lock of a hook.
 *
 * A destroyed pool keeps what it holds until the last block out of it is freed. It cannot be asked
 * any more, so its blocks are looked up before it is destroyed, and counted down.
 */
#include "hook.h"
#include "table.h"

#define GT_POOL GT_WRAP
#include "hooks.def"

#define RESERVED_NOW		 5  /* CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT */
#define ATTRIBUTE_MEMPOOL_HANDLE 17 /* CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE */
#define MAX_POOLS		 64

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

/* ---- destroyed pools ------------------------------------------------------------------------- */

static uint32_t remains; /* pools that are destroyed and not empty */

/* A key for them: of a handle that the driver may give out again, so not the handle itself. */
static uint64_t remains_key(void *pool)
{
	struct gt_entry e;
	uint64_t i = 1;

	while (i < 7 && gt_table_get(GT_KEY((uint64_t)pool + i, GT_SIDE_REMAINS), &e))
		i++;
	return (uint64_t)pool + i;
}

static uint32_t find_orphans(const struct gt_backing *b, uint64_t remains_of)
{
	uint64_t keys[256];
	uint32_t at = 0, n, count = 0;
	void *of;

	while ((n = gt_live_keys((uint32_t)b->device, true, &at, keys, 256)))
		for (uint32_t i = 0; i < n; i++) {
			uint64_t ptr = GT_KEY_ADDR(keys[i]);

			if (GT_KEY_SPACE(keys[i]) != GT_SPACE_DRIVER ||
			    gt_driver.cuPointerGetAttribute(&of, ATTRIBUTE_MEMPOOL_HANDLE, ptr) ||
			    (uint64_t)of != b->key)
				continue;
			gt_table_put(&(struct gt_entry){.key = GT_KEY(ptr, GT_SIDE_ORPHAN),
							.of = remains_of});
			count++;
		}
	return count;
}

void gt_pool_freed(uint64_t ptr)
{
	struct gt_entry orphan, rest;

	if (gt_likely(!gt_load_relaxed(&remains)) ||
	    !gt_table_take(GT_KEY(ptr, GT_SIDE_ORPHAN), &orphan) ||
	    !gt_table_unref(GT_KEY(orphan.of, GT_SIDE_REMAINS), &rest))
		return;
	__atomic_fetch_sub(&remains, 1, __ATOMIC_RELAXED);
	if (rest.size)
		gt_record_free(rest.device, GT_SPACE_POOL, orphan.of, GT_API_POOL,
			       (struct gt_where){0, 0}, NULL);
}

/* Before the real call: the pool leaves the list, *ret is what it was. */
static bool take(const struct gt_regs *regs, void *pool, struct gt_backing *ret)
{
	struct gt_backing *b;
	uint64_t bytes;

	gt_lock(&pools.asking);
	b = find(pool);
	if (b) {
		if (gt_driver.cuMemPoolGetAttribute && !gt_load_relaxed(&gt_captures) &&
		    !gt_driver.cuMemPoolGetAttribute(pool, RESERVED_NOW, &bytes))
			gt_backing_set(regs, b, bytes);
		*ret = *b;
		*b = pools.pool[pools.count - 1];
		gt_store(&pools.count, pools.count - 1);
	}
	gt_unlock(&pools.asking);
	return b != NULL;
}

/* Refused: it is there again. Its orphans are none, which their frees will not notice. */
static void restore(const struct gt_backing *b)
{
	gt_lock(&pools.asking);
	if (!find((void *)b->key) && pools.count < MAX_POOLS) {
		pools.pool[pools.count] = *b;
		gt_store(&pools.count, pools.count + 1);
	}
	gt_unlock(&pools.asking);
}

/* Done with; what is left, if anything, is another block from now on. */
static void destroyed(const struct gt_regs *regs, struct gt_backing *b, uint64_t key,
		      uint32_t blocks)
{
	struct gt_backing rest = {
		.device = b->device, .space = b->space, .api = b->api, .key = key};
	uint64_t bytes = b->bytes;

	gt_backing_set(regs, b, 0);
	if (!blocks)
		return;
	gt_table_put(&(struct gt_entry){.key = GT_KEY(key, GT_SIDE_REMAINS),
					.size = bytes,
					.device = rest.device,
					.refs = blocks});
	__atomic_fetch_add(&remains, 1, __ATOMIC_RELAXED);
	gt_backing_set(regs, &rest, bytes);
}

int cuMemPoolDestroy(void *pool)
{
	struct gt_regs regs = GT_REGS_HERE();
	struct gt_backing b;
	uint64_t key = 0;
	uint32_t blocks = 0;
	int rc, err = errno;
	bool known;

	if (!GT_HAVE(cuMemPoolDestroy))
		return GT_CUDA_NOT_INITIALIZED;
	if (!gt_enter_started())
		return gt_driver.cuMemPoolDestroy(pool);
	known = take(&regs, pool, &b);
	if (known && gt_driver.cuPointerGetAttribute) {
		key = remains_key(pool);
		blocks = find_orphans(&b, key);
	}
	errno = err;
	rc = gt_driver.cuMemPoolDestroy(pool);
	err = errno;
	if (known && rc)
		restore(&b);
	else if (known)
		destroyed(&regs, &b, key, blocks);
	errno = err;
	gt_leave();
	return rc;
}

void gt_pool_forget(void)
{
	pools.asking = (struct gt_lock){0};
	pools.count = 0;
	pools.last_us = pools.seen = 0;
	remains = 0;
}
