/* SPDX-License-Identifier: MIT */
/*
 * SIGKILL at random calls, somewhere inside: a child records from two threads on two lanes, with extents
 * so small that growing, sealing and recycling never stop; the file it leaves must be exactly the model's
 * state after the last event of each lane, and have every event whose call had returned.
 *
 *   killed TIMES [SEED]
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "../../preload/recorder.h"
#include "model.h"

#define CALLS 60000

static struct program program = {.lanes = 2, .blocks = 2000, .stacks = 60, .grow = 30};

static struct shared {
	char path[4096];
	uint64_t returned[2]; /* calls, by lane */
	uint32_t running;
} * shared;

/* Calls for one lane; those for the other are the other thread's. */
static void *run(void *arg)
{
	int lane = (int)(intptr_t)arg;

	__atomic_fetch_add(&shared->running, 1, __ATOMIC_SEQ_CST);
	for (size_t i = 0; i < program.count; i++) {
		if (program.calls[i].device != lane)
			continue;
		program_call(&program, i);
		gt_store(&shared->returned[lane], i + 1);
	}
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
	pause();
}

/* The child, killed behind one of its first calls, before the other thread can have ended. */
static int kill_one(uint64_t calls, uint64_t *r)
{
	uint64_t moment = rnd(r) % calls;
	pid_t pid;
	int status;

	memset(shared, 0, sizeof(*shared));
	pid = fork();
	if (!pid)
		child();
	while (!gt_load(&shared->running) || gt_load(&shared->returned[0]) < moment)
		if (waitpid(pid, &status, WNOHANG) == pid)
			return -1;
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	return WIFSIGNALED(status) ? 0 : -1;
}

struct sums {
	uint64_t lanes, ahead, events, fills, kept;
};

static const char *judge_lane(const struct ck_file *f, struct model *m, uint32_t lane,
			      struct sums *sums)
{
	uint64_t done = shared->returned[lane];
	uint64_t least = done ? program.calls[done - 1].events[lane] : 0;
	struct ck_lane l = {0};
	const char *why;

	if (!ck_has_lane(f, lane))
		return least ? "a lane is missing" : NULL;
	why = ck_lane(f, lane, true, &l);
	if (!why && l.head.seq < least)
		why = "an event whose call had returned is lost";
	if (!why && (l.head.lost || l.head.incomplete_seq))
		why = "history was given up";
	if (!why)
		why = model_compare(m, lane, &l);
	if (!why)
		why = model_backward(m, lane, &l);
	sums->lanes++;
	sums->ahead += l.head.seq > least;
	sums->events += l.head.seq;
	sums->kept += l.event_count;
	ck_lane_free(&l);
	return why;
}

static const char *judge(struct model *m, struct sums *sums)
{
	static struct ck_file f;
	int fd = open(shared->path, O_RDONLY);
	off_t size = lseek(fd, 0, SEEK_END);
	void *base = mmap(NULL, (size_t)size, PROT_READ, MAP_SHARED, fd, 0);
	const char *why = base == MAP_FAILED ? "no file" : ck_open(&f, base, (uint64_t)size);
	uint64_t fills = 0;

	for (uint32_t lane = 0; lane < 2 && !why; lane++)
		why = judge_lane(&f, m, lane, sums);
	for (size_t i = 0; i < f.extent_count; i++)
		if (f.extents[i].serial > fills)
			fills = f.extents[i].serial;
	sums->fills += fills;
	munmap(base, (size_t)size);
	close(fd);
	if (!why)
		unlink(shared->path);
	return why;
}

int main(int argc, char **argv)
{
	unsigned long times = argc > 1 ? strtoul(argv[1], NULL, 0) : 0, bad = 0;
	struct sums sums = {0};
	uint64_t r = argc > 2 ? strtoul(argv[2], NULL, 0) : 42;
	struct model m;

	setenv("GPUTRACE_EXTENT", "8K", 1);
	setenv("GPUTRACE_CELLS", "64", 1);
	setenv("GPUTRACE_RING", "96K", 1);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	program_make(&program, 7, CALLS);
	model_make(&m, &program);
	for (unsigned long i = 0; i < times; i++) {
		const char *why = "the child did not start";

		if (!kill_one(i % 4 ? CALLS / 4 * 3 : CALLS / 100, &r)) {
			model_rewind(&m);
			why = judge(&m, &sums);
		}
		if (!why)
			continue;
		bad++;
		printf("# kill %lu: %s: %s\n", i, shared->path, why);
	}
	printf("# %lu kills, %lu lanes (%lu ahead of their calls), %lu events, %lu kept, %lu "
	       "fills\n",
	       times, sums.lanes, sums.ahead, sums.events, sums.kept, sums.fills);
	if (!sums.ahead || sums.kept == sums.events) {
		printf("not ok killed: never killed inside a call, or nothing recycled\n");
		return 1;
	}
	printf(bad ? "not ok killed: %lu of %lu files bad\n" : "ok killed\n", bad, times);
	return bad != 0;
}
