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

template <typename A, typename B>
constexpr bool passed_alike = number_like<A, B> || pointer_like<A, B>;

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
