/* SPDX-License-Identifier: MIT */
/*
 * capture.c - stream capture: what a stream is given becomes nodes of a graph.
 *
 * A capture starts on one stream and spreads to every stream that waits for an event recorded in
 * it; all of them must have been waited for when it ends. Each stream keeps the nodes that its next
 * node depends on. Calls that a capture forbids fail and make it invalid, as the real driver does;
 * a thread's capture mode (cuThreadExchangeStreamCaptureMode) lets them pass. Under sim.lock.
 */
#include "graph.h"

#include <stdlib.h>
#include <string.h>

struct sim_capture {
	unsigned long long id;
	CUgraph graph;
	CUstream origin;
	CUstreamCaptureMode mode;
	CUstreamCaptureStatus status;
	pthread_t thread;
	CUstream streams; /* that take part */
	struct sim_capture *next;
};

static struct sim_capture *captures;
static int active; /* their number: 0 is the common case and costs one load */
static unsigned long long next_id = 1;
static __thread CUstreamCaptureMode thread_mode;

bool sim_is_captured(CUstream stream)
{
	stream = sim_stream(stream);
	return stream && __atomic_load_n(&stream->capture, __ATOMIC_ACQUIRE);
}

static struct sim_capture *capture_with(unsigned long long id)
{
	struct sim_capture *capture = captures;

	while (capture && capture->id != id)
		capture = capture->next;
	return capture;
}

/* Is the calling thread held back by this capture? */
static bool forbids(const struct sim_capture *capture)
{
	bool mine = pthread_equal(capture->thread, pthread_self());

	if (thread_mode == CU_STREAM_CAPTURE_MODE_RELAXED ||
	    capture->mode == CU_STREAM_CAPTURE_MODE_RELAXED)
		return false;
	return mine || (thread_mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
			capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL);
}

CUresult sim_capture_unsafe(void)
{
	CUresult rc = CUDA_SUCCESS;

	if (!__atomic_load_n(&active, __ATOMIC_ACQUIRE))
		return CUDA_SUCCESS;
	pthread_mutex_lock(&sim.lock);
	for (struct sim_capture *c = captures; c; c = c->next) {
		if (!forbids(c))
			continue;
		c->status = CU_STREAM_CAPTURE_STATUS_INVALIDATED;
		rc = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	}
	pthread_mutex_unlock(&sim.lock);
	return rc;
}

CUresult sim_capture_refuse(CUstream stream)
{
	stream = sim_stream(stream);
	pthread_mutex_lock(&sim.lock);
	if (stream && stream->capture)
		stream->capture->status = CU_STREAM_CAPTURE_STATUS_INVALIDATED;
	pthread_mutex_unlock(&sim.lock);
	return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

static void join(struct sim_capture *capture, CUstream stream)
{
	stream->next_captured = capture->streams;
	capture->streams = stream;
	stream->dep_count = 0;
	stream->work = 0;
	stream->joined = 0;
	__atomic_store_n(&stream->capture, capture, __ATOMIC_RELEASE);
}

static void add_dep(CUstream stream, CUgraphNode node)
{
	for (size_t i = 0; i < stream->dep_count; i++) {
		if (stream->deps[i] == node)
			return;
	}
	if (stream->dep_count < SIM_DEPS)
		stream->deps[stream->dep_count++] = node;
}

static CUresult begin(CUstream stream, CUgraph graph, CUstreamCaptureMode mode)
{
	struct sim_capture *capture;

	SIM_ENTER();
	stream = sim_stream(stream);
	if (!stream)
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED; /* the legacy default stream */
	if (stream->capture || mode > CU_STREAM_CAPTURE_MODE_RELAXED)
		return mode > CU_STREAM_CAPTURE_MODE_RELAXED ? CUDA_ERROR_INVALID_VALUE
							     : CUDA_ERROR_ILLEGAL_STATE;
	capture = calloc(1, sizeof(*capture));
	graph = graph ? graph : sim_graph_new();
	if (!capture || !graph) {
		free(capture);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*capture = (struct sim_capture){.graph = graph,
					.origin = stream,
					.mode = mode,
					.status = CU_STREAM_CAPTURE_STATUS_ACTIVE,
					.thread = pthread_self()};
	pthread_mutex_lock(&sim.lock);
	capture->id = next_id++;
	capture->next = captures;
	captures = capture;
	join(capture, stream);
	__atomic_add_fetch(&active, 1, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&sim.lock);
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode)
{
	return begin(stream, NULL, mode);
}

CUresult CUDAAPI cuStreamBeginCapture(CUstream stream)
{
	return begin(stream, NULL, CU_STREAM_CAPTURE_MODE_GLOBAL);
}

CUresult CUDAAPI cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph,
					     const CUgraphNode *deps, const CUgraphEdgeData *edges,
					     size_t count, CUstreamCaptureMode mode)
{
	CUresult rc = graph ? begin(stream, graph, mode) : CUDA_ERROR_INVALID_VALUE;

	for (size_t i = 0; i < count && !rc; i++)
		add_dep(sim_stream(stream), deps[i]);
	return rc;
}

/* Under sim.lock: the capture is over, whatever came of it. */
static void dissolve(struct sim_capture *capture)
{
	struct sim_capture **link = &captures;

	while (*link != capture)
		link = &(*link)->next;
	*link = capture->next;
	__atomic_sub_fetch(&active, 1, __ATOMIC_RELEASE);
	for (CUstream s = capture->streams; s; s = s->next_captured)
		__atomic_store_n(&s->capture, NULL, __ATOMIC_RELEASE);
	free(capture);
}

static CUresult judge(const struct sim_capture *capture)
{
	if (capture->status == CU_STREAM_CAPTURE_STATUS_INVALIDATED)
		return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	for (CUstream s = capture->streams; s; s = s->next_captured) {
		if (s != capture->origin && s->work > s->joined)
			return CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
	}
	return CUDA_SUCCESS;
}

static CUresult end_locked(CUstream stream, CUgraph *graph)
{
	struct sim_capture *capture = stream ? stream->capture : NULL;
	CUresult rc;

	if (!capture)
		return CUDA_ERROR_ILLEGAL_STATE;
	if (capture->origin != stream)
		return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
	if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED &&
	    !pthread_equal(capture->thread, pthread_self()))
		return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
	rc = judge(capture);
	*graph = rc ? NULL : capture->graph;
	if (rc)
		sim_graph_put(capture->graph);
	dissolve(capture);
	return rc;
}

CUresult CUDAAPI cuStreamEndCapture(CUstream stream, CUgraph *graph)
{
	CUresult rc;

	SIM_ENTER();
	if (!graph)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&sim.lock);
	rc = end_locked(sim_stream(stream), graph);
	pthread_mutex_unlock(&sim.lock);
	sim_user_objects_run();
	return rc;
}

/* A stream that goes away in the middle takes its capture's validity with it. */
void sim_capture_leave(CUstream stream)
{
	CUstream *link;

	pthread_mutex_lock(&sim.lock);
	if (stream->capture) {
		stream->capture->status = CU_STREAM_CAPTURE_STATUS_INVALIDATED;
		for (link = &stream->capture->streams; *link != stream;)
			link = &(*link)->next_captured;
		*link = stream->next_captured;
		if (stream->capture->origin == stream) {
			sim_graph_put(stream->capture->graph);
			dissolve(stream->capture);
		}
	}
	pthread_mutex_unlock(&sim.lock);
}

/* Under sim.lock: the work becomes a node behind all that the stream depends on. */
static CUresult add_node(CUstream stream, const struct sim_work *work)
{
	CUgraphNode node;
	CUresult rc;

	if (stream->capture->status == CU_STREAM_CAPTURE_STATUS_INVALIDATED)
		return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	rc = sim_graph_add(stream->capture->graph, stream->deps, stream->dep_count, work, &node);
	if (rc)
		return rc;
	stream->deps[0] = node;
	stream->dep_count = 1;
	stream->work++;
	return CUDA_SUCCESS;
}

static CUresult add_work(CUstream stream, const struct sim_work *work)
{
	CUresult rc;

	pthread_mutex_lock(&sim.lock);
	rc = add_node(sim_stream(stream), work);
	pthread_mutex_unlock(&sim.lock);
	return rc;
}

CUresult sim_capture_plain(CUstream stream, CUgraphNodeType type)
{
	return add_work(stream, &(struct sim_work){.type = type});
}

CUresult sim_capture_copy(CUstream stream, CUdeviceptr to, CUdeviceptr from, size_t size)
{
	return add_work(stream, &(struct sim_work){.type = CU_GRAPH_NODE_TYPE_MEMCPY,
						   .copy = {to, from, size}});
}

CUresult sim_capture_fill(CUstream stream, CUdeviceptr to, uint32_t value, size_t width,
			  size_t count)
{
	return add_work(stream, &(struct sim_work){.type = CU_GRAPH_NODE_TYPE_MEMSET,
						   .fill = {to, value, width, count}});
}

CUresult sim_capture_host(CUstream stream, CUhostFn function, void *data)
{
	return add_work(stream, &(struct sim_work){.type = CU_GRAPH_NODE_TYPE_HOST,
						   .host = {function, data}});
}

CUresult sim_capture_child(CUstream stream, CUgraph child)
{
	struct sim_work work = {.type = CU_GRAPH_NODE_TYPE_GRAPH};

	if (child->has_memory)
		return sim_capture_refuse(stream);
	pthread_mutex_lock(&sim.lock);
	work.child = sim_graph_clone(child);
	pthread_mutex_unlock(&sim.lock);
	return add_work(stream, &work);
}

CUresult sim_capture_alloc(CUstream stream, int device, size_t size, CUdeviceptr *ret_ptr)
{
	struct sim_work work = {.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC};
	CUresult rc;

	if (!ret_ptr || !size)
		return CUDA_ERROR_INVALID_VALUE;
	rc = sim_graph_block_new(device, size, &work.block);
	if (rc)
		return rc;
	rc = add_work(stream, &work);
	if (rc)
		sim_graph_block_put(work.block);
	else
		*ret_ptr = work.block->ptr;
	return rc;
}

CUresult sim_capture_free(CUstream stream, CUdeviceptr ptr)
{
	struct sim_work work = {.type = CU_GRAPH_NODE_TYPE_MEM_FREE};
	CUresult rc = CUDA_ERROR_INVALID_VALUE;

	pthread_mutex_lock(&sim.lock);
	work.block = sim_graph_block_at(ptr);
	if (work.block && !work.block->freed_by_node)
		rc = add_node(sim_stream(stream), &work);
	if (!rc) {
		sim_graph_block_get(work.block);
		work.block->freed_by_node = true;
	}
	pthread_mutex_unlock(&sim.lock);
	return rc;
}

/* The event stands for what the stream has done so far in its capture, if it is in one. */
void sim_capture_record(CUevent event, CUstream stream)
{
	stream = sim_stream(stream);
	pthread_mutex_lock(&sim.lock);
	event->capture_id = stream && stream->capture ? stream->capture->id : 0;
	if (event->capture_id) {
		event->stream = stream;
		event->work = stream->work;
		event->dep_count = stream->dep_count;
		memcpy(event->deps, stream->deps, sizeof(event->deps));
	}
	pthread_mutex_unlock(&sim.lock);
}

static CUresult wait_locked(CUstream stream, CUevent event)
{
	struct sim_capture *capture = capture_with(event->capture_id);

	if (!capture)
		return CUDA_SUCCESS;
	if (!stream || (stream->capture && stream->capture != capture)) {
		capture->status = CU_STREAM_CAPTURE_STATUS_INVALIDATED;
		return stream ? CUDA_ERROR_STREAM_CAPTURE_MERGE
			      : CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
	}
	if (!stream->capture)
		join(capture, stream);
	for (size_t i = 0; i < event->dep_count; i++)
		add_dep(stream, event->deps[i]);
	stream->work++;
	if (event->stream != stream && event->work > event->stream->joined)
		event->stream->joined = event->work;
	return CUDA_SUCCESS;
}

CUresult sim_capture_wait(CUstream stream, CUevent event)
{
	CUresult rc;

	pthread_mutex_lock(&sim.lock);
	rc = event->capture_id ? wait_locked(sim_stream(stream), event) : CUDA_SUCCESS;
	pthread_mutex_unlock(&sim.lock);
	return rc;
}

bool sim_capture_has(const struct CUevent_st *event)
{
	bool has;

	pthread_mutex_lock(&sim.lock);
	has = event->capture_id && capture_with(event->capture_id);
	pthread_mutex_unlock(&sim.lock);
	return has;
}

CUresult CUDAAPI cuStreamGetCaptureInfo_v3(CUstream stream, CUstreamCaptureStatus *status,
					   cuuint64_t *id, CUgraph *graph, const CUgraphNode **deps,
					   const CUgraphEdgeData **edges, size_t *count)
{
	struct sim_capture *capture;

	SIM_ENTER();
	if (!status)
		return CUDA_ERROR_INVALID_VALUE;
	stream = sim_stream(stream);
	pthread_mutex_lock(&sim.lock);
	capture = stream ? stream->capture : NULL;
	*status = capture ? capture->status : CU_STREAM_CAPTURE_STATUS_NONE;
	if (id)
		*id = capture ? capture->id : 0;
	if (graph)
		*graph = capture ? capture->graph : NULL;
	if (deps)
		*deps = capture ? stream->deps : NULL;
	if (edges)
		*edges = NULL;
	if (count)
		*count = capture ? stream->dep_count : 0;
	pthread_mutex_unlock(&sim.lock);
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus *status,
					   cuuint64_t *id, CUgraph *graph, const CUgraphNode **deps,
					   size_t *count)
{
	return cuStreamGetCaptureInfo_v3(stream, status, id, graph, deps, NULL, count);
}

CUresult CUDAAPI cuStreamGetCaptureInfo(CUstream stream, CUstreamCaptureStatus *status,
					cuuint64_t *id)
{
	return cuStreamGetCaptureInfo_v3(stream, status, id, NULL, NULL, NULL, NULL);
}

CUresult CUDAAPI cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status)
{
	return cuStreamGetCaptureInfo_v3(stream, status, NULL, NULL, NULL, NULL, NULL);
}

CUresult CUDAAPI cuStreamUpdateCaptureDependencies_v2(CUstream stream, CUgraphNode *deps,
						      const CUgraphEdgeData *edges, size_t count,
						      unsigned int flags)
{
	SIM_ENTER();
	if (!sim_is_captured(stream))
		return CUDA_ERROR_ILLEGAL_STATE;
	stream = sim_stream(stream);
	pthread_mutex_lock(&sim.lock);
	if (flags & CU_STREAM_SET_CAPTURE_DEPENDENCIES)
		stream->dep_count = 0;
	for (size_t i = 0; i < count; i++)
		add_dep(stream, deps[i]);
	pthread_mutex_unlock(&sim.lock);
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuStreamUpdateCaptureDependencies(CUstream stream, CUgraphNode *deps, size_t count,
						   unsigned int flags)
{
	return cuStreamUpdateCaptureDependencies_v2(stream, deps, NULL, count, flags);
}

CUresult CUDAAPI cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
	CUstreamCaptureMode old = thread_mode;

	SIM_ENTER();
	if (!mode || *mode > CU_STREAM_CAPTURE_MODE_RELAXED)
		return CUDA_ERROR_INVALID_VALUE;
	thread_mode = *mode;
	*mode = old;
	return CUDA_SUCCESS;
}
