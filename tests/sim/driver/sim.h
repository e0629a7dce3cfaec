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

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SIM_MAX_DEVICES 16
#define SIM_GRANULE	((size_t)2 << 20) /* what the driver takes from the device at once */
#define SIM_UNIT	((size_t)512)	  /* alignment of small allocations */
#define SIM_SMALL	((size_t)1 << 20) /* below: shares a granule with others */

enum sim_kind { SIM_FREE, SIM_DEVICE, SIM_MANAGED, SIM_ASYNC };

/* One allocation inside an arena. size is what was asked for; 0 means no block starts here. */
struct sim_block {
	size_t size;
	CUmemoryPool pool; /* only for SIM_ASYNC */
	enum sim_kind kind;
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
	unsigned int refs; /* primary: retains; others: 1 */
	bool primary;
	bool alive;
	unsigned long long id;
};

struct CUmemPoolHandle_st {
	int device;
	uint64_t threshold;
	uint64_t used, used_high;
	int reuse[3]; /* follow event dependencies, opportunistic, internal dependencies */
};

struct sim_device {
	pthread_mutex_t lock;
	size_t capacity;
	size_t charged;	     /* contexts, granules and physical handles */
	size_t bytes, count; /* the truth that tests compare with: requested bytes, blocks */
	struct sim_arena arena;
	struct CUctx_st primary;
	struct CUmemPoolHandle_st default_pool;
	CUmemoryPool pool;
};

struct sim {
	pthread_mutex_t lock;
	int devices;
	bool initialised; /* cuInit succeeded */
	bool forked;	  /* child of a process that used the device: the driver is unusable */
	int driver_version;
	size_t context_cost;
	int event_lag; /* an event is "not ready" for so many queries */
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

/* arena.c: all under the device's lock. */
int sim_arena_init(struct sim_arena *arena, size_t bytes);
struct sim_block *sim_arena_alloc(struct sim_arena *arena, size_t size, CUdeviceptr *ret_ptr);
struct sim_block *sim_arena_find(struct sim_arena *arena, CUdeviceptr ptr, CUdeviceptr *ret_start);
void sim_arena_free(struct sim_arena *arena, CUdeviceptr start);

/* mem.c */
struct sim_device *sim_device_of(CUdeviceptr ptr);
CUresult sim_mem_alloc(struct sim_device *device, size_t size, enum sim_kind kind,
		       CUmemoryPool pool, CUdeviceptr *ret_ptr);
CUresult sim_mem_free(CUdeviceptr ptr);
CUresult sim_charge(struct sim_device *device, size_t bytes);
void sim_uncharge(struct sim_device *device, size_t bytes);
bool sim_fail_now(void);
CUresult sim_answer(CUresult rc);

/* pool.c: under the device's lock. */
void sim_pool_init(struct CUmemPoolHandle_st *pool, int device);
void sim_pool_account(CUmemoryPool pool, ptrdiff_t bytes);

/* vmm.c */
bool sim_vmm_range(CUdeviceptr ptr, CUdeviceptr *ret_start, size_t *ret_size, int *ret_device);

/* host.c */
bool sim_host_range(const void *ptr, char **ret_start, size_t *ret_size, int *ret_device);
void sim_host_ledger(size_t *bytes, size_t *count);

/* The start of every entry point that the real driver refuses before cuInit and after fork. */
#define SIM_ENTER()                                                      \
	do {                                                             \
		if (__builtin_expect(!sim.initialised || sim.forked, 0)) \
			return CUDA_ERROR_NOT_INITIALIZED;               \
	} while (0)

#endif
