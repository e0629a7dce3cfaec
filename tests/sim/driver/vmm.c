/* SPDX-License-Identifier: MIT */
/*
 * vmm.c - virtual memory management: reservations, physical handles, mappings.
 *
 * Physical memory is charged by cuMemCreate and given back when a handle has neither references
 * nor mappings; reservations are address space only. Each reservation has one slot per granule
 * that names the handle mapped there. Contents do not move with a handle: what is mapped at a
 * second address reads as zeros there. All lists are under sim.lock.
 */
#include "foreign.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct handle {
	size_t size;
	unsigned int refs, maps;
	uint64_t id;
	bool foreign; /* another process has created it */
	bool object;  /* multicast: no memory of its own */
	CUmemAllocationProp prop;
	struct handle *next;
};

/* What an exported handle's descriptor holds. */
#define SHARED_MAGIC 0x6774766d6d000001ULL

struct shared {
	uint64_t magic, pid, id;
	size_t size;
	CUmemAllocationProp prop;
};

struct slot {
	struct handle *handle;
	size_t run;  /* granules of the mapping that starts here */
	size_t back; /* granules to its start */
};

struct reservation {
	char *base;
	size_t size;
	struct slot *slots;
	struct reservation *next;
};

static struct reservation *reservations;
static struct handle *handles;

static struct reservation *find_reservation(CUdeviceptr ptr, size_t size)
{
	struct reservation *r = reservations;

	while (r &&
	       (ptr - (uintptr_t)r->base >= r->size || size > r->size - (ptr - (uintptr_t)r->base)))
		r = r->next;
	return r;
}

static struct handle *find_handle(CUmemGenericAllocationHandle value)
{
	struct handle *h = handles;

	while (h && (uintptr_t)h != value)
		h = h->next;
	return h && h->refs ? h : NULL;
}

static struct slot *slot_of(const struct reservation *r, CUdeviceptr ptr)
{
	return &r->slots[(ptr - (uintptr_t)r->base) / SIM_GRANULE];
}

static bool aligned(size_t value)
{
	return value && value % SIM_GRANULE == 0;
}

CUresult CUDAAPI cuMemGetAllocationGranularity(size_t *granularity, const CUmemAllocationProp *prop,
					       CUmemAllocationGranularity_flags option)
{
	SIM_ENTER();
	if (!granularity || !prop)
		return CUDA_ERROR_INVALID_VALUE;
	*granularity = SIM_GRANULE;
	return CUDA_SUCCESS;
}

/* Address space, and room to cut it to an address that is a multiple of the granule. */
static int map_reservation(struct reservation *r, size_t alignment)
{
	size_t size = r->size + alignment;
	char *raw = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	char *base = (char *)(((uintptr_t)raw + alignment - 1) & ~(alignment - 1));

	if (raw == MAP_FAILED)
		return -1;
	if (base > raw)
		munmap(raw, (size_t)(base - raw));
	munmap(base + r->size, size - r->size - (size_t)(base - raw));
	r->base = base;
	return 0;
}

CUresult CUDAAPI cuMemAddressReserve(CUdeviceptr *ptr, size_t size, size_t alignment,
				     CUdeviceptr hint, unsigned long long flags)
{
	struct reservation *r;

	SIM_ENTER();
	if (!ptr || !aligned(size) || flags || alignment & (alignment - 1))
		return CUDA_ERROR_INVALID_VALUE;
	r = calloc(1, sizeof(*r));
	if (!r)
		return CUDA_ERROR_OUT_OF_MEMORY;
	r->size = size;
	r->slots = calloc(size / SIM_GRANULE, sizeof(*r->slots));
	if (!r->slots || map_reservation(r, alignment > SIM_GRANULE ? alignment : SIM_GRANULE)) {
		free(r->slots);
		free(r);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	pthread_mutex_lock(&sim.lock);
	r->next = reservations;
	reservations = r;
	pthread_mutex_unlock(&sim.lock);
	*ptr = (uintptr_t)r->base;
	return CUDA_SUCCESS;
}

static bool has_mappings(const struct reservation *r)
{
	for (size_t i = 0; i < r->size / SIM_GRANULE; i++) {
		if (r->slots[i].handle)
			return true;
	}
	return false;
}

/* Only a whole reservation without mappings can be given back. */
CUresult CUDAAPI cuMemAddressFree(CUdeviceptr ptr, size_t size)
{
	struct reservation **link = &reservations;
	struct reservation *r;

	SIM_ENTER();
	pthread_mutex_lock(&sim.lock);
	while (*link && (uintptr_t)(*link)->base != ptr)
		link = &(*link)->next;
	r = *link;
	if (!r || r->size != size || has_mappings(r)) {
		pthread_mutex_unlock(&sim.lock);
		return CUDA_ERROR_INVALID_VALUE;
	}
	*link = r->next;
	pthread_mutex_unlock(&sim.lock);
	munmap(r->base, r->size);
	free(r->slots);
	free(r);
	return CUDA_SUCCESS;
}

static bool on_device(const struct handle *h)
{
	return h->prop.location.type == CU_MEM_LOCATION_TYPE_DEVICE;
}

/* Under sim.lock. Memory of another process is in the books, but takes nothing from the device. */
static CUresult take_physical(const struct handle *h)
{
	struct sim_device *device = &sim.device[on_device(h) ? h->prop.location.id : 0];
	CUresult rc;

	if (h->object)
		return CUDA_SUCCESS;
	if (!on_device(h)) {
		sim_book(&sim.host, h->foreign ? GT_SIM_FOREIGN : GT_SIM_VMM, h->size);
		return CUDA_SUCCESS;
	}
	pthread_mutex_lock(&device->lock);
	rc = h->foreign ? CUDA_SUCCESS : sim_charge(device, h->size);
	if (!rc)
		sim_book(&device->books, h->foreign ? GT_SIM_FOREIGN : GT_SIM_VMM, h->size);
	pthread_mutex_unlock(&device->lock);
	return rc;
}

static void give_physical(const struct handle *h)
{
	struct sim_device *device = &sim.device[on_device(h) ? h->prop.location.id : 0];
	enum gt_sim_family family = h->foreign ? GT_SIM_FOREIGN : GT_SIM_VMM;

	if (h->object)
		return;
	if (!on_device(h)) {
		sim_unbook(&sim.host, family, h->size);
		return;
	}
	pthread_mutex_lock(&device->lock);
	if (!h->foreign)
		sim_uncharge(device, h->size);
	sim_unbook(&device->books, family, h->size);
	pthread_mutex_unlock(&device->lock);
}

static CUresult check_prop(const CUmemAllocationProp *prop)
{
	if (!prop || prop->type != CU_MEM_ALLOCATION_TYPE_PINNED)
		return CUDA_ERROR_INVALID_VALUE;
	if (prop->requestedHandleTypes & ~CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return CUDA_ERROR_NOT_SUPPORTED;
	switch (prop->location.type) {
	case CU_MEM_LOCATION_TYPE_DEVICE:
		return sim_check_device(prop->location.id);
	case CU_MEM_LOCATION_TYPE_HOST:
	case CU_MEM_LOCATION_TYPE_HOST_NUMA:
	case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT:
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

static CUresult add_handle(const struct handle *what, CUmemGenericAllocationHandle *ret)
{
	static uint64_t next_id = 1;
	struct handle *h = malloc(sizeof(*h));
	CUresult rc;

	if (!h)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*h = *what;
	pthread_mutex_lock(&sim.lock);
	rc = take_physical(h);
	if (!rc) {
		h->id = next_id++;
		h->next = handles;
		handles = h;
		*ret = (uintptr_t)h;
	}
	pthread_mutex_unlock(&sim.lock);
	if (rc)
		free(h);
	return rc;
}

CUresult CUDAAPI cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size,
			     const CUmemAllocationProp *prop, unsigned long long flags)
{
	CUresult rc;

	SIM_ENTER();
	rc = handle && aligned(size) && !flags ? check_prop(prop) : CUDA_ERROR_INVALID_VALUE;
	if (rc)
		return rc;
	if (sim_fail_now())
		return sim_answer(CUDA_ERROR_OUT_OF_MEMORY);
	return sim_answer(
		add_handle(&(struct handle){.size = size, .refs = 1, .prop = *prop}, handle));
}

/* Under sim.lock: the last of references and mappings has gone? */
static void put_handle(struct handle *h)
{
	struct handle **link = &handles;

	if (h->refs || h->maps)
		return;
	while (*link != h)
		link = &(*link)->next;
	*link = h->next;
	give_physical(h);
	free(h);
}

CUresult CUDAAPI cuMemRelease(CUmemGenericAllocationHandle handle)
{
	struct handle *h;

	SIM_ENTER();
	pthread_mutex_lock(&sim.lock);
	h = find_handle(handle);
	if (h) {
		h->refs--;
		put_handle(h);
	}
	pthread_mutex_unlock(&sim.lock);
	return h ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static bool range_is_free(const struct reservation *r, CUdeviceptr ptr, size_t size)
{
	const struct slot *slot = slot_of(r, ptr);

	for (size_t i = 0; i < size / SIM_GRANULE; i++) {
		if (slot[i].handle)
			return false;
	}
	return true;
}

CUresult CUDAAPI cuMemMap(CUdeviceptr ptr, size_t size, size_t offset,
			  CUmemGenericAllocationHandle handle, unsigned long long flags)
{
	CUresult rc = CUDA_ERROR_INVALID_VALUE;
	struct reservation *r;
	struct handle *h;

	SIM_ENTER();
	pthread_mutex_lock(&sim.lock);
	r = find_reservation(ptr, size);
	h = find_handle(handle);
	if (r && h && aligned(size) && ptr % SIM_GRANULE == 0 && !offset && size <= h->size &&
	    !flags && range_is_free(r, ptr, size)) {
		for (size_t i = 0; i < size / SIM_GRANULE; i++)
			slot_of(r, ptr)[i] = (struct slot){.handle = h, .back = i};
		slot_of(r, ptr)->run = size / SIM_GRANULE;
		h->maps++;
		rc = CUDA_SUCCESS;
	}
	pthread_mutex_unlock(&sim.lock);
	return rc;
}

/* Does the range consist of whole mappings? */
static bool whole_mappings(const struct reservation *r, CUdeviceptr ptr, size_t size)
{
	const struct slot *slot = slot_of(r, ptr);
	size_t granules = size / SIM_GRANULE;
	size_t i = 0;

	while (i < granules && slot[i].run)
		i += slot[i].run;
	return i == granules;
}

CUresult CUDAAPI cuMemUnmap(CUdeviceptr ptr, size_t size)
{
	CUresult rc = CUDA_ERROR_INVALID_VALUE;
	struct reservation *r;

	SIM_ENTER();
	pthread_mutex_lock(&sim.lock);
	r = find_reservation(ptr, size);
	if (r && aligned(size) && ptr % SIM_GRANULE == 0 && whole_mappings(r, ptr, size)) {
		for (size_t i = 0; i < size / SIM_GRANULE; i++) {
			struct slot slot = slot_of(r, ptr)[i];

			slot_of(r, ptr)[i] = (struct slot){0};
			if (slot.run) {
				slot.handle->maps--;
				put_handle(slot.handle);
			}
		}
		/* A fresh mapping: pages and contents are gone, an access faults. */
		mmap((void *)(uintptr_t)ptr, size, PROT_NONE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
		rc = CUDA_SUCCESS;
	}
	pthread_mutex_unlock(&sim.lock);
	return rc;
}

static bool is_mapped(const struct reservation *r, CUdeviceptr ptr, size_t size)
{
	const struct slot *slot = slot_of(r, ptr);

	for (size_t i = 0; i < size / SIM_GRANULE; i++) {
		if (!slot[i].handle)
			return false;
	}
	return true;
}

CUresult CUDAAPI cuMemSetAccess(CUdeviceptr ptr, size_t size, const CUmemAccessDesc *desc,
				size_t count)
{
	CUresult rc = CUDA_ERROR_INVALID_VALUE;
	struct reservation *r;

	SIM_ENTER();
	pthread_mutex_lock(&sim.lock);
	r = find_reservation(ptr, size);
	if (r && desc && count && aligned(size) && is_mapped(r, ptr, size)) {
		mprotect((void *)(uintptr_t)ptr, size,
			 desc[0].flags ? PROT_READ | PROT_WRITE : PROT_NONE);
		rc = CUDA_SUCCESS;
	}
	pthread_mutex_unlock(&sim.lock);
	return rc;
}

CUresult CUDAAPI cuMemGetAccess(unsigned long long *flags, const CUmemLocation *location,
				CUdeviceptr ptr)
{
	CUdeviceptr start;
	size_t size;
	int device;

	SIM_ENTER();
	if (!flags || !sim_vmm_range(ptr, &start, &size, &device))
		return CUDA_ERROR_INVALID_VALUE;
	*flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *address)
{
	CUdeviceptr ptr = (uintptr_t)address;
	struct reservation *r;
	struct handle *h = NULL;

	SIM_ENTER();
	pthread_mutex_lock(&sim.lock);
	r = find_reservation(ptr, 1);
	if (r)
		h = slot_of(r, ptr)->handle;
	if (h) {
		h->refs++;
		*handle = (uintptr_t)h;
	}
	pthread_mutex_unlock(&sim.lock);
	return h ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult CUDAAPI cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *prop,
							CUmemGenericAllocationHandle handle)
{
	struct handle *h;

	SIM_ENTER();
	pthread_mutex_lock(&sim.lock);
	h = find_handle(handle);
	if (h)
		*prop = h->prop;
	pthread_mutex_unlock(&sim.lock);
	return h ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* The descriptor tells who made what; it does not keep the memory alive by itself. */
CUresult CUDAAPI cuMemExportToShareableHandle(void *ret, CUmemGenericAllocationHandle handle,
					      CUmemAllocationHandleType type,
					      unsigned long long flags)
{
	struct shared what = {.magic = SHARED_MAGIC, .pid = (uint64_t)getpid()};
	const struct handle *h;
	int fd = -1;

	SIM_ENTER();
	if (!ret || flags || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&sim.lock);
	h = find_handle(handle);
	if (h && h->prop.requestedHandleTypes & type) {
		what.id = h->id;
		what.size = h->size;
		what.prop = h->prop;
		fd = sim_share(&what, sizeof(what));
	}
	pthread_mutex_unlock(&sim.lock);
	if (fd < 0)
		return CUDA_ERROR_INVALID_VALUE;
	*(int *)ret = fd;
	return CUDA_SUCCESS;
}

/* In the process that made it, it is one reference more to the same memory. */
static CUresult import_own(CUmemGenericAllocationHandle *ret, uint64_t id)
{
	struct handle *h;

	pthread_mutex_lock(&sim.lock);
	for (h = handles; h && (h->id != id || h->foreign); h = h->next)
		;
	if (h) {
		h->refs++;
		*ret = (uintptr_t)h;
	}
	pthread_mutex_unlock(&sim.lock);
	return h ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult CUDAAPI cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *os,
						CUmemAllocationHandleType type)
{
	struct shared what;

	SIM_ENTER();
	if (!handle || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ||
	    !sim_shared((int)(intptr_t)os, &what, sizeof(what)) || what.magic != SHARED_MAGIC ||
	    check_prop(&what.prop))
		return CUDA_ERROR_INVALID_VALUE;
	if (what.pid == (uint64_t)getpid())
		return import_own(handle, what.id);
	return add_handle(
		&(struct handle){.size = what.size, .refs = 1, .foreign = true, .prop = what.prop},
		handle);
}

/* The mapping that holds this address. */
bool sim_vmm_range(CUdeviceptr ptr, CUdeviceptr *ret_start, size_t *ret_size, int *ret_device)
{
	struct reservation *r;
	struct slot *slot = NULL;

	pthread_mutex_lock(&sim.lock);
	r = find_reservation(ptr, 1);
	if (r && slot_of(r, ptr)->handle) {
		slot = slot_of(r, ptr);
		slot -= slot->back;
		*ret_start = (uintptr_t)r->base + (size_t)(slot - r->slots) * SIM_GRANULE;
		*ret_size = slot->run * SIM_GRANULE;
		*ret_device = slot->handle->prop.location.id;
	}
	pthread_mutex_unlock(&sim.lock);
	return slot != NULL;
}

/* ---- for multicast.c ------------------------------------------------------------------------- */

CUresult sim_vmm_object(size_t size, CUmemGenericAllocationHandle *ret)
{
	return add_handle(&(struct handle){.size = size, .refs = 1, .object = true}, ret);
}

/* Keeps the memory of a device as a mapping would. */
bool sim_vmm_hold(CUmemGenericAllocationHandle handle, int *ret_device)
{
	struct handle *h;

	pthread_mutex_lock(&sim.lock);
	h = find_handle(handle);
	h = h && !h->object && on_device(h) ? h : NULL;
	if (h) {
		h->maps++;
		*ret_device = h->prop.location.id;
	}
	pthread_mutex_unlock(&sim.lock);
	return h;
}

void sim_vmm_let_go(CUmemGenericAllocationHandle handle)
{
	struct handle *h = (struct handle *)(uintptr_t)handle;

	pthread_mutex_lock(&sim.lock);
	h->maps--;
	put_handle(h);
	pthread_mutex_unlock(&sim.lock);
}
