/* SPDX-License-Identifier: MIT */
/* libcusparse.c - what must not be 0 in cuSPARSE: the handle and the texts. */
#include "handle.h"

STUB_CREATE(cusparseCreate)
STUB_DESTROY(cusparseDestroy)
STUB_TEXT(cusparseGetErrorString)
