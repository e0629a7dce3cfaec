/* SPDX-License-Identifier: MIT */
/*
 * chaos_ipc.c - the other process of the chaos program: it exports blocks and handles, and waits.
 */
#include "chaos.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

struct chaos_exports chaos_exports;
static int to_exporter = -1;
static pid_t exporter;

static CUresult export_all(struct chaos_exports *all)
{
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
				    .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0},
				    .requestedHandleTypes =
					    CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR};
	CUmemGenericAllocationHandle handle;
	CUdeviceptr ptr;
	CUcontext ctx;
	CUresult rc = cuInit(0);

	rc = rc ? rc : cuDevicePrimaryCtxRetain(&ctx, 0);
	rc = rc ? rc : cuCtxSetCurrent(ctx);
	for (int i = 0; i < CHAOS_EXPORTED && !rc; i++) {
		rc = cuMemAlloc(&ptr, (size_t)(i + 1) * 100000);
		rc = rc ? rc : cuIpcGetMemHandle(&all->blocks[i], ptr);
		rc = rc ? rc : cuMemCreate(&handle, (size_t)(i + 1) * 2 * MIB, &prop, 0);
		rc = rc ? rc
			: cuMemExportToShareableHandle(&all->fds[i], handle,
						       CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
	}
	return rc;
}

static void export_and_wait(int out, int in)
{
	struct chaos_exports all = {.pid = getpid()};
	char byte;
	int ok = !export_all(&all) && write(out, &all, sizeof(all)) == (ssize_t)sizeof(all);

	close(out);
	if (ok && read(in, &byte, 1) < 0)
		ok = 0;
	_exit(!ok);
}

int chaos_start_exporter(void)
{
	int here[2], there[2];
	ssize_t got;

	if (pipe(here) || pipe(there))
		return -1;
	exporter = fork();
	if (exporter < 0)
		return -1;
	if (!exporter) {
		close(here[0]);
		close(there[1]);
		export_and_wait(here[1], there[0]);
	}
	close(here[1]);
	close(there[0]);
	to_exporter = there[1];
	got = read(here[0], &chaos_exports, sizeof(chaos_exports));
	close(here[0]);
	if (got == (ssize_t)sizeof(chaos_exports))
		return 0;
	fprintf(stderr, "the exporting process could not use the driver\n");
	return -1;
}

void chaos_stop_exporter(void)
{
	close(to_exporter);
	waitpid(exporter, NULL, 0);
}
