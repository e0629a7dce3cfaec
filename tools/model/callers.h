/* SPDX-License-Identifier: MIT */
/*
 * Memory that autograd's threads ask for, tied to the line that called backward(). PyTorch keeps no
 * record of the forward line behind a node (but in its anomaly mode, which it prints itself), so
 * what can be said is the call and, from the native stack, the operation.
 */
#ifndef GT_CALLERS_H
#define GT_CALLERS_H

#include "symbols/symbols.h"

/* Tells symbols, before any stack is asked for. Walks the history only if several lines call it. */
void gt_callers_link(struct gt_symbols *symbols, const struct gt_trace *trace);

#endif
