/* SPDX-License-Identifier: MIT */
/*
 * Somebody makes the trace shorter while two threads record into it, at a random moment and to a
 * random length: whatever the recorder is doing, all calls return, the process ends well, and
 * recording has stopped with the reason said in the file, if there is a header left to say it in.
 *
 *   truncated TIMES
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "../../preload/recorder.h"
#include "model.h"

#define CALLS 40000

static struct program program = {.lanes = 2, .blocks = 2000, .stacks = 60, .grow = 30};

static struct shared {
	char path[4096];
	uint32_t running, returned; /* threads */
	bool stopped;
} * shared;

static void *run(void *arg)
{
	int lane = (int)(intptr_t)arg;

	__atomic_fetch_add(&shared->running, 1, __ATOMIC_SEQ_CST);
	for (size_t i = 0; i < program.count; i++)
		if (program.calls[i].device == lane)
			program_call(&program, i);
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

/* Both threads are at work, or the child has ended already: on a busy machine it may, before we run again. */
static bool has_ended(pid_t pid, int *status)
{
	while (gt_load(&shared->running) < 2)
		if (waitpid(pid, status, WNOHANG) == pid)
			return true;
	return false;
}

static const char *truncate_one(uint64_t *r)
{
	useconds_t wait = (useconds_t)(rnd(r) % 4000);
	off_t length = length_of(r);
	pid_t pid;
	int status;

	memset(shared, 0, sizeof(*shared));
	pid = fork();
	if (!pid)
		child();
	if (!has_ended(pid, &status)) {
		usleep(wait);
		if (truncate(shared->path, length))
			return "it cannot be made shorter";
		waitpid(pid, &status, 0);
	}
	unlink(shared->path);
	if (status)
		return WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "it failed";
	return shared->returned == 2 ? NULL : "calls did not return";
}

int main(int argc, char **argv)
{
	unsigned long times = argc > 1 ? strtoul(argv[1], NULL, 0) : 0, bad = 0, stopped = 0;
	uint64_t r = 7;

	setenv("GPUTRACE_EXTENT", "8K", 1);
	setenv("GPUTRACE_CELLS", "64", 1);
	setenv("GPUTRACE_RING", "96K", 1);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	program_make(&program, 7, CALLS);
	for (unsigned long i = 0; i < times; i++) {
		const char *why = truncate_one(&r);

		stopped += shared->stopped;
		if (!why)
			continue;
		bad++;
		printf("# cut %lu: %s\n", i, why);
		fflush(stdout);
	}
	printf("# %lu tries, %lu met by a store\n", times, stopped);
	if (!bad && stopped < times / 4)
		printf("not ok truncated: few were met by a store\n");
	else
		printf(bad ? "not ok truncated: %lu of %lu\n" : "ok truncated\n", bad, times);
	return bad || stopped < times / 4;
}
