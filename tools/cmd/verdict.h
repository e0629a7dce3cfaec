/* SPDX-License-Identifier: MIT */
/* How oom says a verdict. */
#ifndef GT_CMD_VERDICT_H
#define GT_CMD_VERDICT_H

#include "cmd/ledger.h"
#include "model/verdict.h"
#include "out/number.h"

/* The first line. False: no cause can be named, nothing was printed. */
bool gt_print_verdict(struct gt_out *out, struct gt_input *input, const struct gt_report *report,
		      const struct gt_verdict *verdict, const struct gt_joint *joint,
		      enum gt_unit unit);

/* Step and phase, for the second line: "step 45, optimizer"; "" = not known. To be freed. */
char *gt_verdict_moment(const struct gt_verdict *verdict);

/* Evidence, and the table of what would have been enough; all: what would not, too. */
void gt_print_remedies(struct gt_out *out, const struct gt_verdict *verdict, enum gt_unit unit,
		       bool all);
size_t gt_remedy_lines(const struct gt_verdict *verdict, bool all);
void gt_print_evidence(struct gt_out *out, const struct gt_verdict *verdict);

/* Worth a line: confirmed, or enough by its formula. all: whatever was tried. */
bool gt_remedy_shown(const struct gt_verdict *verdict, const struct gt_remedy *remedy, bool all);

/* "for good", "2 more steps", "no". To be freed. */
char *gt_remedy_lasts(const struct gt_verdict *verdict, const struct gt_remedy *remedy);

json_t *gt_json_verdict(struct gt_input *input, const struct gt_report *report,
			const struct gt_verdict *verdict, const struct gt_joint *joint);
json_t *gt_json_remedies(const struct gt_verdict *verdict);

#endif
