/* SPDX-License-Identifier: MIT */
/* The file: the template with its parts put in. */
#ifndef GT_PAGE_WRITE_H
#define GT_PAGE_WRITE_H

#include "page/build.h"

enum gt_page_part { /* markup that needs no script, by its marker in page.html */
		    GT_PART_TITLE,
		    GT_PART_CLASS,
		    GT_PART_ANSWER,
		    GT_PART_WHERE,
		    GT_PART_LOSS,
		    GT_PART_SVG,
		    GT_PART_OOM,
		    GT_PART_OOM_CLASS,
		    GT_PART_HOLDERS_TITLE,
		    GT_PART_HOLDERS_INSTANT,
		    GT_PART_HOLDERS,
		    GT_PART_LEDGER,
		    GT_PART_LEDGER_CLASS,
		    GT_PART_MERGED,
		    GT_PARTS,
};

struct gt_page {
	char *parts[GT_PARTS]; /* markup, escaped already; NULL = nothing */
	const json_t *meta;
	const struct gt_page_device *devices;
	size_t device_count;
};

void gt_page_write(FILE *file, const struct gt_page *page);

/* Bytes of a page without its data. */
uint64_t gt_page_fixed_size(void);

#endif
