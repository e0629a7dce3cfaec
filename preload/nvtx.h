/* SPDX-License-Identifier: MIT */
/*
 * What NVTX (version 3) and a tool tell each other, as far as we use it: tables of functions that
 * the tool may set, and the attributes of a mark or range. NVIDIA keeps this binary interface
 * stable; the tests compare it with the headers.
 */
#ifndef GT_NVTX_H
#define GT_NVTX_H

#include <stddef.h>
#include <stdint.h>

enum { GT_NVTX_CALLBACKS = 1 }; /* id of an export table */

typedef void gt_nvtx_function(void);

struct gt_nvtx_callbacks {
	size_t size;
	/* The table's entries say where the pointers are; entry 0 is none. Non-zero: there it is.
	 */
	int (*table)(int module, gt_nvtx_function ***ret, unsigned *ret_size);
};

/* Numbers of the functions in their module's table. */
enum { GT_NVTX_CORE = 1, GT_NVTX_CORE2 = 5 };
enum {
	GT_NVTX_MARK_EX = 1,
	GT_NVTX_MARK_A = 2,
	GT_NVTX_MARK_W = 3,
	GT_NVTX_START_EX = 4,
	GT_NVTX_START_A = 5,
	GT_NVTX_START_W = 6,
	GT_NVTX_END = 7,
	GT_NVTX_PUSH_EX = 8,
	GT_NVTX_PUSH_A = 9,
	GT_NVTX_PUSH_W = 10,
	GT_NVTX_POP = 11,
};
enum {
	GT_NVTX2_MARK_EX = 1,
	GT_NVTX2_START_EX = 2,
	GT_NVTX2_END = 3,
	GT_NVTX2_PUSH_EX = 4,
	GT_NVTX2_POP = 5,
	GT_NVTX2_REGISTER_A = 10,
	GT_NVTX2_REGISTER_W = 11,
	GT_NVTX2_CREATE_A = 12,
	GT_NVTX2_CREATE_W = 13,
};

enum { GT_NVTX_ASCII = 1, GT_NVTX_WIDE = 2, GT_NVTX_REGISTERED = 3 };

struct gt_nvtx_attributes {
	uint16_t version, size; /* size: how much of this is there */
	uint32_t category;
	int32_t color_type;
	uint32_t color;
	int32_t payload_type, reserved;
	uint64_t payload;
	int32_t message_type;
	const void *message;
};
_Static_assert(offsetof(struct gt_nvtx_attributes, message) == 40, "NVTX has it there");

enum { GT_NVTX_NO_LEVEL = -2 }; /* push and pop: depth is not told */

#endif
