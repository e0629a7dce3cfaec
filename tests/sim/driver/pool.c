/* SPDX-License-Identifier: MIT */
/*
 * pool.c - stream-ordered allocation: the pools themselves.
 *
 * A pool takes chunks of 32 MiB (or as much as one request needs) from its device and cuts them up,
 * first fit, in units of 512 bytes; `reserved` counts chunks, `used` counts what was asked for. An
 * empty chunk stays in the pool until a call that waits for the device finds the pool above its
 * release threshold, the pool is trimmed, or the device would otherwise refuse a request. Pools and
 * their memory belong to the device and outlive contexts. Work is done at the call, so a freed
 * block can be handed out again at once. poolattr.c has the attributes and the sharing.
 */
#include "sim.h"

#include <stdlib.h>

#define CHUNK	     ((size_t)32 << 20)
#define UP(size, to) (((size) + (to)-1) / (to) * (to))

struct piece {
	CUdeviceptr ptr;
	size_t size;
	struct piece *next; /* by address */
};

struct sim_chunk {
	CUmemoryPool pool;
	CUdeviceptr base;
	size_t size;
	struct piece *pieces;
	struct sim_chunk *next;
};

static struct sim_device *device_of(const struct CUmemPoolHandle_st *pool)
{
	return &sim.device[pool->device];
}

void sim_pool_init(struct sim_device *device, CUmemoryPool pool)
{
	pool->device = (int)(device - sim.device);
	for (int i = 0; i < 3; i++)
		pool->reuse[i] = 1;
	pool->access[pool->device] = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	pool->next = device->pools;
	device->pools = pool;
}

/* Never looks into the handle, which may be wild. */
bool sim_pool_known(CUmemoryPool pool)
{
	bool found = false;

	for (int i = 0; i < sim.devices && !found; i++) {
		CUmemoryPool p;

		pthread_mutex_lock(&sim.device[i].lock);
		for (p = sim.device[i].pools; p && p != pool; p = p->next)
			;
		found = p && !p->destroyed;
		pthread_mutex_unlock(&sim.device[i].lock);
	}
	return found;
}

static CUresult add_chunk(CUmemoryPool pool, size_t size)
{
	struct sim_device *device = device_of(pool);
	struct sim_chunk *chunk;
	struct sim_block *block;

	if (pool->max && pool->reserved + size > UP(pool->max, SIM_GRANULE))
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (sim_charge(device, size))
		return CUDA_ERROR_OUT_OF_MEMORY;
	chunk = calloc(1, sizeof(*chunk));
	block = chunk ? sim_arena_alloc_run(&device->arena, size, &chunk->base) : NULL;
	if (!block) {
		sim_uncharge(device, size);
		free(chunk);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	block->kind = SIM_POOL;
	block->chunk = chunk;
	chunk->pool = pool;
	chunk->size = size;
	chunk->next = pool->chunks;
	pool->chunks = chunk;
	pool->reserved += size;
	if (pool->reserved > pool->reserved_high)
		pool->reserved_high = pool->reserved;
	sim_book(&device->books, GT_SIM_POOL_RESERVED, size);
	return CUDA_SUCCESS;
}

static void drop_chunk(struct sim_chunk **link)
{
	struct sim_chunk *chunk = *link;
	struct sim_device *device = device_of(chunk->pool);

	*link = chunk->next;
	chunk->pool->reserved -= chunk->size;
	sim_arena_free(&device->arena, chunk->base);
	sim_uncharge(device, chunk->size);
	sim_unbook(&device->books, GT_SIM_POOL_RESERVED, chunk->size);
	free(chunk);
}

/* Where a piece of this size can be linked in: the link before a gap that is large enough. */
static struct piece **find_gap(struct sim_chunk *chunk, size_t size, CUdeviceptr *ret_ptr)
{
	struct piece **link = &chunk->pieces;
	CUdeviceptr at = chunk->base;

	while (*link && (*link)->ptr - at < UP(size, SIM_UNIT)) {
		at = (*link)->ptr + UP((*link)->size, SIM_UNIT);
		link = &(*link)->next;
	}
	if (!*link && chunk->base + chunk->size - at < size)
		return NULL;
	*ret_ptr = at;
	return link;
}

static bool cut(CUmemoryPool pool, size_t size, CUdeviceptr *ret_ptr)
{
	struct piece **link = NULL, *piece;
	CUdeviceptr at = 0;

	for (struct sim_chunk *chunk = pool->chunks; chunk && !link; chunk = chunk->next)
		link = find_gap(chunk, size, &at);
	piece = link ? malloc(sizeof(*piece)) : NULL;
	if (!piece)
		return false;
	*piece = (struct piece){at, size, *link};
	*link = piece;
	*ret_ptr = at;
	pool->used += size;
	if (pool->used > pool->used_high)
		pool->used_high = pool->used;
	sim_book(&device_of(pool)->books, GT_SIM_POOL_USED, size);
	return true;
}

CUresult sim_pool_alloc(CUmemoryPool pool, size_t size, CUdeviceptr *ret_ptr)
{
	size_t least = UP(size, SIM_GRANULE);

	if (cut(pool, size, ret_ptr))
		return CUDA_SUCCESS;
	if ((least >= CHUNK || add_chunk(pool, CHUNK)) && add_chunk(pool, least))
		return CUDA_ERROR_OUT_OF_MEMORY;
	return cut(pool, size, ret_ptr) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* Empty chunks go, as long as the pool keeps so much. */
static void trim(CUmemoryPool pool, uint64_t keep)
{
	struct sim_chunk **link = &pool->chunks;

	while (*link) {
		if (!(*link)->pieces && pool->reserved - (*link)->size >= keep)
			drop_chunk(link);
		else
			link = &(*link)->next;
	}
}

/* A destroyed pool ends with its last block. */
static void end_if_empty(CUmemoryPool pool)
{
	CUmemoryPool *link = &device_of(pool)->pools;

	if (!pool->destroyed || pool->used)
		return;
	trim(pool, 0);
	while (*link != pool)
		link = &(*link)->next;
	*link = pool->next;
	free(pool);
}

CUresult sim_pool_free(struct sim_chunk *chunk, CUdeviceptr ptr)
{
	struct piece **link = &chunk->pieces;
	CUmemoryPool pool = chunk->pool;
	struct piece *piece;

	while (*link && (*link)->ptr != ptr)
		link = &(*link)->next;
	piece = *link;
	if (!piece)
		return CUDA_ERROR_INVALID_VALUE;
	*link = piece->next;
	pool->used -= piece->size;
	sim_unbook(&device_of(pool)->books, GT_SIM_POOL_USED, piece->size);
	free(piece);
	end_if_empty(pool);
	return CUDA_SUCCESS;
}

bool sim_pool_range(const struct sim_chunk *chunk, CUdeviceptr ptr, struct sim_range *ret)
{
	const struct piece *piece = chunk->pieces;

	while (piece && ptr - piece->ptr >= piece->size)
		piece = piece->next;
	if (!piece)
		return false;
	ret->start = piece->ptr;
	ret->size = piece->size;
	ret->pool = chunk->pool;
	return true;
}

/* What a destroyed pool holds is documented to be released once no block of it is left, not before. */
void sim_pool_reclaim(struct sim_device *device, bool all)
{
	for (CUmemoryPool pool = device->pools; pool; pool = pool->next)
		if (!pool->destroyed)
			trim(pool, all ? 0 : pool->threshold);
}

void sim_pool_sync(struct sim_device *device)
{
	pthread_mutex_lock(&device->lock);
	sim_pool_reclaim(device, false);
	pthread_mutex_unlock(&device->lock);
}

static CUresult alloc_from(CUmemoryPool pool, size_t size, CUdeviceptr *ret_ptr)
{
	CUdeviceptr ptr;
	CUresult rc;

	if (!ret_ptr || !size || pool->imported)
		return CUDA_ERROR_INVALID_VALUE;
	if (sim_fail_now() || size > device_of(pool)->capacity)
		return sim_answer(CUDA_ERROR_OUT_OF_MEMORY);
	pthread_mutex_lock(&device_of(pool)->lock);
	rc = sim_pool_alloc(pool, size, &ptr);
	pthread_mutex_unlock(&device_of(pool)->lock);
	if (!rc)
		*ret_ptr = ptr;
	return sim_answer(rc);
}

CUresult CUDAAPI cuMemAllocFromPoolAsync(CUdeviceptr *ptr, size_t size, CUmemoryPool pool,
					 CUstream stream)
{
	struct sim_device *device;
	CUresult rc = sim_current_device(&device);

	rc = rc || sim_pool_known(pool) ? rc : CUDA_ERROR_INVALID_VALUE;
	if (rc)
		return rc;
	return sim_is_captured(stream) ? sim_capture_alloc(stream, pool->device, size, ptr)
				       : alloc_from(pool, size, ptr);
}

/* The pool is that of the stream's device, whatever is current. */
static CUresult stream_device(CUstream stream, struct sim_device **device)
{
	CUdevice dev;
	CUresult rc = cuStreamGetDevice(stream, &dev);

	if (!rc)
		*device = &sim.device[dev];
	return rc;
}

CUresult CUDAAPI cuMemAllocAsync(CUdeviceptr *ptr, size_t size, CUstream stream)
{
	struct sim_device *device;
	CUresult rc = stream_device(stream, &device);

	return rc ? rc : cuMemAllocFromPoolAsync(ptr, size, device->pool, stream);
}

CUresult CUDAAPI cuMemFreeAsync(CUdeviceptr ptr, CUstream stream)
{
	struct sim_device *device;
	CUresult rc = sim_current_device(&device);

	if (rc)
		return rc;
	return sim_is_captured(stream) ? sim_capture_free(stream, ptr) : sim_mem_free(ptr);
}

CUresult CUDAAPI cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *props)
{
	struct CUmemPoolHandle_st *made;
	struct sim_device *device;

	SIM_ENTER();
	if (!pool || !props || props->allocType != CU_MEM_ALLOCATION_TYPE_PINNED ||
	    props->location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
	    sim_check_device(props->location.id))
		return CUDA_ERROR_INVALID_VALUE;
	if (props->handleTypes & ~CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return CUDA_ERROR_NOT_SUPPORTED;
	made = calloc(1, sizeof(*made));
	if (!made)
		return CUDA_ERROR_OUT_OF_MEMORY;
	made->exportable = props->handleTypes != 0;
	made->max = props->maxSize;
	device = &sim.device[props->location.id];
	pthread_mutex_lock(&device->lock);
	sim_pool_init(device, made);
	pthread_mutex_unlock(&device->lock);
	*pool = made;
	return CUDA_SUCCESS;
}

/* Blocks left in the pool live on; a device whose current pool this was returns to its default. */
CUresult CUDAAPI cuMemPoolDestroy(CUmemoryPool pool)
{
	struct sim_device *device;

	SIM_ENTER();
	if (!sim_pool_known(pool) || pool == &device_of(pool)->default_pool)
		return CUDA_ERROR_INVALID_VALUE;
	device = device_of(pool);
	pthread_mutex_lock(&device->lock);
	if (device->pool == pool)
		device->pool = &device->default_pool;
	pool->destroyed = true;
	end_if_empty(pool);
	pthread_mutex_unlock(&device->lock);
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemPoolTrimTo(CUmemoryPool pool, size_t keep)
{
	SIM_ENTER();
	if (!sim_pool_known(pool))
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&device_of(pool)->lock);
	trim(pool, keep);
	pthread_mutex_unlock(&device_of(pool)->lock);
	return CUDA_SUCCESS;
}
