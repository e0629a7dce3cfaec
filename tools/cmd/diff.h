/* SPDX-License-Identifier: MIT */
/* Inside the command diff: what was read of A and of B, for those who print it. */
#ifndef GT_CMD_DIFF_H
#define GT_CMD_DIFF_H

#include "cmd/contrast.h"
#include "model/diff.h"
#include "model/growth.h"
#include "model/steps.h"

struct gt_diff_view { /* a device in one of the traces */
	struct gt_input *input;
	const char *window;		  /* --from or --to of one run; NULL = the whole trace */
	const struct gt_trace_lane *lane; /* NULL: this device is not in the trace */
	size_t lane_index;
	struct gt_state state;
	struct gt_rows rows, inside; /* the second by function: see gt_diff_pair */
	uint64_t peak;		     /* lifetime, of the total; of a window: its own */
	bool at_least;		     /* the peak of a part whose history is not whole */
	uint64_t end_bytes;	     /* of the total, at the end */
	bool end_known;
	struct gt_steps steps;
	struct gt_growth growth;
	size_t step; /* that the moment lies in; 0 = none known */
	enum gt_phase phase;
};

struct gt_diff_pair { /* a device in both */
	int device;
	struct gt_diff_view a, b;
	struct gt_diff diff;
	/* Where all that changed stands behind one line of the user's: what is inside it. */
	struct gt_diff inside;
	bool one_line;
};

struct gt_diff_pairs {
	struct gt_diff_pair *pairs;
	size_t count;
	const struct gt_session *session;
	struct gt_contrast contrast;
	bool windows; /* of one run */
};

/* The lines before the table, of the first device. */
void gt_diff_print_head(struct gt_out *out, const struct gt_args *args,
			const struct gt_diff_pairs *pairs);
void gt_diff_print(struct gt_out *out, const struct gt_args *args,
		   const struct gt_diff_pairs *pairs);
void gt_diff_json(struct gt_out *out, const struct gt_args *args,
		  const struct gt_diff_pairs *pairs);

/* diff.c: the same lines of the two traces of a session. 0, or the exit status. */
int gt_diff_head(struct gt_out *out, const struct gt_args *args, struct gt_session *session);

/* compare.c: three traces or more. 0, or the exit status. */
int gt_compare(const struct gt_args *args, struct gt_session *session);

#endif
