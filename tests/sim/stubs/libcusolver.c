/* SPDX-License-Identifier: MIT */
/* libcusolver.c - what must not be 0 in cuSOLVER: the handle. */
#include "handle.h"

STUB_CREATE(cusolverDnCreate)
STUB_DESTROY(cusolverDnDestroy)
