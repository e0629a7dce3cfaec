/* SPDX-License-Identifier: MIT */
/*
 * Stands in for the hooks and the stacks, which the recorder's tests do without: stacks of one
 * frame and a few streams, defined at the start so that events may name them.
 */
#include "../../preload/preload.h"
#include "model.h"

void gt_stacks_start(void)
{
	for (uint32_t i = 1; i <= FAKE_STACKS; i++) {
		struct gt_rec_node node = {.rec.kind = GT_REC_NODE, .id = i, .pc = 0x1000 + i};

		gt_def_append(&node.rec, sizeof(node), NULL, 0, NULL, 0);
	}
	for (uint32_t i = 1; i <= FAKE_STREAMS; i++)
		gt_def_stream(0, i);
}

void gt_stacks_fork_child(void)
{
}

void gt_hooks_fork_child(void)
{
}

void gt_stacks_open(void)
{
}
