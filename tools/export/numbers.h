/* SPDX-License-Identifier: MIT */
/* Numbers for things that a file names once and refers to afterwards: texts, frames, stacks. */
#ifndef GT_EXPORT_NUMBERS_H
#define GT_EXPORT_NUMBERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "symbols/symbols.h"

struct gt_number;

struct gt_numbers { /* starts zeroed */
	struct gt_number *list;
	uint64_t count;
};

/*
 * The number of a key, in the order met, from 0; *ret_new: it was not there, and the caller writes
 * what it stands for.
 */
uint64_t gt_number_of(struct gt_numbers *numbers, const void *key, size_t length, bool *ret_new);

/* Of a frame: the same function, file, line and module are the same frame, of any trace. */
uint64_t gt_number_frame(struct gt_numbers *numbers, const struct gt_frame *frame, bool *ret_new);

void gt_numbers_clear(struct gt_numbers *numbers);

#endif
