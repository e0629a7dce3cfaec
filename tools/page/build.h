/* SPDX-License-Identifier: MIT */
/* A device of a process as the page stores it, within a budget. */
#ifndef GT_PAGE_BUILD_H
#define GT_PAGE_BUILD_H

#include "page/encode.h"
#include "page/names.h"

struct gt_page_device {
	struct gt_page_history history;
	json_t *header;
	struct gt_blob blob;
	size_t merged; /* spots without a row of their own */
};

/* budget: bytes of the blob. 0, or -1 with err. */
int gt_page_build(const struct gt_trace *trace, const struct gt_answers *answers,
		  struct gt_symbols *symbols, size_t lane_index, struct gt_paths *paths,
		  uint64_t budget, struct gt_page_device *ret, struct gt_error *err);
void gt_page_device_clear(struct gt_page_device *device);

/* Layers of the memory in use over time, in markup that needs no script. */
void gt_page_svg(FILE *file, const struct gt_page_device *device, uint64_t card);

#endif
