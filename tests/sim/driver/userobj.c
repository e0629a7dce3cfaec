/* SPDX-License-Identifier: MIT */
/*
 * userobj.c - user objects: what a program wants destroyed when no graph needs it any more.
 *
 * Their destructors are the program's code, so they run after sim.lock has been given back: an
 * object without references waits in a list until sim_user_objects_run.
 */
#include "graph.h"

#include <stdlib.h>

struct CUuserObject_st {
	void *ptr;
	CUhostFn destroy;
	unsigned int refs;
	struct CUuserObject_st *next; /* among those to be destroyed */
};

struct sim_user_objects {
	CUuserObject object;
	unsigned int count;
	struct sim_user_objects *next;
};

static CUuserObject doomed;

static void put(CUuserObject object, unsigned int count)
{
	object->refs -= count;
	if (object->refs || !count)
		return;
	object->next = doomed;
	doomed = object;
}

void sim_user_objects_put(struct sim_user_objects *objects)
{
	while (objects) {
		struct sim_user_objects *next = objects->next;

		put(objects->object, objects->count);
		free(objects);
		objects = next;
	}
}

void sim_user_objects_run(void)
{
	CUuserObject list;

	pthread_mutex_lock(&sim.lock);
	list = doomed;
	doomed = NULL;
	pthread_mutex_unlock(&sim.lock);
	while (list) {
		CUuserObject object = list;

		list = object->next;
		object->destroy(object->ptr);
		free(object);
	}
}

CUresult CUDAAPI cuUserObjectCreate(CUuserObject *object, void *ptr, CUhostFn destroy,
				    unsigned int count, unsigned int flags)
{
	SIM_ENTER();
	if (!object || !destroy || !count)
		return CUDA_ERROR_INVALID_VALUE;
	*object = malloc(sizeof(**object));
	if (!*object)
		return CUDA_ERROR_OUT_OF_MEMORY;
	**object = (struct CUuserObject_st){ptr, destroy, count, NULL};
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuUserObjectRetain(CUuserObject object, unsigned int count)
{
	SIM_ENTER();
	if (!object || !count)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&sim.lock);
	object->refs += count;
	pthread_mutex_unlock(&sim.lock);
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuUserObjectRelease(CUuserObject object, unsigned int count)
{
	SIM_ENTER();
	if (!object || !count || count > object->refs)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&sim.lock);
	put(object, count);
	pthread_mutex_unlock(&sim.lock);
	sim_user_objects_run();
	return CUDA_SUCCESS;
}

/* With the flag MOVE the graph takes over references that the caller has. */
CUresult CUDAAPI cuGraphRetainUserObject(CUgraph graph, CUuserObject object, unsigned int count,
					 unsigned int flags)
{
	struct sim_user_objects *entry;

	SIM_ENTER();
	if (!graph || !object || !count)
		return CUDA_ERROR_INVALID_VALUE;
	entry = malloc(sizeof(*entry));
	if (!entry)
		return CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_lock(&sim.lock);
	*entry = (struct sim_user_objects){object, count, graph->objects};
	graph->objects = entry;
	if (!(flags & CU_GRAPH_USER_OBJECT_MOVE))
		object->refs += count;
	pthread_mutex_unlock(&sim.lock);
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphReleaseUserObject(CUgraph graph, CUuserObject object, unsigned int count)
{
	struct sim_user_objects *entry;

	SIM_ENTER();
	if (!graph || !object || !count)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&sim.lock);
	for (entry = graph->objects; entry && entry->object != object; entry = entry->next)
		;
	if (entry && entry->count >= count) {
		entry->count -= count;
		put(object, count);
	}
	pthread_mutex_unlock(&sim.lock);
	sim_user_objects_run();
	return entry ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
