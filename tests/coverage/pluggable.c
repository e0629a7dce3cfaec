/* SPDX-License-Identifier: MIT */
/*
 * pluggable.c - an allocator that PyTorch is told to use instead of its own: each tensor is one call
 * of the runtime's, from this library.
 */
#include <stddef.h>

int cudaMalloc(void **out, size_t size);
int cudaFree(void *ptr);
int cudaSetDevice(int device);

void *take(ptrdiff_t size, int device, void *stream);
void give(void *ptr, ptrdiff_t size, int device, void *stream);

void *take(ptrdiff_t size, int device, void *stream)
{
	void *ptr = NULL;

	if (cudaSetDevice(device) || cudaMalloc(&ptr, (size_t)size))
		return NULL;
	return ptr;
}

void give(void *ptr, ptrdiff_t size, int device, void *stream)
{
	cudaFree(ptr);
}
