/* SPDX-License-Identifier: MIT */
/* Inside tools/symbols: what a gt_symbols holds. */
#ifndef GT_SYMBOLS_INSIDE_H
#define GT_SYMBOLS_INSIDE_H

#include "symbols/merge.h"
#include "symbols/source.h"

struct gt_symbols {
	const struct gt_trace *trace;
	struct gt_text *text;
	struct gt_naming *naming;
	struct gt_sources *sources;
	struct gt_symbols_stack *stacks;
	uint32_t *links;     /* Python nodes by gt_symbols_place; NULL = none */
	const char **owners; /* by module: what gt_symbols_owner says of it; NULL = not asked yet */
};

#endif
