/* SPDX-License-Identifier: MIT */
/*
 * Native stacks as paths in a tree of nodes (caller, pc), each defined in the file before its id is
 * used. Called by the capture, with no lock held.
 *
 * A path is looked up by the hash of all its addresses from the root on. The walk keeps that hash
 * per frame, so a stack that shares its outer part with the last one hashes its new frames only,
 * and one look-up finds the whole path. Only for a new stack the prefixes are tried, innermost
 * first. Two paths that agree in 64 bits of hash and in the last pc would be taken for one: with
 * the million nodes that there is room for, one chance in 10^7 per process.
 *
 * After an object that was seen in a stack has been unloaded, the same addresses may be other
 * functions. Return addresses in such a range are hashed together with the number of objects that
 * went away there, so they get nodes of their own; all other nodes stay good.
 */
#include "intern.h"
#include "unwind.h"

#define NODES_MAX   (1u << 20) /* 16 MiB of keys, 8 MiB of index, 24 MiB in the file */
#define RETIRED_MAX 32u
#define CHAIN_ROOT  UINT64_C(0x2545f4914f6cdd1d)

static struct gt_intern nodes = {.limit = NODES_MAX};

/* Written under the lock of modules.c, before any capture can meet the next object at that place.
 */
static struct range {
	uint64_t start, end, times;
} retired[RETIRED_MAX];
static uint32_t retired_count;
static struct range hull = {UINT64_MAX, 0, 0};

/* How many objects have gone from under this return address. */
static uint64_t went_away(uint64_t pc)
{
	uint32_t i, n = gt_load(&retired_count);
	uint64_t times = 0;

	for (i = 0; i < n; i++)
		if (pc > gt_load_relaxed(&retired[i].start) &&
		    pc <= gt_load_relaxed(&retired[i].end))
			times += gt_load_relaxed(&retired[i].times);
	return times;
}

static void widen(struct range *r, uint64_t start, uint64_t end)
{
	if (start < r->start)
		gt_store_relaxed(&r->start, start);
	if (end > r->end)
		gt_store_relaxed(&r->end, end);
	gt_store(&r->times, r->times + 1);
}

/* Once all ranges are taken the last one grows: addresses that nothing left get new nodes, once. */
void gt_nodes_retire(uint64_t start, uint64_t end)
{
	uint32_t i = 0;

	while (i < retired_count && (retired[i].start != start || retired[i].end != end))
		i++;
	if (i == RETIRED_MAX)
		i--;
	if (i == retired_count)
		retired[i] = (struct range){start, end, 0};
	widen(&retired[i], start, end);
	if (i == retired_count)
		gt_store(&retired_count, i + 1);
	widen(&hull, start, end);
}

static inline uint64_t chain_next(uint64_t chain, uint64_t pc)
{
	uint64_t h = chain ^ pc;

	if (gt_unlikely(pc > gt_load_relaxed(&hull.start) && pc <= gt_load_relaxed(&hull.end)))
		h += went_away(pc) << 48;
	h *= 0x9e3779b97f4a7c15ull;
	return h ^ h >> 32;
}

void gt_chain_extend(const struct gt_frame *frames, uint64_t *chain, unsigned from, unsigned to)
{
	uint64_t h = from ? chain[from - 1] : CHAIN_ROOT;

	for (; from < to; from++)
		chain[from] = h = chain_next(h, frames[from].pc);
}

static struct gt_intern_key key_of(const struct gt_frame *frames, const uint64_t *chain, unsigned i)
{
	return (struct gt_intern_key){chain[i], frames[i].pc};
}

static bool define(uint32_t id, struct gt_intern_key key, const void *arg)
{
	struct gt_rec_node node = {
		.rec = {.kind = GT_REC_NODE, .length = sizeof(node)},
		.id = id,
		.parent = *(const uint32_t *)arg,
		.pc = key.b,
	};

	return gt_def_append(&node.rec, sizeof(node), NULL, 0, NULL, 0);
}

uint32_t gt_nodes_intern(const struct gt_frame *frames, const uint64_t *chain, unsigned n)
{
	uint32_t id = 0;
	unsigned known = n;

	while (known > 0 && !id)
		id = gt_intern_find(&nodes, key_of(frames, chain, --known));
	if (id)
		known++;
	for (; known < n; known++) {
		id = gt_intern_add(&nodes, key_of(frames, chain, known), define, &id);
		if (!id)
			break;
	}
	return id;
}

void gt_nodes_forget(void)
{
	nodes = (struct gt_intern){.limit = NODES_MAX};
	retired_count = 0;
	hull = (struct range){UINT64_MAX, 0, 0};
}
