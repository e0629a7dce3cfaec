/* SPDX-License-Identifier: MIT */
/*
 * work.c - the fixed traffic of work.h. Prints nothing that differs from run to run, so that two
 * outputs can be compared byte by byte.
 */
#include "work.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>

#define PLAIN	13
#define PITCHED 3

static int wrong; /* calls with a result other than the expected one */

/* The driver leaves errno alone, and so must whoever stands between it and us. */
static void report(const char *call, int rc, int expected)
{
	printf("%s %d errno %d\n", call, rc, errno);
	if (rc != expected)
		wrong++;
	errno = EXDEV;
}

static void allocate(const struct calls *c, CUdeviceptr plain[PLAIN], CUdeviceptr pitched[PITCHED])
{
	for (size_t i = 0; i < PLAIN; i++) {
		report("alloc", c->alloc(&plain[i], (size_t)512 << i % 11), 0);
		if (plain[i] % 512)
			wrong++;
	}
	for (size_t i = 0; i < PITCHED; i++) {
		size_t pitch = 0;

		report("alloc_pitch", c->alloc_pitch(&pitched[i], &pitch, 1000 * (i + 1), 64, 4),
		       0);
		printf("pitch %zu\n", pitch);
	}
}

static void refused(const struct calls *c, CUdeviceptr freed)
{
	CUdeviceptr ptr = 0x1234;

	report("alloc 1 TiB", c->alloc(&ptr, (size_t)1 << 40), CUDA_ERROR_OUT_OF_MEMORY);
	/* Nothing was handed out: the pointer is as it was, or NULL where the runtime clears it. */
	if (ptr != 0x1234 && ptr)
		wrong++;
	report("second free", c->free(freed), CUDA_ERROR_INVALID_VALUE);
	report("wild free", c->free(0x12345600), CUDA_ERROR_INVALID_VALUE);
}

static void others(const struct calls *c)
{
	CUdeviceptr managed = 0, first = 0, second = 0;

	report("alloc_managed", c->alloc_managed(&managed, 70000, CU_MEM_ATTACH_GLOBAL), 0);
	report("alloc_async", c->alloc_async(&first, 30000, NULL), 0);
	report("alloc_async", c->alloc_async(&second, 50000, NULL), 0);
	report("free_async", c->free_async(first, NULL), 0);
	report("free", c->free(second), 0);
	report("free", c->free(managed), 0);
}

int work(const struct calls *c)
{
	CUdeviceptr plain[PLAIN], pitched[PITCHED], zero = 0;
	size_t before = 0, after = 0, total = 0;

	errno = EXDEV;
	report("mem_info", c->mem_info(&before, &total), 0);
	allocate(c, plain, pitched);
	others(c);
	for (int i = 0; i < PLAIN; i++) {
		if (i < 8 || i > 10)
			report("free", c->free(plain[i]), 0);
	}
	refused(c, plain[0]);
	printf("alloc 0 bytes %d\n", c->alloc(&zero, 0));
	report("mem_info", c->mem_info(&after, &total), 0);
	printf("total %zu used by the blocks %zu\n", total, before - after);
	printf("dlerror %s\n", dlerror() ? "set" : "none");
	printf("allocations 19 frees 13 live 6 bytes 1310720 wrong %d\n", wrong);
	return wrong != 0;
}

int start(int (*init)(unsigned int), int (*retain)(CUcontext *, CUdevice),
	  int (*set_current)(CUcontext))
{
	CUcontext ctx;
	int rc = init(0);

	rc = rc ? rc : retain(&ctx, 0);
	rc = rc ? rc : set_current(ctx);
	if (rc)
		fprintf(stderr, "no device: error %d\n", rc);
	return rc;
}
