/* SPDX-License-Identifier: MIT */
/* gputrace summary --torch: what torch.cuda.memory_summary() would show, from the trace. */
#ifndef GT_TORCH_TABLE_H
#define GT_TORCH_TABLE_H

#include "cmd/session.h"

/* Of every place, for gt_run_places. */
int gt_torch_table(struct gt_out *out, const struct gt_args *args, const struct gt_places *places);

#endif
