/* SPDX-License-Identifier: MIT */
/*
 * See export.h: the table of formats, in the order of --help. What a format needs of its destination
 * is a flag here, so that cmd/export.c can refuse before the model is asked anything.
 */
#include "export/export.h"

#include <stdlib.h>
#include <string.h>
#include "model/xalloc.h"
#include "out/out.h"

static const struct gt_export_format formats[] = {
	{"folded", GT_EXPORT_MOMENT, "flamegraph.pl, inferno, speedscope", gt_export_folded},
	{"pprof", GT_EXPORT_MOMENT | GT_EXPORT_BINARY, "go tool pprof -http=:", gt_export_pprof},
	{"speedscope", GT_EXPORT_MOMENT, "https://www.speedscope.app (it stays in your browser)",
	 gt_export_speedscope},
	{"sqlite", GT_EXPORT_BINARY | GT_EXPORT_SEEKS, "sqlite3, DuckDB, pandas", gt_export_sqlite},
	{"chrome", 0, "https://ui.perfetto.dev (it stays in your browser), chrome://tracing",
	 gt_export_chrome},
	{"perfetto", GT_EXPORT_BINARY,
	 "https://ui.perfetto.dev (it stays in your browser), trace_processor", gt_export_perfetto},
	{"csv", 0, "DuckDB, pandas, a spreadsheet", gt_export_csv},
	{"openmetrics", 0, "Prometheus", gt_export_openmetrics},
};

#define FORMATS (sizeof(formats) / sizeof(formats[0]))

const struct gt_export_format *gt_export_find(const char *name)
{
	for (size_t i = 0; i < FORMATS; i++)
		if (!strcmp(formats[i].name, name))
			return &formats[i];
	return NULL;
}

char *gt_export_names(void)
{
	size_t length = 1;
	char *names, *to;

	for (size_t i = 0; i < FORMATS; i++)
		length += strlen(formats[i].name) + 1;
	to = names = gt_xcalloc(length, 1);
	for (size_t i = 0; i < FORMATS; i++)
		to += sprintf(to, "%s%s", i ? "|" : "", formats[i].name);
	return names;
}

char *gt_export_thread(const struct gt_trace *trace, uint16_t thread)
{
	const struct gt_thread_def *def =
		&trace->threads[thread < trace->thread_count ? thread : 0];
	char *name = gt_escape(def->name.text ? def->name.text : ""), *text;

	text = def->tid ? gt_xasprintf("%s%s(tid %u)", name, *name ? " " : "", def->tid)
			: gt_xstrdup("(not known)");
	free(name);
	return text;
}
