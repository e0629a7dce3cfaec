/* SPDX-License-Identifier: MIT */
/*
 * Files for other people's tools. Each format is one file of this folder with one function, and one
 * row of formats.def: to add a format, add these two and nothing else. A format asks the
 * model and writes as it goes: what it keeps in memory is at most what is live at one moment and the
 * names, never the history. It may not compute a number of its own that a command has another way
 * to: sums of an export are those of the command. Called from cmd/export.c and cmd/metrics.c.
 */
#ifndef GT_EXPORT_H
#define GT_EXPORT_H

#include <stdio.h>
#include "model/answers.h"
#include "model/series.h"
#include "symbols/symbols.h"

struct gt_export_place { /* a device of a process */
	const struct gt_trace *trace;
	struct gt_symbols *symbols;
	const struct gt_answers *answers; /* NULL: nothing is inferred */
	size_t lane_index;
	const struct gt_trace_lane *lane;
	uint64_t device_total;
	struct gt_state state; /* at the moment asked for, of formats that have one */
};

struct gt_export {
	FILE *file;
	const char *path; /* NULL: standard output */
	const char *now;  /* the name that it has until it is whole (out/file.h) */
	const struct gt_export_place *places;
	size_t count;
	enum gt_total total; /* that of the state */
	size_t points;	     /* slices of time where all events would be too many; 0 = default */
};

enum {
	GT_EXPORT_MOMENT = 1 << 0, /* shows one moment: place.state */
	GT_EXPORT_BINARY = 1 << 1, /* not for a terminal */
	GT_EXPORT_SEEKS = 1 << 2,  /* needs a file with a name */
};

struct gt_export_format {
	const char *name;
	unsigned int flags;
	const char *opens_in; /* said when the file is written */
	/* 0, or -1 with err. What the file itself refused is the caller's to find. */
	int (*write)(const struct gt_export *export, struct gt_error *err);
};

/* NULL = no such format. */
const struct gt_export_format *gt_export_find(const char *name);

/* "|name|name|...", in the order of the table: what is said begins behind the first bar. */
extern const char gt_export_names[];

#define GT_EXPORT_FORMAT(name, flags, opens_in) \
	int gt_export_##name(const struct gt_export *export, struct gt_error *err);
#include "export/formats.def"
#undef GT_EXPORT_FORMAT

/* prometheus: its older text format, for files that node_exporter collects. */
void gt_export_metrics(FILE *file, const struct gt_export_place *places, size_t count,
		       bool prometheus);

/* Memory over the whole history, by slices of time; default_points where the user names no number. 0 or -1. */
int gt_export_series(const struct gt_export *export, const struct gt_export_place *place,
		     size_t default_points, struct gt_series *ret, struct gt_error *err);

/* "worker (tid 4713)": a thread of the trace by its id. To be freed. */
char *gt_export_thread(const struct gt_trace *trace, uint16_t thread);

#endif
