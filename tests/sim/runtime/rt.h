/* SPDX-License-Identifier: MIT */
/*
 * rt.h - what the parts of the simulated CUDA runtime share.
 *
 * The runtime is compiled once per major version, against that version's own headers. It keeps no
 * memory of its own: every call ends in the driver function that the real runtime would call,
 * through the pointers that the driver's resolver gave at start (load.c).
 */
#ifndef GT_SIM_RT_H
#define GT_SIM_RT_H

#include <cuda_runtime_api.h>
#define __CUDA_API_VERSION_INTERNAL /* after the runtime's header: there it renames functions */
#include <cuda.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FIELD_TWIN_none(symbol)
#define FIELD_TWIN_ptsz(symbol) void *symbol##_ptsz;
#define FIELD_TWIN_ptds(symbol) void *symbol##_ptds;
#define FIELDS_rt(symbol, twin) \
	void *symbol;           \
	FIELD_TWIN_##twin(symbol)
#define FIELDS_rt0(symbol, twin)  void *symbol;
#define FIELDS_rt12(symbol, twin) void *symbol;
#define FIELDS_self(symbol, twin) void *symbol;
#define FIELDS_drv(symbol, twin)

/* One pointer per driver function that the runtime asks for, and one for its twin. */
struct rt_driver {
#define SIM_FN(name, since, symbol, twin, asked) FIELDS_##asked(symbol, twin)
#define SIM_NO					 SIM_FN
#include "../driver/driver.def"
#undef SIM_FN
#undef SIM_NO
};

extern struct rt_driver rt_driver;

/* The driver function with its own type: DRV(cuMemAlloc_v2)(&ptr, size). */
#define DRV(symbol) ((__typeof__(&symbol))rt_driver.symbol)

/* load.c */
cudaError_t rt_load(void);
CUresult rt_resolve(const char *name, void **ret_pfn, int version, unsigned long long flags,
		    CUdriverProcAddressQueryResult *ret_status);

/* device.c: the runtime's lazy start; the current device's primary context is made current. */
cudaError_t rt_enter(void);

/* launch.c: the driver's function for a compiled-in kernel, loaded when it is first asked for. */
cudaError_t rt_kernel(const void *host, CUfunction *ret_function);

/* error.c: remembers a failure for cudaGetLastError and returns it. */
cudaError_t rt_fail(cudaError_t error);

static inline cudaError_t rt_result(CUresult rc)
{
	return rc == CUDA_SUCCESS ? cudaSuccess : rt_fail((cudaError_t)rc);
}

/* The body of a runtime call that is one driver call. */
#define RT_CALL(symbol, ...)                                                      \
	do {                                                                      \
		cudaError_t enter_rc = rt_enter();                                \
		return enter_rc ? enter_rc : rt_result(DRV(symbol)(__VA_ARGS__)); \
	} while (0)

#define RT_PTR(pointer) ((CUdeviceptr)(uintptr_t)(pointer))

#endif
