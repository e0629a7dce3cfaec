/* SPDX-License-Identifier: MIT */
/*
 * A copy of a trace with definitions behind its own: what is learnt about it later. Readers that do
 * not know a kind of record skip it, so the copy is a trace for every reader.
 */
#ifndef GT_APPEND_H
#define GT_APPEND_H

#include "read/trace.h"

struct gt_append;

struct gt_append *gt_append_new(const struct gt_trace *trace); /* NULL = no memory */
struct gt_append *gt_append_free(struct gt_append *append);

/*
 * Room for a record of a kind (enum gt_rec_kind), zeroed, its head filled in; valid until the next
 * one. NULL = no memory, which gt_append_write says too.
 */
void *gt_append_record(struct gt_append *append, uint16_t kind, size_t length);

/* Writes the whole or nothing; what stood at path is replaced. 0, or -1 with err filled. */
int gt_append_write(struct gt_append *append, const char *path, struct gt_error *err);

#endif
