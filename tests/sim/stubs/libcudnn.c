/* SPDX-License-Identifier: MIT */
/* libcudnn.c - what must not be 0 in cuDNN: its version, as the wheel wants it, and handles. */
#include "handle.h"

#include <stddef.h>

#ifndef CUDNN_MAJOR
#error "the wheel does not say which cuDNN it wants"
#endif

size_t cudnnGetVersion(void);
size_t cudnnGetCudartVersion(void);

/* From version 9 on the major number counts 10,000, before 1,000. */
size_t cudnnGetVersion(void)
{
	return (CUDNN_MAJOR >= 9 ? 10000 : 1000) * CUDNN_MAJOR + 100 * CUDNN_MINOR + CUDNN_PATCH;
}

size_t cudnnGetCudartVersion(void)
{
	return 13000;
}

STUB_CREATE(cudnnCreate)
STUB_DESTROY(cudnnDestroy)
STUB_TEXT(cudnnGetErrorString)
