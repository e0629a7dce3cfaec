/* SPDX-License-Identifier: MIT */
/*
 * See export.h: the table of formats, of formats.def. What a format needs of its destination
 * is a flag there, so that cmd/export.c can refuse before the model is asked anything.
 */
#include "export/export.h"

#include <stdlib.h>
#include <string.h>
#include "model/xalloc.h"
#include "out/out.h"

static const struct gt_export_format formats[] = {
#define GT_EXPORT_FORMAT(name, flags, opens_in) {#name, flags, opens_in, gt_export_##name},
#include "export/formats.def"
#undef GT_EXPORT_FORMAT
};

const char gt_export_names[] =
#define GT_EXPORT_FORMAT(name, flags, opens_in) "|" #name
#include "export/formats.def"
#undef GT_EXPORT_FORMAT
	;

#define FORMATS (sizeof(formats) / sizeof(formats[0]))

const struct gt_export_format *gt_export_find(const char *name)
{
	for (size_t i = 0; i < FORMATS; i++)
		if (!strcmp(formats[i].name, name))
			return &formats[i];
	return NULL;
}

int gt_export_series(const struct gt_export *export, const struct gt_export_place *place,
		     size_t default_points, struct gt_series *ret, struct gt_error *err)
{
	return gt_series_get(place->trace, place->lane_index, place->lane->history_us,
			     place->trace->last_us,
			     export->points ? export->points : default_points, ret, err);
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
