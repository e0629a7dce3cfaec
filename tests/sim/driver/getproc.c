/* SPDX-License-Identifier: MIT */
/*
 * getproc.c - cuGetProcAddress, both ABI versions, out of driver.def.
 *
 * Its rules, as the real driver follows them: base names only; the newest ABI that is not newer
 * than the version asked for; flag 2 (per-thread default stream) changes only functions that take
 * a stream; the empty name is an ordinary unknown one. The second version reports a miss in the
 * status and succeeds, the first one returns NOT_FOUND and leaves the pointer alone.
 */
#include "sim.h"

#include <stdlib.h>
#include <string.h>

#define KNOWN_FLAGS \
	(CU_GET_PROC_ADDRESS_LEGACY_STREAM | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM)

struct entry {
	const char *name;
	int since;
	void *function;
	void *twin; /* per-thread default stream; NULL: takes no stream */
};

/* Addresses only: table.c makes these symbols, with whatever types they have. */
#define SYMBOL(symbol) extern char entry_##symbol[] __asm__(#symbol);
#define TWIN_none(symbol)
#define TWIN_ptsz(symbol)			 SYMBOL(symbol##_ptsz)
#define TWIN_ptds(symbol)			 SYMBOL(symbol##_ptds)
#define SIM_FN(name, since, symbol, twin, asked) SYMBOL(symbol) TWIN_##twin(symbol)
#define SIM_NO					 SIM_FN
#include "driver.def"
#undef SIM_FN
#undef TWIN_none
#undef TWIN_ptsz
#undef TWIN_ptds

#define TWIN_none(symbol) NULL
#define TWIN_ptsz(symbol) entry_##symbol##_ptsz
#define TWIN_ptds(symbol) entry_##symbol##_ptds
#define SIM_FN(name, since, symbol, twin, asked) \
	{#name, since, entry_##symbol, TWIN_##twin(symbol)},

static const struct entry entries[] = {
#include "driver.def"
};

static const struct entry *find(const char *name, int version, bool *ret_known)
{
	const struct entry *best = NULL;

	*ret_known = false;
	for (size_t i = 0; i < sizeof(entries) / sizeof(entries[0]); i++) {
		const struct entry *entry = &entries[i];

		if (strcmp(entry->name, name))
			continue;
		*ret_known = true;
		if (entry->since <= version && (!best || entry->since > best->since))
			best = entry;
	}
	return best;
}

CUresult CUDAAPI cuGetProcAddress_v2(const char *name, void **pfn, int version, cuuint64_t flags,
				     CUdriverProcAddressQueryResult *status)
{
	const struct entry *entry;
	bool known;

	if (flags & ~(cuuint64_t)KNOWN_FLAGS)
		return CUDA_ERROR_INVALID_VALUE;
	entry = find(name, version, &known);
	if (status)
		*status = entry	  ? CU_GET_PROC_ADDRESS_SUCCESS
			  : known ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
				  : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
	if (!entry)
		*pfn = NULL;
	else if (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM && entry->twin)
		*pfn = entry->twin;
	else
		*pfn = entry->function;
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGetProcAddress(const char *name, void **pfn, int version, cuuint64_t flags)
{
	CUdriverProcAddressQueryResult status;
	void *found;
	CUresult rc = cuGetProcAddress_v2(name, &found, version, flags, &status);

	if (rc)
		return rc;
	if (status != CU_GET_PROC_ADDRESS_SUCCESS)
		return CUDA_ERROR_NOT_FOUND;
	*pfn = found;
	return CUDA_SUCCESS;
}
