/* SPDX-License-Identifier: MIT */
/*
 * Call sites in any number: a site is a path through a tree of calls, so each has a stack of its own.
 * Included by one file of a program.
 */
#ifndef SITES_H
#define SITES_H

#include <cuda.h>
#include <stddef.h>

static CUresult descend(CUdeviceptr *ptr, size_t size, size_t path);

/* Two functions and not a loop, so that the bits of the site become frames of the stack. */
__attribute__((noinline)) static CUresult left(CUdeviceptr *ptr, size_t size, size_t path)
{
	CUresult rc = descend(ptr, size, path >> 1);

	/* Keeps the call from becoming a jump and the two functions from becoming one. */
	__asm__ volatile("# left" ::: "memory");
	return rc;
}

__attribute__((noinline)) static CUresult right(CUdeviceptr *ptr, size_t size, size_t path)
{
	CUresult rc = descend(ptr, size, path >> 1);

	__asm__ volatile("# right" ::: "memory");
	return rc;
}

/* path: the site + 2; its bits say where to go, and it ends in its highest set bit. */
static CUresult descend(CUdeviceptr *ptr, size_t size, size_t path)
{
	if (path <= 1)
		return cuMemAlloc(ptr, size);
	return path & 1 ? right(ptr, size, path) : left(ptr, size, path);
}

#endif
