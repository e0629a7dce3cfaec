/* SPDX-License-Identifier: MIT */
/*
 * Inside tools/symbols: addresses get names. One look at an address gives the function there and
 * those inlined into it; object files are opened when the first address in them is asked for.
 */
#ifndef GT_SYMBOLS_NAMING_H
#define GT_SYMBOLS_NAMING_H

#include "symbols/library.h"
#include "symbols/symbols.h"
#include "symbols/text.h"

struct gt_known { /* a frame and what is needed to judge it */
	struct gt_frame frame;
	enum gt_library library;
	bool named; /* the function's name is known */
};

struct gt_named_pc { /* an address: innermost first, at least one */
	const struct gt_known *known;
	size_t count;
};

struct gt_naming;

struct gt_naming *gt_naming_new(const struct gt_trace *trace, struct gt_text *text);
struct gt_naming *gt_naming_free(struct gt_naming *naming);

/* Of a return address; count 0 = out of memory. Lives as long as naming. */
struct gt_named_pc gt_naming_at(struct gt_naming *naming, uint32_t module, uint64_t pc);

/* Is there something to look names up in? */
bool gt_naming_readable(struct gt_naming *naming, uint32_t module);

const struct gt_missing *gt_naming_missing(const struct gt_naming *naming, size_t *ret_count);

#endif
