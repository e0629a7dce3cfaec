/* SPDX-License-Identifier: MIT */
/* Holders as a tree of calls, outermost first: what one call holds is what those inside it hold. */
#ifndef GT_TREE_H
#define GT_TREE_H

#include "model/state.h"
#include "symbols/symbols.h"

struct gt_tree {
	char *text;		      /* of the frame; NULL in the root */
	const struct gt_frame *frame; /* the first with this text; NULL = it is of none */
	uint64_t bytes, count;
	struct gt_tree *inside; /* largest first */
	size_t inside_count;
};

struct gt_tree_style {
	enum gt_frames frames;
	bool full;	  /* every frame; else the user's, and the library's that asked */
	bool short_names; /* files without folders */
};

struct gt_tree gt_tree_of(const struct gt_state *state, struct gt_symbols *symbols,
			  struct gt_tree_style style);
/* The library's line that the user's innermost frame led to; NULL = none in Python. */
const struct gt_frame *gt_tree_library_line(struct gt_stack stack);

/* A frame of the user, but not that a script was started if another one follows. */
bool gt_tree_is_news(struct gt_stack stack, size_t index);

void gt_tree_clear(struct gt_tree *tree);

#endif
