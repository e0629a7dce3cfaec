/* SPDX-License-Identifier: MIT */
/*
 * Without PyTorch: a function of a library that keeps a buffer of each call, called until the device
 * is full. Exit status 1 when it is refused.
 */
#include <cuda.h>

__attribute__((noinline)) static CUresult exchange(CUdeviceptr *ret)
{
	return cuMemAlloc(ret, 24 << 20);
}

__attribute__((noinline)) static CUresult leak_step(void)
{
	CUdeviceptr field, halo;
	CUresult rc = cuMemAlloc(&field, 64 << 20);

	if (rc)
		return rc;
	rc = exchange(&halo); /* the fault: library_leak */
	cuMemFree(field);
	return rc;
}

int main(void)
{
	CUdeviceptr grid;
	CUcontext ctx;

	if (cuInit(0) || cuDevicePrimaryCtxRetain(&ctx, 0) || cuCtxSetCurrent(ctx) ||
	    cuMemAlloc(&grid, 512 << 20))
		return 2;
	while (!leak_step())
		continue;
	return 1;
}
