/* SPDX-License-Identifier: MIT */
/* libnccl.c - what must not be 0 in NCCL: its version and the texts. */
#include "handle.h"

#ifndef NCCL_MAJOR
#error "the wheel does not say which NCCL it wants"
#endif

int ncclGetVersion(int *version);

int ncclGetVersion(int *version)
{
	*version = NCCL_MAJOR * 10000 + NCCL_MINOR * 100 + NCCL_PATCH;
	return 0;
}

STUB_TEXT(ncclGetErrorString)
STUB_TEXT(ncclGetLastError)
