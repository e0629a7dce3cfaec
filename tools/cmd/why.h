/* SPDX-License-Identifier: MIT */
/* at --why: the rule that chose a category, and what it saw. */
#ifndef GT_WHY_H
#define GT_WHY_H

#include "cmd/session.h"

/* which: an address in hexadecimal, or a part of the lines' text ("train.py:27"). 0 or a status. */
int gt_print_why(struct gt_out *out, const struct gt_place *place, const struct gt_state *state,
		 const char *which);

/* Rows as objects; empty without torch in the trace. */
json_t *gt_json_why(const struct gt_place *place, const struct gt_state *state, const char *which);

#endif
