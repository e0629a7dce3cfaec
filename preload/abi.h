/* SPDX-License-Identifier: MIT */
/*
 * The types of hooks.def: what CUDA's and torch's headers call these things is laid out and passed
 * the same way, so that the library compiles without them. The tests compare with the headers.
 */
#ifndef GT_ABI_H
#define GT_ABI_H

#include <stddef.h>
#include <stdint.h>

typedef unsigned long long gt_ptr;    /* CUdeviceptr */
typedef unsigned long long gt_handle; /* CUmemGenericAllocationHandle */
typedef void *gt_stream;
typedef void *gt_context;

struct gt_vmm_prop { /* head of CUmemAllocationProp */
	int type, handle_types;
	int location_type, location_id;
};

struct gt_torch_device { /* c10::Device, passed by value in one register */
	int8_t type, index;
};

#endif
