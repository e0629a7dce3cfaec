/* SPDX-License-Identifier: MIT */
/* What a summary warns of: only what the trace shows without doubt, and at most five. */
#ifndef GT_CMD_WARNINGS_H
#define GT_CMD_WARNINGS_H

#include "cmd/session.h"

#define GT_WARNINGS 5

struct gt_warning {
	const char *id;
	char *text;
	const char *command; /* that tells more */
};

struct gt_warnings {
	struct gt_warning warnings[GT_WARNINGS];
	size_t count;
};

/* Of the places of one input. */
struct gt_warnings gt_warnings_of(struct gt_input *input, const struct gt_places *places);
void gt_warnings_clear(struct gt_warnings *warnings);

#endif
