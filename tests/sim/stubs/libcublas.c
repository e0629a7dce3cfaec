/* SPDX-License-Identifier: MIT */
/* libcublas.c - what must not be 0 in cuBLAS: the handle and the texts. */
#include "handle.h"

STUB_CREATE(cublasCreate_v2)
STUB_DESTROY(cublasDestroy_v2)
STUB_TEXT(cublasGetStatusString)
STUB_TEXT(cublasGetStatusName)
