/* SPDX-License-Identifier: MIT */
/*
 * Blocks that torch has freed while other streams still used them. Its allocator then records one
 * event per such stream, right before it reports the free, and keeps the block until it has seen
 * all of them done. So the events that libc10_cuda has recorded on this thread since the last report
 * belong to the block freed next; when the last of them is done, the block has settled. Code of the
 * program calls the same functions from elsewhere, which the caller's address tells apart.
 *
 * libc10_cuda also records events for others (its device guard does for c10::Event), which a free may
 * follow by chance. What follows tells: an allocation right after a record, or a block handed out
 * again before its events are over, cannot be after a record of the allocator. So each place in
 * libc10_cuda has a score, and one that is wrong too often is not listened to.
 *
 * Called by hook_runtime.c and hook_torch.c, inside no lock of ours; of the driver nothing is asked.
 */
#include "hook.h"
#include "table.h"

#define MAX_EVENTS 32 /* streams that have used one block */

#define MAX_PLACES 8

GT_TLS struct {
	uint32_t count, epoch;
	void *event[MAX_EVENTS];
	uint64_t pc[MAX_EVENTS];
} recorded;

static struct
	place { /* that records events; counted without a lock, a lost count does not matter */
	uint64_t pc;
	uint32_t right, wrong;
} places[MAX_PLACES];

static struct place *place_of(uint64_t pc)
{
	for (size_t i = 0; i < MAX_PLACES; i++) {
		uint64_t none = 0;

		if (gt_load_relaxed(&places[i].pc) == pc ||
		    __atomic_compare_exchange_n(&places[i].pc, &none, pc, false, __ATOMIC_RELAXED,
						__ATOMIC_RELAXED) ||
		    none == pc)
			return &places[i];
	}
	return NULL;
}

static bool trusted(uint64_t pc)
{
	struct place *p = place_of(pc);

	return p && gt_load_relaxed(&p->wrong) * 8 <= gt_load_relaxed(&p->right);
}

static void judge(uint64_t pc, bool right)
{
	struct place *p = place_of(pc);

	if (p)
		__atomic_fetch_add(right ? &p->right : &p->wrong, 1, __ATOMIC_RELAXED);
}

static uint32_t waiting; /* blocks: nothing is looked up while there are none */

static void end_one(const struct gt_entry *event)
{
	struct gt_entry block;

	if (!gt_table_unref(GT_KEY(event->of, GT_SIDE_PENDING), &block))
		return;
	__atomic_fetch_sub(&waiting, 1, __ATOMIC_RELAXED);
	gt_record_note(GT_OP_SETTLED, block.device, event->of, block.size, 0, 0);
}

/* What libc10_cuda does in a trace of ours. */
static bool enter(uint64_t pc)
{
	if (!gt_started() || !gt_caller_is(pc, "libc10_cuda") || !gt_enter())
		return false;
	if (gt_begin(false))
		return true;
	gt_leave();
	return false;
}

static void leave(void)
{
	gt_end();
	gt_leave();
}

void gt_event_recorded(uint64_t pc, void *event)
{
	int err = errno;

	if (enter(pc)) {
		if (recorded.epoch != gt_epoch)
			recorded.count = 0;
		recorded.epoch = gt_epoch;
		if (recorded.count < MAX_EVENTS) {
			recorded.pc[recorded.count] = pc;
			recorded.event[recorded.count++] = event;
		}
		leave();
	}
	errno = err;
}

void gt_event_over(uint64_t pc, void *event)
{
	struct gt_entry of;
	int err = errno;

	if (gt_load_relaxed(&waiting) && enter(pc)) {
		if (gt_table_take(GT_KEY((uint64_t)event, GT_SIDE_EVENT), &of))
			end_one(&of);
		leave();
	}
	errno = err;
}

/* An address that is handed out again has settled, even if that was not seen. */
void gt_pending_allocated(int device, uint64_t ptr)
{
	struct gt_entry block;

	for (uint32_t i = 0; i < recorded.count; i++)
		judge(recorded.pc[i], false);
	recorded.count = 0;
	if (!gt_load_relaxed(&waiting) || !gt_table_take(GT_KEY(ptr, GT_SIDE_PENDING), &block))
		return;
	judge(block.of, false);
	__atomic_fetch_sub(&waiting, 1, __ATOMIC_RELAXED);
	gt_record_note(GT_OP_SETTLED, block.device, ptr, block.size, 0, 0);
}

/* How many of the recorded events are the allocator's; those come to the front. */
static uint32_t listen(void)
{
	uint32_t count = 0;

	if (gt_likely(!recorded.count) || recorded.epoch != gt_epoch)
		return 0;
	for (uint32_t i = 0; i < recorded.count; i++) {
		judge(recorded.pc[i], true);
		if (!trusted(recorded.pc[i]))
			continue;
		recorded.event[count] = recorded.event[i];
		recorded.pc[count++] = recorded.pc[i];
	}
	return count;
}

void gt_pending_freed(int device, uint64_t ptr, uint64_t size)
{
	uint32_t count = listen();

	recorded.count = 0;
	if (gt_likely(!count))
		return;
	gt_table_put(&(struct gt_entry){.key = GT_KEY(ptr, GT_SIDE_PENDING),
					.of = recorded.pc[0],
					.size = size,
					.device = device,
					.refs = count});
	__atomic_fetch_add(&waiting, 1, __ATOMIC_RELAXED);
	gt_record_note(GT_OP_PENDING, device, ptr, size, count, 0);
	for (uint32_t i = 0; i < count; i++) {
		uint64_t key = GT_KEY((uint64_t)recorded.event[i], GT_SIDE_EVENT);
		struct gt_entry before;

		if (gt_table_take(key, &before)) /* used again, so torch is done with it */
			end_one(&before);
		gt_table_put(&(struct gt_entry){.key = key, .of = ptr});
	}
}

void gt_pending_forget(void)
{
	waiting = 0;
}
