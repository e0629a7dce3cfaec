/* SPDX-License-Identifier: MIT */
/*
 * See live.h. A look takes the counters of each device and the totals of its sites; a rate is the
 * difference of two counters over the time between the two looks, as measured. Definitions are read
 * again only when a site is used that the last ones do not have.
 */
#define _GNU_SOURCE
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "live/live.h"
#include "model/xalloc.h"
#include "out/number.h"

double gt_live_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

const char *gt_live_state(const struct gt_live_process *process)
{
	const struct gt_trace *trace = process->trace;

	if (process->broken)
		return "unreadable";
	if (trace->running)
		return "running";
	return trace->header.exit_us ? "exited" : "killed";
}

static long rank_of(const struct gt_trace *trace)
{
	const struct gt_bytes *text = gt_trace_info(trace, "env.RANK");
	long rank;

	return text && !gt_parse_number(text->text, 0, LONG_MAX, &rank) ? rank : -1;
}

/* "train.py" says more than the "python3.11" of all ranks. To be freed. */
static char *program_of(const struct gt_trace *trace)
{
	const struct gt_bytes *arguments = gt_trace_info(trace, "cmdline");
	const size_t comm = strnlen(trace->header.comm, sizeof(trace->header.comm));

	for (uint32_t i = 0; arguments && i < arguments->length;) {
		const char *word = arguments->text + i, *slash;
		size_t length = strnlen(word, arguments->length - i);

		slash = memrchr(word, '/', length);
		if (length > 3 && memcmp(word + length - 3, ".py", 3) == 0)
			return gt_xasprintf("%s", slash ? slash + 1 : word);
		i += (uint32_t)length + 1;
	}
	return gt_xasprintf("%.*s", (int)comm, trace->header.comm);
}

static struct gt_live_device *device_of(struct gt_live_process *process, uint32_t lane)
{
	struct gt_live_device *device;

	for (size_t i = 0; i < process->device_count; i++)
		if (process->devices[i].lane == lane)
			return &process->devices[i];
	device = GT_PUSH(process->devices, process->device_count);
	device->lane = lane;
	return device;
}

/* The card may be defined after the first look at its lane. */
static void describe(struct gt_live_device *device, const struct gt_trace *trace)
{
	for (size_t i = 0; i < trace->device_count; i++) {
		if (trace->devices[i].ordinal != device->device || !trace->devices[i].total)
			continue;
		device->card = trace->devices[i].total;
		memcpy(device->uuid, trace->devices[i].uuid, sizeof(device->uuid));
	}
}

static void take_counters(struct gt_live_device *device, const struct gt_trace_lane *lane,
			  double seconds)
{
	device->device = lane->device;
	device->now = lane->ctr;
	device->rated = seconds > 0;
	if (device->rated) {
		device->allocs_per_second =
			(double)(lane->ctr.allocs - device->allocs_before) / seconds;
		device->bytes_per_second =
			(double)(lane->ctr.alloc_bytes - device->bytes_before) / seconds;
	}
	device->allocs_before = lane->ctr.allocs;
	device->bytes_before = lane->ctr.alloc_bytes;
}

static void take(struct gt_live *live, size_t number, double now)
{
	struct gt_live_process *process = &live->processes[number];
	const struct gt_trace *trace = process->trace;
	double seconds = process->looked > 0 ? now - process->looked : 0;

	for (size_t i = 0; i < trace->lane_count; i++) {
		const struct gt_trace_lane *lane = &trace->lanes[i];
		struct gt_live_device *device;

		if (lane->device == GT_DEVICE_HOST || !lane->seq ||
		    (live->device != INT_MIN && live->device != lane->device))
			continue;
		device = device_of(process, lane->lane);
		take_counters(device, lane, seconds);
		describe(device, trace);
	}
	gt_live_fill(live, number, seconds);
	process->looked = now;
}

/* Names that were made stay with the rows; only what they were made from goes. */
static int open_again(struct gt_live_process *process)
{
	struct gt_trace *trace;

	if (gt_trace_open(process->path, GT_OPEN_TOTALS, &trace, NULL))
		return -1;
	process->symbols = gt_symbols_free(process->symbols);
	gt_trace_close(process->trace);
	process->trace = trace;
	return 0;
}

static void look_at(struct gt_live *live, size_t number)
{
	struct gt_live_process *process = &live->processes[number];
	int rc;

	if (process->broken || (process->looked > 0 && !process->trace->running))
		return;
	rc = gt_trace_look(process->trace, NULL);
	if (rc > 0)
		rc = open_again(process);
	if (rc < 0)
		process->broken = true;
	else
		take(live, number, gt_live_now());
}

void gt_live_look(struct gt_live *live)
{
	live->times[live->looks % GT_LIVE_PAST] = gt_live_now();
	for (size_t i = 0; i < live->count; i++)
		look_at(live, i);
	live->looks++;
}

int gt_live_add(struct gt_live *live, const char *path, bool ended, struct gt_error *err)
{
	struct gt_live_process *process;
	struct gt_trace *trace;
	long rank;

	if (gt_trace_open(path, GT_OPEN_TOTALS, &trace, err))
		return -1;
	rank = rank_of(trace);
	if ((!trace->running && !ended) || (live->rank >= 0 && live->rank != rank)) {
		gt_trace_close(trace);
		return 0;
	}
	process = GT_PUSH(live->processes, live->count);
	process->path = gt_xstrdup(path);
	process->trace = trace;
	process->rank = rank;
	process->program = program_of(trace);
	return 0;
}

size_t gt_live_running(const struct gt_live *live)
{
	size_t count = 0;

	for (size_t i = 0; i < live->count; i++)
		count += !live->processes[i].broken && live->processes[i].trace->running;
	return count;
}

void gt_live_free(struct gt_live *live)
{
	for (size_t i = 0; i < live->count; i++) {
		struct gt_live_process *process = &live->processes[i];

		gt_live_rows_free(process);
		gt_symbols_free(process->symbols);
		gt_trace_close(process->trace);
		free(process->devices);
		free(process->path);
		free(process->program);
	}
	for (size_t i = 0; i < live->seen_count; i++)
		free(live->seen[i]);
	free(live->processes);
	free(live->seen);
	*live = (struct gt_live){0};
}
