/* SPDX-License-Identifier: MIT */
/*
 * Plain, pitched and managed device memory: the wrappers are the GT_MEM rows of hooks.def, their
 * accounting is hook.c's. Called by the program, directly or through an address that resolve.c gave
 * out.
 */
#include "hook.h"

#define GT_MEM GT_WRAP
#include "hooks.def"
