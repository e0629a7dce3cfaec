/* SPDX-License-Identifier: MIT */
/* Texts of pickles of protocol 0: one line of Latin 1 with escapes. */
#ifndef GT_ESCAPE_H
#define GT_ESCAPE_H

#include <stdbool.h>
#include <stddef.h>

/* No byte becomes more than two of UTF-8, and no escape more than it has itself. */
#define GT_UNESCAPED_ROOM(length) (2 * (size_t)(length) + 4)

/* Into to, as UTF-8; quoted: the escapes of Python 2's str, else of its unicode. The length. */
size_t gt_unescape(const char *line, size_t length, bool quoted, char *to);

#endif
