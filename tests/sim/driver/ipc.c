/* SPDX-License-Identifier: MIT */
/*
 * ipc.c - device memory and events opened by other processes.
 *
 * The exporting process keeps a table in a memory file: one entry for each exported block, with the
 * number of processes that have it open. A handle names process, descriptor and entry, so an opener
 * reaches the table through /proc, counts itself in, and finds out when the block is gone; nothing
 * is left behind when processes end. Contents are not shared: an opened block reads as zeros.
 */
#define _GNU_SOURCE /* memfd_create */
#include "foreign.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define ENTRIES 1024
#define MAGIC	0x6774697063000001ULL

struct entry {
	uint64_t id; /* 0: not in use */
	CUdeviceptr ptr;
	size_t size;
	int32_t opens;
};

struct handle {
	uint64_t magic, id;
	size_t size;
	int32_t pid, fd, entry, device;
};
_Static_assert(sizeof(struct handle) <= sizeof(CUipcMemHandle), "handle fits");

static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER; /* no other is taken inside */
static struct entry *table;
static int table_fd = -1;
static int exported; /* entries in use */
static uint64_t next_id = 1;

int sim_share(const void *what, size_t size)
{
	int fd = memfd_create("gt-sim", MFD_CLOEXEC);

	if (fd >= 0 && pwrite(fd, what, size, 0) != (ssize_t)size) {
		close(fd);
		return -1;
	}
	return fd;
}

bool sim_shared(int fd, void *ret_what, size_t size)
{
	return pread(fd, ret_what, size, 0) == (ssize_t)size;
}

static bool make_table(void)
{
	void *map;

	if (table)
		return true;
	table_fd = memfd_create("gt-sim-ipc", MFD_CLOEXEC);
	if (table_fd < 0 || ftruncate(table_fd, ENTRIES * sizeof(*table)))
		return false;
	map = mmap(NULL, ENTRIES * sizeof(*table), PROT_READ | PROT_WRITE, MAP_SHARED, table_fd, 0);
	table = map == MAP_FAILED ? NULL : map;
	return table != NULL;
}

/* Under table_lock: the block's entry, or a free one. */
static struct entry *entry_for(CUdeviceptr ptr, size_t size)
{
	struct entry *vacant = NULL;

	for (int i = 0; i < ENTRIES; i++) {
		if (table[i].id && table[i].ptr == ptr)
			return &table[i];
		if (!table[i].id && !vacant)
			vacant = &table[i];
	}
	if (vacant) {
		*vacant = (struct entry){next_id++, ptr, size, 0};
		__atomic_add_fetch(&exported, 1, __ATOMIC_RELAXED);
	}
	return vacant;
}

/* Only plain memory: managed, stream-ordered and mapped memory have ways of their own. */
CUresult CUDAAPI cuIpcGetMemHandle(CUipcMemHandle *ret, CUdeviceptr ptr)
{
	struct handle handle = {.magic = MAGIC, .pid = getpid()};
	struct sim_range range;
	struct entry *entry;

	SIM_ENTER();
	if (!ret || !sim_find_range(ptr, &range) || range.kind != SIM_DEVICE)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&table_lock);
	entry = make_table() ? entry_for(range.start, range.size) : NULL;
	if (entry) {
		handle.id = entry->id;
		handle.size = range.size;
		handle.device = range.device;
		handle.fd = table_fd;
		handle.entry = (int32_t)(entry - table);
	}
	pthread_mutex_unlock(&table_lock);
	if (!entry)
		return CUDA_ERROR_OUT_OF_MEMORY;
	memset(ret, 0, sizeof(*ret));
	memcpy(ret, &handle, sizeof(handle));
	return CUDA_SUCCESS;
}

/* The block is freed; who has it open keeps an address and no more. Any lock may be held. */
void sim_ipc_forget(CUdeviceptr ptr)
{
	if (!__atomic_load_n(&exported, __ATOMIC_RELAXED))
		return;
	pthread_mutex_lock(&table_lock);
	for (int i = 0; i < ENTRIES; i++) {
		if (table[i].id && table[i].ptr == ptr) {
			table[i] = (struct entry){0};
			__atomic_sub_fetch(&exported, 1, __ATOMIC_RELAXED);
		}
	}
	pthread_mutex_unlock(&table_lock);
}

int gtSimIpcOpens(unsigned long long ptr)
{
	int opens = 0;

	pthread_mutex_lock(&table_lock);
	for (int i = 0; table && i < ENTRIES; i++) {
		if (table[i].id && table[i].ptr == ptr)
			opens = __atomic_load_n(&table[i].opens, __ATOMIC_RELAXED);
	}
	pthread_mutex_unlock(&table_lock);
	return opens;
}

/* The exporter's table, mapped here; NULL when the process or the block is gone. */
static struct entry *reach(const struct handle *handle)
{
	struct entry *map = MAP_FAILED;
	char path[64];
	int fd;

	if (handle->entry < 0 || handle->entry >= ENTRIES)
		return NULL;
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", handle->pid, handle->fd);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	if (lseek(fd, 0, SEEK_END) == ENTRIES * sizeof(*map))
		map = mmap(NULL, ENTRIES * sizeof(*map), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (map == MAP_FAILED)
		return NULL;
	if (map[handle->entry].id == handle->id)
		return map;
	munmap(map, ENTRIES * sizeof(*map));
	return NULL;
}

/* Under sim.lock. */
static CUresult open_first(CUdeviceptr *ptr, const struct handle *handle, struct CUctx_st *ctx)
{
	struct entry *map = reach(handle);
	struct sim_foreign *range;

	if (!map)
		return CUDA_ERROR_INVALID_HANDLE;
	range = sim_foreign_add(&(struct sim_foreign){.kind = SIM_FOREIGN_IPC,
						      .size = handle->size,
						      .ctx = ctx,
						      .owner = (uint64_t)handle->pid,
						      .id = handle->id,
						      .shared = map},
				-1, 0);
	if (!range) {
		munmap(map, ENTRIES * sizeof(*map));
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	range->entry = handle->entry;
	__atomic_add_fetch(&map[handle->entry].opens, 1, __ATOMIC_RELAXED);
	*ptr = range->ptr;
	return CUDA_SUCCESS;
}

/* Opened twice, the second time gives the same address and counts. */
CUresult CUDAAPI cuIpcOpenMemHandle_v2(CUdeviceptr *ptr, CUipcMemHandle given, unsigned int flags)
{
	struct sim_foreign *range;
	struct handle handle;
	struct CUctx_st *ctx;
	CUresult rc = sim_current(&ctx);

	if (rc)
		return rc;
	memcpy(&handle, &given, sizeof(handle));
	if (!ptr || handle.magic != MAGIC || flags & ~CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS)
		return CUDA_ERROR_INVALID_VALUE;
	if (handle.pid == getpid())
		return CUDA_ERROR_INVALID_CONTEXT; /* not in the process it comes from */
	pthread_mutex_lock(&sim.lock);
	range = sim_foreign_find(SIM_FOREIGN_IPC, (uint64_t)handle.pid, handle.id);
	if (range) {
		range->refs++;
		*ptr = range->ptr;
	} else {
		rc = open_first(ptr, &handle, sim_owner(ctx));
	}
	pthread_mutex_unlock(&sim.lock);
	return rc;
}

CUresult CUDAAPI cuIpcOpenMemHandle(CUdeviceptr *ptr, CUipcMemHandle handle, unsigned int flags)
{
	return cuIpcOpenMemHandle_v2(ptr, handle, flags);
}

/* Under sim.lock: the last reference of this process has gone. */
void sim_ipc_closed(const struct sim_foreign *range)
{
	struct entry *map = range->shared;

	if (map[range->entry].id == range->id)
		__atomic_sub_fetch(&map[range->entry].opens, 1, __ATOMIC_RELAXED);
	munmap(map, ENTRIES * sizeof(*map));
}

CUresult CUDAAPI cuIpcCloseMemHandle(CUdeviceptr ptr)
{
	struct CUctx_st *ctx;
	CUresult rc = sim_current(&ctx);

	if (rc)
		return rc;
	pthread_mutex_lock(&sim.lock);
	if (!sim_foreign_put(ptr, true))
		rc = CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_unlock(&sim.lock);
	return rc;
}

/* An event of another process is always done. */
CUresult CUDAAPI cuIpcGetEventHandle(CUipcEventHandle *ret, CUevent event)
{
	struct handle handle = {.magic = MAGIC, .pid = getpid()};

	SIM_ENTER();
	if (!ret || !event)
		return CUDA_ERROR_INVALID_HANDLE;
	memset(ret, 0, sizeof(*ret));
	memcpy(ret, &handle, sizeof(handle));
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuIpcOpenEventHandle(CUevent *event, CUipcEventHandle given)
{
	struct handle handle;

	memcpy(&handle, &given, sizeof(handle));
	return handle.magic == MAGIC ? cuEventCreate(event, CU_EVENT_DISABLE_TIMING)
				     : CUDA_ERROR_INVALID_VALUE;
}
