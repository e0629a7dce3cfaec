/* SPDX-License-Identifier: MIT */
/*
 * fork: a child must never write the parent's file, and must not wait for locks that threads held
 * which it does not have. All mappings of ours are MADV_DONTFORK, so the parent's structures are
 * gone in the child; a page that the kernel wipes at fork holds the recorder's state, so the child
 * finds "not started" there, whichever call made it, and starts anew at its first event. Called by
 * start.c.
 */
#include <sys/mman.h>
#include "recorder.h"

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

uint32_t *gt_fork_page(void)
{
	void *p = mmap(NULL, GT_HEADER_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		       -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	if (!madvise(p, GT_HEADER_SIZE, MADV_WIPEONFORK))
		return p;
	gt_unmap(p, GT_HEADER_SIZE);
	return NULL;
}

/* Only forgets: what the pointers pointed to is not there any more, the locks may be held by no
 * one. */
void gt_fork_child(void)
{
	gt_file_forget();
	gt_extents_forget();
	gt_defs_forget();
	gt_lanes_forget();
	gt_oom_forget();
	gt_stacks_fork_child();
	gt_hooks_fork_child();
}
