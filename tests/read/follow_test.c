/* SPDX-License-Identifier: MIT */
/*
 * follow_test RECORD: follows the real recorder (record.c) while it writes as fast as it can, on as
 * many threads as there are lanes, with extents and staging so small that they are recycled all the
 * time; takes snapshots on the way; kills it; and holds everything to a model of the lanes. Prints
 * "ok NAME" or "not ok NAME: why".
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "follow.h"
#include "model.h"

struct run {
	const char *name;
	const char *ring, *extent, *cells, *threads, *live;
	uint64_t events; /* to follow; with a small ring: to see pass by */
	unsigned int snapshots;
	bool all; /* no event may be missed, and the model is held to each snapshot */
};

struct state {
	const struct run *run;
	pid_t child;
	char dir[64], path[512];
	struct gt_follow *follow;
	struct gt_trace *totals; /* looked at again and again */
	unsigned int opened;
	struct model models[GT_MAX_LANES];
	uint64_t seen;
	char why[1200];
};

__attribute__((format(printf, 2, 3))) static bool fail(struct state *s, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(s->why, sizeof(s->why), format, args);
	va_end(args);
	return false;
}

static bool start(struct state *s, const char *record)
{
	char log[80];

	strcpy(s->dir, "/tmp/gputrace-follow-XXXXXX");
	if (!mkdtemp(s->dir))
		return fail(s, "no directory: %s", strerror(errno));
	snprintf(log, sizeof(log), "%s/log", s->dir);
	s->child = fork();
	if (s->child)
		return s->child > 0;
	setenv("GPUTRACE_DIR", s->dir, 1);
	setenv("GPUTRACE_RING", s->run->ring, 1);
	setenv("GPUTRACE_EXTENT", s->run->extent, 1);
	setenv("GPUTRACE_CELLS", s->run->cells, 1);
	setenv("GPUTRACE_QUIET", "1", 1);
	execl(record, record, log, "7", "0", s->run->threads, s->run->live, NULL);
	_exit(127);
}

static bool find_trace(struct state *s)
{
	struct dirent *entry;
	DIR *dir = opendir(s->dir);

	while (dir && (entry = readdir(dir))) {
		if (strstr(entry->d_name, GT_SUFFIX))
			snprintf(s->path, sizeof(s->path), "%s/%s", s->dir, entry->d_name);
	}
	if (dir)
		closedir(dir);
	return s->path[0] != 0;
}

/* The file is there a moment before its header is. */
static bool open_trace(struct state *s)
{
	struct gt_error err = {0};

	for (int i = 0; i < 5000; i++) {
		if (find_trace(s) && !gt_follow_open(s->path, &s->follow, &err))
			return true;
		if (waitpid(s->child, NULL, WNOHANG))
			return fail(s, "the recorder ended");
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	}
	return fail(s, "no trace: %s", err.text);
}

static unsigned int mask_of(const struct gt_event *e)
{
	return e->space == GT_SPACE_TORCH ? GT_MASK_TORCH | GT_MASK_IN_USE : GT_MASK_RESERVED;
}

/* Gives the next event to its model. 1, 0 = none now, -1. */
static int take_event(struct state *s)
{
	struct gt_error err;
	const struct gt_event *e = gt_follow_next(s->follow, &err);
	const char *bad;

	if (!e && !err.status)
		return 0;
	if (!e)
		return fail(s, "%s", err.text) - 1;
	s->seen++;
	if (!s->run->all)
		return 1;
	bad = model_apply(&s->models[e->lane], e, mask_of(e));
	return bad ? fail(s, "lane %u: %s", e->lane, bad) - 1 : 1;
}

/* Until the model of the lane stands where the snapshot does. */
static bool catch_up(struct state *s, const struct gt_trace_lane *lane)
{
	int rc;

	while (s->models[lane->lane].seq < lane->seq) {
		rc = take_event(s);
		if (rc < 0)
			return false;
		if (!rc && !gt_follow_running(s->follow))
			return fail(s, "event %llu never came", (unsigned long long)lane->seq);
	}
	return true;
}

static void say(void *ctx, const char *line)
{
	fail(ctx, "%s", line);
}

static bool judge(struct state *s, const struct gt_trace *trace)
{
	const char *bad;

	if (gt_trace_check(trace, false, say, s))
		return false;
	if (!s->run->all)
		return true;
	if (trace->lane_count != 1)
		return fail(s, "%zu lanes", trace->lane_count);
	if (!catch_up(s, &trace->lanes[0]))
		return false;
	bad = model_compare(&s->models[trace->lanes[0].lane], &trace->lanes[0]);
	return bad ? fail(s, "at event %llu: %s", (unsigned long long)trace->lanes[0].seq, bad)
		   : true;
}

/* Whatever is lost: the sites of each total add up to it. */
static bool adds_up(struct state *s, const struct gt_trace_lane *lane)
{
	for (int k = 0; k < GT_TOTALS; k++) {
		uint64_t sum = 0;

		for (size_t i = 0; i < lane->site_count; i++)
			sum += lane->site_defs[i].mask >> k & 1 ? lane->sites[i].live : 0;
		if (sum != lane->ctr.cur[k])
			return fail(s, "sites of total %d hold %llu, it is %llu", k,
				    (unsigned long long)sum, (unsigned long long)lane->ctr.cur[k]);
	}
	return true;
}

/* Another look by the same reader, which reads definitions again only when it must. */
static bool look(struct state *s)
{
	struct gt_error err;
	int rc = s->totals ? gt_trace_look(s->totals, &err) : 1;
	const char *bad = NULL;

	if (rc > 0) {
		s->totals = gt_trace_close(s->totals);
		rc = gt_trace_open(s->path, GT_OPEN_TOTALS, &s->totals, &err);
		s->opened++;
	}
	if (rc)
		return fail(s, "look: %s", err.text);
	for (size_t i = 0; i < s->totals->lane_count; i++)
		if (!adds_up(s, &s->totals->lanes[i]))
			return false;
	if (s->run->all && !catch_up(s, &s->totals->lanes[0]))
		return false;
	if (s->run->all)
		bad = model_compare_totals(&s->models[s->totals->lanes[0].lane],
					   &s->totals->lanes[0]);
	return bad ? fail(s, "look at event %llu: %s", (unsigned long long)s->totals->lanes[0].seq,
			  bad)
		   : true;
}

static bool snapshot(struct state *s, bool running)
{
	struct gt_trace *trace;
	struct gt_error err;
	bool good;

	if (gt_trace_open(s->path, 0, &trace, &err))
		return fail(s, "snapshot: %s", err.text);
	good = judge(s, trace);
	if (good && trace->running != running)
		good = fail(s, "running is %d", trace->running);
	gt_trace_close(trace);
	return good;
}

static bool follow(struct state *s)
{
	const uint64_t step = s->run->events / s->run->snapshots;
	uint64_t next = step;
	int rc;

	while (s->seen + gt_follow_missed(s->follow) < s->run->events) {
		rc = take_event(s);
		if (rc < 0)
			return false;
		if (!rc && !gt_follow_running(s->follow))
			return fail(s, "the recorder ended early");
		if (s->seen + gt_follow_missed(s->follow) < next)
			continue;
		next += step;
		if (!look(s) || !snapshot(s, true))
			return false;
	}
	if (s->opened * 2 > s->run->snapshots)
		return fail(s, "definitions were read %u times in %u looks", s->opened,
			    s->run->snapshots);
	if (s->run->all && gt_follow_missed(s->follow))
		return fail(s, "missed %llu", (unsigned long long)gt_follow_missed(s->follow));
	return true;
}

/* The trace of the killed process, to its last event, by the same follower and by a new reader. */
static bool after_kill(struct state *s)
{
	int rc;

	kill(s->child, SIGKILL);
	waitpid(s->child, NULL, 0);
	while ((rc = take_event(s)) > 0)
		;
	return !rc && look(s) && snapshot(s, false);
}

static void clean(struct state *s)
{
	char command[128];

	if (s->child > 0) {
		kill(s->child, SIGKILL);
		waitpid(s->child, NULL, 0);
	}
	gt_trace_close(s->totals);
	gt_follow_close(s->follow);
	for (unsigned int i = 0; i < GT_MAX_LANES; i++)
		model_free(&s->models[i]);
	snprintf(command, sizeof(command), "rm -rf '%s'", s->dir);
	if (system(command))
		fprintf(stderr, "%s stays\n", s->dir);
}

static bool run(const struct run *run, const char *record)
{
	struct state *s = calloc(1, sizeof(*s));
	bool good;

	s->run = run;
	good = start(s, record) && open_trace(s) && follow(s) && after_kill(s);
	if (good)
		printf("ok %s # %llu events, %llu missed\n", run->name, (unsigned long long)s->seen,
		       (unsigned long long)gt_follow_missed(s->follow));
	else
		printf("not ok %s: %s\n", run->name, s->why);
	fflush(stdout);
	clean(s);
	free(s);
	return good;
}

int main(int argc, char **argv)
{
	static const struct run runs[] = {
		{"follow-every-event", "1G", "64K", "64", "1", "300", 400000, 40, true},
		{"follow-many-blocks", "1G", "16K", "1024", "1", "20000", 400000, 10, true},
		{"follow-small-ring", "64K", "16K", "64", "3", "200", 2000000, 200, false},
		{"follow-tiny-staging", "64K", "16K", "8", "2", "50", 500000, 100, false},
	};
	bool good = true;

	if (argc != 2)
		return 2;
	for (size_t i = 0; i < sizeof(runs) / sizeof(runs[0]); i++)
		good &= run(&runs[i], argv[1]);
	return good ? 0 : 1;
}
