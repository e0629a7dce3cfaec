/* SPDX-License-Identifier: MIT */
/*
 * Text from a trace on its way into a page. It was written by whoever wrote the traced program:
 * what could end an element, turn the direction of writing or hide itself is made visible here.
 */
#ifndef GT_PAGE_TEXT_H
#define GT_PAGE_TEXT_H

#include <jansson.h>
#include <stdio.h>

#define GT_PAGE_TEXT_MAX 2000 /* bytes of one text; the rest is left out, with a mark */

/*
 * Valid UTF-8 without control, bidirectional or zero-width characters: these are written as
 * \u202e, \x1b. To be freed.
 */
char *gt_page_clean(const char *text, size_t length);

json_t *gt_page_string(const char *text); /* the same as a JSON string; "" for NULL */

/* The same with & < > " ' as entities. */
void gt_page_put(FILE *file, const char *text);

/* JSON for a script element: nothing in it can end the element. */
void gt_page_put_json(FILE *file, const json_t *value);

#endif
