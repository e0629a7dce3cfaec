/* SPDX-License-Identifier: MIT */
/*
 * Blocks of PyTorch's caching allocator. libc10_cuda reports each block that it hands out or takes
 * back to two functions of libc10 through its PLT; standing before them shows every tensor's memory
 * without a change to the user's code. Both spellings of the size type have the same registers.
 *
 * We run with the allocator's lock of that device held: no CUDA allocation, no GIL, and of torch
 * itself only the current stream is asked for (at allocations: torch allocates on the current
 * stream), and what handle a stream has, once per stream. Afterwards, out of the guard, the call
 * goes on to the real function, so that torch's own profiler works; an exception from there only
 * passes through.
 */
#include "elf.h"
#include "hook.h"

#define TORCH_CUDA 1 /* c10::DeviceType::CUDA */

struct torch_stream { /* c10::cuda::CUDAStream: device in the first word, then the id */
	uint64_t device;
	int64_t id;
};

static struct torch_stream (*current_stream)(int8_t device);
static void *(*stream_handle)(const struct torch_stream *stream);

typedef void usage_fn(void *ptr, int64_t size, uint64_t allocated, uint64_t reserved,
		      struct gt_torch_device device);
typedef void oom_fn(int64_t size, uint64_t allocated, uint64_t reserved,
		    struct gt_torch_device device);

/* The real ones are looked up when first called: torch is loaded long after us, if at all. */
static void *real_in(void **cache, const char *soname, const char *name)
{
	int err = errno;

	if (gt_unlikely(!gt_load(cache)))
		gt_store(cache, gt_elf_in(soname, name));
	errno = err;
	return gt_load(cache);
}

#define REAL(cache, soname, name) ((__typeof__(cache))real_in((void **)&(cache), soname, name))

/* ---- streams --------------------------------------------------------------------------------- */

GT_TLS struct stream_entry { /* the last streams this thread allocated on */
	int64_t id;
	int32_t device;
	uint32_t stream; /* 0 = unused: the default stream is not kept here */
} streams[4];

static uint32_t current_stream_id(int device)
{
	struct torch_stream s;
	struct stream_entry *e;

	if (!REAL(current_stream, "libc10_cuda.so", "_ZN3c104cuda20getCurrentCUDAStreamEa"))
		return 0;
	s = current_stream((int8_t)device);
	if (!s.id)
		return 0;
	e = &streams[(uint64_t)(s.id ^ s.id >> 5) % 4];
	if (e->stream && e->id == s.id && e->device == device)
		return e->stream;
	if (!REAL(stream_handle, "libc10_cuda.so", "_ZNK3c104cuda10CUDAStream6streamEv"))
		return 0;
	*e = (struct stream_entry){
		.id = s.id,
		.device = device,
		.stream = gt_def_stream(device, (uint64_t)stream_handle(&s)),
	};
	return e->stream;
}

/* In a forked child, whose only thread is the calling one: ids of the parent's trace mean nothing.
 */
void gt_torch_forget(void)
{
	for (size_t i = 0; i < sizeof(streams) / sizeof(streams[0]); i++)
		streams[i].stream = 0;
}

/* ---- events ---------------------------------------------------------------------------------- */

static void block_allocated(const struct gt_regs *regs, int device, void *ptr, int64_t size)
{
	struct gt_alloc a = {
		.device = device,
		.space = GT_SPACE_TORCH,
		.mask = GT_MASK_TORCH | GT_MASK_IN_USE,
		.api = GT_API_TORCH,
		.addr = (uint64_t)ptr,
		.size = (uint64_t)size,
		.stream = current_stream_id(device),
		.where = gt_where_capture(regs),
	};

	gt_pending_allocated(device, a.addr);
	gt_record_alloc(&a);
}

static void block_freed(const struct gt_regs *regs, int device, void *ptr)
{
	struct gt_where where = {0, 0};
	struct gt_freed freed;

	if (gt_options.stacks & GT_STACKS_FREE)
		where = gt_where_capture(regs);
	gt_record_free(device, GT_SPACE_TORCH, (uint64_t)ptr, GT_API_TORCH, where, &freed);
	if (freed.lane != GT_LANE_NONE)
		gt_pending_freed(device, (uint64_t)ptr, GT_LOW48(freed.size_stream));
}

static void usage(const struct gt_regs *regs, void *ptr, int64_t size,
		  struct gt_torch_device device)
{
	int err = errno;

	if (device.type != TORCH_CUDA || !ptr || !size || !gt_enter())
		return;
	if (gt_begin(size > 0)) {
		gt_hook_device(device.index);
		if (size > 0)
			block_allocated(regs, device.index, ptr, size);
		else
			block_freed(regs, device.index, ptr);
	}
	gt_end();
	gt_leave();
	errno = err;
}

static void out_of_memory(const struct gt_regs *regs, int64_t size, uint64_t allocated,
			  uint64_t reserved, struct gt_torch_device device)
{
	struct gt_refusal r = {
		.device = device.index,
		.space = GT_SPACE_TORCH,
		.api = GT_API_TORCH,
		.size = (uint64_t)size,
		.result = GT_CUDA_OUT_OF_MEMORY,
		.device_free = GT_UNKNOWN_BYTES,
		.device_total = GT_UNKNOWN_BYTES,
		.torch_allocated = allocated,
		.torch_reserved = reserved,
	};
	int err = errno;

	if (device.type != TORCH_CUDA || !gt_enter())
		return;
	if (gt_begin(true)) {
		gt_hook_device(device.index);
		if (gt_current_device() == device.index)
			gt_hook_memory(&r.device_free, &r.device_total);
		r.where = gt_where_capture(regs);
		gt_record_torch_oom(&r);
	}
	gt_end();
	gt_leave();
	errno = err;
}

/* ---- the exported names ---------------------------------------------------------------------- */

#define USAGE(name)                                                               \
	void name(void *ptr, int64_t size, uint64_t allocated, uint64_t reserved, \
		  struct gt_torch_device device)                                  \
	{                                                                         \
		static usage_fn *real;                                            \
		struct gt_regs regs = GT_REGS_HERE();                             \
                                                                                  \
		usage(&regs, ptr, size, device);                                  \
		if (REAL(real, "libc10.so", #name))                               \
			real(ptr, size, allocated, reserved, device);             \
	}

#define OUT_OF_MEMORY(name)                                              \
	void name(int64_t size, uint64_t allocated, uint64_t reserved,   \
		  struct gt_torch_device device)                         \
	{                                                                \
		static oom_fn *real;                                     \
		struct gt_regs regs = GT_REGS_HERE();                    \
                                                                         \
		out_of_memory(&regs, size, allocated, reserved, device); \
		if (REAL(real, "libc10.so", #name))                      \
			real(size, allocated, reserved, device);         \
	}

USAGE(_ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE)
USAGE(_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE)
OUT_OF_MEMORY(_ZN3c1027reportOutOfMemoryToProfilerElllNS_6DeviceE)
OUT_OF_MEMORY(_ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE)
