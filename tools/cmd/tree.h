/* SPDX-License-Identifier: MIT */
/* The calls that lead to the memory. */
#ifndef GT_CMD_TREE_H
#define GT_CMD_TREE_H

#include "cmd/session.h"

/* other_lines: of the screen, taken by other things. */
void gt_print_tree(struct gt_out *out, const struct gt_args *args, const struct gt_place *place,
		   const struct gt_state *state, size_t other_lines);

json_t *gt_json_tree(const struct gt_args *args, const struct gt_place *place,
		     const struct gt_state *state);

#endif
