/* SPDX-License-Identifier: MIT */
/*
 * Somebody makes the trace shorter while two threads record into it, at a random call and to a
 * random length: whatever the recorder is doing, all calls return, the process ends well, and
 * recording has stopped, with the reason said in the header or what took its place, unless nothing that
 * is used was cut off.
 *
 *   truncated TIMES
 */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "../../preload/recorder.h"
#include "model.h"

#define CALLS	    40000
#define LAST_MOMENT (CALLS / 4 * 3)
#define EXTENT	    8192 /* the last one may have room that nobody needs before the end */

static struct program program = {.lanes = 2, .blocks = 2000, .stacks = 60, .grow = 30};

static struct shared {
	char path[4096];
	uint32_t returned; /* threads */
	uint32_t done;	   /* calls of the first thread */
	uint32_t cut;
	bool stopped;
} * shared;

static unsigned long met; /* by a store */

/* A quarter of the calls follow the cut, however late it comes. */
static void wait_for_cut(void)
{
	while (!gt_load(&shared->cut))
		sched_yield();
}

static void *run(void *arg)
{
	int lane = (int)(intptr_t)arg;

	for (size_t i = 0; i < program.count; i++) {
		if (i == LAST_MOMENT)
			wait_for_cut();
		if (program.calls[i].device == lane)
			program_call(&program, i);
		if (!lane)
			gt_store(&shared->done, (uint32_t)i);
	}
	__atomic_fetch_add(&shared->returned, 1, __ATOMIC_SEQ_CST);
	return NULL;
}

static void child(void)
{
	pthread_t thread;

	if (!gt_recording())
		_exit(9);
	strcpy(shared->path, gt_file_path);
	pthread_create(&thread, NULL, run, (void *)1);
	run(NULL);
	pthread_join(thread, NULL);
	shared->stopped = gt_load(gt_state) == GT_OFF && gt_file->stop == GT_STOP_TRUNCATED;
	exit(0);
}

/* To nothing, to the header, to any length. */
static off_t length_of(uint64_t *r)
{
	uint64_t v = rnd(r);

	return v % 3 ? (off_t)(v % 3 - 1) * 4096 : (off_t)(rnd(r) % 300000);
}

/* The child is at its call `moment`, or has ended before. */
static bool has_ended(pid_t pid, uint32_t moment, int *status)
{
	while (gt_load(&shared->done) < moment)
		if (waitpid(pid, status, WNOHANG) == pid)
			return true;
	return false;
}

static const char *truncate_one(uint64_t *r)
{
	uint32_t moment = (uint32_t)(1 + rnd(r) % (LAST_MOMENT - 1));
	off_t length = length_of(r);
	bool used = false;
	struct stat st;
	pid_t pid;
	int status;

	memset(shared, 0, sizeof(*shared));
	pid = fork();
	if (!pid)
		child();
	if (!has_ended(pid, moment, &status)) {
		used = !stat(shared->path, &st) && length <= st.st_size - EXTENT;
		if (truncate(shared->path, length))
			return "it cannot be made shorter";
		gt_store(&shared->cut, 1);
		waitpid(pid, &status, 0);
	}
	unlink(shared->path);
	if (status)
		return WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "it failed";
	met += shared->stopped;
	if (used && !shared->stopped)
		return "recording went on";
	return shared->returned == 2 ? NULL : "calls did not return";
}

int main(int argc, char **argv)
{
	unsigned long times = argc > 1 ? strtoul(argv[1], NULL, 0) : 0, bad = 0;
	uint64_t r = 7;

	setenv("GPUTRACE_EXTENT", "8K", 1);
	setenv("GPUTRACE_CELLS", "64", 1);
	setenv("GPUTRACE_RING", "96K", 1);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	program_make(&program, 7, CALLS);
	for (unsigned long i = 0; i < times; i++) {
		const char *why = truncate_one(&r);

		if (!why)
			continue;
		bad++;
		printf("# cut %lu: %s\n", i, why);
		fflush(stdout);
	}
	printf("# %lu tries, %lu met by a store\n", times, met);
	if (!bad && met < times / 4)
		printf("not ok truncated: few were met by a store\n");
	else
		printf(bad ? "not ok truncated: %lu of %lu\n" : "ok truncated\n", bad, times);
	return bad || met < times / 4;
}
