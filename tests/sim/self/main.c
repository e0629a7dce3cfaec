/* SPDX-License-Identifier: MIT */
/*
 * main.c - runs the cases of the simulator's self test and prints a line for each.
 */
#include "self.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *running;

void self_equal(const char *file, int line, const char *what, long long got, long long wanted)
{
	const char *slash = strrchr(file, '/');

	if (got == wanted)
		return;
	printf("not ok %s: %s:%d: %s is %lld, not %lld\n", running, slash ? slash + 1 : file, line,
	       what, got, wanted);
	fflush(stdout);
	_exit(1);
}

CUcontext self_start(void)
{
	CUcontext ctx;

	OK(cuInit(0));
	OK(cuDevicePrimaryCtxRetain(&ctx, 0));
	OK(cuCtxSetCurrent(ctx));
	return ctx;
}

size_t self_free_bytes(void)
{
	size_t free_bytes, total;

	OK(cuMemGetInfo_v2(&free_bytes, &total));
	return free_bytes;
}

size_t self_bytes(int device, enum gt_sim_family family)
{
	struct gt_sim_books books;

	OK(gtSimBooks(device, &books));
	return books.bytes[family];
}

static void set_environment(const char *env)
{
	char *copy = env ? strdup(env) : NULL;

	for (char *word = copy ? strtok(copy, " ") : NULL; word; word = strtok(NULL, " "))
		putenv(word);
}

static int run_case(const struct self_case *c)
{
	int status = 1;
	pid_t child;

	running = c->name;
	fflush(stdout);
	child = fork();
	if (child == 0) {
		set_environment(c->env);
		alarm(60);
		c->run();
		printf("ok %s\n", c->name);
		fflush(stdout);
		_exit(0);
	}
	if (child < 0 || waitpid(child, &status, 0) != child || WIFSIGNALED(status))
		printf("not ok %s: ended by signal %d\n", c->name, WTERMSIG(status));
	return status != 0;
}

int main(void)
{
	const struct self_case *suites[] = {
		self_resolver_cases, self_memory_cases, self_object_cases, self_pool_cases,
		self_graph_cases,    self_share_cases,	self_context_cases};
	int failed = 0;

	for (size_t i = 0; i < sizeof(suites) / sizeof(suites[0]); i++) {
		for (const struct self_case *c = suites[i]; c->name; c++)
			failed += run_case(c);
	}
	return failed != 0;
}
