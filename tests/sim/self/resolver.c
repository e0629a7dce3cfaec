/* SPDX-License-Identifier: MIT */
/*
 * resolver.c - cuGetProcAddress and cuGetProcAddress_v2 against the real driver's rules.
 */
#include "self.h"

#include <dlfcn.h>
#include <stdint.h>

#define POISON ((void *)0x5A5A5A5A)

static void *exported(const char *symbol)
{
	return dlsym(RTLD_DEFAULT, symbol);
}

/* All of this comes before cuInit: resolvers are entry points of their own. */
static void probe(void)
{
	CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SUCCESS;
	void *pfn = POISON;

	EQUAL(cuGetProcAddress_v2("", &pfn, 0, 0, &status), CUDA_SUCCESS);
	EQUAL(pfn, NULL);
	EQUAL(status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
	pfn = POISON;
	EQUAL(cuGetProcAddress_v2("", &pfn, 0, 0, NULL), CUDA_SUCCESS);
	EQUAL(pfn, NULL);
}

static void miss(const char *name, int version, int wanted_status)
{
	CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SUCCESS;
	void *pfn = POISON;

	EQUAL(cuGetProcAddress_v2(name, &pfn, version, 0, &status), CUDA_SUCCESS);
	EQUAL(pfn, NULL);
	EQUAL(status, wanted_status);
	pfn = POISON;
	EQUAL(cuGetProcAddress(name, &pfn, version, 0), CUDA_ERROR_NOT_FOUND);
	EQUAL(pfn, POISON);
}

static void misses(void)
{
	miss("cuNoSuchFunction", 13000, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
	miss("cu", 13000, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
	miss("cuMemAllocAsync", 11010, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
	miss("cuMemCreate", 2000, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
	/* Base names only. */
	miss("cuMemAlloc_v2", 13000, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
	miss("cuMemAllocAsync_ptsz", 13000, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
	miss("cuGetProcAddress_v2", 13000, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
}

static void hit(const char *name, int version, cuuint64_t flags, const char *symbol)
{
	CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
	void *pfn = NULL;

	TRUE(exported(symbol));
	EQUAL(cuGetProcAddress_v2(name, &pfn, version, flags, &status), CUDA_SUCCESS);
	EQUAL(status, CU_GET_PROC_ADDRESS_SUCCESS);
	EQUAL(pfn, exported(symbol));
	pfn = NULL;
	EQUAL(cuGetProcAddress(name, &pfn, version, flags), CUDA_SUCCESS);
	EQUAL(pfn, exported(symbol));
}

static void versions(void)
{
	hit("cuMemAlloc", 3010, 0, "cuMemAlloc");
	hit("cuMemAlloc", 3020, 0, "cuMemAlloc_v2");
	hit("cuMemAlloc", 99000, 0, "cuMemAlloc_v2");
	hit("cuMemFree", 2000, 0, "cuMemFree");
	hit("cuMemGetInfo", 12000, 0, "cuMemGetInfo_v2");
	hit("cuMemHostRegister", 6000, 0, "cuMemHostRegister");
	hit("cuMemHostRegister", 7000, 0, "cuMemHostRegister_v2");
	hit("cuIpcOpenMemHandle", 10000, 0, "cuIpcOpenMemHandle");
	hit("cuIpcOpenMemHandle", 11000, 0, "cuIpcOpenMemHandle_v2");
	hit("cuMemAdvise", 12010, 0, "cuMemAdvise");
	hit("cuMemAdvise", 12020, 0, "cuMemAdvise_v2");
	hit("cuCtxCreate", 3010, 0, "cuCtxCreate");
	hit("cuCtxCreate", 3020, 0, "cuCtxCreate_v2");
	hit("cuCtxCreate", 11040, 0, "cuCtxCreate_v3");
	hit("cuCtxCreate", 12050, 0, "cuCtxCreate_v4");
	hit("cuGetProcAddress", 11030, 0, "cuGetProcAddress");
	hit("cuGetProcAddress", 12000, 0, "cuGetProcAddress_v2");
}

static void flags(void)
{
	void *pfn = POISON;

	for (cuuint64_t f = 2; f <= 3; f++) {
		hit("cuMemAllocAsync", 11020, f, "cuMemAllocAsync_ptsz");
		hit("cuMemFreeAsync", 11020, f, "cuMemFreeAsync_ptsz");
		hit("cuMemcpyHtoD", 7000, f, "cuMemcpyHtoD_v2_ptds");
		hit("cuMemAlloc", 3020, f, "cuMemAlloc_v2");
	}
	hit("cuMemAllocAsync", 11020, 1, "cuMemAllocAsync");
	for (cuuint64_t f = 4; f <= 8; f += 4) {
		EQUAL(cuGetProcAddress_v2("cuInit", &pfn, 2000, f, NULL), CUDA_ERROR_INVALID_VALUE);
		EQUAL(cuGetProcAddress("cuInit", &pfn, 2000, f), CUDA_ERROR_INVALID_VALUE);
		EQUAL(pfn, POISON);
	}
}

/* Every row of the table: exported under its symbol, found under its name, twins apart. */
static void whole_table(void)
{
#define SIM_FN(name, since, symbol, twin, asked) {#name, since, #symbol, #twin},
#define SIM_NO					 SIM_FN
	static const struct {
		const char *name;
		int since;
		const char *symbol, *twin;
	} rows[] = {
#include "../driver/driver.def"
	};
	size_t twins = 0;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		void *pfn;

		hit(rows[i].name, rows[i].since, 0, rows[i].symbol);
		EQUAL(cuGetProcAddress(rows[i].name, &pfn, rows[i].since, 2), CUDA_SUCCESS);
		if (rows[i].twin[0] == 'n')
			EQUAL(pfn, exported(rows[i].symbol));
		else
			TRUE(pfn != exported(rows[i].symbol));
		twins += rows[i].twin[0] != 'n';
	}
	TRUE(twins > 60 && sizeof(rows) / sizeof(rows[0]) > 500);
}

const struct self_case self_resolver_cases[] = {
	{"resolver-probe", probe, NULL},       {"resolver-misses", misses, NULL},
	{"resolver-versions", versions, NULL}, {"resolver-flags", flags, NULL},
	{"resolver-table", whole_table, NULL}, {NULL, NULL, NULL},
};
