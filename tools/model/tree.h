/* SPDX-License-Identifier: MIT */
/* Holders as a tree of calls, outermost first: what one call holds is what those inside it hold. */
#ifndef GT_TREE_H
#define GT_TREE_H

#include "model/state.h"
#include "symbols/symbols.h"

struct gt_tree {
	char *text; /* of the frame; NULL in the root */
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
void gt_tree_clear(struct gt_tree *tree);

#endif
