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
 * The hash starts from the module epoch: after an object that was seen in a stack has been unloaded
 * the same addresses may be other functions, and get other nodes.
 */
#include "intern.h"
#include "unwind.h"

#define NODES_MAX (1u << 20) /* 16 MiB of keys, 8 MiB of index, 24 MiB in the file */

static struct gt_intern nodes = {.limit = NODES_MAX};

uint64_t gt_chain_root(void)
{
	return gt_chain_next(0x2545f4914f6cdd1dull, gt_modules_epoch());
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
}
