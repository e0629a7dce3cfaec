/* SPDX-License-Identifier: MIT */
/*
 * host.c - pinned host memory (allocated or registered), and what an address is.
 *
 * Blocks stand in one list, newest first: programs keep few of them, and the look-up by an address
 * inside a block needs the ranges. Under sim.lock.
 */
#include "sim.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

struct host {
	char *base;
	size_t size;
	struct CUctx_st *ctx; /* that pinned it */
	unsigned int flags;
	bool registered; /* the program's own memory */
	struct host *next;
};

static struct host *hosts;

static struct host **find_host(const void *ptr, bool start_only)
{
	struct host **link = &hosts;

	while (*link) {
		size_t offset = (uintptr_t)ptr - (uintptr_t)(*link)->base;

		if (start_only ? !offset : offset < (*link)->size)
			return link;
		link = &(*link)->next;
	}
	return NULL;
}

static enum gt_sim_family family_of(const struct host *host)
{
	return host->registered ? GT_SIM_REGISTERED : GT_SIM_PINNED;
}

static CUresult add_host(void *base, size_t size, struct CUctx_st *ctx, unsigned int flags,
			 bool registered)
{
	struct host *host = malloc(sizeof(*host));

	if (!host)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*host = (struct host){base, size, sim_owner(ctx), flags, registered, NULL};
	pthread_mutex_lock(&sim.lock);
	host->next = hosts;
	hosts = host;
	sim_book(&sim.host, family_of(host), size);
	pthread_mutex_unlock(&sim.lock);
	return CUDA_SUCCESS;
}

/* GT_SIM_HOST_CAPACITY: what can be pinned in all, by one thread at a time. */
static bool has_room(size_t size)
{
	const size_t capacity = sim_parse_size(getenv("GT_SIM_HOST_CAPACITY"), SIZE_MAX);
	size_t pinned = 0;

	pthread_mutex_lock(&sim.lock);
	for (const struct host *host = hosts; host; host = host->next)
		pinned += host->size;
	pthread_mutex_unlock(&sim.lock);
	return pinned <= capacity && size <= capacity - pinned;
}

CUresult CUDAAPI cuMemHostAlloc(void **ptr, size_t size, unsigned int flags)
{
	struct CUctx_st *ctx;
	CUresult rc = sim_current(&ctx);
	void *base;

	rc = rc ? rc : sim_capture_unsafe();
	if (rc)
		return rc;
	if (!ptr || !size)
		return CUDA_ERROR_INVALID_VALUE;
	if (!has_room(size))
		return CUDA_ERROR_OUT_OF_MEMORY;
	base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (base == MAP_FAILED)
		return CUDA_ERROR_OUT_OF_MEMORY;
	rc = add_host(base, size, ctx, flags, false);
	if (rc)
		munmap(base, size);
	else
		*ptr = base;
	return rc;
}

CUresult CUDAAPI cuMemAllocHost_v2(void **ptr, size_t size)
{
	return cuMemHostAlloc(ptr, size, 0);
}

CUresult CUDAAPI cuMemAllocHost(void **ptr, unsigned int size)
{
	return cuMemHostAlloc(ptr, size, 0);
}

/* Under sim.lock. */
static void drop_host(struct host **link)
{
	struct host *host = *link;

	*link = host->next;
	sim_unbook(&sim.host, family_of(host), host->size);
	if (!host->registered)
		munmap(host->base, host->size);
	free(host);
}

static CUresult remove_host(void *ptr, bool registered, CUresult otherwise)
{
	struct CUctx_st *ctx;
	struct host **link;
	CUresult rc = sim_current(&ctx);

	if (rc)
		return rc;
	pthread_mutex_lock(&sim.lock);
	link = find_host(ptr, true);
	if (link && (*link)->registered == registered)
		drop_host(link);
	else
		rc = otherwise;
	pthread_mutex_unlock(&sim.lock);
	return rc;
}

/* The context is about to end. */
void sim_host_free_all(const struct CUctx_st *ctx)
{
	struct host **link = &hosts;

	pthread_mutex_lock(&sim.lock);
	while (*link) {
		if ((*link)->ctx == ctx)
			drop_host(link);
		else
			link = &(*link)->next;
	}
	pthread_mutex_unlock(&sim.lock);
}

CUresult CUDAAPI cuMemFreeHost(void *ptr)
{
	return remove_host(ptr, false, CUDA_ERROR_INVALID_VALUE);
}

CUresult CUDAAPI cuMemHostRegister_v2(void *ptr, size_t size, unsigned int flags)
{
	struct CUctx_st *ctx;
	CUresult rc = sim_current(&ctx);
	bool known;

	if (rc)
		return rc;
	if (!ptr || !size)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&sim.lock);
	known = find_host(ptr, false) != NULL;
	pthread_mutex_unlock(&sim.lock);
	if (known)
		return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
	return add_host(ptr, size, ctx, flags, true);
}

CUresult CUDAAPI cuMemHostRegister(void *ptr, size_t size, unsigned int flags)
{
	return cuMemHostRegister_v2(ptr, size, flags);
}

CUresult CUDAAPI cuMemHostUnregister(void *ptr)
{
	return remove_host(ptr, true, CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
}

CUresult CUDAAPI cuMemHostGetDevicePointer_v2(CUdeviceptr *ptr, void *host, unsigned int flags)
{
	struct CUctx_st *ctx;
	char *start;
	size_t size;

	SIM_ENTER();
	if (!sim_host_range(host, &start, &size, &ctx))
		return CUDA_ERROR_INVALID_VALUE;
	*ptr = (uintptr_t)host;
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemHostGetFlags(unsigned int *flags, void *ptr)
{
	struct host **link;

	SIM_ENTER();
	pthread_mutex_lock(&sim.lock);
	link = find_host(ptr, false);
	if (link)
		*flags = (*link)->flags;
	pthread_mutex_unlock(&sim.lock);
	return link ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

bool sim_host_range(const void *ptr, char **ret_start, size_t *ret_size, struct CUctx_st **ret_ctx)
{
	struct host **link;

	pthread_mutex_lock(&sim.lock);
	link = find_host(ptr, false);
	if (link) {
		*ret_start = (*link)->base;
		*ret_size = (*link)->size;
		*ret_ctx = (*link)->ctx;
	}
	pthread_mutex_unlock(&sim.lock);
	return link != NULL;
}
