/* SPDX-License-Identifier: MIT */
/*
 * oom.c - a program without PyTorch that runs out of memory: once it recovers, once it does not.
 *
 * With devices of 8 GiB: 7 allocations of 1 GiB and 1 of 512 MiB; a request for 1 GiB is refused;
 * 2 frees of 1 GiB; the same request succeeds (recovered); 1 more of 1 GiB succeeds; the next is
 * refused and the program ends with status 1. Together 10 allocations, 2 frees and 2 refusals, 8
 * blocks and 7.5 GiB live at the end. On devices of another size the numbers scale: the program
 * fills the device to one eighth less a half.
 */
#include <cuda.h>
#include <stdio.h>

__attribute__((noinline)) static CUresult take(CUdeviceptr *ptr, size_t size)
{
	return cuMemAlloc(ptr, size);
}

__attribute__((noinline)) static int load_weights(CUdeviceptr weights[8], size_t eighth)
{
	for (int i = 0; i < 7; i++) {
		if (take(&weights[i], eighth))
			return -1;
	}
	return take(&weights[7], eighth / 2) ? -1 : 0;
}

__attribute__((noinline)) static int evaluate(CUdeviceptr weights[8], size_t eighth)
{
	CUdeviceptr batch;

	if (take(&batch, eighth) != CUDA_ERROR_OUT_OF_MEMORY)
		return -1;
	cuMemFree(weights[0]);
	cuMemFree(weights[1]);
	return take(&weights[0], eighth) ? -1 : 0;
}

__attribute__((noinline)) static CUresult train(CUdeviceptr weights[8], size_t eighth)
{
	CUdeviceptr batch;
	CUresult rc = take(&weights[1], eighth);

	return rc ? rc : take(&batch, eighth);
}

int main(void)
{
	CUdeviceptr weights[8];
	size_t free_bytes, total;
	CUcontext ctx;
	CUresult rc;

	if (cuInit(0) || cuDevicePrimaryCtxRetain(&ctx, 0) || cuCtxSetCurrent(ctx) ||
	    cuMemGetInfo(&free_bytes, &total))
		return 2;
	if (load_weights(weights, total / 8) || evaluate(weights, total / 8))
		return 2;
	rc = train(weights, total / 8);
	printf("the last request returned %d\n", (int)rc);
	return rc == CUDA_ERROR_OUT_OF_MEMORY ? 1 : 2;
}
