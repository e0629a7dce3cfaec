/* SPDX-License-Identifier: MIT */
/* How the rows of a ledger read. */
#ifndef GT_CMD_LEDGER_H
#define GT_CMD_LEDGER_H

#include "model/ledger.h"

/* where: who asked, "" = not said. To be freed. */
char *gt_ledger_row_text(const struct gt_ledger_row *row, const char *where);

/* "torch", "driver", "NVML", or "". */
const char *gt_ledger_row_level(const struct gt_ledger_row *row);

#endif
