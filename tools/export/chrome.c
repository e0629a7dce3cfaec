/* SPDX-License-Identifier: MIT */
/*
 * Chrome's trace events (JSON), which ui.perfetto.dev opens too: a counter per device with what was in
 * use and cached, instants for refused requests, marks and the peak, slices for the ranges and
 * windows of the program. The older of the two formats for viewers, and the one that a text editor
 * reads; perfetto.c has what it cannot say. Called from the table.
 */
#include <inttypes.h>
#include <stdlib.h>
#include "export/moments.h"
#include "model/xalloc.h"
#include "out/json.h"

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

static void put_process(void *ctx, const struct gt_trace *trace)
{
	struct chrome *chrome = ctx;
	char *name = gt_xasprintf("%s (pid %u)", trace->header.comm, trace->header.pid);

	chrome->process++;
	put_metadata(chrome, GT_NO_THREAD, "process_name", name);
	put_metadata(chrome, GT_NO_THREAD, "thread_name", "steps, windows, memory");
	free(name);
	for (size_t i = 1; i < trace->thread_count; i++) {
		name = gt_export_thread(trace, (uint16_t)i);
		put_metadata(chrome, i, "thread_name", name);
		free(name);
	}
}

static void put_point(void *ctx, const struct gt_export_place *place, const struct gt_point *point)
{
	uint64_t used = point->max[GT_TOTAL_IN_USE], held = point->max[GT_TOTAL_RESERVED];
	struct chrome *chrome = ctx;
	char name[40];

	snprintf(name, sizeof(name), "GPU %d memory", place->lane->device);
	open_event(chrome, 'C', GT_NO_THREAD, point->us, name);
	/* The two are stacked. Both are the highest of their slice, so held may be the smaller. */
	fprintf(chrome->file, ",\"args\":{\"in use\":%" PRIu64 ",\"cached\":%" PRIu64 "}}", used,
		held > used ? held - used : 0);
}

static void put_instant(void *ctx, const struct gt_instant *instant)
{
	struct chrome *chrome = ctx;

	open_event(chrome, 'i', instant->thread, instant->us, instant->name);
	fputs(",\"s\":\"p\"", chrome->file);
	if (instant->key)
		fprintf(chrome->file, ",\"args\":{\"%s\":%" PRIu64, instant->key, instant->bytes);
	if (instant->ended) {
		fputs(",\"ended\":", chrome->file);
		gt_json_put(chrome->file, instant->ended);
	}
	fputs(instant->key ? "}}" : "}", chrome->file);
}

static void put_slice(void *ctx, const struct gt_slice *slice)
{
	struct chrome *chrome = ctx;

	if (slice->thread != GT_NO_THREAD) {
		open_event(chrome, 'X', slice->thread, slice->from_us, slice->name);
		fprintf(chrome->file, ",\"dur\":%" PRIu64 "}", slice->to_us - slice->from_us);
		return;
	}
	open_event(chrome, 'b', GT_NO_THREAD, slice->from_us, slice->name);
	fprintf(chrome->file, ",\"cat\":\"%s\",\"id\":%zu}", slice->kind, slice->id);
	open_event(chrome, 'e', GT_NO_THREAD, slice->to_us, slice->name);
	fprintf(chrome->file, ",\"cat\":\"%s\",\"id\":%zu}", slice->kind, slice->id);
}

int gt_export_chrome(const struct gt_export *export, struct gt_error *err)
{
	struct chrome chrome = {.file = export->file};
	struct gt_moments to = {put_process, NULL, put_point, put_instant, put_slice, &chrome};
	int rc;

	fputs("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n", export->file);
	rc = gt_moments_tell(export, &to, err);
	fputs("\n]}\n", export->file);
	return rc;
}
