/* SPDX-License-Identifier: MIT */
/* See embed.h. The compiler's own way to take in whole files, so that they stay files. */
#include "page/embed.h"

#define EMBED(symbol, file)                                  \
	__asm__(".pushsection .rodata\n"                     \
		".globl " #symbol "\n"                       \
		".type " #symbol ", %object\n" #symbol ":\n" \
		".incbin \"" GT_PAGE_DIR "/" file "\"\n"     \
		".byte 0\n"                                  \
		".size " #symbol ", . - " #symbol "\n"       \
		".popsection\n")

EMBED(gt_page_html, "page.html");
EMBED(gt_page_css, "page.css");
EMBED(gt_page_d3, "d3.js");
EMBED(gt_page_js, "page.js");
