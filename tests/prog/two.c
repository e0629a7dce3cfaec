/* SPDX-License-Identifier: MIT */
/*
 * two.c - a program and a library of its own (-DLIBRARY), each with a static runtime inside.
 *
 * The program makes 3 allocations of 1 MiB and the library 2 of 3 MiB; the program frees one of
 * its own and one of the library's. 3 blocks stay: 1 MiB twice and 3 MiB, 5,242,880 bytes.
 */
#include <cuda_runtime_api.h>
#include <stdio.h>

#define MIB ((size_t)1 << 20)

int library_alloc(void **ptr);

#ifdef LIBRARY

int library_alloc(void **ptr)
{
	return (int)cudaMalloc(ptr, 3 * MIB);
}

#else

int main(void)
{
	void *own[3], *other[2];
	int wrong = 0;

	for (int i = 0; i < 3; i++)
		wrong += cudaMalloc(&own[i], MIB) != cudaSuccess;
	for (int i = 0; i < 2; i++)
		wrong += library_alloc(&other[i]) != 0;
	wrong += cudaFree(own[1]) != cudaSuccess;
	wrong += cudaFree(other[0]) != cudaSuccess;
	wrong += cudaFree(other[0]) != cudaErrorInvalidValue;
	printf("allocations 5 frees 2 live 3 bytes 5242880 wrong %d\n", wrong);
	return wrong != 0;
}

#endif
