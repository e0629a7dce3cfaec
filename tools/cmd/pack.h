/* SPDX-License-Identifier: MIT */
/* Traces that carry the names they need. */
#ifndef GT_CMD_PACK_H
#define GT_CMD_PACK_H

#include "cmd/session.h"

/* Writes the packed trace of input to path, which may be the trace itself. 0, or the exit status. */
int gt_pack_input(struct gt_input *input, const char *path);

#endif
