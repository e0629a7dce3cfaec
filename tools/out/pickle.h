/* SPDX-License-Identifier: MIT */
/*
 * A writer of Python pickles, protocol 2, for values that fit JSON: readable by pickle.load, also
 * under restricted unpicklers, and by memory_viz, which knows few opcodes. Values go out as they
 * come, no length is patched later: the output may be a pipe and larger than memory.
 */
#ifndef GT_PICKLE_H
#define GT_PICKLE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Writes to file, which stays the caller's. */
struct gt_pickle *gt_pickle_new(FILE *file);

/* The end of the pickle: 0, or -errno when anything was not written. Frees the writer. */
int gt_pickle_end(struct gt_pickle *pickle);

void gt_pickle_bool(struct gt_pickle *pickle, bool value);
void gt_pickle_int(struct gt_pickle *pickle, int64_t value);

/* Valid UTF-8; equal texts are written once. */
void gt_pickle_text(struct gt_pickle *pickle, const char *text);

/* A text that comes again and again: *memo, 0 at first, saves the look-up. */
void gt_pickle_word(struct gt_pickle *pickle, uint32_t *memo, const char *text);

void gt_pickle_list(struct gt_pickle *pickle);	/* items follow */
void gt_pickle_dict(struct gt_pickle *pickle);	/* keys and values follow */
void gt_pickle_close(struct gt_pickle *pickle); /* the innermost open list or dict */
void gt_pickle_pair(struct gt_pickle *pickle, int64_t first, int64_t second); /* a tuple */

/* Remember the list or dict that was just closed, and write it again by its number. */
uint32_t gt_pickle_keep(struct gt_pickle *pickle);
void gt_pickle_again(struct gt_pickle *pickle, uint32_t kept);

#endif
