/* SPDX-License-Identifier: MIT */
/*
 * chaos_ops.c - the operations of the chaos program: a table with how often each is drawn.
 *
 * Results are not judged: whoever compares books does that. An operation keeps what it got, gives
 * back what it takes, and forgets what has ended.
 */
#define _GNU_SOURCE /* memfd_create */
#include "chaos.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#define MOST	 (8 * MIB)
#define REGISTER ((size_t)64 << 10)

static CUdeviceptr last_freed;
static char own[CHAOS_KEPT][REGISTER]; /* the program's memory, registered and not */

static void alloc_plain(void)
{
	size_t size = chaos_size(MOST), pitch = 0;
	CUdeviceptr ptr;

	if (!chaos_room(CHAOS_PTR))
		return;
	switch (chaos_random(6)) {
	case 0:
		if (!CALL(cuMemAllocPitch(&ptr, &pitch, size % 5000 + 1, 7, 4)))
			chaos_keep(CHAOS_PTR, ptr, pitch * 7);
		return;
	case 1:
		if (!CALL(cuMemAllocManaged(&ptr, size, CU_MEM_ATTACH_GLOBAL)))
			chaos_keep(CHAOS_PTR, ptr, size);
		return;
	default:
		if (!CALL(cuMemAlloc(&ptr, size)))
			chaos_keep(CHAOS_PTR, ptr, size);
	}
}

static void alloc_async(void)
{
	size_t size = chaos_size(MOST);
	struct chaos_thing pool;
	CUdeviceptr ptr;
	CUresult rc;

	if (!chaos_room(CHAOS_PTR))
		return;
	if (chaos_random(2) && chaos_take(CHAOS_POOL, &pool)) {
		rc = CALL(cuMemAllocFromPoolAsync(&ptr, size, (CUmemoryPool)(uintptr_t)pool.value,
						  NULL));
		chaos_keep(CHAOS_POOL, pool.value, 0);
	} else {
		rc = CALL(cuMemAllocAsync(&ptr, size, NULL));
	}
	if (!rc)
		chaos_keep(CHAOS_PTR, ptr, size);
}

static void free_something(void)
{
	struct chaos_thing thing;

	if (!chaos_take(CHAOS_PTR, &thing))
		return;
	last_freed = thing.value;
	if (chaos_random(2))
		CALL(cuMemFree(thing.value));
	else
		CALL(cuMemFreeAsync(thing.value, NULL));
}

static void free_from_other_device(void)
{
	chaos_use_device(!chaos_device);
	free_something();
	chaos_use_device(!chaos_device);
}

static void free_wrongly(void)
{
	struct chaos_thing thing;

	switch (chaos_random(5)) {
	case 0:
		CALL(cuMemFree(last_freed + 1));
		return;
	case 1:
		CALL(cuMemFreeAsync(0x12345600, NULL));
		return;
	case 2:
		CALL(cuMemFree(0));
		return;
	case 3: /* twice */
		if (!chaos_take(CHAOS_PTR, &thing))
			return;
		CALL(cuMemFree(thing.value));
		CALL(cuMemFree(thing.value));
		return;
	default: /* inside */
		if (!chaos_take(CHAOS_PTR, &thing))
			return;
		CALL(cuMemFree(thing.value + thing.size / 2 + 1));
		CALL(cuMemFree(thing.value));
	}
}

static void ask_too_much(void)
{
	CUmemGenericAllocationHandle handle;
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
				    .location = {CU_MEM_LOCATION_TYPE_DEVICE, chaos_device}};
	CUdeviceptr ptr;

	CALL(cuMemAlloc(&ptr, (size_t)1 << 40));
	CALL(cuMemAlloc(&ptr, 0));
	CALL(cuMemAllocAsync(&ptr, (size_t)1 << 40, NULL));
	CALL(cuMemCreate(&handle, (size_t)1 << 40, &prop, 0));
}

static void wait_for_device(void)
{
	size_t free_bytes, total;

	if (chaos_random(2))
		CALL(cuStreamSynchronize(NULL));
	else
		CALL(cuCtxSynchronize());
	CALL(cuMemGetInfo(&free_bytes, &total));
}

static void change_device(void)
{
	chaos_use_device((int)chaos_random(CHAOS_DEVICES));
}

static void host_memory(void)
{
	size_t size = chaos_size(MOST / 8), slot = chaos_random(CHAOS_KEPT);
	struct chaos_thing thing;
	void *ptr;

	if (chaos_room(CHAOS_PINNED) && chaos_random(2)) {
		if (!CALL(cuMemHostAlloc(&ptr, size, 0)))
			chaos_keep(CHAOS_PINNED, (uintptr_t)ptr, size);
	} else if (chaos_take(CHAOS_PINNED, &thing)) {
		CALL(cuMemFreeHost((void *)(uintptr_t)thing.value));
		if (!chaos_random(4))
			CALL(cuMemFreeHost((void *)(uintptr_t)thing.value));
	}
	if (!CALL(cuMemHostRegister(own[slot], REGISTER - slot, 0)))
		return; /* else it is registered already */
	CALL(cuMemHostUnregister(own[slot]));
}

static void pools(void)
{
	CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
				.location = {CU_MEM_LOCATION_TYPE_DEVICE, chaos_device}};
	cuuint64_t threshold = chaos_random(3) * 40 * MIB;
	struct chaos_thing thing;
	CUmemoryPool pool;

	if (chaos_room(CHAOS_POOL) && chaos_random(2)) {
		if (CALL(cuMemPoolCreate(&pool, &props)))
			return;
		CALL(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
		chaos_keep(CHAOS_POOL, (uintptr_t)pool, 0);
	} else if (chaos_take(CHAOS_POOL, &thing)) {
		pool = (CUmemoryPool)(uintptr_t)thing.value;
		CALL(cuMemPoolTrimTo(pool, chaos_random(2) * 32 * MIB));
		if (chaos_random(3))
			chaos_keep(CHAOS_POOL, thing.value, 0);
		else
			CALL(cuMemPoolDestroy(pool));
	}
}

static void make_handle(void)
{
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
				    .location = {CU_MEM_LOCATION_TYPE_DEVICE, chaos_device},
				    .requestedHandleTypes =
					    CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR};
	size_t size = (1 + chaos_random(5)) * 2 * MIB;
	CUmemGenericAllocationHandle handle;

	if (!chaos_room(CHAOS_HANDLE))
		return;
	if (!chaos_random(6))
		prop.location = (CUmemLocation){CU_MEM_LOCATION_TYPE_HOST_NUMA, 0};
	if (!CALL(cuMemCreate(&handle, size, &prop, 0)))
		chaos_keep(CHAOS_HANDLE, handle, size);
}

static void import_handle(void)
{
	size_t at = chaos_random(CHAOS_EXPORTED);
	CUmemGenericAllocationHandle handle;
	char path[64];
	int fd;

	if (!chaos_room(CHAOS_HANDLE))
		return;
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", chaos_exports.pid, chaos_exports.fds[at]);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (!CALL(cuMemImportFromShareableHandle(&handle, (void *)(intptr_t)fd,
						 CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)))
		chaos_keep(CHAOS_HANDLE, handle, (at + 1) * 2 * MIB);
	close(fd);
}

/* Exported and imported here: one reference more. */
static void share_with_self(CUmemGenericAllocationHandle handle)
{
	CUmemGenericAllocationHandle again;
	int fd;

	if (CALL(cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
					      0)))
		return;
	if (!CALL(cuMemImportFromShareableHandle(&again, (void *)(intptr_t)fd,
						 CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)))
		CALL(cuMemRelease(again));
	close(fd);
}

/* Mapped once or twice, then released: the mappings hold it. */
static void map_handle(void)
{
	struct chaos_thing thing;
	CUdeviceptr ptr;

	if (!chaos_take(CHAOS_HANDLE, &thing))
		return;
	if (chaos_random(2))
		share_with_self(thing.value);
	for (uint64_t n = chaos_random(3); n && chaos_room(CHAOS_MAPPING); n--) {
		if (CALL(cuMemAddressReserve(&ptr, thing.size, 0, 0, 0)))
			continue;
		if (!CALL(cuMemMap(ptr, thing.size, 0, thing.value, 0)))
			chaos_keep(CHAOS_MAPPING, ptr, thing.size);
		CALL(cuMemMap(ptr, thing.size, 0, thing.value, 0)); /* there is one */
	}
	CALL(cuMemRelease(thing.value));
}

static void unmap(void)
{
	CUmemGenericAllocationHandle handle;
	struct chaos_thing thing;

	if (!chaos_take(CHAOS_MAPPING, &thing))
		return;
	if (!CALL(cuMemRetainAllocationHandle(&handle, (void *)(uintptr_t)thing.value)))
		CALL(cuMemRelease(handle));
	CALL(cuMemAddressFree(thing.value, thing.size)); /* too early */
	CALL(cuMemUnmap(thing.value, thing.size));
	CALL(cuMemUnmap(thing.value, thing.size));
	CALL(cuMemAddressFree(thing.value, thing.size));
}

static void arrays(void)
{
	CUDA_ARRAY_DESCRIPTOR flat = {1 + chaos_random(2000), chaos_random(500), CU_AD_FORMAT_FLOAT,
				      1U << chaos_random(3)};
	CUDA_ARRAY3D_DESCRIPTOR cube = {1 + chaos_random(100),
					1 + chaos_random(100),
					1 + chaos_random(100),
					CU_AD_FORMAT_HALF,
					2,
					0};
	struct chaos_thing thing;
	CUmipmappedArray mipmap;
	CUarray array;

	if (chaos_random(2) && chaos_take(CHAOS_ARRAY, &thing)) {
		CALL(cuArrayDestroy((CUarray)(uintptr_t)thing.value));
		CALL(cuArrayDestroy((CUarray)(uintptr_t)thing.value));
	} else if (!CALL(chaos_random(2) ? cuArrayCreate(&array, &flat)
					 : cuArray3DCreate(&array, &cube))) {
		if (chaos_room(CHAOS_ARRAY))
			chaos_keep(CHAOS_ARRAY, (uintptr_t)array, 0);
		else
			CALL(cuArrayDestroy(array));
	}
	if (!CALL(cuMipmappedArrayCreate(&mipmap, &cube, 4)))
		CALL(cuMipmappedArrayDestroy(mipmap));
}

static void modules(void)
{
	struct chaos_thing thing;
	CUfunction function;
	CUmodule module;

	if (chaos_room(CHAOS_MODULE) && chaos_random(2)) {
		if (CALL(cuModuleLoadData(&module, "image")))
			return;
		if (chaos_random(2))
			CALL(cuModuleGetFunction(&function, module, "kernel"));
		chaos_keep(CHAOS_MODULE, (uintptr_t)module, 0);
	} else if (chaos_take(CHAOS_MODULE, &thing)) {
		CALL(cuModuleUnload((CUmodule)(uintptr_t)thing.value));
		CALL(cuModuleUnload((CUmodule)(uintptr_t)thing.value));
	}
}

/* All that a context owns goes with it, and cannot be freed any more. */
static void context(void)
{
	CUdeviceptr plain[3], async;
	CUcontext made;
	void *host;

	if (CALL(cuCtxCreate(&made, NULL, 0, chaos_device)))
		return;
	for (int i = 0; i < 3; i++)
		CALL(cuMemAlloc(&plain[i], chaos_size(MOST)));
	CALL(cuMemHostAlloc(&host, 5000, 0));
	if (chaos_room(CHAOS_PTR) && !CALL(cuMemAllocAsync(&async, 3000, NULL)))
		chaos_keep(CHAOS_PTR, async, 3000);
	CALL(cuMemFree(plain[1]));
	CALL(cuCtxDestroy(made));
	CALL(cuCtxDestroy(made));
	CALL(cuMemFree(plain[0]));
	CALL(cuMemFreeHost(host));
	chaos_use_device(chaos_device);
}

static CUgraph build_graph(CUdeviceptr *ret_left)
{
	CUDA_MEM_ALLOC_NODE_PARAMS params = {
		.poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
			      .location = {CU_MEM_LOCATION_TYPE_DEVICE, chaos_device}}};
	CUgraphNode alloc, node;
	CUgraph graph = NULL;

	if (CALL(cuGraphCreate(&graph, 0)))
		return NULL;
	for (uint64_t n = chaos_random(4); n; n--) {
		params.bytesize = chaos_size(MOST);
		if (!CALL(cuGraphAddMemAllocNode(&alloc, graph, NULL, 0, &params)))
			CALL(cuGraphAddMemFreeNode(&node, graph, &alloc, 1, params.dptr));
	}
	params.bytesize = chaos_size(MOST);
	CALL(cuGraphAddMemAllocNode(&alloc, graph, NULL, 0, &params));
	*ret_left = params.dptr;
	return graph;
}

static CUgraph capture_graph(CUdeviceptr *ret_left)
{
	CUdeviceptr inside;
	CUgraph graph = NULL;
	CUstream stream;

	if (CALL(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING)))
		return NULL;
	CALL(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
	CALL(cuMemAllocAsync(&inside, chaos_size(MOST), stream));
	CALL(cuMemAllocAsync(ret_left, chaos_size(MOST), stream));
	CALL(cuMemFreeAsync(inside, stream));
	CALL(cuMemFreeAsync(inside, stream)); /* has a node already */
	CALL(cuStreamEndCapture(stream, &graph));
	CALL(cuStreamDestroy(stream));
	return graph;
}

/* One block is left by each launch; it is freed outside, sometimes after all else is gone. */
static void graphs(void)
{
	CUdeviceptr left = 0;
	CUgraph graph = chaos_random(2) ? build_graph(&left) : capture_graph(&left);
	CUgraphExec exec;

	if (!graph)
		return;
	CALL(cuMemFree(left)); /* not launched yet */
	if (CALL(cuGraphInstantiate(&exec, graph, 0)))
		return;
	CALL(cuGraphLaunch(exec, NULL));
	CALL(cuGraphLaunch(exec, NULL)); /* the block is not free */
	if (chaos_random(2)) {
		CALL(cuMemFreeAsync(left, NULL));
		CALL(cuGraphLaunch(exec, NULL));
	}
	CALL(cuGraphDestroy(graph));
	CALL(cuGraphExecDestroy(exec));
	if (chaos_room(CHAOS_PTR))
		chaos_keep(CHAOS_PTR, left, 0);
	else
		CALL(cuMemFree(left));
	if (!chaos_random(4))
		CALL(cuDeviceGraphMemTrim(chaos_device));
}

static void external(void)
{
	CUDA_EXTERNAL_MEMORY_HANDLE_DESC desc = {.type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD,
						 .size = chaos_size(MOST) + 4096};
	CUDA_EXTERNAL_MEMORY_BUFFER_DESC buffer = {.size = desc.size / 2};
	struct chaos_thing thing;
	CUexternalMemory memory;
	CUdeviceptr ptr;

	if (chaos_take(CHAOS_EXTERNAL, &thing)) {
		CALL(cuDestroyExternalMemory((CUexternalMemory)(uintptr_t)thing.value));
		CALL(cuDestroyExternalMemory((CUexternalMemory)(uintptr_t)thing.value));
	}
	desc.handle.fd = memfd_create("chaos", MFD_CLOEXEC);
	if (CALL(cuImportExternalMemory(&memory, &desc)))
		return;
	chaos_keep(CHAOS_EXTERNAL, (uintptr_t)memory, 0);
	if (chaos_room(CHAOS_PTR) && !CALL(cuExternalMemoryGetMappedBuffer(&ptr, memory, &buffer)))
		chaos_keep(CHAOS_PTR, ptr, buffer.size);
}

static void opened(void)
{
	struct chaos_thing thing;
	CUdeviceptr ptr;

	if (chaos_room(CHAOS_OPENED) && chaos_random(2)) {
		if (!CALL(cuIpcOpenMemHandle(&ptr,
					     chaos_exports.blocks[chaos_random(CHAOS_EXPORTED)],
					     CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS)))
			chaos_keep(CHAOS_OPENED, ptr, 0);
	} else if (chaos_take(CHAOS_OPENED, &thing)) {
		CALL(cuMemFree(thing.value)); /* not the way to do it */
		CALL(cuIpcCloseMemHandle(thing.value));
	}
}

static const struct {
	void (*run)(void);
	unsigned int weight;
} operations[] = {
	{alloc_plain, 400}, {alloc_async, 250}, {free_something, 500}, {free_from_other_device, 50},
	{free_wrongly, 60}, {ask_too_much, 5},	{wait_for_device, 40}, {change_device, 50},
	{host_memory, 40},  {pools, 20},	{make_handle, 40},     {import_handle, 10},
	{map_handle, 40},   {unmap, 40},	{arrays, 30},	       {modules, 10},
	{context, 5},	    {graphs, 20},	{external, 10},	       {opened, 20},
};

#define OPERATIONS (sizeof(operations) / sizeof(operations[0]))

void chaos_do_something(void)
{
	uint64_t total = 0, drawn;
	size_t i;

	for (i = 0; i < OPERATIONS; i++)
		total += operations[i].weight;
	drawn = chaos_random(total);
	for (i = 0; drawn >= operations[i].weight; i++)
		drawn -= operations[i].weight;
	operations[i].run();
}

static void release(enum chaos_kind kind, const struct chaos_thing *thing)
{
	void *handle = (void *)(uintptr_t)thing->value;

	switch (kind) {
	case CHAOS_PINNED:
		CALL(cuMemFreeHost(handle));
		break;
	case CHAOS_POOL:
		CALL(cuMemPoolDestroy(handle));
		break;
	case CHAOS_HANDLE:
		CALL(cuMemRelease(thing->value));
		break;
	case CHAOS_MAPPING:
		CALL(cuMemUnmap(thing->value, thing->size));
		CALL(cuMemAddressFree(thing->value, thing->size));
		break;
	case CHAOS_ARRAY:
		CALL(cuArrayDestroy(handle));
		break;
	case CHAOS_MODULE:
		CALL(cuModuleUnload(handle));
		break;
	case CHAOS_EXTERNAL:
		CALL(cuDestroyExternalMemory(handle));
		break;
	case CHAOS_OPENED:
		CALL(cuIpcCloseMemHandle(thing->value));
		break;
	default:
		CALL(cuMemFree(thing->value));
	}
}

void chaos_clean_up(void)
{
	struct chaos_thing thing;

	for (int kind = 0; kind < CHAOS_KINDS; kind++) {
		while (chaos_take((enum chaos_kind)kind, &thing))
			release((enum chaos_kind)kind, &thing);
	}
	for (size_t i = 0; i < CHAOS_KEPT; i++)
		CALL(cuMemHostUnregister(own[i]));
	for (int device = 0; device < CHAOS_DEVICES; device++) {
		chaos_use_device(device);
		CALL(cuDeviceGraphMemTrim(device));
		CALL(cuCtxSynchronize());
	}
}
