/* SPDX-License-Identifier: MIT */
/*
 * work.h - one fixed piece of memory traffic, for programs that reach the driver in different ways.
 *
 * work() makes 19 allocations: 13 plain, 3 pitched, 1 managed, 2 stream-ordered; 13 frees (10
 * plain, 1 managed, 2 stream-ordered, of which one by the plain free), and 4 calls that are
 * refused: an allocation of 1 TiB, one of 0 bytes, a second free and a free of a wild address.
 * 6 blocks stay: plain ones of 131,072, 262,144 and 524,288 bytes and pitched ones of 1,024 x 64,
 * 2,048 x 64 and 3,072 x 64, together 1,310,720 bytes.
 */
#ifndef GT_PROG_WORK_H
#define GT_PROG_WORK_H

#include <cuda.h>
#include <stddef.h>

/* The calls, as this program has got hold of them. Runtime calls are wrapped to fit. */
struct calls {
	int (*alloc)(CUdeviceptr *ptr, size_t size);
	int (*alloc_pitch)(CUdeviceptr *ptr, size_t *pitch, size_t width, size_t height,
			   unsigned int element);
	int (*alloc_managed)(CUdeviceptr *ptr, size_t size, unsigned int flags);
	int (*alloc_async)(CUdeviceptr *ptr, size_t size, CUstream stream);
	int (*free)(CUdeviceptr ptr);
	int (*free_async)(CUdeviceptr ptr, CUstream stream);
	int (*mem_info)(size_t *free_bytes, size_t *total);
};

/* Prints the result of every call, errno after it, and what is left; 0 when all is as it must be.
 */
int work(const struct calls *calls);

/* Makes the first device's primary context current, through these driver functions. */
int start(int (*init)(unsigned int), int (*retain)(CUcontext *, CUdevice),
	  int (*set_current)(CUcontext));

#endif
