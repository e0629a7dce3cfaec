/* SPDX-License-Identifier: MIT */
/* The part of CPython's evaluation function that the compiler put elsewhere. Used by object.c. */
#ifndef GT_SYMBOLS_COLD_H
#define GT_SYMBOLS_COLD_H

#include <elfutils/libdwfl.h>
#include <stdbool.h>
#include <stdint.h>

#define GT_EVALUATION "_PyEval_EvalFrameDefault"

struct gt_code_range {
	uint64_t start, end;
};

/* Addresses in the file's own terms; false: the function lies in one piece, or cannot be read. */
bool gt_cold_part(Elf *elf, struct gt_code_range function, struct gt_code_range *ret);

#endif
