/* SPDX-License-Identifier: MIT */
/*
 * A history as the bytes of the page: a header and columns of differences, deflated, in base64. The
 * layout is described in docs/page.md.
 */
#ifndef GT_PAGE_ENCODE_H
#define GT_PAGE_ENCODE_H

#include <jansson.h>
#include "page/history.h"

struct gt_blob {
	char *text; /* base64 */
	size_t length;
};

/* header: an object that cols and times are added to; its reference is not taken.
 * level: of deflate, 1 (fast) to 9. */
struct gt_blob gt_page_encode(const struct gt_page_history *history, json_t *header, int level);
void gt_blob_clear(struct gt_blob *blob);

#endif
