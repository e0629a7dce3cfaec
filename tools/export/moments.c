/* SPDX-License-Identifier: MIT */
/*
 * See moments.h. A counter has as many points as were asked for, each the highest of its slice of
 * time, so the peak is in it; points that say what the one before said are left out. Called from
 * chrome.c and perfetto.c.
 */
#include "export/moments.h"

#include <stdlib.h>
#include <string.h>
#include "model/failure.h"
#include "model/marks.h"
#include "model/xalloc.h"

#define DEFAULT_POINTS 20000

static int tell_memory(const struct gt_export *export, const struct gt_export_place *place,
		       const struct gt_moments *to, struct gt_error *err)
{
	struct gt_series series;

	if (gt_export_series(export, place, DEFAULT_POINTS, &series, err))
		return -1;
	for (size_t i = 0; i < series.count; i++)
		if (!i || memcmp(series.points[i].max, series.points[i - 1].max,
				 sizeof(series.points[i].max)))
			to->memory(to->ctx, place, &series.points[i]);
	gt_series_clear(&series);
	return 0;
}

static void tell_peak(const struct gt_export_place *place, const struct gt_moments *to)
{
	const struct gt_ctr *ctr = &place->lane->ctr;
	char name[40];

	snprintf(name, sizeof(name), "peak of GPU %d", place->lane->device);
	to->instant(to->ctx, &(struct gt_instant){
				     .us = ctr->peak_us[GT_TOTAL_IN_USE],
				     .thread = GT_NO_THREAD,
				     .name = name,
				     .key = "in use",
				     .bytes = ctr->peak[GT_TOTAL_IN_USE],
			     });
}

static void tell_refused(const struct gt_export_place *place, const struct gt_moments *to)
{
	const struct gt_trace *trace = place->trace;
	char name[64];

	for (size_t i = 0; i < trace->report_count; i++) {
		const struct gt_report *report = &trace->reports[i];

		if (gt_report_lane(trace, report) != place->lane_index)
			continue;
		snprintf(name, sizeof(name), "%s on GPU %d",
			 gt_is_memory(report) ? "out of memory" : "refused request",
			 place->lane->device);
		to->instant(to->ctx, &(struct gt_instant){
					     .us = report->us,
					     .thread = (uint16_t)report->thread,
					     .name = name,
					     .key = "asked",
					     .bytes = gt_report_asked(report),
					     .ended = gt_end_name(gt_report_end(trace, report)),
				     });
	}
}

/* What the program said of itself. Windows overlap, which slices of a thread may not. */
static void tell_named(const struct gt_marks *marks, const struct gt_named *named,
		       const struct gt_moments *to)
{
	const struct gt_noted *begin = &marks->notes[named->begin];
	uint64_t end =
		named->end == GT_NO_NOTE ? marks->trace->last_us : marks->notes[named->end].us;
	char *name = named->kind == GT_STRETCH_STEP ? gt_xasprintf("step %u", named->step)
						    : gt_xstrdup(named->name);
	struct gt_slice slice = {
		.from_us = begin->us,
		.to_us = end > begin->us ? end : begin->us,
		.thread = named->kind == GT_STRETCH_RANGE ? begin->thread : GT_NO_THREAD,
		.name = name,
		.kind = gt_stretch_name(named->kind),
		.id = (size_t)(named - marks->named),
	};

	if (named->kind == GT_STRETCH_MARK)
		to->instant(to->ctx, &(struct gt_instant){.us = begin->us,
							  .thread = begin->thread,
							  .name = name});
	else
		to->slice(to->ctx, &slice);
	free(name);
}

static int tell_ranges(const struct gt_trace *trace, const struct gt_moments *to,
		       struct gt_error *err)
{
	struct gt_marks marks;

	if (gt_marks_get(trace, &marks, err))
		return -1;
	for (size_t i = 0; i < marks.named_count; i++)
		tell_named(&marks, &marks.named[i], to);
	gt_marks_clear(&marks);
	return 0;
}

int gt_moments_tell(const struct gt_export *export, const struct gt_moments *to,
		    struct gt_error *err)
{
	const struct gt_trace *last = NULL;
	int rc = 0;

	for (size_t p = 0; !rc && p < export->count; p++) {
		const struct gt_export_place *place = &export->places[p];

		if (!p || place->trace != last) {
			last = place->trace;
			to->process(to->ctx, last);
			rc = tell_ranges(last, to, err);
		}
		if (to->device)
			to->device(to->ctx, place);
		tell_peak(place, to);
		tell_refused(place, to);
		if (!rc)
			rc = tell_memory(export, place, to, err);
	}
	return rc;
}
