/* SPDX-License-Identifier: MIT */
/*
 * Stream-ordered memory: the wrappers are the GT_POOL rows of hooks.def, their accounting is
 * hook.c's. The bytes are those handed out; what the pool itself holds from the device is another
 * series.
 */
#include "hook.h"

#define GT_POOL GT_WRAP
#include "hooks.def"
