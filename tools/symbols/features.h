/* SPDX-License-Identifier: MIT */
/*
 * What a stack says about the memory that it asked for, as bits: the model sees integers, never
 * text. Worked out once per pair of nodes. The names that are looked for are those of PyTorch's
 * own Python files and exported functions, which have been the same from 2.1 on.
 */
#ifndef GT_SYMBOLS_FEATURES_H
#define GT_SYMBOLS_FEATURES_H

#include "symbols/symbols.h"

/*
 * The marker: the innermost Python frame that says what the program was doing. At most one, so
 * that the forward pass inside an optimizer's closure is a forward pass.
 */
#define GT_IN_CHECKPOINT (1u << 0) /* a forward pass computed again */
#define GT_IN_CALL	 (1u << 1) /* a module's forward */
#define GT_IN_ROOT	 (1u << 2) /* the gradient that a backward pass starts from */
#define GT_IN_BACKWARD	 (1u << 3) /* backward(), on the thread that called it */
#define GT_IN_ZERO_GRAD	 (1u << 4)
#define GT_IN_OPTIMIZER	 (1u << 5)
#define GT_IN_APPLY	 (1u << 6) /* Module.to, .cuda, .half; FSDP's parts of them */
#define GT_IN_LOAD	 (1u << 7)
#define GT_IN_COPY	 (1u << 8) /* deepcopy, replicas */
#define GT_IN_INIT	 (1u << 9) /* a layer's constructor */

/* Python, anywhere on the stack or of its innermost frame. */
#define GT_IS_USER	  (1u << 10) /* innermost frame outside torch, and no marker */
#define GT_HAS_CHECKPOINT (1u << 11)
#define GT_HAS_SCATTER	  (1u << 12)
#define GT_HAS_USER_INIT  (1u << 13) /* a constructor of the user's */
#define GT_IS_LOSS	  (1u << 14) /* innermost frame is a loss function */
#define GT_HAS_PYTHON	  (1u << 15)

/* Native, anywhere on the stack. */
#define GT_HAS_ENGINE	 (1u << 16) /* autograd's thread */
#define GT_HAS_WORKSPACE (1u << 17)
#define GT_HAS_TO_COPY	 (1u << 18)
#define GT_HAS_CLONE	 (1u << 19)
#define GT_HAS_ZEROS	 (1u << 20)
#define GT_HAS_FACTORY	 (1u << 21) /* rand, ones, arange ... */
#define GT_HAS_CAST	 (1u << 22) /* autocast */
#define GT_HAS_SOFTMAX	 (1u << 23) /* log_softmax, cross entropy */
#define GT_HAS_SAVED	 (1u << 24) /* a saved tensor is let go */
#define GT_HAS_MAIN	 (1u << 25) /* the main loop of autograd's thread */

struct gt_features {
	uint32_t bits;
	uint32_t id; /* of the stack: equal stacks, equal numbers; 0 = no stack */
	/* Of the program: equal Python frames, equal numbers; without Python as id. 0 = no stack. */
	uint32_t place;
	/* Python frames, outermost first. */
	const struct gt_frame *const *frames;
	uint32_t frame_count;
	uint32_t to_backward; /* frames outside the innermost call of backward(); else all */
	uint32_t to_call;     /* frames outside the outermost module call; else all */
};

struct gt_feature_table;

/* symbols must outlive the table. NULL: no memory. */
struct gt_feature_table *gt_feature_table_new(struct gt_symbols *symbols);
struct gt_feature_table *gt_feature_table_free(struct gt_feature_table *table);

/* Never NULL; lives as long as the table. */
const struct gt_features *gt_features_of(struct gt_feature_table *table, uint32_t native,
					 uint32_t python);

#endif
