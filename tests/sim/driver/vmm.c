/* SPDX-License-Identifier: MIT */
/*
 * vmm.c - virtual memory management: reservations, physical handles, mappings.
 *
 * Physical memory is charged by cuMemCreate and given back when a handle has neither references
 * nor mappings; reservations are address space only. Each reservation has one slot per granule
 * that names the handle mapped there. Contents do not move with a handle: what is mapped at a
 * second address reads as zeros there. All lists are under sim.lock.
 */
#include "sim.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

struct handle {
	size_t size;
	unsigned int refs, maps;
	CUmemAllocationProp prop;
	struct handle *next;
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

static struct sim_device *device_of_handle(const struct handle *h)
{
	bool on_device = h->prop.location.type == CU_MEM_LOCATION_TYPE_DEVICE;

	return on_device ? &sim.device[h->prop.location.id] : NULL;
}

static CUresult take_physical(struct sim_device *device, size_t size)
{
	CUresult rc;

	if (!device)
		return CUDA_SUCCESS;
	pthread_mutex_lock(&device->lock);
	rc = sim_charge(device, size);
	if (!rc)
		sim_book(&device->books, GT_SIM_VMM, size);
	pthread_mutex_unlock(&device->lock);
	return rc;
}

static void give_physical(struct sim_device *device, size_t size)
{
	if (!device)
		return;
	pthread_mutex_lock(&device->lock);
	sim_uncharge(device, size);
	sim_unbook(&device->books, GT_SIM_VMM, size);
	pthread_mutex_unlock(&device->lock);
}

/* Handles that another process could open are IPC, which the simulator does not have. */
static CUresult check_prop(const CUmemAllocationProp *prop)
{
	if (!prop || prop->type != CU_MEM_ALLOCATION_TYPE_PINNED)
		return CUDA_ERROR_INVALID_VALUE;
	if (prop->requestedHandleTypes & ~CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (prop->location.type == CU_MEM_LOCATION_TYPE_DEVICE)
		return sim_check_device(prop->location.id);
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size,
			     const CUmemAllocationProp *prop, unsigned long long flags)
{
	struct handle *h;
	CUresult rc;

	SIM_ENTER();
	rc = handle && aligned(size) && !flags ? check_prop(prop) : CUDA_ERROR_INVALID_VALUE;
	if (rc)
		return rc;
	if (sim_fail_now())
		return sim_answer(CUDA_ERROR_OUT_OF_MEMORY);
	h = malloc(sizeof(*h));
	if (!h)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*h = (struct handle){.size = size, .refs = 1, .prop = *prop};
	rc = take_physical(device_of_handle(h), size);
	if (rc) {
		free(h);
		return sim_answer(rc);
	}
	pthread_mutex_lock(&sim.lock);
	h->next = handles;
	handles = h;
	pthread_mutex_unlock(&sim.lock);
	*handle = (uintptr_t)h;
	return CUDA_SUCCESS;
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
	give_physical(device_of_handle(h), h->size);
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
