/* SPDX-License-Identifier: MIT */
/*
 * graphexec.c - instances of graphs: made, launched, updated, destroyed.
 *
 * An instance has a copy of the graph's nodes, so what is added to the graph later does not run.
 * A launch settles memory first, node by node, then does copies, fills and host functions.
 */
#include "graph.h"

#include <stdlib.h>
#include <string.h>

struct CUgraphExec_st {
	CUgraph source, copy;
	unsigned long long flags;
};

static CUresult instantiate(CUgraphExec *exec, CUgraph graph, unsigned long long flags)
{
	CUgraphExec made;

	SIM_ENTER();
	if (!exec || !graph)
		return CUDA_ERROR_INVALID_VALUE;
	if (graph->has_memory && graph->instances)
		return CUDA_ERROR_NOT_SUPPORTED;
	made = malloc(sizeof(*made));
	if (!made)
		return CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_lock(&sim.lock);
	graph->refs++;
	graph->instances++;
	*made = (struct CUgraphExec_st){graph, sim_graph_clone(graph), flags};
	pthread_mutex_unlock(&sim.lock);
	*exec = made;
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph,
					     unsigned long long flags)
{
	return instantiate(exec, graph, flags);
}

CUresult CUDAAPI cuGraphInstantiateWithParams(CUgraphExec *exec, CUgraph graph,
					      CUDA_GRAPH_INSTANTIATE_PARAMS *params)
{
	CUresult rc = instantiate(exec, graph, params->flags);

	params->result_out = rc ? CUDA_GRAPH_INSTANTIATE_ERROR : CUDA_GRAPH_INSTANTIATE_SUCCESS;
	params->hErrNode_out = NULL;
	return rc;
}

CUresult CUDAAPI cuGraphInstantiate_v2(CUgraphExec *exec, CUgraph graph, CUgraphNode *error_node,
				       char *log, size_t size)
{
	return instantiate(exec, graph, 0);
}

CUresult CUDAAPI cuGraphInstantiate(CUgraphExec *exec, CUgraph graph, CUgraphNode *error_node,
				    char *log, size_t size)
{
	return instantiate(exec, graph, 0);
}

CUresult CUDAAPI cuGraphExecGetFlags(CUgraphExec exec, cuuint64_t *flags)
{
	SIM_ENTER();
	if (!exec || !flags)
		return CUDA_ERROR_INVALID_VALUE;
	*flags = exec->flags;
	return CUDA_SUCCESS;
}

/* Memory that the graph has allocated and not freed stays, for others to free. */
CUresult CUDAAPI cuGraphExecDestroy(CUgraphExec exec)
{
	SIM_ENTER();
	if (!exec)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&sim.lock);
	exec->source->instances--;
	sim_graph_put(exec->source);
	sim_graph_put(exec->copy);
	pthread_mutex_unlock(&sim.lock);
	sim_user_objects_run();
	free(exec);
	return CUDA_SUCCESS;
}

static void do_work(const struct sim_work *work)
{
	switch (work->type) {
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		sim_copy(work->copy.to, work->copy.from, work->copy.size);
		break;
	case CU_GRAPH_NODE_TYPE_MEMSET:
		sim_fill(work->fill.to, &work->fill.value, work->fill.width, work->fill.count);
		break;
	case CU_GRAPH_NODE_TYPE_HOST:
		work->host.fn(work->host.userData);
		break;
	case CU_GRAPH_NODE_TYPE_GRAPH:
		sim_graph_run(work->child);
		break;
	default:
		break;
	}
}

CUresult sim_graph_run(CUgraph graph)
{
	for (CUgraphNode node = graph->first; node; node = node->next)
		do_work(&node->work);
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphLaunch(CUgraphExec exec, CUstream stream)
{
	CUresult rc;

	SIM_ENTER();
	if (!exec)
		return CUDA_ERROR_INVALID_VALUE;
	if (sim_is_captured(stream))
		return sim_capture_child(stream, exec->source);
	rc = sim_graph_launch_memory(exec->copy,
				     exec->flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH);
	return rc ? rc : sim_graph_run(exec->copy);
}

CUresult CUDAAPI cuGraphUpload(CUgraphExec exec, CUstream stream)
{
	SIM_ENTER();
	return exec ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static bool same_shape(const struct CUgraph_st *a, const struct CUgraph_st *b)
{
	CUgraphNode x = a->first, y = b->first;

	while (x && y && x->work.type == y->work.type) {
		x = x->next;
		y = y->next;
	}
	return !x && !y;
}

CUresult CUDAAPI cuGraphExecUpdate_v2(CUgraphExec exec, CUgraph graph,
				      CUgraphExecUpdateResultInfo *info)
{
	SIM_ENTER();
	if (!exec || !graph || !info)
		return CUDA_ERROR_INVALID_VALUE;
	memset(info, 0, sizeof(*info));
	if (graph->has_memory || !same_shape(exec->copy, graph)) {
		info->result = graph->has_memory ? CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED
						 : CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
		return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
	}
	pthread_mutex_lock(&sim.lock);
	sim_graph_put(exec->copy);
	exec->copy = sim_graph_clone(graph);
	pthread_mutex_unlock(&sim.lock);
	info->result = CU_GRAPH_EXEC_UPDATE_SUCCESS;
	return CUDA_SUCCESS;
}
