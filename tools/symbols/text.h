/* SPDX-License-Identifier: MIT */
/*
 * Texts of symbols: one copy of each, valid UTF-8 without control characters, so that they can go
 * to a terminal, into JSON or a pickle as they are. Equal texts have equal pointers: writers that
 * put each text out once can compare pointers.
 */
#ifndef GT_SYMBOLS_TEXT_H
#define GT_SYMBOLS_TEXT_H

#include <stddef.h>

struct gt_text;

struct gt_text *gt_text_new(void);
struct gt_text *gt_text_free(struct gt_text *text);

/*
 * The bytes, made printable: what is no UTF-8 and every control character becomes U+FFFD. Lives as
 * long as text. "" when memory is out: a missing name is better than no report.
 */
const char *gt_text_clean(struct gt_text *text, const char *bytes, size_t length);

/* A linker's name as the programmer wrote it (C++, Rust), without the parameter list. */
const char *gt_text_function(struct gt_text *text, const char *symbol);

#endif
