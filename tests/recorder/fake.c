/* SPDX-License-Identifier: MIT */
/* Stands in for the hooks and the stacks, which the recorder's tests do without. */
#include "../../preload/preload.h"

void gt_stacks_start(void)
{
}

void gt_stacks_open(void)
{
}

void gt_stacks_fork_child(void)
{
}

void gt_hooks_fork_child(void)
{
}
