/* SPDX-License-Identifier: MIT */
/* See export.h: the table of formats. */
#include "export/export.h"

#include <string.h>
#include "model/xalloc.h"

static const struct gt_export_format formats[] = {
	{"folded", GT_EXPORT_MOMENT, "flamegraph.pl, inferno, speedscope", gt_export_folded},
	{"pprof", GT_EXPORT_MOMENT | GT_EXPORT_BINARY, "go tool pprof -http=:", gt_export_pprof},
	{"speedscope", GT_EXPORT_MOMENT, "https://www.speedscope.app (it stays in your browser)",
	 gt_export_speedscope},
	{"csv", 0, "DuckDB, pandas, a spreadsheet", gt_export_csv},
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
