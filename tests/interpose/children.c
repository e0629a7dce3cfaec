/* SPDX-License-Identifier: MIT */
/*
 * A process that has recorded makes children in several ways. Those that do nothing with CUDA, or
 * whose calls the driver refuses, must leave no file and the parent's alone.
 *
 * usage: children quiet|active PROGRAM      active: the child allocates too (where the driver lets
 * it)
 */
#include <dlfcn.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <signal.h>
#include <unistd.h>

int cuInit(unsigned flags);
int cuDevicePrimaryCtxRetain(void **context, int device);
int cuCtxSetCurrent(void *context);
int cuMemAlloc_v2(uint64_t *p, size_t size);
int cuMemFree_v2(uint64_t p);

extern char **environ;

static void need(int rc, const char *what)
{
	if (!rc)
		return;
	printf("%s: %d\n", what, rc);
	exit(4);
}

static int status_of(pid_t pid)
{
	int status = -1;

	waitpid(pid, &status, 0);
	return status;
}

static void child(int active, uint64_t p)
{
	uint64_t q = 0;
	int rc = 0;

	if (active)
		for (int i = 0; i < 5; i++)
			rc |= cuMemAlloc_v2(&q, 700);
	else
		rc = cuMemFree_v2(p); /* refused: a forked child may not use the driver */
	exit(active ? rc != 0 : rc == 0);
}

int main(int argc, char **argv)
{
	int active = argc > 1 && !strcmp(argv[1], "active");
	char *args[] = {argv[2], "-c", "exit 7", NULL};
	uint64_t p[17];
	void *context;
	pid_t pid;

	need(cuInit(0), "init");
	need(cuDevicePrimaryCtxRetain(&context, 0), "retain");
	need(cuCtxSetCurrent(context), "current");
	for (int i = 0; i < 17; i++)
		need(cuMemAlloc_v2(&p[i], 600), "alloc");
	fflush(stdout);
	pid = fork();
	if (!pid)
		child(active, p[0]);
	printf("fork %x\n", status_of(pid));
	pid = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
	if (!pid)
		child(active, p[0]);
	printf("clone %x\n", status_of(pid));
	pid = vfork();
	if (!pid)
		_exit(5);
	printf("vfork %x\n", status_of(pid));
	need(posix_spawn(&pid, argv[2], NULL, NULL, args, environ), "spawn");
	printf("spawn %x\n", status_of(pid));
	for (int i = 0; i < 11; i++)
		need(cuMemFree_v2(p[i]), "free");
	return 0;
}
