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
typedef void *gt_array; /* CUarray, CUmipmappedArray */

struct gt_vmm_prop { /* head of CUmemAllocationProp and of CUmemPoolProps */
	int type, handle_types;
	int location_type, location_id;
};

struct gt_array_v1 { /* CUDA_ARRAY_DESCRIPTOR_v1 */
	uint32_t width, height;
	int format;
	uint32_t channels;
};

struct gt_array_v2 { /* CUDA_ARRAY_DESCRIPTOR_v2 */
	size_t width, height;
	int format;
	uint32_t channels;
};

struct gt_array3d_v1 { /* CUDA_ARRAY3D_DESCRIPTOR_v1 */
	uint32_t width, height, depth;
	int format;
	uint32_t channels, flags;
};

struct gt_array3d { /* CUDA_ARRAY3D_DESCRIPTOR_v2 */
	size_t width, height, depth;
	int format;
	uint32_t channels, flags;
};

struct gt_ipc_handle { /* CUipcMemHandle, passed by value */
	char reserved[64];
};

struct gt_external { /* head of CUDA_EXTERNAL_MEMORY_HANDLE_DESC */
	int type;
	void *handle[2];
	unsigned long long size;
};

struct gt_external_buffer { /* head of CUDA_EXTERNAL_MEMORY_BUFFER_DESC */
	unsigned long long offset, size;
};

struct gt_graph_alloc { /* CUDA_MEM_ALLOC_NODE_PARAMS: CUmemPoolProps, then */
	struct gt_vmm_prop pool;
	char rest_of_pool[72];
	const void *access;
	size_t access_count, size;
	gt_ptr ptr;
};

struct gt_graph_node { /* CUgraphNodeParams, as far as it concerns memory */
	int type, reserved[3];
	union {
		struct gt_graph_alloc alloc;
		gt_ptr free;
	};
};

typedef const void *gt_nvtx_export_table(uint32_t id); /* NvtxGetExportTableFunc_t */

struct gt_torch_device { /* c10::Device, passed by value in one register */
	int8_t type, index;
};

#endif
