/* SPDX-License-Identifier: MIT */
/*
 * graph.c - graphs of the runtime: each call is the driver's.
 */
#include "rt.h"

cudaError_t CUDARTAPI cudaGraphCreate(cudaGraph_t *graph, unsigned int flags)
{
	RT_CALL(cuGraphCreate, graph, flags);
}

cudaError_t CUDARTAPI cudaGraphDestroy(cudaGraph_t graph)
{
	RT_CALL(cuGraphDestroy, graph);
}

cudaError_t CUDARTAPI cudaGraphClone(cudaGraph_t *clone, cudaGraph_t graph)
{
	RT_CALL(cuGraphClone, clone, graph);
}

cudaError_t CUDARTAPI cudaGraphInstantiateWithFlags(cudaGraphExec_t *exec, cudaGraph_t graph,
						    unsigned long long flags)
{
	RT_CALL(cuGraphInstantiateWithFlags, exec, graph, flags);
}

cudaError_t CUDARTAPI cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph,
					   unsigned long long flags)
{
	return cudaGraphInstantiateWithFlags(exec, graph, flags);
}

cudaError_t CUDARTAPI cudaGraphExecDestroy(cudaGraphExec_t exec)
{
	RT_CALL(cuGraphExecDestroy, exec);
}

cudaError_t CUDARTAPI cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph,
					  cudaGraphExecUpdateResultInfo *info)
{
	RT_CALL(cuGraphExecUpdate_v2, exec, graph, (CUgraphExecUpdateResultInfo *)info);
}

cudaError_t CUDARTAPI cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count)
{
	RT_CALL(cuGraphGetNodes, graph, nodes, count);
}

cudaError_t CUDARTAPI cudaGraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t *nodes,
					    size_t *count)
{
	RT_CALL(cuGraphGetRootNodes, graph, nodes, count);
}

cudaError_t CUDARTAPI cudaGraphNodeGetType(cudaGraphNode_t node, enum cudaGraphNodeType *type)
{
	RT_CALL(cuGraphNodeGetType, node, (CUgraphNodeType *)type);
}

#if CUDART_VERSION >= 13000
cudaError_t CUDARTAPI cudaGraphAddNode(cudaGraphNode_t *node, cudaGraph_t graph,
				       const cudaGraphNode_t *deps, const cudaGraphEdgeData *edges,
				       size_t count, struct cudaGraphNodeParams *params)
{
	RT_CALL(cuGraphAddNode_v2, node, graph, deps, (const CUgraphEdgeData *)edges, count,
		(CUgraphNodeParams *)params);
}

cudaError_t CUDARTAPI cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t *deps,
						   cudaGraphEdgeData *edges, size_t *count)
{
	RT_CALL(cuGraphNodeGetDependencies_v2, node, deps, (CUgraphEdgeData *)edges, count);
}

cudaError_t CUDARTAPI cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t *from,
					       const cudaGraphNode_t *to,
					       const cudaGraphEdgeData *edges, size_t count)
{
	RT_CALL(cuGraphAddDependencies_v2, graph, from, to, (const CUgraphEdgeData *)edges, count);
}
#else
cudaError_t CUDARTAPI cudaGraphAddNode(cudaGraphNode_t *node, cudaGraph_t graph,
				       const cudaGraphNode_t *deps, size_t count,
				       struct cudaGraphNodeParams *params)
{
	RT_CALL(cuGraphAddNode, node, graph, deps, count, (CUgraphNodeParams *)params);
}

cudaError_t CUDARTAPI cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t *deps,
						   size_t *count)
{
	RT_CALL(cuGraphNodeGetDependencies, node, deps, count);
}

cudaError_t CUDARTAPI cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t *from,
					       const cudaGraphNode_t *to, size_t count)
{
	RT_CALL(cuGraphAddDependencies, graph, from, to, count);
}
#endif

cudaError_t CUDARTAPI cudaGraphAddEmptyNode(cudaGraphNode_t *node, cudaGraph_t graph,
					    const cudaGraphNode_t *deps, size_t count)
{
	RT_CALL(cuGraphAddEmptyNode, node, graph, deps, count);
}

cudaError_t CUDARTAPI cudaGraphAddHostNode(cudaGraphNode_t *node, cudaGraph_t graph,
					   const cudaGraphNode_t *deps, size_t count,
					   const struct cudaHostNodeParams *params)
{
	RT_CALL(cuGraphAddHostNode, node, graph, deps, count,
		(const CUDA_HOST_NODE_PARAMS *)params);
}

cudaError_t CUDARTAPI cudaGraphAddChildGraphNode(cudaGraphNode_t *node, cudaGraph_t graph,
						 const cudaGraphNode_t *deps, size_t count,
						 cudaGraph_t child)
{
	RT_CALL(cuGraphAddChildGraphNode, node, graph, deps, count, child);
}

cudaError_t CUDARTAPI cudaGraphAddMemAllocNode(cudaGraphNode_t *node, cudaGraph_t graph,
					       const cudaGraphNode_t *deps, size_t count,
					       struct cudaMemAllocNodeParams *params)
{
	RT_CALL(cuGraphAddMemAllocNode, node, graph, deps, count,
		(CUDA_MEM_ALLOC_NODE_PARAMS *)params);
}

cudaError_t CUDARTAPI cudaGraphAddMemFreeNode(cudaGraphNode_t *node, cudaGraph_t graph,
					      const cudaGraphNode_t *deps, size_t count, void *ptr)
{
	RT_CALL(cuGraphAddMemFreeNode, node, graph, deps, count, RT_PTR(ptr));
}

cudaError_t CUDARTAPI cudaGraphDebugDotPrint(cudaGraph_t graph, const char *path,
					     unsigned int flags)
{
	RT_CALL(cuGraphDebugDotPrint, graph, path, flags);
}

cudaError_t CUDARTAPI cudaUserObjectCreate(cudaUserObject_t *object, void *ptr,
					   cudaHostFn_t destroy, unsigned int count,
					   unsigned int flags)
{
	RT_CALL(cuUserObjectCreate, object, ptr, destroy, count, flags);
}

cudaError_t CUDARTAPI cudaUserObjectRetain(cudaUserObject_t object, unsigned int count)
{
	RT_CALL(cuUserObjectRetain, object, count);
}

cudaError_t CUDARTAPI cudaUserObjectRelease(cudaUserObject_t object, unsigned int count)
{
	RT_CALL(cuUserObjectRelease, object, count);
}

cudaError_t CUDARTAPI cudaGraphRetainUserObject(cudaGraph_t graph, cudaUserObject_t object,
						unsigned int count, unsigned int flags)
{
	RT_CALL(cuGraphRetainUserObject, graph, object, count, flags);
}

cudaError_t CUDARTAPI cudaGraphReleaseUserObject(cudaGraph_t graph, cudaUserObject_t object,
						 unsigned int count)
{
	RT_CALL(cuGraphReleaseUserObject, graph, object, count);
}

cudaError_t CUDARTAPI cudaDeviceGraphMemTrim(int device)
{
	RT_CALL(cuDeviceGraphMemTrim, device);
}

cudaError_t CUDARTAPI cudaDeviceGetGraphMemAttribute(int device,
						     enum cudaGraphMemAttributeType which,
						     void *value)
{
	RT_CALL(cuDeviceGetGraphMemAttribute, device, (CUgraphMem_attribute)which, value);
}

cudaError_t CUDARTAPI cudaDeviceSetGraphMemAttribute(int device,
						     enum cudaGraphMemAttributeType which,
						     void *value)
{
	RT_CALL(cuDeviceSetGraphMemAttribute, device, (CUgraphMem_attribute)which, value);
}
