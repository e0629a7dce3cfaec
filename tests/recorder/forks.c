/* SPDX-License-Identifier: MIT */
/*
 * Forks during traffic: two threads record on two lanes while the main thread makes children by
 * fork and by a bare clone, at moments when locks are held and files grow. A child records its own
 * program into its own file, or nothing and then leaves no file; the parent's file must not notice.
 *
 *   forks CHILDREN
 */
#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "../../preload/recorder.h"
#include "model.h"

#define CALLS 400000

static struct program program = {.lanes = 2, .blocks = 3000, .stacks = 60, .grow = 30};
static volatile bool enough;
static size_t calls_done[2];
static size_t allowed; /* calls: a share for each child, so that there is traffic at each fork */

static void *run(void *arg)
{
	int lane = (int)(intptr_t)arg;

	for (size_t i = 0; i < program.count && !enough; i++) {
		while (i == gt_load(&allowed) && !enough)
			sched_yield();
		if (program.calls[i].device == lane)
			program_call(&program, i);
		calls_done[lane] = i + 1;
	}
	return NULL;
}

static const char *judge(struct model *m, const size_t done[2])
{
	static struct ck_file f;
	const char *why = ck_open(&f, gt_file, gt_file->end);

	for (uint32_t lane = 0; lane < m->p->lanes && !why; lane++) {
		struct ck_lane l;

		why = ck_lane(&f, lane, true, &l);
		if (!why && l.head.seq != m->p->calls[done[lane] - 1].events[lane])
			why = "sequence";
		if (!why)
			why = model_compare(m, lane, &l);
		ck_lane_free(&l);
	}
	return why;
}

/* A child: its own program, its own file; ends by exit, whose handlers see the parent's state. */
static int child(unsigned number, const char *parent_path)
{
	struct program own = {.lanes = 1, .blocks = 50, .stacks = 5};
	size_t done[2] = {200};
	const char *why;
	struct model m;

	if (number % 3 == 0)
		return 0;
	program_make(&own, number, 200);
	model_make(&m, &own);
	for (size_t i = 0; i < own.count; i++) {
		if (!gt_recording())
			return 3;
		program_call(&own, i);
	}
	why = judge(&m, done);
	if (why || !strcmp(gt_file_path, parent_path) || gt_file->pid != (uint32_t)getpid()) {
		printf("# child %u: %s\n", number, why ? why : "wrong file");
		fflush(stdout);
		return 1;
	}
	unlink(gt_file_path);
	return 0;
}

static unsigned make_children(unsigned count)
{
	char parent_path[4096];
	unsigned bad = 0;

	strcpy(parent_path, gt_file_path);
	for (unsigned i = 1; i <= count; i++) {
		int status = 1;
		pid_t pid;

		gt_store(&allowed, CALLS / count * i);
		pid = i % 5 ? fork() : (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
		if (!pid) {
			alarm(20); /* a child that waits for a lock that nobody holds */
			if (i % 5)
				exit(child(i, parent_path));
			_exit(child(i, parent_path));
		}
		waitpid(pid, &status, 0);
		bad += status != 0;
	}
	return bad;
}

static unsigned count_files(const char *dir)
{
	DIR *d = opendir(dir);
	unsigned n = 0;

	for (struct dirent *e; d && (e = readdir(d));)
		n += strstr(e->d_name, GT_SUFFIX) != NULL;
	closedir(d);
	return n;
}

int main(int argc, char **argv)
{
	unsigned children = argc > 1 ? (unsigned)atoi(argv[1]) : 0, bad;
	pthread_t thread[2];
	const char *why;
	struct model m;

	setenv("GPUTRACE_EXTENT", "8K", 1);
	setenv("GPUTRACE_CELLS", "64", 1);
	setenv("GPUTRACE_RING", "128K", 1);
	program_make(&program, 5, CALLS);
	model_make(&m, &program);
	if (!gt_recording())
		return 2;
	fflush(stdout);
	for (intptr_t i = 0; i < 2; i++)
		pthread_create(&thread[i], NULL, run, (void *)i);
	bad = make_children(children);
	enough = true;
	for (unsigned i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	why = judge(&m, calls_done);
	if (!why && bad)
		why = "children went wrong";
	if (!why && count_files(getenv("GPUTRACE_DIR")) != 1)
		why = "files that nobody should have made";
	unlink(gt_file_path);
	printf("# %u children, parent at event %lu and %lu\n", children, m.lane[0].seq,
	       m.lane[1].seq);
	printf(why || !children ? "not ok forks: %s\n" : "ok forks\n", why);
	return why || !children;
}
