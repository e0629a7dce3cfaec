/* SPDX-License-Identifier: MIT */
/* Inside tools/symbols: lines of source files, of the trace's machine and time only. */
#ifndef GT_SYMBOLS_SOURCE_H
#define GT_SYMBOLS_SOURCE_H

#include "symbols/symbols.h"
#include "symbols/text.h"

struct gt_sources;

struct gt_sources *gt_sources_new(const struct gt_trace *trace, struct gt_text *text);
struct gt_sources *gt_sources_free(struct gt_sources *sources);

/* The line without blanks around it; "" = not known. Lives as long as text. */
const char *gt_sources_line(struct gt_sources *sources, const char *file, int line);

#endif
