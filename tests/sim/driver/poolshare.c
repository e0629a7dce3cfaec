/* SPDX-License-Identifier: MIT */
/*
 * poolshare.c - pools that cross processes: a pool as a descriptor, its blocks as opaque data.
 *
 * An imported pool gives out nothing itself; blocks imported into it are foreign memory, which the
 * importer frees as if it had allocated them.
 */
#include "foreign.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define POOL_MAGIC  0x6774706f6f6c0001ULL
#define BLOCK_MAGIC 0x6774626c6f630001ULL

struct shared {
	uint64_t magic, pid, id;
	size_t size;
	int device;
};
_Static_assert(sizeof(struct shared) <= sizeof(CUmemPoolPtrExportData), "data fits");

CUresult CUDAAPI cuMemPoolExportToShareableHandle(void *handle, CUmemoryPool pool,
						  CUmemAllocationHandleType type,
						  unsigned long long flags)
{
	struct shared what = {.magic = POOL_MAGIC, .pid = (uint64_t)getpid()};
	int fd;

	SIM_ENTER();
	if (!handle || flags || !sim_pool_known(pool) || pool->imported || !pool->exportable ||
	    type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return CUDA_ERROR_INVALID_VALUE;
	what.device = pool->device;
	fd = sim_share(&what, sizeof(what));
	if (fd < 0)
		return CUDA_ERROR_OPERATING_SYSTEM;
	*(int *)handle = fd;
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemPoolImportFromShareableHandle(CUmemoryPool *pool, void *handle,
						    CUmemAllocationHandleType type,
						    unsigned long long flags)
{
	CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
				.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
	struct shared what;
	CUresult rc;

	SIM_ENTER();
	if (!pool || flags || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ||
	    !sim_shared((int)(intptr_t)handle, &what, sizeof(what)) || what.magic != POOL_MAGIC)
		return CUDA_ERROR_INVALID_VALUE;
	props.location.id = what.device;
	rc = cuMemPoolCreate(pool, &props);
	if (!rc)
		(*pool)->imported = true;
	return rc;
}

CUresult CUDAAPI cuMemPoolExportPointer(CUmemPoolPtrExportData *data, CUdeviceptr ptr)
{
	struct shared what = {.magic = BLOCK_MAGIC, .pid = (uint64_t)getpid()};
	struct sim_range range;

	SIM_ENTER();
	if (!data || !sim_find_range(ptr, &range) || !range.pool || !range.pool->exportable)
		return CUDA_ERROR_INVALID_VALUE;
	what.id = range.start;
	what.size = range.size;
	what.device = range.device;
	memset(data, 0, sizeof(*data));
	memcpy(data, &what, sizeof(what));
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemPoolImportPointer(CUdeviceptr *ptr, CUmemoryPool pool,
					CUmemPoolPtrExportData *data)
{
	struct sim_foreign *range;
	struct CUctx_st *ctx;
	struct shared what;
	CUresult rc = sim_current(&ctx);

	if (rc)
		return rc;
	if (!ptr || !data || !sim_pool_known(pool) || !pool->imported)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(&what, data, sizeof(what));
	if (what.magic != BLOCK_MAGIC)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&sim.lock);
	range = sim_foreign_add(&(struct sim_foreign){.kind = SIM_FOREIGN_POOL,
						      .size = what.size,
						      .ctx = sim_owner(ctx),
						      .owner = what.pid,
						      .id = what.id},
				-1, 0);
	pthread_mutex_unlock(&sim.lock);
	if (!range)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*ptr = range->ptr;
	return CUDA_SUCCESS;
}
