/* SPDX-License-Identifier: MIT */
/* From the devices of a session to those of an export. */
#ifndef GT_CMD_EXPORT_H
#define GT_CMD_EXPORT_H

#include "cmd/session.h"
#include "export/export.h"

/* One per place, in their order, still without states and answers. */
struct gt_export_place *gt_export_open(const struct gt_places *places);
void gt_export_close(struct gt_export_place *places, size_t count);

#endif
