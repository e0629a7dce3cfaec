/* SPDX-License-Identifier: MIT */
/*
 * graphmem.c - memory nodes, and the memory of a device that graphs share.
 *
 * A MemAlloc node gets an address when it is added and memory when its graph is launched; a MemFree
 * node, or an ordinary free, gives it back. The device keeps what launches have needed at their
 * peaks (in granules) until cuDeviceGraphMemTrim, so a second launch costs nothing more.
 */
#include "graph.h"

#include <stdlib.h>

#define UP(size) (((size) + SIM_GRANULE - 1) / SIM_GRANULE * SIM_GRANULE)

/* With one reference, for the node that the caller makes. */
CUresult sim_graph_block_new(int device, size_t size, struct sim_graph_block **ret_block)
{
	struct sim_graph_block *block = malloc(sizeof(*block));
	struct sim_block *found;
	CUdeviceptr ptr = 0;

	if (!block)
		return CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_lock(&sim.device[device].lock);
	found = sim_arena_alloc_run(&sim.device[device].arena, size, &ptr);
	if (found) {
		found->kind = SIM_GRAPH;
		found->graph = block;
	}
	pthread_mutex_unlock(&sim.device[device].lock);
	if (!found) {
		free(block);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*block = (struct sim_graph_block){.ptr = ptr, .size = size, .device = device, .refs = 1};
	*ret_block = block;
	return CUDA_SUCCESS;
}

struct sim_graph_block *sim_graph_block_at(CUdeviceptr ptr)
{
	struct sim_device *device = sim_device_of(ptr);
	struct sim_graph_block *found = NULL;
	struct sim_block *block;
	CUdeviceptr start;

	if (!device)
		return NULL;
	pthread_mutex_lock(&device->lock);
	block = sim_arena_find(&device->arena, ptr, &start);
	if (block && block->kind == SIM_GRAPH && start == ptr)
		found = block->graph;
	pthread_mutex_unlock(&device->lock);
	return found;
}

void sim_graph_block_get(struct sim_graph_block *block)
{
	pthread_mutex_lock(&sim.device[block->device].lock);
	block->refs++;
	pthread_mutex_unlock(&sim.device[block->device].lock);
}

/* Under the device's lock. */
static void put(struct sim_graph_block *block)
{
	if (--block->refs)
		return;
	sim_arena_free(&sim.device[block->device].arena, block->ptr);
	free(block);
}

void sim_graph_block_put(struct sim_graph_block *block)
{
	pthread_mutex_t *lock = &sim.device[block->device].lock;

	pthread_mutex_lock(lock);
	put(block);
	pthread_mutex_unlock(lock);
}

/* Under the device's lock: the block begins or ends to be in use. */
static void turn(struct sim_graph_block *block, bool live)
{
	struct sim_device *device = &sim.device[block->device];
	struct sim_graph_pool *pool = &device->graph;

	block->live = live;
	if (live) {
		block->refs++;
		pool->used += block->size;
		pool->live += UP(block->size);
		sim_book(&device->books, GT_SIM_GRAPH_USED, block->size);
	} else {
		pool->used -= block->size;
		pool->live -= UP(block->size);
		sim_unbook(&device->books, GT_SIM_GRAPH_USED, block->size);
		put(block);
	}
}

CUresult sim_graph_free(struct sim_graph_block *block)
{
	if (!block->live)
		return CUDA_ERROR_INVALID_VALUE;
	turn(block, false);
	return CUDA_SUCCESS;
}

static void set_reserved(struct sim_device *device, uint64_t reserved)
{
	device->graph.reserved = reserved;
	if (reserved > device->graph.reserved_high)
		device->graph.reserved_high = reserved;
	device->books.bytes[GT_SIM_GRAPH_RESERVED] = reserved;
	device->books.count[GT_SIM_GRAPH_RESERVED] = reserved != 0;
}

static bool is_memory(const struct CUgraphNode_st *node)
{
	return node->work.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC ||
	       node->work.type == CU_GRAPH_NODE_TYPE_MEM_FREE;
}

static bool allocates(const struct CUgraphNode_st *node)
{
	return node->work.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC;
}

/* Under the lock: every allocation must be free now, or is freed. */
static CUresult check_allocs(CUgraph graph, int device, bool auto_free)
{
	for (CUgraphNode node = graph->first; node; node = node->next) {
		if (!allocates(node) || node->work.block->device != device ||
		    !node->work.block->live)
			continue;
		if (!auto_free)
			return CUDA_ERROR_INVALID_VALUE;
		turn(node->work.block, false);
	}
	return CUDA_SUCCESS;
}

/* Under the lock: what the launch needs at its peak is there, or nothing is changed. */
static CUresult reserve(CUgraph graph, struct sim_device *device)
{
	uint64_t now = device->graph.live, peak = now;

	for (CUgraphNode node = graph->first; node; node = node->next) {
		if (!is_memory(node) || node->work.block->device != device - sim.device)
			continue;
		if (allocates(node))
			now += UP(node->work.block->size);
		else
			now -= UP(node->work.block->size);
		if (now > peak && allocates(node))
			peak = now;
	}
	if (peak <= device->graph.reserved)
		return CUDA_SUCCESS;
	if (sim_charge(device, peak - device->graph.reserved))
		return CUDA_ERROR_OUT_OF_MEMORY;
	set_reserved(device, peak);
	return CUDA_SUCCESS;
}

static CUresult launch_on(CUgraph graph, struct sim_device *device, bool auto_free)
{
	CUresult rc = check_allocs(graph, (int)(device - sim.device), auto_free);

	rc = rc ? rc : reserve(graph, device);
	for (CUgraphNode node = graph->first; node && !rc; node = node->next) {
		if (!is_memory(node) || node->work.block->device != device - sim.device)
			continue;
		if (node->work.block->live != allocates(node))
			turn(node->work.block, allocates(node));
		else
			rc = CUDA_ERROR_INVALID_VALUE; /* frees what nobody has allocated */
		if (device->graph.used > device->graph.used_high)
			device->graph.used_high = device->graph.used;
	}
	return rc;
}

CUresult sim_graph_launch_memory(CUgraph graph, bool auto_free)
{
	CUresult rc = CUDA_SUCCESS;

	for (int i = 0; graph->has_memory && i < sim.devices && !rc; i++) {
		pthread_mutex_lock(&sim.device[i].lock);
		rc = launch_on(graph, &sim.device[i], auto_free);
		pthread_mutex_unlock(&sim.device[i].lock);
	}
	return sim_answer(rc);
}

CUresult CUDAAPI cuGraphAddMemAllocNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *deps,
					size_t count, CUDA_MEM_ALLOC_NODE_PARAMS *params)
{
	struct sim_work work = {.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC};
	CUresult rc;

	SIM_ENTER();
	if (!graph || !params || !params->bytesize ||
	    params->poolProps.location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
	    sim_check_device(params->poolProps.location.id))
		return CUDA_ERROR_INVALID_VALUE;
	rc = sim_graph_block_new(params->poolProps.location.id, params->bytesize, &work.block);
	if (rc)
		return rc;
	pthread_mutex_lock(&sim.lock);
	rc = sim_graph_add(graph, deps, count, &work, node);
	pthread_mutex_unlock(&sim.lock);
	if (rc)
		sim_graph_block_put(work.block);
	else
		params->dptr = work.block->ptr;
	return rc;
}

/* A block may be freed by one node only. */
CUresult CUDAAPI cuGraphAddMemFreeNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *deps,
				       size_t count, CUdeviceptr ptr)
{
	struct sim_work work = {.type = CU_GRAPH_NODE_TYPE_MEM_FREE};
	CUresult rc = CUDA_ERROR_INVALID_VALUE;

	SIM_ENTER();
	pthread_mutex_lock(&sim.lock);
	work.block = sim_graph_block_at(ptr);
	if (work.block && !work.block->freed_by_node)
		rc = sim_graph_add(graph, deps, count, &work, node);
	if (!rc) {
		work.block->freed_by_node = true;
		sim_graph_block_get(work.block);
	}
	pthread_mutex_unlock(&sim.lock);
	return rc;
}

CUresult CUDAAPI cuGraphMemAllocNodeGetParams(CUgraphNode node, CUDA_MEM_ALLOC_NODE_PARAMS *params)
{
	SIM_ENTER();
	if (!node || !params || !allocates(node))
		return CUDA_ERROR_INVALID_VALUE;
	*params = (CUDA_MEM_ALLOC_NODE_PARAMS){
		.poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
			      .location = {CU_MEM_LOCATION_TYPE_DEVICE, node->work.block->device}},
		.bytesize = node->work.block->size,
		.dptr = node->work.block->ptr};
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphMemFreeNodeGetParams(CUgraphNode node, CUdeviceptr *ptr)
{
	SIM_ENTER();
	if (!node || !ptr || node->work.type != CU_GRAPH_NODE_TYPE_MEM_FREE)
		return CUDA_ERROR_INVALID_VALUE;
	*ptr = node->work.block->ptr;
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceGraphMemTrim(CUdevice dev)
{
	CUresult rc = sim_check_device(dev);
	struct sim_device *device = &sim.device[dev];

	if (rc)
		return rc;
	pthread_mutex_lock(&device->lock);
	sim_uncharge(device, device->graph.reserved - device->graph.live);
	set_reserved(device, device->graph.live);
	pthread_mutex_unlock(&device->lock);
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceGetGraphMemAttribute(CUdevice dev, CUgraphMem_attribute attribute,
					      void *value)
{
	CUresult rc = sim_check_device(dev);
	struct sim_device *device = &sim.device[dev];
	uint64_t figures[4];

	if (rc)
		return rc;
	if (!value || attribute > CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&device->lock);
	figures[CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT] = device->graph.used;
	figures[CU_GRAPH_MEM_ATTR_USED_MEM_HIGH] = device->graph.used_high;
	figures[CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT] = device->graph.reserved;
	figures[CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH] = device->graph.reserved_high;
	pthread_mutex_unlock(&device->lock);
	*(uint64_t *)value = figures[attribute];
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceSetGraphMemAttribute(CUdevice dev, CUgraphMem_attribute attribute,
					      void *value)
{
	CUresult rc = sim_check_device(dev);
	struct sim_device *device = &sim.device[dev];

	if (rc)
		return rc;
	if (!value || *(uint64_t *)value)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&device->lock);
	if (attribute == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH)
		device->graph.used_high = device->graph.used;
	else if (attribute == CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH)
		device->graph.reserved_high = device->graph.reserved;
	else
		rc = CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_unlock(&device->lock);
	return rc;
}
