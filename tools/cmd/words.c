/* SPDX-License-Identifier: MIT */
/* See words.h. Called from chart.c and html_facts.c. */
#define _GNU_SOURCE
#include "cmd/words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "model/xalloc.h"

void gt_words_begin(struct gt_words *words)
{
	*words = (struct gt_words){.out = {.terminal = true, .all = true, .width = 120}};
	words->out.file = gt_xchecked(open_memstream(&words->text, &words->length));
}

/* Between words of a line, not before the first or behind the last. */
static bool parts(const char *text, const char *at, size_t spaces)
{
	return spaces == 3 && at != text && at[-1] != '\n' && at[3] && at[3] != '\n';
}

char *gt_words_end(struct gt_words *words)
{
	char *text, *to;

	fclose(words->out.file);
	text = to = gt_xcalloc(2 * words->length + 1, 1);
	for (const char *at = words->text; *at;) {
		size_t spaces = strspn(at, " ");

		if (parts(words->text, at, spaces))
			to = stpcpy(to, " \302\267 ");
		else
			to = mempcpy(to, at, spaces);
		at += spaces;
		if (*at)
			*to++ = *at++;
	}
	free(words->text);
	return text;
}
