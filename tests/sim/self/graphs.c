/* SPDX-License-Identifier: MIT */
/*
 * graphs.c - graphs and capture: what becomes a node, and when the memory of graphs comes and goes.
 */
#include "self.h"

#include <pthread.h>

static uint64_t figure(CUgraphMem_attribute attribute)
{
	uint64_t value = 7;

	OK(cuDeviceGetGraphMemAttribute(0, attribute, &value));
	return value;
}

#define USED	 figure(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT)
#define RESERVED figure(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT)

static CUdeviceptr add_alloc(CUgraph graph, size_t size, CUgraphNode *node)
{
	CUDA_MEM_ALLOC_NODE_PARAMS params = {
		.poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
			      .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}},
		.bytesize = size};

	OK(cuGraphAddMemAllocNode(node, graph, NULL, 0, &params));
	return params.dptr;
}

/* Two blocks of which the first is freed by the graph: the second stays until somebody frees it. */
static void memory_nodes(void)
{
	CUgraphNode first, node;
	CUgraphExec exec, second;
	CUdeviceptr ptr[2];
	CUgraph graph;

	self_start();
	OK(cuGraphCreate(&graph, 0));
	ptr[0] = add_alloc(graph, 3 * MIB, &first);
	OK(cuGraphAddMemFreeNode(&node, graph, &first, 1, ptr[0]));
	EQUAL(cuGraphAddMemFreeNode(&node, graph, NULL, 0, ptr[0]), CUDA_ERROR_INVALID_VALUE);
	EQUAL(cuGraphAddMemFreeNode(&node, graph, NULL, 0, 4096), CUDA_ERROR_INVALID_VALUE);
	ptr[1] = add_alloc(graph, 1000, &node);
	EQUAL(self_free_bytes(), 64 * MIB);
	EQUAL(cuMemFree_v2(ptr[1]), CUDA_ERROR_INVALID_VALUE); /* an address, but no memory */
	OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	EQUAL(cuGraphInstantiateWithFlags(&second, graph, 0), CUDA_ERROR_NOT_SUPPORTED);
	EQUAL(RESERVED, 0);
	OK(cuGraphLaunch(exec, NULL));
	EQUAL(USED, 1000);
	EQUAL(figure(CU_GRAPH_MEM_ATTR_USED_MEM_HIGH), 3 * MIB);
	EQUAL(RESERVED, 4 * MIB);
	EQUAL(self_free_bytes(), 60 * MIB);
	EQUAL(self_bytes(0, GT_SIM_GRAPH_USED), 1000);
	EQUAL(self_bytes(0, GT_SIM_GRAPH_RESERVED), 4 * MIB);
	EQUAL(cuGraphLaunch(exec, NULL), CUDA_ERROR_INVALID_VALUE); /* one is not free yet */
	OK(cuDeviceGraphMemTrim(0));
	EQUAL(RESERVED, 2 * MIB);
	OK(cuMemFreeAsync(ptr[1], NULL));
	EQUAL(cuMemFreeAsync(ptr[1], NULL), CUDA_ERROR_INVALID_VALUE);
	OK(cuGraphLaunch(exec, NULL));
	OK(cuGraphDestroy(graph));
	OK(cuGraphExecDestroy(exec));
	EQUAL(USED, 1000); /* outlives both */
	OK(cuMemFree_v2(ptr[1]));
	OK(cuDeviceGraphMemTrim(0));
	EQUAL(self_free_bytes(), 64 * MIB);
	EQUAL(cuMemFree_v2(ptr[1]), CUDA_ERROR_INVALID_VALUE);
}

static void auto_free(void)
{
	CUgraphNode node;
	CUgraphExec exec;
	CUgraph graph;

	self_start();
	OK(cuGraphCreate(&graph, 0));
	add_alloc(graph, 40 * MIB, &node);
	OK(cuGraphInstantiateWithFlags(&exec, graph,
				       CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH));
	for (int i = 0; i < 3; i++)
		OK(cuGraphLaunch(exec, NULL));
	EQUAL(USED, 40 * MIB);
	EQUAL(RESERVED, 40 * MIB);
	add_alloc(graph, MIB, &node); /* not in the instance that exists */
	OK(cuGraphLaunch(exec, NULL));
	EQUAL(USED, 40 * MIB);
}

static void refused(void)
{
	CUgraphNode node;
	CUgraphExec exec;
	CUgraph graph;

	self_start();
	OK(cuGraphCreate(&graph, 0));
	add_alloc(graph, 40 * MIB, &node);
	add_alloc(graph, 40 * MIB, &node);
	OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	EQUAL(cuGraphLaunch(exec, NULL), CUDA_ERROR_OUT_OF_MEMORY);
	EQUAL(USED, 0);
	EQUAL(self_free_bytes(), 64 * MIB);
}

static int host_calls;

static void on_host(void *data)
{
	host_calls += *(int *)data;
}

/* Nothing happens during capture; each launch does it all. */
static void captured(void)
{
	CUstreamCaptureStatus status;
	CUgraphExec exec;
	CUdeviceptr plain, ptr;
	CUstream stream;
	CUgraph graph;
	size_t nodes;
	char byte = 1;
	int step = 3;

	self_start();
	OK(cuMemAlloc_v2(&plain, 1000));
	OK(cuMemsetD8_v2(plain, 1, 1000));
	OK(cuStreamCreate(&stream, 0));
	EQUAL(cuStreamBeginCapture_v2(NULL, 0), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	OK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
	EQUAL(cuStreamBeginCapture_v2(stream, 0), CUDA_ERROR_ILLEGAL_STATE);
	OK(cuStreamIsCapturing(stream, &status));
	EQUAL(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
	OK(cuMemAllocAsync(&ptr, 5000, stream));
	OK(cuMemsetD8Async(plain, 7, 1000, stream));
	OK(cuLaunchHostFunc(stream, on_host, &step));
	EQUAL(cuMemFreeAsync(plain, stream), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemFreeAsync(ptr, stream));
	OK(cuStreamEndCapture(stream, &graph));
	OK(cuGraphGetNodes(graph, NULL, &nodes));
	EQUAL(nodes, 4);
	OK(cuGraphGetRootNodes(graph, NULL, &nodes));
	EQUAL(nodes, 1);
	EQUAL(host_calls, 0);
	EQUAL(self_bytes(0, GT_SIM_GRAPH_USED), 0);
	OK(cuMemcpyDtoH_v2(&byte, plain + 500, 1));
	EQUAL(byte, 1);
	OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	OK(cuGraphLaunch(exec, stream));
	OK(cuGraphLaunch(exec, stream));
	EQUAL(host_calls, 6);
	OK(cuMemcpyDtoH_v2(&byte, plain + 500, 1));
	EQUAL(byte, 7);
	EQUAL(self_bytes(0, GT_SIM_GRAPH_USED), 0);
	EQUAL(RESERVED, 2 * MIB);
	EQUAL(cuStreamEndCapture(stream, &graph), CUDA_ERROR_ILLEGAL_STATE);
}

/* A second stream joins by an event, and must be waited for. */
static void forked_streams(void)
{
	CUstream a, b;
	CUevent event;
	CUgraph graph;

	self_start();
	OK(cuStreamCreate(&a, 0));
	OK(cuStreamCreate(&b, 0));
	OK(cuEventCreate(&event, 0));
	for (int joined = 0; joined < 2; joined++) {
		CUstreamCaptureStatus status;

		OK(cuStreamBeginCapture_v2(a, CU_STREAM_CAPTURE_MODE_RELAXED));
		OK(cuEventRecord(event, a));
		EQUAL(cuEventQuery(event), CUDA_ERROR_CAPTURED_EVENT);
		OK(cuStreamWaitEvent(b, event, 0));
		OK(cuStreamIsCapturing(b, &status));
		EQUAL(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
		EQUAL(cuStreamEndCapture(b, &graph), CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
		OK(cuEventRecord(event, b));
		if (joined)
			OK(cuStreamWaitEvent(a, event, 0));
		EQUAL(cuStreamEndCapture(a, &graph),
		      joined ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
		EQUAL(graph != NULL, joined);
		OK(cuStreamIsCapturing(b, &status));
		EQUAL(status, CU_STREAM_CAPTURE_STATUS_NONE);
	}
}

static void *allocate(void *arg)
{
	CUdeviceptr ptr;

	OK(cuCtxSetCurrent(arg));
	return (void *)(uintptr_t)cuMemAlloc_v2(&ptr, 512);
}

static uintptr_t in_other_thread(CUcontext ctx)
{
	pthread_t thread;
	void *rc;

	OK(pthread_create(&thread, NULL, allocate, ctx));
	OK(pthread_join(thread, &rc));
	return (uintptr_t)rc;
}

/* Who may call what while a stream is captured, by the modes of the capture and of the thread. */
static void modes(void)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	CUcontext ctx = self_start();
	CUdeviceptr ptr;
	CUstream stream;
	CUgraph graph;

	OK(cuStreamCreate(&stream, 0));
	OK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
	EQUAL(in_other_thread(ctx), CUDA_SUCCESS);
	OK(cuThreadExchangeStreamCaptureMode(&mode));
	EQUAL(mode, CU_STREAM_CAPTURE_MODE_GLOBAL);
	OK(cuMemAlloc_v2(&ptr, 512));
	OK(cuThreadExchangeStreamCaptureMode(&mode));
	EQUAL(cuMemAlloc_v2(&ptr, 512), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	EQUAL(cuLaunchHostFunc(stream, on_host, NULL), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	EQUAL(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	EQUAL(graph, NULL);
	OK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
	EQUAL(in_other_thread(ctx), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	EQUAL(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	OK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
	OK(cuMemAlloc_v2(&ptr, 512));
	EQUAL(cuStreamSynchronize(stream), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	EQUAL(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

static void user_objects(void)
{
	CUuserObject object;
	CUgraphExec exec;
	CUgraph graph;
	int step = 1;

	self_start();
	OK(cuGraphCreate(&graph, 0));
	OK(cuUserObjectCreate(&object, &step, on_host, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
	OK(cuGraphRetainUserObject(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE));
	OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	OK(cuGraphDestroy(graph));
	EQUAL(host_calls, 0);
	OK(cuGraphExecDestroy(exec));
	EQUAL(host_calls, 1);
}

const struct self_case self_graph_cases[] = {
	{"graph-memory", memory_nodes, "GT_SIM_CAPACITY=64M"},
	{"graph-auto-free", auto_free, "GT_SIM_CAPACITY=64M"},
	{"graph-refused", refused, "GT_SIM_CAPACITY=64M"},
	{"graph-captured", captured, NULL},
	{"graph-forked-streams", forked_streams, NULL},
	{"graph-modes", modes, NULL},
	{"graph-user-objects", user_objects, NULL},
	{NULL, NULL, NULL},
};
