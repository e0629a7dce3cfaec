/* SPDX-License-Identifier: MIT */
/*
 * A small ring and a large one under the same program: both files must agree with the model in live
 * blocks, counters, peaks and holders at the peaks; the small one stays within its limit and keeps
 * the latest events, the large one keeps all.
 *
 *   ring CALLS
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include "../../preload/recorder.h"
#include "model.h"

#define SMALL (1u << 20)

static struct program program = {.lanes = 2, .blocks = 3000, .stacks = 60, .grow = 2};

static const char *judge_ring(const struct ck_file *f, bool small)
{
	uint64_t ring = 0;

	for (size_t i = 0; i < f->extent_count; i++)
		if (f->extents[i].kind == GT_EXTENT_RING)
			ring += f->extents[i].length;
	printf("# ring %lu KiB, file %lu KiB\n", ring >> 10, gt_file->end >> 10);
	return small && ring > SMALL ? "the ring is larger than its limit" : NULL;
}

static const char *judge(struct model *m, bool small)
{
	static struct ck_file f;
	const char *why = ck_open(&f, gt_file, gt_file->end);
	uint64_t kept = 0;

	for (uint32_t lane = 0; lane < 2 && !why; lane++) {
		struct ck_lane l;

		why = ck_lane(&f, lane, true, &l);
		if (!why && (l.head.seq != m->lane[lane].event_count || l.head.lost))
			why = "events lost";
		if (!why)
			why = model_compare(m, lane, &l);
		if (!why && !small && l.event_count != l.head.seq)
			why = "history given up without need";
		if (!why)
			why = model_backward(m, lane, &l);
		kept += l.event_count;
		ck_lane_free(&l);
	}
	printf("# %lu of %lu events kept\n", kept, m->lane[0].event_count + m->lane[1].event_count);
	if (!why && small && (!kept || kept == m->lane[0].event_count + m->lane[1].event_count))
		why = "nothing recycled";
	return why ? why : judge_ring(&f, small);
}

static int run(struct model *m, const char *name, const char *limit)
{
	const char *why;

	setenv("GPUTRACE_RING", limit, 1);
	if (!gt_recording())
		return 2;
	unlink(gt_file_path);
	for (size_t i = 0; i < program.count; i++)
		program_call(&program, i);
	why = judge(m, limit[0] == '1');
	printf(why ? "not ok %s: %s\n" : "ok %s\n", name, why);
	fflush(stdout);
	return why != NULL;
}

int main(int argc, char **argv)
{
	size_t calls = argc > 1 ? strtoul(argv[1], NULL, 0) : 0;
	struct model m;
	int status = 1;

	if (!calls)
		return 2;
	program_make(&program, 3, calls);
	model_make(&m, &program);
	if (!fork())
		_exit(run(&m, "ring-unlimited", "500M"));
	wait(&status);
	return run(&m, "ring-1M", "1M") || status;
}
