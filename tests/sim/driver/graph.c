/* SPDX-License-Identifier: MIT */
/*
 * graph.c - graphs and nodes: made by hand or by capture (capture.c), asked about, taken apart.
 */
#include "graph.h"

#include <stdlib.h>
#include <string.h>

CUgraph sim_graph_new(void)
{
	CUgraph graph = calloc(1, sizeof(*graph));

	if (graph) {
		graph->tail = &graph->first;
		graph->refs = 1;
	}
	return graph;
}

static void free_node(CUgraphNode node)
{
	if (node->work.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC ||
	    node->work.type == CU_GRAPH_NODE_TYPE_MEM_FREE)
		sim_graph_block_put(node->work.block);
	if (node->work.type == CU_GRAPH_NODE_TYPE_GRAPH)
		sim_graph_put(node->work.child);
	free(node->deps);
	free(node);
}

void sim_graph_put(CUgraph graph)
{
	if (--graph->refs)
		return;
	while (graph->first) {
		CUgraphNode node = graph->first;

		graph->first = node->next;
		free_node(node);
	}
	sim_user_objects_put(graph->objects);
	free(graph);
}

static bool add_dependency(CUgraphNode node, CUgraphNode dep)
{
	CUgraphNode *grown = realloc(node->deps, (node->dep_count + 1) * sizeof(*grown));

	if (!grown)
		return false;
	node->deps = grown;
	grown[node->dep_count++] = dep;
	return true;
}

/* Takes over the reference that work holds of a block or a child. */
CUresult sim_graph_add(CUgraph graph, const CUgraphNode *deps, size_t count,
		       const struct sim_work *work, CUgraphNode *ret_node)
{
	CUgraphNode node;

	if (!graph || (count && !deps))
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < count; i++) {
		if (!deps[i] || deps[i]->graph != graph)
			return CUDA_ERROR_INVALID_VALUE;
	}
	node = calloc(1, sizeof(*node));
	if (!node)
		return CUDA_ERROR_OUT_OF_MEMORY;
	node->work = *work;
	node->graph = graph;
	for (size_t i = 0; i < count; i++)
		add_dependency(node, deps[i]);
	*graph->tail = node;
	graph->tail = &node->next;
	graph->count++;
	graph->has_memory |= work->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC ||
			     work->type == CU_GRAPH_NODE_TYPE_MEM_FREE;
	if (ret_node)
		*ret_node = node;
	return CUDA_SUCCESS;
}

static CUgraphNode twin_of(const struct CUgraph_st *from, CUgraph to, const CUgraphNode node)
{
	CUgraphNode twin = to->first;

	for (CUgraphNode n = from->first; n != node; n = n->next)
		twin = twin->next;
	return twin;
}

CUgraph sim_graph_clone(const struct CUgraph_st *graph)
{
	CUgraph made = sim_graph_new();

	for (CUgraphNode node = graph->first; node && made; node = node->next) {
		struct sim_work work = node->work;
		CUgraphNode copy;

		if (work.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC ||
		    work.type == CU_GRAPH_NODE_TYPE_MEM_FREE)
			sim_graph_block_get(work.block);
		if (work.type == CU_GRAPH_NODE_TYPE_GRAPH)
			work.child->refs++;
		if (sim_graph_add(made, NULL, 0, &work, &copy))
			break;
		for (size_t i = 0; i < node->dep_count; i++)
			add_dependency(copy, twin_of(graph, made, node->deps[i]));
	}
	return made;
}

CUresult CUDAAPI cuGraphCreate(CUgraph *graph, unsigned int flags)
{
	SIM_ENTER();
	if (!graph || flags)
		return CUDA_ERROR_INVALID_VALUE;
	*graph = sim_graph_new();
	return *graph ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult CUDAAPI cuGraphDestroy(CUgraph graph)
{
	SIM_ENTER();
	if (!graph)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&sim.lock);
	sim_graph_put(graph);
	pthread_mutex_unlock(&sim.lock);
	sim_user_objects_run();
	return CUDA_SUCCESS;
}

/* Memory cannot be in two graphs at once. */
CUresult CUDAAPI cuGraphClone(CUgraph *clone, CUgraph graph)
{
	SIM_ENTER();
	if (!clone || !graph)
		return CUDA_ERROR_INVALID_VALUE;
	if (graph->has_memory)
		return CUDA_ERROR_NOT_SUPPORTED;
	pthread_mutex_lock(&sim.lock);
	*clone = sim_graph_clone(graph);
	pthread_mutex_unlock(&sim.lock);
	return *clone ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult add(CUgraphNode *node, CUgraph graph, const CUgraphNode *deps, size_t count,
		    const struct sim_work *work)
{
	CUresult rc;

	SIM_ENTER();
	pthread_mutex_lock(&sim.lock);
	rc = sim_graph_add(graph, deps, count, work, node);
	pthread_mutex_unlock(&sim.lock);
	return rc;
}

CUresult CUDAAPI cuGraphAddEmptyNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *deps,
				     size_t count)
{
	return add(node, graph, deps, count, &(struct sim_work){.type = CU_GRAPH_NODE_TYPE_EMPTY});
}

CUresult CUDAAPI cuGraphAddKernelNode_v2(CUgraphNode *node, CUgraph graph, const CUgraphNode *deps,
					 size_t count, const CUDA_KERNEL_NODE_PARAMS_v2 *params)
{
	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	return add(node, graph, deps, count, &(struct sim_work){.type = CU_GRAPH_NODE_TYPE_KERNEL});
}

CUresult CUDAAPI cuGraphAddHostNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *deps,
				    size_t count, const CUDA_HOST_NODE_PARAMS *params)
{
	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	return add(node, graph, deps, count,
		   &(struct sim_work){.type = CU_GRAPH_NODE_TYPE_HOST, .host = *params});
}

CUresult CUDAAPI cuGraphAddMemsetNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *deps,
				      size_t count, const CUDA_MEMSET_NODE_PARAMS *params,
				      CUcontext ctx)
{
	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	return add(node, graph, deps, count,
		   &(struct sim_work){.type = CU_GRAPH_NODE_TYPE_MEMSET,
				      .fill = {params->dst, params->value, params->elementSize,
					       params->height > 1 ? 0 : params->width}});
}

CUresult CUDAAPI cuGraphAddChildGraphNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *deps,
					  size_t count, CUgraph child)
{
	struct sim_work work = {.type = CU_GRAPH_NODE_TYPE_GRAPH};

	if (!child || child->has_memory)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&sim.lock);
	work.child = sim_graph_clone(child);
	pthread_mutex_unlock(&sim.lock);
	return work.child ? add(node, graph, deps, count, &work) : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult CUDAAPI cuGraphAddNode_v2(CUgraphNode *node, CUgraph graph, const CUgraphNode *deps,
				   const CUgraphEdgeData *edges, size_t count,
				   CUgraphNodeParams *params)
{
	CUDA_MEM_ALLOC_NODE_PARAMS_v1 alloc;
	CUresult rc;

	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	switch (params->type) {
	case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
		alloc = (CUDA_MEM_ALLOC_NODE_PARAMS_v1){.poolProps = params->alloc.poolProps,
							.bytesize = params->alloc.bytesize};
		rc = cuGraphAddMemAllocNode(node, graph, deps, count, &alloc);
		params->alloc.dptr = alloc.dptr;
		return rc;
	case CU_GRAPH_NODE_TYPE_MEM_FREE:
		return cuGraphAddMemFreeNode(node, graph, deps, count, params->free.dptr);
	case CU_GRAPH_NODE_TYPE_GRAPH:
		return cuGraphAddChildGraphNode(node, graph, deps, count, params->graph.graph);
	case CU_GRAPH_NODE_TYPE_HOST:
		return cuGraphAddHostNode(
			node, graph, deps, count,
			&(CUDA_HOST_NODE_PARAMS){params->host.fn, params->host.userData});
	default:
		return add(node, graph, deps, count, &(struct sim_work){.type = params->type});
	}
}

CUresult CUDAAPI cuGraphAddNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *deps,
				size_t count, CUgraphNodeParams *params)
{
	return cuGraphAddNode_v2(node, graph, deps, NULL, count, params);
}

CUresult CUDAAPI cuGraphAddDependencies_v2(CUgraph graph, const CUgraphNode *from,
					   const CUgraphNode *to, const CUgraphEdgeData *edges,
					   size_t count)
{
	SIM_ENTER();
	for (size_t i = 0; i < count; i++) {
		if (from[i]->graph != graph || to[i]->graph != graph)
			return CUDA_ERROR_INVALID_VALUE;
	}
	pthread_mutex_lock(&sim.lock);
	for (size_t i = 0; i < count; i++)
		add_dependency(to[i], from[i]);
	pthread_mutex_unlock(&sim.lock);
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphAddDependencies(CUgraph graph, const CUgraphNode *from,
					const CUgraphNode *to, size_t count)
{
	return cuGraphAddDependencies_v2(graph, from, to, NULL, count);
}

/* The way of all lists here: without a list its length is told, else as many as there is room. */
static CUresult tell(const CUgraphNode *all, size_t count, CUgraphNode *list, size_t *room)
{
	if (!room)
		return CUDA_ERROR_INVALID_VALUE;
	if (!list) {
		*room = count;
		return CUDA_SUCCESS;
	}
	for (size_t i = 0; i < *room; i++)
		list[i] = i < count ? all[i] : NULL;
	if (*room > count)
		*room = count;
	return CUDA_SUCCESS;
}

static CUresult tell_nodes(CUgraph graph, CUgraphNode *list, size_t *room, bool roots_only)
{
	CUgraphNode *all;
	size_t count = 0;
	CUresult rc;

	SIM_ENTER();
	if (!graph)
		return CUDA_ERROR_INVALID_VALUE;
	all = calloc(graph->count + 1, sizeof(CUgraphNode));
	if (!all)
		return CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_lock(&sim.lock);
	for (CUgraphNode node = graph->first; node; node = node->next) {
		if (!roots_only || !node->dep_count)
			all[count++] = node;
	}
	pthread_mutex_unlock(&sim.lock);
	rc = tell(all, count, list, room);
	free(all);
	return rc;
}

CUresult CUDAAPI cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *count)
{
	return tell_nodes(graph, nodes, count, false);
}

CUresult CUDAAPI cuGraphGetRootNodes(CUgraph graph, CUgraphNode *nodes, size_t *count)
{
	return tell_nodes(graph, nodes, count, true);
}

CUresult CUDAAPI cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType *type)
{
	SIM_ENTER();
	if (!node || !type)
		return CUDA_ERROR_INVALID_VALUE;
	*type = node->work.type;
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphNodeGetDependencies_v2(CUgraphNode node, CUgraphNode *list,
					       CUgraphEdgeData *edges, size_t *count)
{
	SIM_ENTER();
	if (!node)
		return CUDA_ERROR_INVALID_VALUE;
	if (edges && count)
		memset(edges, 0, *count * sizeof(*edges));
	return tell(node->deps, node->dep_count, list, count);
}

CUresult CUDAAPI cuGraphNodeGetDependencies(CUgraphNode node, CUgraphNode *list, size_t *count)
{
	return cuGraphNodeGetDependencies_v2(node, list, NULL, count);
}

CUresult CUDAAPI cuGraphDebugDotPrint(CUgraph graph, const char *path, unsigned int flags)
{
	SIM_ENTER();
	return graph && path ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
