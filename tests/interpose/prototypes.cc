/* SPDX-License-Identifier: MIT */
/*
 * Are the prototypes of hooks.def those of cuda.h? Compiled, never run: each name that the header
 * has (NAMES, made by the test) must be passed the same way: as many parameters, each an integer of
 * the same size or a pointer, and behind a pointer to an integer one of the same size.
 */
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>
#include <type_traits>

#include "../../preload/abi.h"

template <typename T> constexpr bool number = std::is_integral_v<T> || std::is_enum_v<T>;
template <typename A, typename B>
constexpr bool number_like = [] {
	if constexpr (number<A> && number<B>)
		return sizeof(A) == sizeof(B);
	return false;
}();

template <typename T> using target = std::remove_cv_t<std::remove_pointer_t<T>>;
template <typename T> constexpr bool plain = number<target<T>>;

template <typename A, typename B>
constexpr bool pointer_like = std::is_pointer_v<A> &&std::is_pointer_v<B> &&
			      (!plain<A> || !plain<B> || number_like<target<A>, target<B>>);

/* A structure by value: in registers or on the stack by its size, if it is plain data. */
template <typename A, typename B>
constexpr bool record_like = std::is_class_v<A> &&std::is_class_v<B> &&
			     sizeof(A) == sizeof(B) && std::is_trivially_copyable_v<A>;

template <typename A, typename B>
constexpr bool passed_alike = number_like<A, B> || pointer_like<A, B> || record_like<A, B>;

template <typename A, typename B> constexpr bool alike = false;
template <typename R1, typename... A1, typename R2, typename... A2>
constexpr bool alike<R1 (*)(A1...), R2 (*)(A2...)> = [] {
	if constexpr (sizeof...(A1) == sizeof...(A2))
		return number_like<R1, R2> && (passed_alike<A1, A2> && ...);
	return false;
}();

/* A test that cannot fail is none. */
static_assert(alike<int (*)(long *), int (*)(unsigned long *)>);
static_assert(!alike<int (*)(int *), int (*)(long *)> && !alike<int (*)(int), int (*)(long)>);
static_assert(!alike<int (*)(int), int (*)(int, int)> && !alike<int (*)(int), int (*)(int *)>);

#define GT_DRIVER(kind, name, result, parameters, arguments, rule) \
	typedef result(*our_##name) parameters;
#define GT_CALL(name, result, parameters) typedef result(*our_##name) parameters;
#include "../../preload/hooks.def"

#define NAME(name) static_assert(alike<decltype(&::name), our_##name>, #name);
#include NAMES

static_assert(offsetof(gt_vmm_prop, location_type) ==
	      offsetof(CUmemAllocationProp, location) + offsetof(CUmemLocation, type));
static_assert(offsetof(gt_vmm_prop, location_id) ==
	      offsetof(CUmemAllocationProp, location) + offsetof(CUmemLocation, id));
static_assert((int)CU_MEM_LOCATION_TYPE_DEVICE == 1 && (int)CUDA_ERROR_CONTEXT_IS_DESTROYED == 709);
static_assert((int)CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL == 9 && (int)CUDA_ERROR_DEINITIALIZED == 4);

/* Structures, as far as they are looked into. */
#define SAME(ours, field, theirs, as) static_assert(offsetof(ours, field) == offsetof(theirs, as))

static_assert(sizeof(gt_ipc_handle) == sizeof(CUipcMemHandle));
static_assert(sizeof(gt_array_v2) == sizeof(CUDA_ARRAY_DESCRIPTOR_v2));
static_assert(sizeof(gt_array3d) == sizeof(CUDA_ARRAY3D_DESCRIPTOR_v2));
SAME(gt_vmm_prop, location_id, CUmemPoolProps, location.id);
SAME(gt_array_v2, format, CUDA_ARRAY_DESCRIPTOR_v2, Format);
SAME(gt_array3d, channels, CUDA_ARRAY3D_DESCRIPTOR_v2, NumChannels);
SAME(gt_array3d, flags, CUDA_ARRAY3D_DESCRIPTOR_v2, Flags);
SAME(gt_array_v1, channels, CUDA_ARRAY_DESCRIPTOR_v1, NumChannels);
SAME(gt_array3d_v1, flags, CUDA_ARRAY3D_DESCRIPTOR_v1, Flags);
SAME(gt_external, size, CUDA_EXTERNAL_MEMORY_HANDLE_DESC, size);
SAME(gt_external_buffer, size, CUDA_EXTERNAL_MEMORY_BUFFER_DESC, size);
SAME(gt_graph_alloc, size, CUDA_MEM_ALLOC_NODE_PARAMS, bytesize);
SAME(gt_graph_alloc, ptr, CUDA_MEM_ALLOC_NODE_PARAMS, dptr);
SAME(gt_graph_node, alloc.ptr, CUgraphNodeParams, alloc.dptr);
SAME(gt_graph_node, free, CUgraphNodeParams, free.dptr);
static_assert((int)CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT == 5);
static_assert((int)CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT == 2);
static_assert((int)CU_POINTER_ATTRIBUTE_CONTEXT == 1 &&
	      (int)CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE == 17);
static_assert((int)CU_GRAPH_NODE_TYPE_MEM_ALLOC == 10 && (int)CU_GRAPH_NODE_TYPE_MEM_FREE == 11);
static_assert((int)CU_STREAM_CAPTURE_STATUS_NONE == 0);
