/* SPDX-License-Identifier: MIT */
/* What a screen says, for pictures and pages: the lines that print functions write, in memory. */
#ifndef GT_WORDS_H
#define GT_WORDS_H

#include "out/out.h"

struct gt_words {
	struct gt_out out; /* to print to */
	char *text;
	size_t length;
};

void gt_words_begin(struct gt_words *words);

/* The lines. What three spaces part on a screen, a dot parts here: elsewhere they are one. To be freed. */
char *gt_words_end(struct gt_words *words);

#endif
