/* SPDX-License-Identifier: MIT */
/*
 * error.c - the runtime's last error and the texts.
 */
#include "rt.h"

static __thread cudaError_t last;

static const struct error {
	int code;
	const char *name, *text;
} errors[] = {
#define SIM_ERROR(code, driver, runtime, text) {code, "cuda" #runtime, text},
#include "../errors.def"
#undef SIM_ERROR
};

cudaError_t rt_fail(cudaError_t error)
{
	last = error;
	return error;
}

cudaError_t CUDARTAPI cudaGetLastError(void)
{
	cudaError_t error = last;

	last = cudaSuccess;
	return error;
}

cudaError_t CUDARTAPI cudaPeekAtLastError(void)
{
	return last;
}

static const struct error *find(cudaError_t code)
{
	static const struct error unknown = {-1, "unrecognized error code",
					     "unrecognized error code"};

	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		if (errors[i].code == (int)code)
			return &errors[i];
	}
	return &unknown;
}

const char *CUDARTAPI cudaGetErrorName(cudaError_t code)
{
	return find(code)->name;
}

const char *CUDARTAPI cudaGetErrorString(cudaError_t code)
{
	return find(code)->text;
}
