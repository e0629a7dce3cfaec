/* SPDX-License-Identifier: MIT */
/*
 * multicast.c - objects that write to the memory of several devices at once.
 *
 * An object is a handle without memory of its own (vmm.c): it is mapped, released and counted like
 * others, but nothing is charged for it. A binding keeps the bound memory as a mapping does, until
 * it is undone or the process ends; every device must have been added before.
 */
#include "sim.h"

#include <stdlib.h>

struct object {
	CUmemGenericAllocationHandle handle;
	size_t size;
	unsigned int devices, wanted, added; /* numbers, and which ones: bits */
	struct object *next;
};

struct binding {
	CUmemGenericAllocationHandle object, memory;
	size_t offset, size;
	int device;
	struct binding *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct object *objects;
static struct binding *bindings;

/* Under the lock. */
static struct object *find(CUmemGenericAllocationHandle handle)
{
	struct object *o = objects;

	while (o && o->handle != handle)
		o = o->next;
	return o;
}

static bool fits(size_t offset, size_t size, size_t whole)
{
	return size && size % SIM_GRANULE == 0 && offset % SIM_GRANULE == 0 && offset <= whole &&
	       size <= whole - offset;
}

CUresult CUDAAPI cuMulticastGetGranularity(size_t *granularity, const CUmulticastObjectProp *prop,
					   CUmulticastGranularity_flags option)
{
	SIM_ENTER();
	if (!granularity || !prop)
		return CUDA_ERROR_INVALID_VALUE;
	*granularity = SIM_GRANULE;
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMulticastCreate(CUmemGenericAllocationHandle *handle,
				   const CUmulticastObjectProp *prop)
{
	struct object *o;
	CUresult rc;

	SIM_ENTER();
	if (!handle || !prop || !prop->numDevices || !fits(0, prop->size, prop->size))
		return CUDA_ERROR_INVALID_VALUE;
	o = calloc(1, sizeof(*o));
	rc = o ? sim_vmm_object(prop->size, handle) : CUDA_ERROR_OUT_OF_MEMORY;
	if (rc) {
		free(o);
		return rc;
	}
	o->handle = *handle;
	o->size = prop->size;
	o->wanted = prop->numDevices;
	pthread_mutex_lock(&lock);
	o->next = objects;
	objects = o;
	pthread_mutex_unlock(&lock);
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMulticastAddDevice(CUmemGenericAllocationHandle handle, CUdevice dev)
{
	CUresult rc = sim_check_device(dev);
	struct object *o;

	if (rc)
		return rc;
	pthread_mutex_lock(&lock);
	o = find(handle);
	if (!o || o->devices == o->wanted || o->added & 1u << dev) {
		rc = CUDA_ERROR_INVALID_VALUE;
	} else {
		o->added |= 1u << dev;
		o->devices++;
	}
	pthread_mutex_unlock(&lock);
	return rc;
}

/* Under the lock: the object has all its devices, and the memory is on one of them. */
static CUresult bind(const struct object *o, const struct binding *what)
{
	struct binding *b;

	if (!o || !fits(what->offset, what->size, o->size))
		return CUDA_ERROR_INVALID_VALUE;
	if (o->devices != o->wanted)
		return CUDA_ERROR_NOT_READY;
	b = malloc(sizeof(*b));
	if (!b)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*b = *what;
	if (!sim_vmm_hold(b->memory, &b->device)) {
		free(b);
		return CUDA_ERROR_INVALID_VALUE;
	}
	b->next = bindings;
	bindings = b;
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMulticastBindMem(CUmemGenericAllocationHandle handle, size_t offset,
				    CUmemGenericAllocationHandle memory, size_t memory_offset,
				    size_t size, unsigned long long flags)
{
	CUresult rc;

	SIM_ENTER();
	if (flags || memory_offset % SIM_GRANULE)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&lock);
	rc = bind(find(handle),
		  &(struct binding){
			  .object = handle, .memory = memory, .offset = offset, .size = size});
	pthread_mutex_unlock(&lock);
	return rc;
}

CUresult CUDAAPI cuMulticastUnbind(CUmemGenericAllocationHandle handle, CUdevice dev, size_t offset,
				   size_t size)
{
	CUresult rc = CUDA_ERROR_INVALID_VALUE;
	struct binding **link = &bindings;
	struct binding *b;

	SIM_ENTER();
	pthread_mutex_lock(&lock);
	while ((b = *link)) {
		if (b->object != handle || b->device != dev || b->offset < offset ||
		    b->offset + b->size > offset + size) {
			link = &b->next;
			continue;
		}
		*link = b->next;
		sim_vmm_let_go(b->memory);
		free(b);
		rc = CUDA_SUCCESS;
	}
	pthread_mutex_unlock(&lock);
	return rc;
}
