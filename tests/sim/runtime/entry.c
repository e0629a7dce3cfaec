/* SPDX-License-Identifier: MIT */
/*
 * entry.c - cudaGetDriverEntryPoint(ByVersion): the driver's resolver, offered to programs.
 */
#include "rt.h"

static cudaError_t entry_point(const char *name, void **ret_pfn, unsigned int version,
			       unsigned long long flags,
			       enum cudaDriverEntryPointQueryResult *ret_status)
{
	CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
	cudaError_t rc = rt_load();

	if (rc)
		return rc;
	*ret_pfn = NULL;
	rc = rt_result(rt_resolve(name, ret_pfn, (int)version, flags, &status));
	/* Both enumerations are 0 found, 1 not found, 2 version not sufficient. */
	if (ret_status)
		*ret_status = (enum cudaDriverEntryPointQueryResult)status;
	return rc;
}

cudaError_t CUDARTAPI cudaGetDriverEntryPointByVersion(const char *name, void **pfn,
						       unsigned int version,
						       unsigned long long flags,
						       enum cudaDriverEntryPointQueryResult *status)
{
	return entry_point(name, pfn, version, flags, status);
}

cudaError_t CUDARTAPI cudaGetDriverEntryPoint(const char *name, void **pfn,
					      unsigned long long flags,
					      enum cudaDriverEntryPointQueryResult *status)
{
	return entry_point(name, pfn, CUDART_VERSION, flags, status);
}
