/* SPDX-License-Identifier: MIT */
/*
 * A copy of a trace with definitions added behind its own: names of addresses and lines of source,
 * for machines that have neither the program nor its libraries.
 */
#ifndef GT_PACK_H
#define GT_PACK_H

#include "read/trace.h"

struct gt_pack;

struct gt_pack *gt_pack_new(const struct gt_trace *trace);
struct gt_pack *gt_pack_free(struct gt_pack *pack);

/* One frame at an address; several of one address follow each other, innermost first. */
struct gt_pack_name {
	uint32_t module;
	uint64_t pc;
	const char *function; /* NULL = not known */
	const char *file;     /* "" = not known */
	int line;
	bool inlined;
};

/* Failures for want of memory are kept and reported by gt_pack_write. */
void gt_pack_name(struct gt_pack *pack, const struct gt_pack_name *name);
void gt_pack_source(struct gt_pack *pack, const char *file, int line, const char *text);

/* Writes the whole or nothing; what stood at path is replaced. 0, or -1 with err filled. */
int gt_pack_write(struct gt_pack *pack, const char *path, struct gt_error *err);

#endif
