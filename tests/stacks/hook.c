/* SPDX-License-Identifier: MIT */
/* A hook as the wrappers are, compiled several times under HOOK's name: the start of a walk. */
#include <string.h>
#include "../../preload/preload.h"
#include "check.h"

uint32_t HOOK(void);

/* Busy enough that the compiler has registers to save and a frame to lay out. */
uint32_t HOOK(void)
{
	struct gt_regs regs = GT_REGS_HERE();
	volatile uint64_t local[5] = {regs.pc, regs.sp, regs.fp, 1, 2};
	uint32_t node;

	if (!local[3])
		return 0;
	node = check_capture(&regs);
	if (local[0] != regs.pc || local[4] != 2)
		return 0;
	return node + (uint32_t)local[3] - 1;
}
