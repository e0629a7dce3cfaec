/* SPDX-License-Identifier: MIT */
/*
 * Without PyTorch: a loader that pins a buffer of each file, until the host has no more to pin; the device
 * is nearly empty. Exit status 1 when it is refused.
 */
#include <cuda.h>

__attribute__((noinline)) static CUresult read_file(void)
{
	void *buffer;

	return cuMemHostAlloc(&buffer, 64 << 20, 0); /* the fault: pinned_buffers */
}

int main(void)
{
	CUdeviceptr batch;
	CUcontext ctx;

	if (cuInit(0) || cuDevicePrimaryCtxRetain(&ctx, 0) || cuCtxSetCurrent(ctx) ||
	    cuMemAlloc(&batch, 256 << 20))
		return 2;
	while (!read_file())
		continue;
	return 1;
}
