/* SPDX-License-Identifier: MIT */
/*
 * foreign.c - memory of others that this process can use: mapped buffers of external memory, and
 * what ipc.c and poolshare.c open.
 *
 * It takes nothing from our device; the books show it as foreign. A range has addresses of its own;
 * its contents are those of the file behind it if there is one, else zeros. Under sim.lock.
 */
#include "foreign.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct CUextMemory_st {
	int fd;
	size_t size;
	struct CUctx_st *ctx;
	struct CUextMemory_st *next;
};

static struct sim_foreign *ranges;
static struct CUextMemory_st *externals;

static struct sim_foreign **find_at(CUdeviceptr ptr, bool start_only)
{
	struct sim_foreign **link = &ranges;

	while (*link && (start_only ? ptr != (*link)->ptr : ptr - (*link)->ptr >= (*link)->size))
		link = &(*link)->next;
	return *link ? link : NULL;
}

struct sim_foreign *sim_foreign_find(enum sim_foreign_kind kind, uint64_t owner, uint64_t id)
{
	struct sim_foreign *range = ranges;

	while (range && (range->kind != kind || range->owner != owner || range->id != id))
		range = range->next;
	return range;
}

static void book(const struct CUctx_st *ctx, size_t bytes, bool add)
{
	struct sim_device *device = &sim.device[ctx->device];

	pthread_mutex_lock(&device->lock);
	(add ? sim_book : sim_unbook)(&device->books, GT_SIM_FOREIGN, bytes);
	pthread_mutex_unlock(&device->lock);
}

/* A buffer is part of an external memory that is in the books already. */
static bool is_booked(const struct sim_foreign *range)
{
	return range->kind != SIM_FOREIGN_BUFFER;
}

struct sim_foreign *sim_foreign_add(const struct sim_foreign *what, int fd, size_t offset)
{
	struct sim_foreign *range = malloc(sizeof(*range));
	struct stat st;
	bool real = fd >= 0 && !fstat(fd, &st) && (size_t)st.st_size >= offset + what->size;
	void *at = mmap(NULL, what->size, PROT_READ | PROT_WRITE,
			real ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
			real ? fd : -1, real ? (off_t)offset : 0);

	if (!range || at == MAP_FAILED) {
		free(range);
		return NULL;
	}
	*range = *what;
	range->ptr = (uintptr_t)at;
	range->refs = 1;
	range->next = ranges;
	ranges = range;
	if (is_booked(range))
		book(range->ctx, range->size, true);
	return range;
}

static void drop(struct sim_foreign **link)
{
	struct sim_foreign *range = *link;

	*link = range->next;
	if (is_booked(range))
		book(range->ctx, range->size, false);
	if (range->kind == SIM_FOREIGN_IPC)
		sim_ipc_closed(range);
	munmap((void *)(uintptr_t)range->ptr, range->size);
	free(range);
}

bool sim_foreign_put(CUdeviceptr ptr, bool ipc)
{
	struct sim_foreign **link = find_at(ptr, true);

	if (!link || ((*link)->kind == SIM_FOREIGN_IPC) != ipc)
		return false;
	if (--(*link)->refs == 0)
		drop(link);
	return true;
}

CUresult sim_foreign_free(CUdeviceptr ptr)
{
	bool found;

	pthread_mutex_lock(&sim.lock);
	found = sim_foreign_put(ptr, false);
	pthread_mutex_unlock(&sim.lock);
	return found ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

bool sim_foreign_range(CUdeviceptr ptr, struct sim_range *ret)
{
	struct sim_foreign **link;

	pthread_mutex_lock(&sim.lock);
	link = find_at(ptr, false);
	if (link) {
		ret->start = (*link)->ptr;
		ret->size = (*link)->size;
		ret->device = (*link)->ctx->device;
	}
	pthread_mutex_unlock(&sim.lock);
	return link != NULL;
}

CUresult CUDAAPI cuImportExternalMemory(CUexternalMemory *memory,
					const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *desc)
{
	struct CUextMemory_st *made;
	struct CUctx_st *ctx;
	CUresult rc = sim_current(&ctx);

	if (rc)
		return rc;
	if (!memory || !desc || !desc->size)
		return CUDA_ERROR_INVALID_VALUE;
	if (desc->type != CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD)
		return CUDA_ERROR_NOT_SUPPORTED;
	made = malloc(sizeof(*made));
	if (!made)
		return CUDA_ERROR_OUT_OF_MEMORY;
	/* From here on the descriptor is the driver's. */
	*made = (struct CUextMemory_st){desc->handle.fd, desc->size, sim_owner(ctx), NULL};
	pthread_mutex_lock(&sim.lock);
	made->next = externals;
	externals = made;
	book(ctx, made->size, true);
	pthread_mutex_unlock(&sim.lock);
	*memory = made;
	return CUDA_SUCCESS;
}

static struct CUextMemory_st **find_external(CUexternalMemory memory)
{
	struct CUextMemory_st **link = &externals;

	while (*link && *link != memory)
		link = &(*link)->next;
	return *link ? link : NULL;
}

bool sim_external_known(CUexternalMemory memory)
{
	bool found;

	pthread_mutex_lock(&sim.lock);
	found = find_external(memory);
	pthread_mutex_unlock(&sim.lock);
	return found;
}

static CUresult map_buffer(CUdeviceptr *ptr, CUexternalMemory memory,
			   const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *desc)
{
	struct sim_foreign *range;

	if (!find_external(memory))
		return CUDA_ERROR_INVALID_HANDLE;
	if (!desc->size || desc->offset > memory->size ||
	    desc->size > memory->size - desc->offset || desc->flags)
		return CUDA_ERROR_INVALID_VALUE;
	range = sim_foreign_add(&(struct sim_foreign){.kind = SIM_FOREIGN_BUFFER,
						      .size = desc->size,
						      .ctx = memory->ctx},
				memory->fd, desc->offset);
	if (!range)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*ptr = range->ptr;
	return CUDA_SUCCESS;
}

/* The buffer is freed like an allocation, and may outlive the handle it came from. */
CUresult CUDAAPI cuExternalMemoryGetMappedBuffer(CUdeviceptr *ptr, CUexternalMemory memory,
						 const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *desc)
{
	CUresult rc;

	SIM_ENTER();
	if (!ptr || !desc)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&sim.lock);
	rc = map_buffer(ptr, memory, desc);
	pthread_mutex_unlock(&sim.lock);
	return rc;
}

static void drop_external(struct CUextMemory_st **link)
{
	struct CUextMemory_st *memory = *link;

	*link = memory->next;
	book(memory->ctx, memory->size, false);
	close(memory->fd);
	free(memory);
}

CUresult CUDAAPI cuDestroyExternalMemory(CUexternalMemory memory)
{
	struct CUextMemory_st **link;

	SIM_ENTER();
	pthread_mutex_lock(&sim.lock);
	link = find_external(memory);
	if (link)
		drop_external(link);
	pthread_mutex_unlock(&sim.lock);
	return link ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

/* The context is about to end. */
void sim_foreign_free_all(const struct CUctx_st *ctx)
{
	struct CUextMemory_st **external = &externals;
	struct sim_foreign **range = &ranges;

	pthread_mutex_lock(&sim.lock);
	while (*range) {
		if ((*range)->ctx == ctx)
			drop(range);
		else
			range = &(*range)->next;
	}
	while (*external) {
		if ((*external)->ctx == ctx)
			drop_external(external);
		else
			external = &(*external)->next;
	}
	pthread_mutex_unlock(&sim.lock);
}
