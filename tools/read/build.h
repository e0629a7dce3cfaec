/* SPDX-License-Identifier: MIT */
/*
 * A trace that was read from something else than a trace file: whoever reads it says what is defined
 * and what happened, in order, and gets a gt_trace like any other, with state, peaks and holders made
 * from the events by the rules that are used for trace files. Memory that is short is remembered and
 * told at the end, so that callers need not look after each call.
 */
#ifndef GT_BUILD_H
#define GT_BUILD_H

#include "read/trace.h"

struct gt_build;

struct gt_build *gt_build_new(const char *path); /* NULL = no memory */
struct gt_build *gt_build_free(struct gt_build *build);

/* Definitions: the same ones get the same id. 0 is "", no frame, the default stream, pool (0, 0). */
uint32_t gt_build_string(struct gt_build *build, const char *text, size_t length);
struct gt_build_frame {
	uint32_t parent, function, file; /* of the caller; string ids */
	int32_t line;
	bool native;
};
uint32_t gt_build_frame(struct gt_build *build, const struct gt_build_frame *frame);
uint32_t gt_build_stream(struct gt_build *build, int32_t device, uint64_t handle);
uint32_t gt_build_pool(struct gt_build *build, uint64_t first, uint64_t second);

/* In any order and number. */
void gt_build_info(struct gt_build *build, const char *key, const char *value, size_t length);
void gt_build_module(struct gt_build *build, const char *path);
uint32_t gt_build_thread(struct gt_build *build, uint32_t tid, const char *name);

/* What asks for memory on a device (its lane has the same number). */
uint32_t gt_build_site(struct gt_build *build, int device, const struct gt_site_def *site);

/*
 * The next event of a device; sequence and lane are filled in here, and of one that ends a block
 * everything that repeats the block: it must be alive.
 */
void gt_build_event(struct gt_build *build, int device, struct gt_event *event);
/* Is there a block of this address and space? Its site and size, and when it was made. */
const struct gt_block *gt_build_alive(const struct gt_build *build, int device, uint64_t addr,
				      enum gt_space space);
/* The events so far only say what was there already: history begins behind them. */
void gt_build_begin(struct gt_build *build, int device);
/* A refused request, the last event of the device; what was held then is filled in here. */
void gt_build_report(struct gt_build *build, int device, struct gt_report *report);
/* Of the device's last report. */
void gt_build_outcome(struct gt_build *build, int device, enum gt_outcome outcome, uint64_t us);

struct gt_header *gt_build_header(struct gt_build *build);

/* Frees the builder, in any case. 0, or -1 with err. */
int gt_build_end(struct gt_build *build, struct gt_trace **ret, struct gt_error *err);

#endif
