/* SPDX-License-Identifier: MIT */
/*
 * Chrome's trace events (JSON), which ui.perfetto.dev opens too: a counter per device with what was in
 * use and cached, instants for refused requests, marks and the peak, slices for the ranges and
 * windows of the program. A counter has as many points as were asked for, each the highest of its
 * slice of time, so the peak is in it. Called from the table.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "export/export.h"
#include "model/failure.h"
#include "model/marks.h"
#include "model/series.h"
#include "model/xalloc.h"
#include "out/json.h"

#define DEFAULT_POINTS 20000
#define WINDOW_THREAD  0 /* windows, steps and devices are not of a thread of the program */

struct chrome {
	FILE *file;
	bool begun;
	uint64_t process; /* number of the one being written: pids may recur on other hosts */
};

/* An event up to its name; args and the closing brace are the caller's. */
static void open_event(struct chrome *chrome, char phase, uint64_t thread, uint64_t us,
		       const char *name)
{
	fprintf(chrome->file,
		"%s{\"ph\":\"%c\",\"pid\":%" PRIu64 ",\"tid\":%" PRIu64 ",\"ts\":%" PRIu64
		",\"name\":",
		chrome->begun ? ",\n" : "", phase, chrome->process, thread, us);
	gt_json_put(chrome->file, name);
	chrome->begun = true;
}

static void put_metadata(struct chrome *chrome, uint64_t thread, const char *what, const char *name)
{
	open_event(chrome, 'M', thread, 0, what);
	fputs(",\"args\":{\"name\":", chrome->file);
	gt_json_put(chrome->file, name);
	fputs("}}", chrome->file);
}

static void put_process(struct chrome *chrome, const struct gt_trace *trace)
{
	char *name = gt_xasprintf("%s (pid %u)", trace->header.comm, trace->header.pid);

	put_metadata(chrome, WINDOW_THREAD, "process_name", name);
	put_metadata(chrome, WINDOW_THREAD, "thread_name", "steps, windows, memory");
	free(name);
	for (size_t i = 1; i < trace->thread_count; i++) {
		name = gt_export_thread(trace, (uint16_t)i);
		put_metadata(chrome, i, "thread_name", name);
		free(name);
	}
}

/* ---- memory ---------------------------------------------------------------------------------- */

static void put_point(struct chrome *chrome, int device, const struct gt_point *point)
{
	uint64_t used = point->max[GT_TOTAL_IN_USE], held = point->max[GT_TOTAL_RESERVED];
	char name[40];

	snprintf(name, sizeof(name), "GPU %d memory", device);
	open_event(chrome, 'C', WINDOW_THREAD, point->us, name);
	/* The two are stacked. Both are the highest of their slice, so held may be the smaller. */
	fprintf(chrome->file, ",\"args\":{\"in use\":%" PRIu64 ",\"cached\":%" PRIu64 "}}", used,
		held > used ? held - used : 0);
}

static int put_memory(struct chrome *chrome, const struct gt_export *export,
		      const struct gt_export_place *place, struct gt_error *err)
{
	struct gt_series series;

	if (gt_series_get(place->trace, place->lane_index, place->lane->history_us,
			  place->trace->last_us, export->points ? export->points : DEFAULT_POINTS,
			  &series, err))
		return -1;
	for (size_t i = 0; i < series.count; i++)
		if (!i || memcmp(series.points[i].max, series.points[i - 1].max,
				 sizeof(series.points[i].max)))
			put_point(chrome, place->lane->device, &series.points[i]);
	gt_series_clear(&series);
	return 0;
}

static void put_peak(struct chrome *chrome, const struct gt_export_place *place)
{
	const struct gt_ctr *ctr = &place->lane->ctr;
	char name[40];

	snprintf(name, sizeof(name), "peak of GPU %d", place->lane->device);
	open_event(chrome, 'i', WINDOW_THREAD, ctr->peak_us[GT_TOTAL_IN_USE], name);
	fprintf(chrome->file, ",\"s\":\"p\",\"args\":{\"in use\":%" PRIu64 "}}",
		ctr->peak[GT_TOTAL_IN_USE]);
}

static void put_refused(struct chrome *chrome, const struct gt_export_place *place)
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
		open_event(chrome, 'i', report->thread, report->us, name);
		fprintf(chrome->file, ",\"s\":\"p\",\"args\":{\"asked\":%" PRIu64 ",\"ended\":",
			gt_report_asked(report));
		gt_json_put(chrome->file, gt_end_name(gt_report_end(trace, report)));
		fputs("}}", chrome->file);
	}
}

/* ---- what the program said of itself ------------------------------------------------------------ */

static void put_named(struct chrome *chrome, const struct gt_marks *marks,
		      const struct gt_named *named)
{
	const struct gt_noted *begin = &marks->notes[named->begin];
	bool thread = named->kind == GT_STRETCH_RANGE || named->kind == GT_STRETCH_MARK;
	uint64_t end =
		named->end == GT_NO_NOTE ? marks->trace->last_us : marks->notes[named->end].us;
	char *name = named->kind == GT_STRETCH_STEP ? gt_xasprintf("step %u", named->step)
						    : gt_xstrdup(named->name);

	if (named->kind == GT_STRETCH_MARK) {
		open_event(chrome, 'i', begin->thread, begin->us, name);
		fputs(",\"s\":\"p\"}", chrome->file);
	} else if (thread) {
		open_event(chrome, 'X', begin->thread, begin->us, name);
		fprintf(chrome->file, ",\"dur\":%" PRIu64 "}",
			end > begin->us ? end - begin->us : 0);
	} else { /* windows overlap, which slices of a thread may not */
		const char *category = gt_stretch_name(named->kind);
		size_t id = (size_t)(named - marks->named);

		open_event(chrome, 'b', WINDOW_THREAD, begin->us, name);
		fprintf(chrome->file, ",\"cat\":\"%s\",\"id\":%zu}", category, id);
		open_event(chrome, 'e', WINDOW_THREAD, end, name);
		fprintf(chrome->file, ",\"cat\":\"%s\",\"id\":%zu}", category, id);
	}
	free(name);
}

static int put_ranges(struct chrome *chrome, const struct gt_trace *trace, struct gt_error *err)
{
	struct gt_marks marks;

	if (gt_marks_get(trace, &marks, err))
		return -1;
	for (size_t i = 0; i < marks.named_count; i++)
		put_named(chrome, &marks, &marks.named[i]);
	gt_marks_clear(&marks);
	return 0;
}

int gt_export_chrome(const struct gt_export *export, struct gt_error *err)
{
	struct chrome chrome = {.file = export->file};
	const struct gt_trace *last = NULL;
	int rc = 0;

	fputs("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n", export->file);
	for (size_t p = 0; !rc && p < export->count; p++) {
		const struct gt_export_place *place = &export->places[p];

		if (place->trace != last) {
			last = place->trace;
			chrome.process++;
			put_process(&chrome, last);
			rc = put_ranges(&chrome, last, err);
		}
		put_peak(&chrome, place);
		put_refused(&chrome, place);
		if (!rc)
			rc = put_memory(&chrome, export, place, err);
	}
	fputs("\n]}\n", export->file);
	return rc;
}
