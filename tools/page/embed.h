/* SPDX-License-Identifier: MIT */
/* What the page consists of beside its data: made by bundle.py, part of the tool's binary. */
#ifndef GT_PAGE_EMBED_H
#define GT_PAGE_EMBED_H

extern const char gt_page_html[], gt_page_css[], gt_page_d3[], gt_page_js[]; /* end in NUL */

#endif
