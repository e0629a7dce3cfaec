/* SPDX-License-Identifier: MIT */
/*
 * The names by which people tell holders apart. A stack becomes a label: a key that is equal for
 * what belongs together, and the text of a row. The only part of model/ that looks at text; Python
 * frames and categories enter here.
 */
#ifndef GT_LABEL_H
#define GT_LABEL_H

#include "symbols/symbols.h"

enum gt_by {
	GT_BY_LINE,	/* chain of the user's own frames: a.c:7 main > :6 step */
	GT_BY_FUNCTION, /* the innermost of them, without line number */
	GT_BY_STACK,	/* all frames */
	GT_BY_SITE,	/* stack, call and level: as recorded */
	GT_BY_OWNER,	/* library that asked for the memory */
	GT_BY_STREAM,
	GT_BY_LEVEL,
	GT_BY_CATEGORY, /* what the memory is for */
	GT_BY_INSIDE,	/* the innermost function, a library's or the user's */
	GT_BY_STEP,	/* the step that made the block */
	GT_BY_PHASE,	/* the phase of that step */
	GT_BYS,
};

const char *gt_by_name(enum gt_by by);

/* Do rows name code? Those do not mix what that code allocated memory for. */
static inline bool gt_by_code(enum gt_by by)
{
	return by == GT_BY_LINE || by == GT_BY_FUNCTION || by == GT_BY_STACK || by == GT_BY_SITE ||
	       by == GT_BY_INSIDE;
}

struct gt_label {
	char *key;
	char *text;	  /* short: base names of files */
	char *full;	  /* the same with whole paths */
	const char *file; /* of the user's frame; "" = unknown, as below */
	const char *function;
	const char *owner;
	int line;
};

/* stream is an id of trace->streams or a GT_STREAM_* of state.h. */
void gt_label_make(struct gt_symbols *symbols, const struct gt_trace *trace,
		   const struct gt_site_def *site, int32_t stream, enum gt_by by,
		   struct gt_label *ret);
void gt_label_clear(struct gt_label *label);

/*
 * Coarser keys of the same site, for stacks that another build or version of the code changed:
 * level 1 leaves out line numbers and offsets, 2 the native frames of libraries (of a function its
 * class and file), 3 all of a library but its innermost function, 4 that too. To be freed; NULL: nothing coarser.
 */
#define GT_LOOSEST 4
char *gt_label_loose(struct gt_symbols *symbols, const struct gt_trace *trace,
		     const struct gt_site_def *site, enum gt_by by, int level);

/* "train.py:25 main". To be freed. */
char *gt_label_frame(const struct gt_frame *frame, bool short_names);

/* "backward of Addmm", "backward"; NULL = the stack is not autograd's. To be freed. */
char *gt_backward_text(struct gt_stack stack);

#endif
