/* SPDX-License-Identifier: MIT */
/*
 * array.c - arrays, 3D arrays and mipmapped arrays: device memory that has no address.
 *
 * An array's size is format x channels x dimensions, a mipmapped one's the sum over its levels; the
 * device is charged as for a plain block of that size. Sparse and deferred arrays take no memory of
 * their own. Handles are in a list, so a wrong one is refused instead of followed. Under sim.lock.
 */
#include "sim.h"

#include <stdlib.h>
#include <string.h>

#define NO_MEMORY (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING)
#define PAGE	  ((size_t)64 << 10)

struct CUarray_st {
	CUDA_ARRAY3D_DESCRIPTOR desc;
	CUmipmappedArray whole; /* for a level: it goes with the whole */
	struct CUctx_st *ctx;
	CUdeviceptr ptr; /* 0: no memory */
	size_t bytes;
	struct CUarray_st *next;
};

struct CUmipmappedArray_st {
	unsigned int level_count;
	struct CUarray_st all; /* the memory, and the first level's dimensions */
	CUarray *levels;
	struct CUmipmappedArray_st *next;
};

static CUarray arrays;
static CUmipmappedArray mipmaps;

static size_t format_bytes(CUarray_format format)
{
	switch (format) {
	case CU_AD_FORMAT_UNSIGNED_INT8:
	case CU_AD_FORMAT_SIGNED_INT8:
		return 1;
	case CU_AD_FORMAT_UNSIGNED_INT16:
	case CU_AD_FORMAT_SIGNED_INT16:
	case CU_AD_FORMAT_HALF:
		return 2;
	case CU_AD_FORMAT_UNSIGNED_INT32:
	case CU_AD_FORMAT_SIGNED_INT32:
	case CU_AD_FORMAT_FLOAT:
		return 4;
	default:
		return 0;
	}
}

/* 0: no such array. */
static size_t size_of(const CUDA_ARRAY3D_DESCRIPTOR *desc)
{
	size_t size = format_bytes(desc->Format) * desc->NumChannels;

	if (desc->NumChannels != 1 && desc->NumChannels != 2 && desc->NumChannels != 4)
		return 0;
	if (__builtin_mul_overflow(size, desc->Width, &size) ||
	    __builtin_mul_overflow(size, desc->Height ? desc->Height : 1, &size) ||
	    __builtin_mul_overflow(size, desc->Depth ? desc->Depth : 1, &size))
		return 0;
	return size;
}

static CUresult take_memory(struct CUarray_st *array, size_t bytes)
{
	CUresult rc = sim_current(&array->ctx);

	rc = rc ? rc : sim_capture_unsafe();
	if (rc)
		return rc;
	if (!bytes)
		return CUDA_ERROR_INVALID_VALUE;
	array->ctx = sim_owner(array->ctx);
	array->bytes = bytes;
	if (array->desc.Flags & NO_MEMORY)
		return CUDA_SUCCESS;
	return sim_mem_alloc(array->ctx, bytes, SIM_ARRAY, &array->ptr);
}

CUresult CUDAAPI cuArray3DCreate_v2(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR *desc)
{
	struct CUarray_st *made;
	CUresult rc;

	SIM_ENTER();
	if (!array || !desc)
		return CUDA_ERROR_INVALID_VALUE;
	made = calloc(1, sizeof(*made));
	if (!made)
		return CUDA_ERROR_OUT_OF_MEMORY;
	made->desc = *desc;
	rc = take_memory(made, size_of(desc));
	if (rc) {
		free(made);
		return rc;
	}
	pthread_mutex_lock(&sim.lock);
	made->next = arrays;
	arrays = made;
	pthread_mutex_unlock(&sim.lock);
	*array = made;
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuArrayCreate_v2(CUarray *array, const CUDA_ARRAY_DESCRIPTOR *desc)
{
	CUDA_ARRAY3D_DESCRIPTOR whole;

	if (!desc)
		return CUDA_ERROR_INVALID_VALUE;
	whole = (CUDA_ARRAY3D_DESCRIPTOR){.Width = desc->Width,
					  .Height = desc->Height,
					  .Format = desc->Format,
					  .NumChannels = desc->NumChannels};
	return cuArray3DCreate_v2(array, &whole);
}

/* The ABI of 32-bit sizes. */
CUresult CUDAAPI cuArray3DCreate(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR_v1 *desc)
{
	CUDA_ARRAY3D_DESCRIPTOR whole;

	if (!desc)
		return CUDA_ERROR_INVALID_VALUE;
	whole = (CUDA_ARRAY3D_DESCRIPTOR){desc->Width,	desc->Height,	   desc->Depth,
					  desc->Format, desc->NumChannels, desc->Flags};
	return cuArray3DCreate_v2(array, &whole);
}

CUresult CUDAAPI cuArrayCreate(CUarray *array, const CUDA_ARRAY_DESCRIPTOR_v1 *desc)
{
	CUDA_ARRAY_DESCRIPTOR whole;

	if (!desc)
		return CUDA_ERROR_INVALID_VALUE;
	whole = (CUDA_ARRAY_DESCRIPTOR){desc->Width, desc->Height, desc->Format, desc->NumChannels};
	return cuArrayCreate_v2(array, &whole);
}

static CUarray *find_array(CUarray array)
{
	CUarray *link = &arrays;

	while (*link && *link != array)
		link = &(*link)->next;
	return *link ? link : NULL;
}

static void drop_array(CUarray *link)
{
	CUarray array = *link;

	*link = array->next;
	if (array->ptr)
		sim_mem_free_array(array->ptr);
	free(array);
}

CUresult CUDAAPI cuArrayDestroy(CUarray array)
{
	struct CUctx_st *ctx;
	CUarray *link;
	CUresult rc = sim_current(&ctx);

	if (rc)
		return rc;
	pthread_mutex_lock(&sim.lock);
	link = find_array(array);
	if (link && !array->whole)
		drop_array(link);
	else
		rc = CUDA_ERROR_INVALID_HANDLE;
	pthread_mutex_unlock(&sim.lock);
	return rc;
}

CUresult CUDAAPI cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR *desc, CUarray array)
{
	bool found;

	SIM_ENTER();
	pthread_mutex_lock(&sim.lock);
	found = find_array(array);
	if (found)
		*desc = array->desc;
	pthread_mutex_unlock(&sim.lock);
	return found ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult CUDAAPI cuArrayGetDescriptor_v2(CUDA_ARRAY_DESCRIPTOR *desc, CUarray array)
{
	CUDA_ARRAY3D_DESCRIPTOR whole;
	CUresult rc = cuArray3DGetDescriptor_v2(&whole, array);

	if (!rc)
		*desc = (CUDA_ARRAY_DESCRIPTOR){whole.Width, whole.Height, whole.Format,
						whole.NumChannels};
	return rc;
}

/* What an array of this kind would need, were it mapped. */
CUresult CUDAAPI cuArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *need, CUarray array,
					      CUdevice dev)
{
	CUresult rc = sim_check_device(dev);

	if (rc)
		return rc;
	pthread_mutex_lock(&sim.lock);
	if (find_array(array))
		*need = (CUDA_ARRAY_MEMORY_REQUIREMENTS){
			.size = (array->bytes + PAGE - 1) / PAGE * PAGE, .alignment = PAGE};
	else
		rc = CUDA_ERROR_INVALID_HANDLE;
	pthread_mutex_unlock(&sim.lock);
	return rc;
}

/* Layers are not halved from level to level, depth is. */
static CUDA_ARRAY3D_DESCRIPTOR level_of(CUDA_ARRAY3D_DESCRIPTOR desc, unsigned int level)
{
	bool layered = desc.Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP);

	desc.Width = desc.Width >> level ? desc.Width >> level : 1;
	if (desc.Height)
		desc.Height = desc.Height >> level ? desc.Height >> level : 1;
	if (desc.Depth && !layered)
		desc.Depth = desc.Depth >> level ? desc.Depth >> level : 1;
	return desc;
}

/* Down to the level that is one element in every direction. */
static unsigned int most_levels(const CUDA_ARRAY3D_DESCRIPTOR *desc)
{
	size_t longest = desc->Width;
	unsigned int levels = 0;

	if (desc->Height > longest)
		longest = desc->Height;
	if (desc->Depth > longest && !(desc->Flags & CUDA_ARRAY3D_LAYERED))
		longest = desc->Depth;
	for (; longest; longest >>= 1)
		levels++;
	return levels;
}

/* Under sim.lock. */
static void add_level(CUmipmappedArray mipmap, unsigned int level)
{
	CUarray array = calloc(1, sizeof(*array));

	mipmap->levels[level] = array;
	if (!array)
		return;
	array->desc = level_of(mipmap->all.desc, level);
	array->bytes = size_of(&array->desc);
	array->whole = mipmap;
	array->next = arrays;
	arrays = array;
}

static CUresult make_mipmap(CUmipmappedArray made)
{
	size_t bytes = 0;

	for (unsigned int i = 0; i < made->level_count; i++) {
		CUDA_ARRAY3D_DESCRIPTOR level = level_of(made->all.desc, i);

		bytes += size_of(&level);
	}
	made->levels = calloc(made->level_count, sizeof(CUarray));
	return made->levels ? take_memory(&made->all, bytes) : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult CUDAAPI cuMipmappedArrayCreate(CUmipmappedArray *mipmap,
					const CUDA_ARRAY3D_DESCRIPTOR *desc, unsigned int levels)
{
	CUmipmappedArray made;
	CUresult rc;

	SIM_ENTER();
	if (!mipmap || !desc || !levels)
		return CUDA_ERROR_INVALID_VALUE;
	made = calloc(1, sizeof(*made));
	if (!made)
		return CUDA_ERROR_OUT_OF_MEMORY;
	made->all.desc = *desc;
	made->level_count = levels < most_levels(desc) ? levels : most_levels(desc);
	rc = make_mipmap(made);
	if (rc) {
		free(made->levels);
		free(made);
		return rc;
	}
	pthread_mutex_lock(&sim.lock);
	for (unsigned int i = 0; i < made->level_count; i++)
		add_level(made, i);
	made->next = mipmaps;
	mipmaps = made;
	pthread_mutex_unlock(&sim.lock);
	*mipmap = made;
	return CUDA_SUCCESS;
}

/* The memory is another API's: it is in the books with the handle it came from. */
CUresult CUDAAPI
cuExternalMemoryGetMappedMipmappedArray(CUmipmappedArray *mipmap, CUexternalMemory memory,
					const CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC *desc)
{
	CUDA_ARRAY3D_DESCRIPTOR foreign;

	SIM_ENTER();
	if (!desc)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sim_external_known(memory))
		return CUDA_ERROR_INVALID_HANDLE;
	foreign = desc->arrayDesc;
	foreign.Flags |= CUDA_ARRAY3D_DEFERRED_MAPPING;
	return cuMipmappedArrayCreate(mipmap, &foreign, desc->numLevels);
}

static CUmipmappedArray *find_mipmap(CUmipmappedArray mipmap)
{
	CUmipmappedArray *link = &mipmaps;

	while (*link && *link != mipmap)
		link = &(*link)->next;
	return *link ? link : NULL;
}

static void drop_mipmap(CUmipmappedArray *link)
{
	CUmipmappedArray mipmap = *link;

	*link = mipmap->next;
	for (unsigned int i = 0; i < mipmap->level_count; i++) {
		if (mipmap->levels[i])
			drop_array(find_array(mipmap->levels[i]));
	}
	if (mipmap->all.ptr)
		sim_mem_free_array(mipmap->all.ptr);
	free(mipmap->levels);
	free(mipmap);
}

CUresult CUDAAPI cuMipmappedArrayGetLevel(CUarray *array, CUmipmappedArray mipmap,
					  unsigned int level)
{
	CUresult rc = CUDA_ERROR_INVALID_VALUE;

	SIM_ENTER();
	pthread_mutex_lock(&sim.lock);
	if (!find_mipmap(mipmap)) {
		rc = CUDA_ERROR_INVALID_HANDLE;
	} else if (array && level < mipmap->level_count) {
		*array = mipmap->levels[level];
		rc = CUDA_SUCCESS;
	}
	pthread_mutex_unlock(&sim.lock);
	return rc;
}

CUresult CUDAAPI cuMipmappedArrayDestroy(CUmipmappedArray mipmap)
{
	CUmipmappedArray *link;

	SIM_ENTER();
	pthread_mutex_lock(&sim.lock);
	link = find_mipmap(mipmap);
	if (link)
		drop_mipmap(link);
	pthread_mutex_unlock(&sim.lock);
	return link ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

/* The context is about to end. */
void sim_array_free_all(const struct CUctx_st *ctx)
{
	CUmipmappedArray *mipmap = &mipmaps;
	CUarray *array = &arrays;

	pthread_mutex_lock(&sim.lock);
	while (*mipmap) {
		if ((*mipmap)->all.ctx == ctx)
			drop_mipmap(mipmap);
		else
			mipmap = &(*mipmap)->next;
	}
	while (*array) {
		if ((*array)->ctx == ctx)
			drop_array(array);
		else
			array = &(*array)->next;
	}
	pthread_mutex_unlock(&sim.lock);
}
