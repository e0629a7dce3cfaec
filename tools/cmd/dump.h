/* SPDX-License-Identifier: MIT */
/* The parts of gputrace dump. */
#ifndef GT_CMD_DUMP_H
#define GT_CMD_DUMP_H

#include "read/trace.h"

void gt_dump_defs(const struct gt_trace *trace, bool json);

#endif
