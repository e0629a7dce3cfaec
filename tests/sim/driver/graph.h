/* SPDX-License-Identifier: MIT */
/*
 * graph.h - graphs, their nodes and stream capture, as the files about them share it.
 *
 * A graph is a list of nodes in the order in which they were added, which is an order they can run
 * in. All of it is under sim.lock; the state of a memory node's block is under its device's lock.
 */
#ifndef GT_SIM_GRAPH_H
#define GT_SIM_GRAPH_H

#include "sim.h"

/* What a MemAlloc node gives out: an address that is fixed from the start, memory from launch on.
 */
struct sim_graph_block {
	CUdeviceptr ptr;
	size_t size;
	int device;
	unsigned int refs; /* nodes, and 1 while live */
	bool live;	   /* launched and not freed yet */
	bool freed_by_node;
};

/* What a node does; what is not remembered of it (kernels, copies of arrays) is not done. */
struct sim_work {
	CUgraphNodeType type;
	union {
		struct {
			CUdeviceptr to, from;
			size_t size;
		} copy;
		struct {
			CUdeviceptr to;
			uint32_t value;
			size_t width, count;
		} fill;
		CUDA_HOST_NODE_PARAMS host;
		struct sim_graph_block *block;
		CUgraph child;
		CUevent event;
	};
};

struct CUgraphNode_st {
	struct sim_work work;
	struct CUgraph_st *graph;
	CUgraphNode *deps;
	size_t dep_count;
	struct CUgraphNode_st *next;
};

struct sim_user_objects; /* that a graph keeps alive */

struct CUgraph_st {
	CUgraphNode first, *tail;
	size_t count;
	unsigned int refs;	/* its owner, and each instance */
	unsigned int instances; /* only one at a time if there are memory nodes */
	bool has_memory;
	struct sim_user_objects *objects;
};

/* graph.c: under sim.lock, except sim_graph_new. */
CUgraph sim_graph_new(void);
CUresult sim_graph_add(CUgraph graph, const CUgraphNode *deps, size_t count,
		       const struct sim_work *work, CUgraphNode *ret_node);
CUgraph sim_graph_clone(const struct CUgraph_st *graph);
void sim_graph_put(CUgraph graph);

/* graphmem.c: they take the lock of the block's device, except sim_graph_free. */
CUresult sim_graph_block_new(int device, size_t size, struct sim_graph_block **ret_block);
struct sim_graph_block *sim_graph_block_at(CUdeviceptr ptr);
void sim_graph_block_get(struct sim_graph_block *block);
void sim_graph_block_put(struct sim_graph_block *block);
CUresult sim_graph_launch_memory(CUgraph graph, bool auto_free);

/* userobj.c: under sim.lock. */
void sim_user_objects_put(struct sim_user_objects *objects);
void sim_user_objects_run(void);

/* graphexec.c */
CUresult sim_graph_run(CUgraph graph);

#endif
