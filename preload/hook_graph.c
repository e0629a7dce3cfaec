/* SPDX-License-Identifier: MIT */
/*
 * Graphs: what is allocated in them is in use from a launch on, not from when the node was made.
 * A stream-ordered allocation on a stream that captures is such a node too. So the memory nodes of
 * each graph are kept in order, with the stack of whoever made them; an instance refers to those of
 * its graph; a launch goes through them and records allocations and frees, as its own memory traffic.
 * What a graph leaves allocated is freed like any other memory, or by another graph.
 *
 * The device keeps the memory of graphs until it is trimmed; that is one block per device that adds
 * to "reserved", sampled like a pool (hook_pool.c), while nodes add to "in use" only.
 *
 * While any stream captures, the driver is asked nothing that could end the capture.
 */
#include "hook.h"
#include "table.h"

#define GT_GRAPH GT_WRAP
#include "hooks.def"

#define NODE_ALLOC    10 /* CU_GRAPH_NODE_TYPE_MEM_ALLOC */
#define NODE_FREE     11
#define RESERVED_NOW  2 /* CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT */
#define CAPTURE_NONE  0
#define LEGACY_STREAM 1

/* ---- streams that capture -------------------------------------------------------------------- */

#define MAX_CAPTURES 64

uint32_t gt_captures;
static struct gt_lock captures_lock;
static gt_stream capturing[MAX_CAPTURES];

void gt_capture_begins(gt_stream stream)
{
	gt_lock(&captures_lock);
	if (gt_captures < MAX_CAPTURES) {
		capturing[gt_captures] = stream;
		gt_store(&gt_captures, gt_captures + 1);
	}
	gt_unlock(&captures_lock);
}

/* Also for a stream that is destroyed: it does not capture for ever. */
void gt_capture_ends(gt_stream stream)
{
	gt_lock(&captures_lock);
	for (uint32_t i = 0; i < gt_captures; i++) {
		if (capturing[i] != stream)
			continue;
		capturing[i] = capturing[gt_captures - 1];
		gt_store(&gt_captures, gt_captures - 1);
		break;
	}
	gt_unlock(&captures_lock);
}

/* A stream may also have joined the capture of another. The question is harmless to a capture. */
bool gt_graph_captured(gt_stream stream, void **ret_graph)
{
	int status = CAPTURE_NONE, err = errno;
	void *graph = NULL;

	if (gt_likely(!gt_load_relaxed(&gt_captures)) || (uintptr_t)stream <= LEGACY_STREAM)
		return false;
	if (!gt_driver.cuStreamGetCaptureInfo_v2 ||
	    gt_driver.cuStreamGetCaptureInfo_v2(stream, &status, NULL, &graph, NULL, NULL))
		status = CAPTURE_NONE;
	errno = err;
	if (status == CAPTURE_NONE || !graph)
		return false;
	*ret_graph = graph;
	return true;
}

/* ---- memory nodes ---------------------------------------------------------------------------- */

#define NO_NODE 0u /* indices below are + 1 */

struct node {
	uint64_t ptr, size; /* size 0: a free */
	struct gt_where where;
	int32_t device;
	uint32_t next; /* of the same list, or of the unused ones */
};

/* A graph's nodes; refs: the graph, and its instances. */
struct list {
	uint32_t first, last, refs;
	uint32_t next_free;
};

static struct gt_lock lock; /* of all below, a leaf */
static struct node *nodes;
static struct list *lists;
static uint32_t node_room, node_count, node_free, list_room, list_count, list_free;

static bool room(void **array, uint32_t *size, uint32_t used, size_t each)
{
	uint32_t more = *size ? *size : 256;
	void *grown;

	if (used < *size)
		return true;
	grown = gt_remap(*array, *size * each, more * each);
	if (!grown)
		return false;
	*array = grown;
	*size += more;
	return true;
}

static uint32_t take_node(void)
{
	uint32_t i = node_free;

	if (i) {
		node_free = nodes[i - 1].next;
		return i;
	}
	if (!room((void **)&nodes, &node_room, node_count, sizeof(*nodes)))
		return NO_NODE;
	return ++node_count;
}

static uint32_t take_list(void)
{
	uint32_t i = list_free;

	if (i) {
		list_free = lists[i - 1].next_free;
	} else {
		if (!room((void **)&lists, &list_room, list_count, sizeof(*lists)))
			return 0;
		i = ++list_count;
	}
	lists[i - 1] = (struct list){.refs = 1};
	return i;
}

static void put_list(uint32_t list)
{
	struct list *l = &lists[list - 1];

	if (--l->refs)
		return;
	if (l->first) {
		nodes[l->last - 1].next = node_free;
		node_free = l->first;
	}
	l->next_free = list_free;
	list_free = list;
}

static void append(uint32_t list, const struct node *node)
{
	uint32_t i = take_node();
	struct list *l = &lists[list - 1];

	if (!i)
		return gt_count_lost(GT_LOST_EVENTS);
	nodes[i - 1] = *node;
	nodes[i - 1].next = NO_NODE;
	if (l->first)
		nodes[l->last - 1].next = i;
	else
		l->first = i;
	l->last = i;
}

static uint32_t list_of(void *object, enum gt_side side)
{
	struct gt_entry e;

	return gt_table_get(GT_KEY((uint64_t)object, side), &e) ? (uint32_t)e.of : 0;
}

static void add_node(void *graph, const struct node *node)
{
	uint32_t list = list_of(graph, GT_SIDE_GRAPH);

	gt_lock(&lock);
	if (!list) {
		list = take_list();
		if (list)
			gt_table_put(&(struct gt_entry){
				.key = GT_KEY((uint64_t)graph, GT_SIDE_GRAPH), .of = list});
	}
	if (list)
		append(list, node);
	gt_unlock(&lock);
}

static void drop(void *object, enum gt_side side)
{
	struct gt_entry e;

	if (!gt_table_take(GT_KEY((uint64_t)object, side), &e))
		return;
	gt_lock(&lock);
	put_list((uint32_t)e.of);
	gt_unlock(&lock);
}

void gt_graph_node_alloc(const struct gt_regs *regs, void *graph, uint64_t ptr, uint64_t size,
			 int device)
{
	add_node(graph, &(struct node){.ptr = ptr,
				       .size = size,
				       .device = device,
				       .where = gt_where_capture(regs)});
}

void gt_graph_alloc(const struct gt_regs *regs, void *graph, const struct gt_graph_alloc *what)
{
	gt_graph_node_alloc(regs, graph, what->ptr, what->size, what->pool.location_id);
}

void gt_graph_free(void *graph, uint64_t ptr)
{
	add_node(graph, &(struct node){.ptr = ptr});
}

void gt_graph_node(const struct gt_regs *regs, void *graph, const struct gt_graph_node *what)
{
	if (what->type == NODE_ALLOC)
		gt_graph_alloc(regs, graph, &what->alloc);
	else if (what->type == NODE_FREE)
		gt_graph_free(graph, what->free);
}

void gt_graph_drop(void *graph)
{
	drop(graph, GT_SIDE_GRAPH);
}

/* ---- instances and launches ------------------------------------------------------------------ */

void gt_graph_instance(void *exec, void *graph)
{
	uint32_t list = list_of(graph, GT_SIDE_GRAPH);

	if (!list)
		return;
	gt_lock(&lock);
	lists[list - 1].refs++;
	gt_unlock(&lock);
	gt_table_put(&(struct gt_entry){.key = GT_KEY((uint64_t)exec, GT_SIDE_EXEC), .of = list});
}

void gt_graph_instance_drop(void *exec)
{
	drop(exec, GT_SIDE_EXEC);
}

/* The node after `at` of a list, the first after 0; its number. The instance holds the list. */
static uint32_t next_node(uint32_t list, uint32_t at, struct node *ret)
{
	uint32_t i;

	gt_lock(&lock);
	i = at ? nodes[at - 1].next : lists[list - 1].first;
	if (i)
		*ret = nodes[i - 1];
	gt_unlock(&lock);
	return i;
}

static void run_node(const struct node *n)
{
	uint64_t size;
	int device;

	if (!n->size) {
		gt_record_free(gt_current_device(), GT_SPACE_DRIVER, n->ptr, GT_API_GRAPH, n->where,
			       NULL);
		return;
	}
	gt_hook_device(n->device);
	if (gt_lookup(n->device, GT_SPACE_DRIVER, n->ptr, &device,
		      &size)) /* freed by this launch */
		gt_record_free(n->device, GT_SPACE_DRIVER, n->ptr, GT_API_GRAPH, n->where, NULL);
	gt_record_alloc(&(struct gt_alloc){.device = n->device,
					   .space = GT_SPACE_DRIVER,
					   .mask = GT_MASK_IN_USE,
					   .api = GT_API_GRAPH,
					   .addr = n->ptr,
					   .size = n->size,
					   .where = n->where});
}

void gt_graph_launched(const struct gt_regs *regs, void *exec, gt_stream stream)
{
	uint32_t list = list_of(exec, GT_SIDE_EXEC);
	struct node n = {.device = GT_DEVICE_UNKNOWN};
	void *graph;

	if (!list || gt_graph_captured(stream, &graph)) /* captured: it becomes a child node */
		return;
	for (uint32_t i = next_node(list, 0, &n); i; i = next_node(list, i, &n)) {
		run_node(&n);
		if (n.size)
			gt_graph_sample(regs, n.device, false);
	}
}

/* ---- what the device holds for them ---------------------------------------------------------- */

static struct gt_lock backing_lock; /* held while the driver is asked, as in hook_pool.c */
static struct gt_backing backing[64];

void gt_graph_sample(const struct gt_regs *regs, int device, bool now)
{
	static uint64_t last_us[64];
	uint64_t bytes;

	if (device < 0 || device > 63 || !gt_driver.cuDeviceGetGraphMemAttribute ||
	    !gt_sample_due(&last_us[device], now))
		return;
	gt_lock(&backing_lock);
	if (!gt_driver.cuDeviceGetGraphMemAttribute(device, RESERVED_NOW, &bytes)) {
		struct gt_backing *b = &backing[device];

		b->device = device;
		b->space = GT_SPACE_GRAPH;
		b->api = GT_API_GRAPH;
		b->key = (uint64_t)device + 1;
		gt_backing_set(regs, b, bytes);
	}
	gt_unlock(&backing_lock);
}

/* ---- the end of a capture -------------------------------------------------------------------- */

/* One that fails takes its graph, and the nodes that we know of, with it. */
static int end_capture(int (*real)(gt_stream, void **), gt_stream stream, gt_stream named,
		       void **ret_graph)
{
	void *graph = NULL;
	bool captured = gt_graph_captured(stream, &graph);
	int rc = real(named, ret_graph), err = errno;

	gt_capture_ends(stream);
	if (rc && captured)
		gt_graph_drop(graph);
	errno = err;
	return rc;
}

#define END_CAPTURE(name, stream_)                                        \
	int name(gt_stream stream, void **graph)                          \
	{                                                                 \
		int rc;                                                   \
                                                                          \
		if (!GT_HAVE(name))                                       \
			return GT_CUDA_NOT_INITIALIZED;                   \
		if (!gt_enter_started())                                  \
			return gt_driver.name(stream, graph);             \
		rc = end_capture(gt_driver.name, stream_, stream, graph); \
		gt_leave();                                               \
		return rc;                                                \
	}

END_CAPTURE(cuStreamEndCapture, stream)
END_CAPTURE(cuStreamEndCapture_ptsz, GT_PER_THREAD(stream))

void gt_graph_forget(void)
{
	captures_lock = lock = backing_lock = (struct gt_lock){0};
	gt_captures = 0;
	nodes = NULL; /* not mapped in the child */
	lists = NULL;
	node_room = node_count = node_free = list_room = list_count = list_free = 0;
	for (size_t i = 0; i < sizeof(backing) / sizeof(backing[0]); i++)
		backing[i].bytes = 0;
}
