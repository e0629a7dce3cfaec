/* SPDX-License-Identifier: MIT */
/* The ledger of a device with all processes of the traces given that were on it. */
#ifndef GT_CMD_LEDGER_H
#define GT_CMD_LEDGER_H

#include "cmd/session.h"
#include "model/ledger.h"

struct gt_joint {
	struct gt_place *places; /* row->process counts them */
	size_t count;
	struct gt_ledger ledger;
};

/*
 * After event seq of the place, at its time us; state: the place's then, if it is known already, else
 * NULL. 0, or the exit status after saying why.
 */
int gt_joint_of(struct gt_session *session, const struct gt_place *lead, uint64_t seq, uint64_t us,
		const struct gt_state *state, struct gt_joint *ret);
void gt_joint_clear(struct gt_joint *joint);

/* The line behind a row; "" = none. To be freed. */
char *gt_joint_where(const struct gt_joint *joint, const struct gt_ledger_row *row);

/* How a row reads. where: who asked, "" = not said. To be freed. */
char *gt_ledger_row_text(const struct gt_ledger_row *row, const char *where);

/* "torch", "driver", "NVML", or "". */
const char *gt_ledger_row_level(const struct gt_ledger_row *row);

#endif
