/* SPDX-License-Identifier: MIT */
/*
 * A run as viewers of traces show it: memory over time, moments, and stretches of time with names.
 * What is shown is decided here, once; a format only says how it is written.
 */
#ifndef GT_EXPORT_MOMENTS_H
#define GT_EXPORT_MOMENTS_H

#include "export/export.h"

#define GT_NO_THREAD 0 /* windows, steps and devices are not of a thread of the program */

struct gt_instant {
	uint64_t us;
	uint16_t thread;
	const char *name;
	const char *key; /* what bytes are; NULL = there are none */
	uint64_t bytes;
	const char *ended; /* of a refused request; NULL = it is none */
};

struct gt_slice {
	uint64_t from_us, to_us;
	uint16_t thread;  /* GT_NO_THREAD: it may overlap with others */
	const char *name; /* its own */
	const char *kind;
	size_t id; /* of its process */
};

struct gt_moments {						  /* how a format writes each */
	void (*process)(void *ctx, const struct gt_trace *trace); /* the next one, from now on */
	void (*device)(void *ctx, const struct gt_export_place *place);
	void (*memory)(void *ctx, const struct gt_export_place *place,
		       const struct gt_point *point);
	void (*instant)(void *ctx, const struct gt_instant *instant);
	void (*slice)(void *ctx, const struct gt_slice *slice);
	void *ctx;
};

/* All processes, one after the other. 0, or -1 with err. */
int gt_moments_tell(const struct gt_export *export, const struct gt_moments *to,
		    struct gt_error *err);

#endif
