/* SPDX-License-Identifier: MIT */
/* Inside tools/symbols: a native and a Python stack become one. */
#ifndef GT_SYMBOLS_MERGE_H
#define GT_SYMBOLS_MERGE_H

#include "symbols/naming.h"

struct gt_known_list { /* a stack, innermost first */
	struct gt_known *items;
	size_t count, room;
};

/* Appends the stack of a pair of innermost nodes, either may be 0. */
void gt_merge_frames(const struct gt_trace *trace, struct gt_naming *naming, struct gt_text *text,
		     uint32_t native, uint32_t python, struct gt_known_list *list);

/* A frame of Python; text owns its names. */
struct gt_known gt_merge_python(const struct gt_trace *trace, struct gt_text *text,
				const struct gt_pynode *node);

/* Appends a frame that only says something about the others. */
void gt_known_marker(struct gt_known_list *list, const char *text);

#endif
