/* SPDX-License-Identifier: MIT */
/*
 * Reports of refused requests. A report's number is stored last and cleared first when its place is
 * used again, so a copy counts only if the number is the same before and after.
 */
#include <stdlib.h>
#include <string.h>
#include "read/reader.h"

/* Rows are indexed by consumers: what a report names must exist. */
const char *gt_report_bad(const struct gt_trace *trace, const struct gt_report *r)
{
	const struct gt_lane_sites *sites;

	if (r->lane >= GT_MAX_LANES)
		return "a report names a lane that cannot exist";
	if (r->holders > GT_REPORT_HOLDERS || r->others > GT_REPORT_OTHERS)
		return "a report has more rows than fit";
	sites = &trace->reader->sites[r->lane];
	for (uint32_t i = 0; i < r->holders; i++) {
		if (r->holder[i].site >= sites->count)
			return "a report names a site that is not defined";
	}
	if (r->site >= sites->count || r->thread >= trace->thread_count)
		return "a report names something that is not defined";
	return NULL;
}

/* A report at a place in the file: 0 with ret->state 0 when there is none. */
static int report_copy(const struct gt_source *source, uint64_t at, struct gt_report *ret)
{
	for (int tries = 0; tries < 100; tries++) {
		if (gt_source_copy(source, at, ret, sizeof(*ret)))
			return -1;
		if ((uint32_t)gt_source_word(source, at) == ret->state)
			return 0;
	}
	ret->state = 0;
	return 0;
}

static int by_number(const void *a, const void *b)
{
	const struct gt_report *x = a, *y = b;

	return x->state < y->state ? -1 : x->state > y->state;
}

static int read_extent(struct gt_trace *trace, const struct gt_extent *e, size_t *capacity,
		       struct gt_error *err)
{
	const struct gt_source *source = &trace->reader->source;
	struct gt_report *report;
	const char *bad;
	uint64_t at;

	for (at = sizeof(*e); e->length - at >= sizeof(*report); at += sizeof(*report)) {
		if (gt_grow(&trace->reports, capacity, trace->report_count, sizeof(*report)))
			return gt_fail_memory(err, source->path);
		report = &trace->reports[trace->report_count];
		if (report_copy(source, e->offset + at, report))
			return gt_fail(err, source->path, "was cut while it was read");
		if (!report->state)
			continue;
		bad = gt_report_bad(trace, report);
		if (!bad)
			trace->report_count++;
		else if (!trace->partial)
			return gt_damaged(err, source->path, e->offset + at, "%s", bad);
	}
	return 0;
}

int gt_reports_read(struct gt_trace *trace, const struct gt_extents *extents, struct gt_error *err)
{
	size_t capacity = 0;
	int rc = 0;

	for (size_t i = 0; !rc && i < extents->count; i++) {
		if (extents->at[i].kind == GT_EXTENT_REPORTS)
			rc = read_extent(trace, &extents->at[i], &capacity, err);
	}
	if (trace->report_count)
		qsort(trace->reports, trace->report_count, sizeof(*trace->reports), by_number);
	return rc;
}
