/* SPDX-License-Identifier: MIT */
/*
 * error.c - names and texts of the driver's result codes.
 */
#include "sim.h"

static const struct error {
	int code;
	const char *name, *text;
} errors[] = {
#define SIM_ERROR(code, driver, runtime, text) {code, "CUDA_" #driver, text},
#include "../errors.def"
#undef SIM_ERROR
};

static const struct error *find(CUresult code)
{
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		if (errors[i].code == (int)code)
			return &errors[i];
	}
	return NULL;
}

CUresult CUDAAPI cuGetErrorString(CUresult code, const char **text)
{
	const struct error *error = find(code);

	*text = error ? error->text : NULL;
	return error ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult CUDAAPI cuGetErrorName(CUresult code, const char **name)
{
	const struct error *error = find(code);

	*name = error ? error->name : NULL;
	return error ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
