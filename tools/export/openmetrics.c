/* SPDX-License-Identifier: MIT */
/*
 * Counters of every device as OpenMetrics text, and in the older text format of Prometheus, which is
 * all that node_exporter's textfile collector reads: there the TYPE line of a counter has its whole
 * name, with _total, and there is no EOF line. A family's samples stand together, so families are
 * the outer loop. Called from the table and from cmd/metrics.c.
 */
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include "export/export.h"
#include "model/failure.h"
#include "out/out.h"

struct family {
	const char *name, *help;
	bool counter;
	size_t offset; /* in gt_ctr; OTHER: value says */
	uint64_t (*value)(const struct gt_export_place *place);
};

#define OTHER	   SIZE_MAX
#define AT(member) offsetof(struct gt_ctr, member)

static uint64_t card(const struct gt_export_place *place)
{
	return place->device_total;
}

static uint64_t is_running(const struct gt_export_place *place)
{
	return place->trace->running;
}

/* Errors that reached the program, not requests that were granted when asked again. */
static uint64_t out_of_memory(const struct gt_export_place *place)
{
	const struct gt_trace *trace = place->trace;
	uint64_t sum = 0;

	for (size_t i = 0; i < trace->report_count; i++)
		sum += gt_report_lane(trace, &trace->reports[i]) == place->lane_index &&
		       gt_is_memory(&trace->reports[i]) &&
		       gt_report_end(trace, &trace->reports[i]) != GT_END_RECOVERED;
	return sum;
}

static const struct family families[] = {
	{"gputrace_allocated_bytes", "In use now.", false, AT(cur[GT_TOTAL_IN_USE]), NULL},
	{"gputrace_reserved_bytes", "Held from the driver now.", false, AT(cur[GT_TOTAL_RESERVED]),
	 NULL},
	{"gputrace_torch_allocated_bytes", "In use by blocks of torch now.", false,
	 AT(cur[GT_TOTAL_TORCH]), NULL},
	{"gputrace_peak_allocated_bytes", "Most in use since the start.", false,
	 AT(peak[GT_TOTAL_IN_USE]), NULL},
	{"gputrace_peak_reserved_bytes", "Most held since the start.", false,
	 AT(peak[GT_TOTAL_RESERVED]), NULL},
	{"gputrace_blocks", "Blocks alive now, of every level.", false, AT(live_count), NULL},
	{"gputrace_device_bytes", "Memory of the device; 0 = not known.", false, OTHER, card},
	{"gputrace_running", "1 while the process runs.", false, OTHER, is_running},
	{"gputrace_allocations", "Allocations, of every level.", true, AT(allocs), NULL},
	{"gputrace_frees", "Frees, of every level.", true, AT(frees), NULL},
	{"gputrace_allocation_bytes", "Bytes ever allocated, of every level.", true,
	 AT(alloc_bytes), NULL},
	{"gputrace_refused_requests", "Requests that the driver refused.", true, AT(failed), NULL},
	{"gputrace_out_of_memory", "Errors for want of memory.", true, OTHER, out_of_memory},
};

#define FAMILIES (sizeof(families) / sizeof(families[0]))

static uint64_t value_of(const struct family *family, const struct gt_export_place *place)
{
	uint64_t value;

	if (family->offset == OTHER)
		return family->value(place);
	memcpy(&value, (const char *)&place->lane->ctr + family->offset, sizeof(value));
	return value;
}

/* Three characters cannot stand in a label's value as they are; bytes that are no text neither. */
static void put_label(FILE *file, const char *name, const char *value)
{
	char *safe = gt_escape(value);

	fprintf(file, ",%s=\"", name);
	for (const char *at = safe; *at; at++) {
		if (*at == '"' || *at == '\\')
			putc('\\', file);
		putc(*at, file);
	}
	putc('"', file);
	free(safe);
}

static void put_sample(FILE *file, const struct family *family, const struct gt_export_place *place)
{
	const struct gt_trace *trace = place->trace;
	const struct gt_bytes *rank = gt_trace_info(trace, "env.RANK");

	fprintf(file, "%s%s{device=\"%d\",pid=\"%u\"", family->name,
		family->counter ? "_total" : "", place->lane->device, trace->header.pid);
	put_label(file, "program", trace->header.comm);
	if (rank)
		put_label(file, "rank", rank->text);
	/* A pid comes again; with its beginning it is one process. */
	fprintf(file, ",started=\"%" PRIu64 "\"} %" PRIu64 "\n", trace->header.real_us / 1000000,
		value_of(family, place));
}

void gt_export_metrics(FILE *file, const struct gt_export_place *places, size_t count,
		       bool prometheus)
{
	for (size_t f = 0; f < FAMILIES; f++) {
		const struct family *family = &families[f];
		const char *suffix = prometheus && family->counter ? "_total" : "";

		fprintf(file, "# TYPE %s%s %s\n# HELP %s%s %s\n", family->name, suffix,
			family->counter ? "counter" : "gauge", family->name, suffix, family->help);
		for (size_t p = 0; p < count; p++)
			put_sample(file, family, &places[p]);
	}
	if (!prometheus)
		fputs("# EOF\n", file);
}

int gt_export_openmetrics(const struct gt_export *export, struct gt_error *err)
{
	(void)err;
	gt_export_metrics(export->file, export->places, export->count, false);
	return 0;
}
