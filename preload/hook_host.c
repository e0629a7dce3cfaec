/* SPDX-License-Identifier: MIT */
/*
 * Host memory that the driver allocates pinned or pins for the program: the wrappers are the
 * GT_HOST rows of hooks.def, their accounting is hook.c's. It is kept on the host's lane, so it adds
 * to no device, and it is found there from every context, as the driver finds it.
 */
#include "hook.h"

#define GT_HOST GT_WRAP
#include "hooks.def"
