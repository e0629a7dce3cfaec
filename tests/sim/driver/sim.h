/* SPDX-License-Identifier: MIT */
/*
 * sim.h - what the parts of the simulated CUDA driver share.
 *
 * The simulator is a libcuda.so.1 on host memory with the public driver API only: who asks for
 * which memory, on which device and in which order is real; kernels are not run. Device memory is
 * address space that costs nothing until a copy touches it.
 *
 * Locks: sim_device.lock guards one device's memory; sim.lock guards the lists that all devices
 * share (host memory, reservations). sim.lock may be taken before a device's lock, never after.
 */
#ifndef GT_SIM_H
#define GT_SIM_H

#define __CUDA_API_VERSION_INTERNAL /* declare every ABI version, rename none */
#include <cuda.h>

#include "../gtsim.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#define SIM_MAX_DEVICES 16
#define SIM_GRANULE	((size_t)2 << 20) /* what the driver takes from the device at once */
#define SIM_UNIT	((size_t)512)	  /* alignment of small allocations */
#define SIM_SMALL	((size_t)1 << 20) /* below: shares a granule with others */

enum sim_kind { SIM_FREE, SIM_DEVICE, SIM_MANAGED, SIM_ARRAY, SIM_POOL, SIM_GRAPH };

struct sim_chunk;
struct sim_graph_block;

/* One allocation inside an arena. size is what was asked for; 0 means no block starts here. */
struct sim_block {
	size_t size;
	union {
		struct CUctx_st *ctx;	 /* SIM_DEVICE, SIM_MANAGED, SIM_ARRAY: dies with it */
		struct sim_chunk *chunk; /* SIM_POOL */
		struct sim_graph_block *graph; /* SIM_GRAPH */
	};
	enum sim_kind kind;
};

/* What is known of an address. */
struct sim_range {
	CUdeviceptr start;
	size_t size;
	int device;
	CUmemorytype type;
	enum sim_kind kind;
	struct CUctx_st *ctx;
	CUmemoryPool pool;
};

struct sim_granule;
struct sim_slab;

/* Address space of one device, handed out in granules and, below SIM_SMALL, in units of a slab. */
struct sim_arena {
	char *base;
	size_t granules;
	size_t lowest; /* no granule below this one is free */
	size_t taken;  /* bytes of granules in use */
	struct sim_granule *map;
	struct sim_slab *partial;
};

struct CUctx_st {
	int device;
	unsigned int flags;
	unsigned int refs;	/* primary: retains; others: 1 */
	struct CUctx_st *owner; /* green: the primary context, which owns what is allocated */
	unsigned int peers;	/* devices whose memory it may use: bits */
	bool primary;
	bool alive;
	unsigned long long id;
};

struct CUmemPoolHandle_st {
	int device;
	bool destroyed; /* but blocks are left in it */
	bool imported;	/* another process's: nothing can be allocated from it */
	bool exportable;
	uint64_t max; /* 0: no limit */
	uint64_t threshold;
	uint64_t used, used_high, reserved, reserved_high;
	int reuse[3]; /* follow event dependencies, opportunistic, internal dependencies */
	unsigned char access[SIM_MAX_DEVICES];
	struct sim_chunk *chunks;
	struct CUmemPoolHandle_st *next; /* of the same device */
};

/* The memory that graphs allocate; reserved stays until it is trimmed. */
struct sim_graph_pool {
	uint64_t used, used_high, reserved, reserved_high;
	uint64_t live; /* what the blocks in use occupy of reserved */
};

struct sim_device {
	pthread_mutex_t lock;
	size_t capacity;
	size_t charged; /* contexts, modules, granules, pools, physical handles, others */
	struct gt_sim_books books;
	struct sim_arena arena;
	struct CUctx_st primary;
	struct CUmemPoolHandle_st default_pool;
	CUmemoryPool pool;  /* the current one */
	CUmemoryPool pools; /* all of them */
	struct sim_graph_pool graph;
};

#define SIM_DEPS 32

struct sim_capture;

struct CUstream_st {
	struct CUctx_st *ctx;
	unsigned int flags;
	int priority;
	unsigned long long id;
	/* Capture, under sim.lock: what the next node depends on, how much was captured here and
	 * how much of it other streams have waited for. */
	struct sim_capture *capture;
	struct CUstream_st *next_captured;
	CUgraphNode deps[SIM_DEPS];
	size_t dep_count;
	unsigned long long work, joined;
};

struct CUevent_st {
	struct CUctx_st *ctx;
	struct timespec when;
	int lag;
	bool recorded;
	/* If it was recorded in a capture: where that stream stood. */
	unsigned long long capture_id, work;
	struct CUstream_st *stream;
	CUgraphNode deps[SIM_DEPS];
	size_t dep_count;
};

struct sim {
	pthread_mutex_t lock;
	int devices;
	bool initialised; /* cuInit succeeded */
	bool forked;	  /* child of a process that used the device: the driver is unusable */
	int driver_version;
	size_t context_cost, module_cost;
	struct gt_sim_books host; /* under lock */
	int event_lag;		  /* an event is "not ready" for so many queries */
	struct sim_device device[SIM_MAX_DEVICES];
};

extern struct sim sim;

/* device.c */
CUresult sim_check_device(CUdevice dev);
size_t sim_parse_size(const char *text, size_t otherwise);
const char *sim_env(const char *name, const char *otherwise);

/* context.c: the calling thread's context, or an error code for the caller to return. */
CUresult sim_current(struct CUctx_st **ret_ctx);
CUresult sim_current_device(struct sim_device **ret_device);
unsigned long long sim_context_id(void);

static inline struct CUctx_st *sim_owner(struct CUctx_st *ctx)
{
	return ctx->owner ? ctx->owner : ctx;
}

/* arena.c: all under the device's lock. */
int sim_arena_init(struct sim_arena *arena, size_t bytes);
struct sim_block *sim_arena_alloc(struct sim_arena *arena, size_t size, CUdeviceptr *ret_ptr);
struct sim_block *sim_arena_alloc_run(struct sim_arena *arena, size_t size, CUdeviceptr *ret_ptr);
struct sim_block *sim_arena_find(struct sim_arena *arena, CUdeviceptr ptr, CUdeviceptr *ret_start);
void sim_arena_free(struct sim_arena *arena, CUdeviceptr start);
CUdeviceptr sim_arena_next(struct sim_arena *arena, CUdeviceptr after,
			   struct sim_block **ret_block);

/* books.c: under the device's lock, or sim.lock for the host's. */
CUresult sim_charge(struct sim_device *device, size_t bytes);
void sim_uncharge(struct sim_device *device, size_t bytes);
void sim_book(struct gt_sim_books *books, enum gt_sim_family family, size_t bytes);
void sim_unbook(struct gt_sim_books *books, enum gt_sim_family family, size_t bytes);
bool sim_fail_now(void);
CUresult sim_answer(CUresult rc);

/* mem.c */
struct sim_device *sim_device_of(CUdeviceptr ptr);
CUresult sim_mem_alloc(struct CUctx_st *ctx, size_t size, enum sim_kind kind, CUdeviceptr *ret_ptr);
CUresult sim_mem_free(CUdeviceptr ptr);
void sim_mem_free_array(CUdeviceptr ptr);
void sim_mem_free_all(struct CUctx_st *ctx);

/* module.c, array.c, foreign.c, ipc.c */
void sim_module_free_all(const struct CUctx_st *ctx);
void sim_array_free_all(const struct CUctx_st *ctx);
bool sim_external_known(CUexternalMemory memory);
CUresult sim_foreign_free(CUdeviceptr ptr);
bool sim_foreign_range(CUdeviceptr ptr, struct sim_range *ret);
void sim_foreign_free_all(const struct CUctx_st *ctx);
void sim_ipc_forget(CUdeviceptr ptr);

/* pool.c: under the device's lock. */
void sim_pool_init(struct sim_device *device, CUmemoryPool pool);
bool sim_pool_known(CUmemoryPool pool);
CUresult sim_pool_alloc(CUmemoryPool pool, size_t size, CUdeviceptr *ret_ptr);
CUresult sim_pool_free(struct sim_chunk *chunk, CUdeviceptr ptr);
bool sim_pool_range(const struct sim_chunk *chunk, CUdeviceptr ptr, struct sim_range *ret);
void sim_pool_reclaim(struct sim_device *device, bool all);

/* A call that waits for the device: the pools give back what they need not keep. Takes the lock. */
void sim_pool_sync(struct sim_device *device);

/* graphmem.c: under the device's lock. */
CUresult sim_graph_free(struct sim_graph_block *block);

/* stream.c: the object behind a handle; NULL for the legacy default stream. */
CUstream sim_stream(CUstream stream);

/* capture.c. A captured stream takes no work, but nodes: the sim_capture_ calls add them. */
bool sim_is_captured(CUstream stream);
CUresult sim_capture_plain(CUstream stream, CUgraphNodeType type);
CUresult sim_capture_copy(CUstream stream, CUdeviceptr to, CUdeviceptr from, size_t size);
CUresult sim_capture_fill(CUstream stream, CUdeviceptr to, uint32_t value, size_t width,
			  size_t count);
CUresult sim_capture_host(CUstream stream, CUhostFn function, void *data);
CUresult sim_capture_child(CUstream stream, CUgraph child);
CUresult sim_capture_alloc(CUstream stream, int device, size_t size, CUdeviceptr *ret_ptr);
CUresult sim_capture_free(CUstream stream, CUdeviceptr ptr);
void sim_capture_record(CUevent event, CUstream stream);
CUresult sim_capture_wait(CUstream stream, CUevent event);
bool sim_capture_has(const struct CUevent_st *event);
void sim_capture_leave(CUstream stream);

/* Calls that no capture may see: an error if one does, which is then invalid. */
CUresult sim_capture_unsafe(void);
CUresult sim_capture_refuse(CUstream stream);

/* copy.c */
CUresult sim_copy(CUdeviceptr to, CUdeviceptr from, size_t size);
CUresult sim_fill(CUdeviceptr to, const void *value, size_t width, size_t count);

/* pointer.c */
bool sim_find_range(CUdeviceptr ptr, struct sim_range *ret);

/* vmm.c */
bool sim_vmm_range(CUdeviceptr ptr, CUdeviceptr *ret_start, size_t *ret_size, int *ret_device);
CUresult sim_vmm_object(size_t size, CUmemGenericAllocationHandle *ret);
bool sim_vmm_hold(CUmemGenericAllocationHandle handle, int *ret_device);
void sim_vmm_let_go(CUmemGenericAllocationHandle handle);

/* host.c */
bool sim_host_range(const void *ptr, char **ret_start, size_t *ret_size, struct CUctx_st **ret_ctx);
void sim_host_free_all(const struct CUctx_st *ctx);

/* The start of every entry point that the real driver refuses before cuInit and after fork. */
#define SIM_ENTER()                                                      \
	do {                                                             \
		if (__builtin_expect(!sim.initialised || sim.forked, 0)) \
			return CUDA_ERROR_NOT_INITIALIZED;               \
	} while (0)

#endif
