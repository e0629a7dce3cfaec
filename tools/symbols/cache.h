/* SPDX-License-Identifier: MIT */
/*
 * Inside tools/symbols: what object files said, kept on disk between runs, one file per build-id,
 * so that the second look at a trace need not open them. GPUTRACE_CACHE=0: none of it.
 */
#ifndef GT_SYMBOLS_CACHE_H
#define GT_SYMBOLS_CACHE_H

#include "symbols/object.h"

struct gt_cache;

/* NULL: nothing is kept for this object. stamp: what else the answers depend on. */
struct gt_cache *gt_cache_open(const uint8_t *id, size_t id_length, uint64_t stamp);
/* Writes what was added. Accepts NULL, returns NULL. */
struct gt_cache *gt_cache_close(struct gt_cache *cache);

/* 0 = not known; texts live as long as the cache. */
size_t gt_cache_find(const struct gt_cache *cache, uint64_t address,
		     struct gt_line lines[GT_LINES_MAX]);
/* Texts must live as long as the cache. */
void gt_cache_add(struct gt_cache *cache, uint64_t address, const struct gt_line *lines,
		  size_t count);

#endif
