/* SPDX-License-Identifier: MIT */
/*
 * What every hook_*.c needs: the table of real functions, the guard, and the wrappers that are made
 * from rows of hooks.def. A wrapper may not change what the program sees: it returns what the real
 * function returned, and errno is the real function's.
 *
 * Guard: one word per thread says that the thread is inside a hook. Calls that come in then (the
 * driver calling itself by name, our own questions to torch) go straight through, so that each
 * request of the program counts once, at its outermost call.
 */
#ifndef GT_HOOK_H
#define GT_HOOK_H

#include <errno.h>

#include "abi.h"
#include "preload.h"

#pragma GCC visibility push(hidden)

/* ---- results --------------------------------------------------------------------------------- */

/* CUresult values that mean something to us. */
enum {
	GT_CUDA_OUT_OF_MEMORY = 2,
	GT_CUDA_NOT_INITIALIZED = 3,
	GT_CUDA_DEINITIALIZED = 4,
	GT_CUDA_CONTEXT_IS_DESTROYED = 709,
};

/* ---- resolve.c: the real functions ----------------------------------------------------------- */

struct gt_driver {
#define GT_DRIVER(kind, name, result, parameters, arguments, rule) result(*_Atomic name) parameters;
#define GT_CALL(name, result, parameters)			   result(*_Atomic name) parameters;
#include "hooks.def"
};
extern struct gt_driver gt_driver; /* NULL: not looked up yet, or not in this driver */

/* Prototypes of what we export. */
#define GT_HOOK(kind, name, result, parameters, arguments, rule) GT_PUBLIC result name parameters;
#include "hooks.def"

void gt_driver_find(void); /* fills gt_driver, once libcuda.so.1 is loaded */

/* The function of a shared libcudart that code at pc meant to call; NULL if none is loaded. */
void *gt_runtime_find(uint64_t pc, const char *name);

/* For a driver row: is there a real function to call? */
#define GT_HAVE(name) \
	(gt_likely(gt_driver.name != NULL) || (gt_driver_find(), gt_driver.name != NULL))

/* ---- the guard ------------------------------------------------------------------------------- */

struct gt_thread {
	uint32_t inside;     /* a hook of this thread is running */
	uint32_t busy;	     /* ... and is in our code, not in the real function */
	uint64_t runtime_pc; /* caller of the runtime function in progress, 0 = none */
};
extern GT_TLS_SHARED struct gt_thread gt_thread;

bool gt_enter_nested(void);

/* Is this the outermost hooked call of the thread? Then gt_leave ends it. */
static inline bool gt_enter(void)
{
	if (gt_unlikely(gt_thread.inside))
		return gt_enter_nested();
	gt_thread.inside = 1;
	return true;
}

static inline void gt_leave(void)
{
	gt_thread.inside = 0;
}

/*
 * Inside: is the event to be recorded? A trace begins with the first success; until then calls
 * concern nothing that we know, and a process in which CUDA only ever fails leaves no file. errno
 * may change.
 */
static inline bool gt_begin(bool success)
{
	gt_thread.busy = gt_likely(gt_started()) || (success && gt_recording());
	return gt_thread.busy;
}

static inline void gt_end(void)
{
	gt_thread.busy = 0;
}

/* ---- hook.c: accounting shared by the wrappers ----------------------------------------------- */

enum gt_owner_kind {
	GT_OWNER_CONTEXT,
	GT_OWNER_STREAM,
	GT_OWNER_POOL,
	GT_OWNER_DEVICE,
};

struct gt_owner { /* what decides the device of an allocation */
	enum gt_owner_kind kind;
	int device;
	gt_stream stream;
	void *pool;
};

/* In the _ptsz twins NULL is the calling thread's own stream, whose handle is 2. */
#define GT_PER_THREAD(s)    ((s) ? (s) : (gt_stream)2)
#define GT_ON_CONTEXT	    ((struct gt_owner){.kind = GT_OWNER_CONTEXT})
#define GT_ON_DEVICE(d)	    ((struct gt_owner){.kind = GT_OWNER_DEVICE, .device = (d)})
#define GT_ON_HOST	    GT_ON_DEVICE(GT_DEVICE_HOST)
#define GT_ON_STREAM(s)	    ((struct gt_owner){.kind = GT_OWNER_STREAM, .stream = (s)})
#define GT_ON_STREAM_PT(s)  GT_ON_STREAM(GT_PER_THREAD(s))
#define GT_ON_POOL(p, s)    ((struct gt_owner){.kind = GT_OWNER_POOL, .stream = (s), .pool = (p)})
#define GT_ON_POOL_PT(p, s) GT_ON_POOL(p, GT_PER_THREAD(s))

struct gt_request { /* an allocation that the real function has answered */
	enum gt_api api;
	enum gt_space space;
	int rc;
	uint64_t key, size; /* key only if rc is 0 */
	struct gt_owner owner;
};

void gt_hook_answered(const struct gt_regs *regs, const struct gt_request *request);
void gt_hook_free(const struct gt_regs *regs, enum gt_api api, enum gt_space space, uint64_t key,
		  struct gt_freed *ret);
void gt_hook_freed(const struct gt_regs *regs, int rc, enum gt_api api,
		   const struct gt_freed *freed);
/* As gt_enter, and false while there is no trace of this process: then the table of table.h is empty
 * or, in a child that clone made, not even mapped. */
bool gt_enter_started(void);
int gt_current_device(void);	  /* GT_DEVICE_UNKNOWN without a context */
void gt_hook_device(int ordinal); /* defines the device in this trace, once */
void gt_hook_memory(uint64_t *ret_free, uint64_t *ret_total); /* of the current device */

void gt_hook_sample(const size_t *free, const size_t *total); /* the program has asked */

/* ---- hook_ctx.c, hook_module.c: what is measured --------------------------------------------- */

struct gt_measure { /* device memory before a context or a module */
	int device;
	uint64_t free; /* GT_UNKNOWN_BYTES */
	bool created, alone;
};
void gt_measure_begin(struct gt_measure *m);
void gt_measure_end(struct gt_measure *m); /* then alone is what it says */
void gt_hook_context_before(struct gt_measure *m, int device, uint32_t flags);
void gt_hook_context_after(struct gt_measure *m, const struct gt_regs *regs, int rc,
			   gt_context context, uint32_t flags);
extern uint32_t gt_measuring; /* measurements that run now */
extern uint32_t gt_disturbed; /* something else took or gave memory meanwhile */

enum gt_end_way { GT_END_DESTROY, GT_END_RESET, GT_END_RELEASE };

struct gt_end { /* the blocks that go with a context */
	enum gt_end_way way;
	int device;
	uint64_t *keys;
	struct gt_freed *freed; /* one per key, once recorded */
	size_t count, room;
};
void gt_hook_end_before(struct gt_end *end, const struct gt_regs *regs, gt_context context,
			int device, enum gt_end_way way);
void gt_hook_end_after(struct gt_end *end, const struct gt_regs *regs, int rc);
/* Objects without an address on the device belong to the context that was current. */
void gt_context_owns(uint64_t key, int device);

void gt_hook_module_before(struct gt_measure *m);
void gt_hook_module_after(struct gt_measure *m, const struct gt_regs *regs, int rc, void *module);

/* ---- hook_pool.c: what pools hold from their device ------------------------------------------ */

void gt_pool_seen(void *pool, int device);
void gt_pool_used(const struct gt_regs *regs, void *pool, int device); /* NULL: the device's own */
void gt_pools_sample(const struct gt_regs *regs, bool now);
void gt_pool_freed(uint64_t ptr);	      /* after cuMemFree and its relatives */
bool gt_sample_due(uint64_t *last, bool now); /* at most once per GPUTRACE_SAMPLE_US */
/* One block whose size changes: what a pool or the graphs of a device hold. */
struct gt_backing {
	int device;
	enum gt_space space;
	enum gt_api api;
	uint64_t key, bytes;
};
void gt_backing_set(const struct gt_regs *regs, struct gt_backing *b, uint64_t bytes);

/* ---- hook_array.c, hook_ipc.c: sizes --------------------------------------------------------- */

uint64_t gt_array_v1_bytes(const struct gt_array_v1 *shape);
uint64_t gt_array_v2_bytes(const struct gt_array_v2 *shape);
uint64_t gt_array3d_v1_bytes(const struct gt_array3d_v1 *shape);
uint64_t gt_array3d_bytes(const struct gt_array3d *shape, uint32_t levels);
uint64_t gt_ipc_size(int rc, const gt_ptr *out);
uint64_t gt_external_size(const struct gt_external *what);

/* ---- hook_graph.c ---------------------------------------------------------------------------- */

extern uint32_t gt_captures; /* streams that capture now: no question to the driver meanwhile */
void gt_capture_begins(gt_stream stream);
void gt_capture_ends(gt_stream stream);
bool gt_graph_captured(gt_stream stream, void **ret_graph); /* into which graph does it capture? */
void gt_graph_alloc(const struct gt_regs *regs, void *graph, const struct gt_graph_alloc *what);
void gt_graph_node_alloc(const struct gt_regs *regs, void *graph, uint64_t ptr, uint64_t size,
			 int device);
void gt_graph_free(void *graph, uint64_t ptr);
void gt_graph_node(const struct gt_regs *regs, void *graph, const struct gt_graph_node *what);
void gt_graph_drop(void *graph);
void gt_graph_instance(void *exec, void *graph);
void gt_graph_instance_drop(void *exec);
void gt_graph_launched(const struct gt_regs *regs, void *exec, gt_stream stream);
void gt_graph_sample(const struct gt_regs *regs, int device, bool now);

/* ---- hook_pending.c: blocks of torch that streams still use ---------------------------------- */

void gt_event_recorded(uint64_t pc, void *event); /* by code at pc */
void gt_event_over(uint64_t pc, void *event);
void gt_pending_allocated(int device, uint64_t ptr);
void gt_pending_freed(int device, uint64_t ptr, uint64_t size);

void gt_pool_forget(void); /* in a forked child */
void gt_graph_forget(void);
void gt_torch_forget(void);
void gt_pending_forget(void);

/* ---- wrappers, by the kind of the row -------------------------------------------------------- */

#define GT_APPLY(macro, ...) macro(__VA_ARGS__)
#define GT_OPEN(...)	     __VA_ARGS__

#define GT_WRAP(kind, name, result, parameters, arguments, rule) \
	GT_APPLY(GT_WRAP_##kind, name, result, parameters, arguments, GT_OPEN rule)

#define GT_WRAP_ALLOC(name, result, parameters, arguments, api_, space_, key_, size_, owner_) \
	GT_PUBLIC result name parameters                                                      \
	{                                                                                     \
		struct gt_regs regs = GT_REGS_HERE();                                         \
		result rc;                                                                    \
                                                                                              \
		if (!GT_HAVE(name))                                                           \
			return GT_CUDA_NOT_INITIALIZED;                                       \
		if (!gt_enter())                                                              \
			return gt_driver.name arguments;                                      \
		rc = gt_driver.name arguments;                                                \
		gt_hook_answered(&regs, &(struct gt_request){.api = GT_API_##api_,            \
							     .space = GT_SPACE_##space_,      \
							     .rc = rc,                        \
							     .key = rc ? 0 : (key_),          \
							     .size = (size_),                 \
							     .owner = owner_});               \
		gt_leave();                                                                   \
		return rc;                                                                    \
	}

#define GT_WRAP_FREE(name, result, parameters, arguments, api_, space_, key_)        \
	GT_PUBLIC result name parameters                                             \
	{                                                                            \
		struct gt_regs regs = GT_REGS_HERE();                                \
		struct gt_freed freed;                                               \
		result rc;                                                           \
                                                                                     \
		if (!GT_HAVE(name))                                                  \
			return GT_CUDA_NOT_INITIALIZED;                              \
		if (!gt_enter())                                                     \
			return gt_driver.name arguments;                             \
		gt_hook_free(&regs, GT_API_##api_, GT_SPACE_##space_, key_, &freed); \
		rc = gt_driver.name arguments;                                       \
		gt_hook_freed(&regs, rc, GT_API_##api_, &freed);                     \
		gt_leave();                                                          \
		return rc;                                                           \
	}

#define GT_WRAP_FREE_ASYNC(name, result, parameters, arguments, api_, space_, key_, stream_) \
	GT_PUBLIC result name parameters                                                     \
	{                                                                                    \
		struct gt_regs regs = GT_REGS_HERE();                                        \
		struct gt_freed freed = {.lane = GT_LANE_NONE};                              \
		void *graph;                                                                 \
		result rc;                                                                   \
                                                                                             \
		if (!GT_HAVE(name))                                                          \
			return GT_CUDA_NOT_INITIALIZED;                                      \
		if (!gt_enter())                                                             \
			return gt_driver.name arguments;                                     \
		if (gt_unlikely(gt_graph_captured(stream_, &graph))) {                       \
			rc = gt_driver.name arguments;                                       \
			if (!rc)                                                             \
				gt_graph_free(graph, key_);                                  \
		} else {                                                                     \
			gt_hook_free(&regs, GT_API_##api_, GT_SPACE_##space_, key_, &freed); \
			rc = gt_driver.name arguments;                                       \
			gt_hook_freed(&regs, rc, GT_API_##api_, &freed);                     \
		}                                                                            \
		gt_leave();                                                                  \
		return rc;                                                                   \
	}

#define GT_WRAP_AFTER(name, result, parameters, arguments, statement_) \
	GT_PUBLIC result name parameters                               \
	{                                                              \
		struct gt_regs regs = GT_REGS_HERE();                  \
		result rc;                                             \
		int err;                                               \
                                                                       \
		(void)regs; /* not every statement names it */         \
		if (!GT_HAVE(name))                                    \
			return GT_CUDA_NOT_INITIALIZED;                \
		if (!gt_enter())                                       \
			return gt_driver.name arguments;               \
		rc = gt_driver.name arguments;                         \
		err = errno;                                           \
		if (!rc && gt_begin(false))                            \
			statement_;                                    \
		gt_end();                                              \
		errno = err;                                           \
		gt_leave();                                            \
		return rc;                                             \
	}

#define GT_WRAP_MODULE(name, result, parameters, arguments, handle_)              \
	GT_PUBLIC result name parameters                                          \
	{                                                                         \
		struct gt_regs regs = GT_REGS_HERE();                             \
		struct gt_measure measure;                                        \
		result rc;                                                        \
                                                                                  \
		if (!GT_HAVE(name))                                               \
			return GT_CUDA_NOT_INITIALIZED;                           \
		if (!gt_enter())                                                  \
			return gt_driver.name arguments;                          \
		gt_hook_module_before(&measure);                                  \
		rc = gt_driver.name arguments;                                    \
		gt_hook_module_after(&measure, &regs, rc, rc ? NULL : (handle_)); \
		gt_leave();                                                       \
		return rc;                                                        \
	}

#define GT_WRAP_END(name, result, parameters, arguments, context_, device_, way_) \
	GT_PUBLIC result name parameters                                          \
	{                                                                         \
		struct gt_regs regs = GT_REGS_HERE();                             \
		struct gt_end end;                                                \
		result rc;                                                        \
                                                                                  \
		if (!GT_HAVE(name))                                               \
			return GT_CUDA_NOT_INITIALIZED;                           \
		if (!gt_enter_started())                                          \
			return gt_driver.name arguments;                          \
		gt_hook_end_before(&end, &regs, context_, device_, way_);         \
		rc = gt_driver.name arguments;                                    \
		gt_hook_end_after(&end, &regs, rc);                               \
		gt_leave();                                                       \
		return rc;                                                        \
	}

#define GT_WRAP_CONTEXT(name, result, parameters, arguments, context_, device_, flags_)     \
	GT_PUBLIC result name parameters                                                    \
	{                                                                                   \
		struct gt_regs regs = GT_REGS_HERE();                                       \
		struct gt_measure measure;                                                  \
		result rc;                                                                  \
                                                                                            \
		if (!GT_HAVE(name))                                                         \
			return GT_CUDA_NOT_INITIALIZED;                                     \
		if (!gt_enter())                                                            \
			return gt_driver.name arguments;                                    \
		gt_hook_context_before(&measure, device_, flags_);                          \
		rc = gt_driver.name arguments;                                              \
		gt_hook_context_after(&measure, &regs, rc, rc ? NULL : (context_), flags_); \
		gt_leave();                                                                 \
		return rc;                                                                  \
	}

#define GT_WRAP_OTHER(...)

#pragma GCC visibility pop

#endif
