/* SPDX-License-Identifier: MIT */
/*
 * A full disk: records in GPUTRACE_DIR, which the caller has made too small for the history of the
 * program, and judges the file. While there is history to give up, live blocks, counters and sites
 * stay exact; when there is none, recording stops, the file says at which event, and is exact up to
 * there.
 *
 *   disk NAME CALLS kept|stopped
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../../preload/recorder.h"
#include "model.h"

static struct program program = {.lanes = 2, .blocks = 200000, .stacks = 60, .grow = 95};
static uint64_t stolen, kept, alive;

static const char *judge_lane(const struct ck_file *f, struct model *m, uint32_t lane, bool stopped)
{
	struct ck_lane l;
	const char *why = ck_lane(f, lane, true, &l);

	if (!why && !stopped && l.head.seq != m->lane[lane].event_count)
		why = "an event is lost";
	if (!why && l.head.incomplete_seq && l.head.incomplete_seq != l.head.seq + 1)
		why = "incomplete from another event on";
	if (!why)
		why = model_compare(m, lane, &l);
	if (!why)
		why = model_backward(m, lane, &l);
	kept += l.event_count;
	alive += l.block_count;
	ck_lane_free(&l);
	return why;
}

/* What has become something else still counts how often it was emptied. */
static void count_stolen(const struct ck_file *f)
{
	for (size_t i = 0; i < f->extent_count; i++)
		stolen += f->extents[i].kind != GT_EXTENT_RING && f->extents[i].gen;
}

static const char *judge(struct model *m, bool stopped)
{
	static struct ck_file f;
	const char *why = ck_open(&f, gt_file, gt_file->end);

	if (!why && gt_file->stop != (stopped ? GT_STOP_NO_SPACE : GT_STOP_NONE))
		why = stopped ? "recording went on" : "recording stopped";
	if (!why && gt_file->lost[GT_LOST_EVENTS])
		why = "events lost";
	for (uint32_t lane = 0; lane < 2 && !why; lane++)
		why = judge_lane(&f, m, lane, stopped);
	count_stolen(&f);
	if (!why && !stolen)
		why = "the disk was not too small";
	return why;
}

int main(int argc, char **argv)
{
	size_t calls = argc > 3 ? strtoul(argv[2], NULL, 0) : 0;
	struct model m;
	const char *why;

	setenv("GPUTRACE_EXTENT", "16K", 1);
	setenv("GPUTRACE_CELLS", "64", 1);
	program_make(&program, 11, calls);
	model_make(&m, &program);
	if (!calls || !gt_recording())
		return 2;
	for (size_t i = 0; i < calls; i++)
		if (gt_recording())
			program_call(&program, i);
	why = judge(&m, !strcmp(argv[3], "stopped"));
	printf("# %s: %lu blocks alive, file %lu KiB, %lu events kept, %lu extents given up\n",
	       argv[1], alive, gt_file->end >> 10, kept, stolen);
	printf(why ? "not ok %s: %s\n" : "ok %s\n", argv[1], why);
	return why != NULL;
}
