/* SPDX-License-Identifier: MIT */
/*
 * The seams inside libgputrace.so: what hooks may call, who keeps what. Everything here runs in a
 * stranger's process: no malloc, no stdio, no foreign lock, no log, no exit; errno is the hook's to
 * keep (GT_HOOK macros of hook.h do). Order of a recorded event:
 *
 *   hook_*.c    enter -> real call -> gt_where_capture -> gt_record_*            no lock held
 *   lane.c      lane lock -> live block, counters, site, cell, commit (commit.c) -> unlock
 *   ring.c      a full staging becomes a chunk, still under the lane's lock
 *
 * Locks, outermost first: reports > lane > definitions > extents. None is held while a foreign function
 * runs. All live in private memory; a forked child starts with new structures.
 */
#ifndef GT_PRELOAD_H
#define GT_PRELOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <gputrace/format.h>

/* Declarations too, so that variables are reached without the global offset table. */
#pragma GCC visibility push(hidden)

#define GT_TLS_SHARED  __attribute__((tls_model("initial-exec"))) __thread /* at both ends */
#define GT_TLS	       static GT_TLS_SHARED
#define GT_PUBLIC      __attribute__((visibility("default")))
#define gt_likely(x)   __builtin_expect(!!(x), 1)
#define gt_unlikely(x) __builtin_expect(!!(x), 0)

/* ---- os.c: the few things needed from the system, without libc's state ---------------------- */

#define gt_load(p)	       __atomic_load_n((p), __ATOMIC_ACQUIRE)
#define gt_store(p, v)	       __atomic_store_n((p), (v), __ATOMIC_RELEASE)
#define gt_load_relaxed(p)     __atomic_load_n((p), __ATOMIC_RELAXED)
#define gt_store_relaxed(p, v) __atomic_store_n((p), (v), __ATOMIC_RELAXED)
#define gt_store_barrier()     __atomic_thread_fence(__ATOMIC_RELEASE)

struct gt_lock {
	uint32_t held;
};
void gt_lock_wait(struct gt_lock *lock); /* spins, then yields, until it has it */

static inline void gt_lock(struct gt_lock *lock)
{
	if (gt_unlikely(__atomic_exchange_n(&lock->held, 1, __ATOMIC_ACQUIRE)))
		gt_lock_wait(lock);
}

static inline void gt_unlock(struct gt_lock *lock)
{
	gt_store(&lock->held, 0);
}

uint64_t gt_space_left(void); /* bytes of address space below ulimit -v; UINT64_MAX: no limit */
/* Zeroed private pages, MADV_DONTFORK. NULL if there are none, or if it would be much of what is left:
 * the program needs that more. */
void *gt_map(size_t bytes);
/* Grown in place or moved, more bytes zeroed; NULL leaves p alone. p may be NULL. */
void *gt_remap(void *p, size_t bytes, size_t more);
void gt_unmap(void *p, size_t bytes); /* accepts NULL */
int gt_tid(void);
int gt_pid(void); /* a system call: never a cached value */
uint64_t gt_mono_us(void);

struct gt_text { /* a bounded string builder: never overruns, always terminated */
	char *buf;
	size_t size, length;
};
void gt_text_bytes(struct gt_text *t, const char *s, size_t n);
void gt_text_str(struct gt_text *t, const char *s);
void gt_text_u64(struct gt_text *t, uint64_t v);
void gt_text_i64(struct gt_text *t, int64_t v);
void gt_text_error(struct gt_text *t, int error); /* what an errno means, in words */
struct stat;
int gt_stat(int fd, const char *path, struct stat *ret_st); /* path "": of the descriptor itself */
int gt_open(const char *path, int flags, int mode); /* O_CLOEXEC; -errno or the descriptor */
void gt_close(int fd);				    /* accepts negative ones */
/* Reads at most size - 1 bytes of a small file and terminates them; -errno or the length. */
int gt_read_file(const char *path, char *buf, size_t size);
/*
 * The decimal number that a text begins with; false: none, or too large. Not strtoull, which headers
 * since glibc 2.38 bind to a name that older libraries lack.
 */
bool gt_parse_number(const char *text, uint64_t *ret, const char **ret_end);
void gt_stderr(const char *line); /* one write(2) to fd 2; the only output there is */

/* ---- options.c: one table of GPUTRACE_* variables, read once -------------------------------- */

struct gt_options {
	bool on;	    /* GPUTRACE, 0 turns it off */
	bool quiet;	    /* GPUTRACE_QUIET=1 */
	bool redact;	    /* GPUTRACE_REDACT=1 */
	bool free_stacks;   /* GPUTRACE_FREE_STACKS */
	uint32_t stacks;    /* GPUTRACE_STACKS, GPUTRACE_FREE_STACKS -> GT_STACKS_* */
	uint32_t depth;	    /* GPUTRACE_DEPTH, frames */
	uint32_t unwinder;  /* GPUTRACE_UNWINDER -> enum gt_unwinder */
	uint64_t ring;	    /* GPUTRACE_RING, bytes */
	uint64_t max;	    /* GPUTRACE_MAX, bytes */
	uint64_t extent;    /* GPUTRACE_EXTENT, bytes: for tests */
	uint32_t sample_us; /* GPUTRACE_SAMPLE_US, between samples of pools */
	uint32_t cells;	    /* GPUTRACE_CELLS, events staged per lane: for tests */
	const char *dir;    /* GPUTRACE_DIR, ':' list */
};
enum gt_unwinder { GT_UNWIND_AUTO, GT_UNWIND_OWN, GT_UNWIND_LIBUNWIND, GT_UNWIND_LIBGCC };
extern struct gt_options gt_options;
extern const char *gt_options_bad; /* a variable with a value that means nothing; NULL = none */
void gt_options_read(char **environ_now);
/* With GPUTRACE_REDACT, in place: the name behind the folders of a path. Returns its length. */
size_t gt_redact_path(char *text, size_t length);

/* ---- start.c: states of the recorder -------------------------------------------------------- */

/*
 * Cheap test at the top of every hook: may this call be recorded? Starts the recorder at the first
 * call (opens the file, GPUTRACE_DIR's first directory that works), restarts it in a forked child,
 * and is false for ever after a failure of ours or with GPUTRACE=0.
 */
bool gt_recording(void);
enum gt_state { GT_IDLE = 0, GT_ON, GT_OFF };
extern uint32_t *gt_state;    /* in a page that a forked child finds zeroed, hence IDLE */
extern uint32_t gt_state_pid; /* who wrote it, where there is no such page: 0 = there is */

/* Is it on in this very process? Starts nothing. */
static inline bool gt_started(void)
{
	uint32_t now = gt_load(gt_load(&gt_state)), pid = gt_load_relaxed(&gt_state_pid);

	return now == GT_ON && (gt_likely(!pid) || pid == (uint32_t)gt_pid());
}
/* Changes in a forked child: what a thread caches of the file (ids) is void when it has changed. */
extern uint32_t gt_epoch;
void gt_stop(enum gt_stop why); /* recording ends here; said once on stderr; the program goes on */
void gt_at_exit(void);		/* exit() began */

/* ---- file.c: the mapped file and its extents ------------------------------------------------ */

extern struct gt_header *gt_file; /* NULL while there is none */
/*
 * A new listed extent with all fields set and zeroed content, or, for anything but RING when the disk
 * or the limit is reached, the oldest closed ring extent turned into one. NULL when there is nothing.
 */
struct gt_extent *gt_extent_new(enum gt_extent_kind kind, uint32_t lane, uint64_t length,
				uint64_t first_index);
uint64_t gt_now_us(void); /* trace time */
void gt_count_lost(enum gt_lost why);

/* ---- defs.c: definitions; each returns an id, 0 = could not be kept ------------------------- */

/* All are committed when they return. gt_def_append writes a record whose text is in two parts. */
bool gt_def_append(struct gt_rec *rec, size_t size, const void *text, size_t text_length,
		   const void *text2, size_t text2_length);
void gt_def_info(const char *key, const void *value, size_t length);
uint32_t gt_def_string(const char *text, size_t length); /* interned */
/* The same for text that a program makes up as it goes: no new ones once there are 2^18 strings. */
uint32_t gt_def_label(const char *text, size_t length);
uint32_t gt_def_stream(int device, uint64_t handle); /* interned; handle 0 is id 0 */
void gt_def_device(int ordinal, uint64_t total, const uint8_t uuid[16], const char *name);

struct gt_thread_id { /* of the calling thread, as of an epoch */
	uint32_t epoch, id;
};
extern GT_TLS_SHARED struct gt_thread_id gt_thread_id;
uint32_t gt_def_new_thread(void);

/* Id of the calling thread. */
static inline uint32_t gt_def_thread(void)
{
	return gt_likely(gt_thread_id.epoch == gt_epoch) ? gt_thread_id.id : gt_def_new_thread();
}

/* ---- stacks: stack_native.c, stack_python.c, unwind_*.c, modules.c, native_nodes.c ----------- */

struct gt_where { /* a captured stack: innermost nodes, 0 = none */
	uint32_t native, python;
};

struct gt_regs { /* where a native walk starts: the caller of the hook */
	uint64_t pc, sp, fp;
};
/*
 * In the hook itself (or an always_inline helper of it): its return address, the stack pointer after
 * its return, the caller's fp. Naming the frame address makes the compiler keep a frame pointer here.
 */
#ifdef __x86_64__
#define GT_CALLER_SP() ((uint64_t)__builtin_frame_address(0) + 16)
#elif defined(__clang__)
#error "clang does not tell the canonical frame address on this machine: use gcc"
#else
#define GT_CALLER_SP() ((uint64_t)__builtin_dwarf_cfa())
#endif
#define GT_REGS_HERE()                                                           \
	((struct gt_regs){(uint64_t)__builtin_return_address(0), GT_CALLER_SP(), \
			  *(uint64_t *)__builtin_frame_address(0)})

/* Captures and interns the calling thread's stacks as GPUTRACE_STACKS says. No lock of ours held. */
struct gt_where gt_where_walk(const struct gt_regs *regs);

static inline struct gt_where gt_where_capture(const struct gt_regs *regs)
{
	if (!(gt_options.stacks & (GT_STACKS_NATIVE | GT_STACKS_PYTHON)))
		return (struct gt_where){0, 0};
	return gt_where_walk(regs);
}
/* Its Python half: the innermost node, 0 when no Python code is running in this thread. */
uint32_t gt_python_capture(void);
void gt_python_start(void);	 /* looks for the interpreter; from gt_stacks_start */
void gt_python_fork_child(void); /* from gt_stacks_fork_child */
void gt_stacks_start(void);	 /* at the first driver use, once definitions can be written */
void gt_stacks_open(void);	 /* then, with no lock held: may dlopen a fallback unwinder */
void gt_stacks_fork_child(void); /* new structures */
void gt_modules_closing(void);	 /* before a real dlclose, and ... */
void gt_modules_closed(void);	 /* ... after it: calls nest and may overlap between threads */
/* Address inside an object whose file name begins with prefix ("libc10_cuda")? Cached per pc. */
bool gt_caller_is(uint64_t pc, const char *prefix);

/* ---- hook.c --------------------------------------------------------------------------------- */

void gt_hooks_fork_child(void); /* new structures; also for a child that clone made */

/* ---- lane.c: events ------------------------------------------------------------------------- */

struct gt_alloc {
	int device; /* ordinal, GT_DEVICE_HOST, GT_DEVICE_UNKNOWN */
	enum gt_space space;
	uint32_t mask; /* GT_MASK_* */
	enum gt_api api;
	uint64_t addr, size;
	uint32_t stream; /* id of gt_def_stream */
	uint32_t aux;	 /* GT_CONTEXT_ALONE of a module */
	struct gt_where where;
};
/* Live block, counters, site and event; an implicit free first if the key is alive. */
void gt_record_alloc(const struct gt_alloc *a);

struct gt_freed {      /* what a free took away, to give it back */
	uint32_t lane; /* GT_LANE_NONE: the key was unknown */
	uint32_t site;
	uint64_t key, size_stream, birth;
};
/*
 * Looks the key up (lane of device first, then all) and frees it under the same hold of the lock.
 * Unknown: an UNKNOWN_FREE event on the lane of device. where is used with GT_STACKS_FREE only.
 */
void gt_record_free(int device, enum gt_space space, uint64_t addr, enum gt_api api,
		    struct gt_where where, struct gt_freed *ret);
void gt_record_unfree(const struct gt_freed *freed); /* the real free was refused */
/* Any other event: op, device, and the fields that format.h names for it. Returns its sequence. */
uint64_t gt_record_note(enum gt_op op, int device, uint64_t addr, uint64_t size, uint32_t aux,
			uint64_t extra);
/* Keys of the blocks alive on a lane: those inside of something that is reserved as a whole (torch's,
 * pools'), or all others; from slot *at on, which moves; how many, 0 = that was all. */
uint32_t gt_live_keys(uint32_t lane, bool inner, uint32_t *at, uint64_t *ret, uint32_t max);
/* What the program says of itself: MARK .. END of format.h. */
void gt_record_mark(enum gt_op op, uint64_t source, uint64_t range, uint32_t aux);
/* Is the key alive, on which lane (device ordinal), with what size? For hooks that need the block. */
bool gt_lookup(int device, enum gt_space space, uint64_t addr, int *ret_device, uint64_t *ret_size);

/* ---- doctor.c: what gputrace doctor wants to know; nothing unless it asks -------------------- */

/* entry: the hook that was handed out, "-" another function, "!" none; pc: of who asked. */
void gt_doctor_resolved(const char *via, const char *name, const char *entry, uint64_t pc);
void gt_doctor_objects(void);
void gt_doctor_python(const char *version, const char *state, const char *why);

/* ---- marks.c: what the program says of itself ----------------------------------------------- */

struct gt_note { /* kept for as long as the process lives: a text */
	const struct gt_note *next;
	uint32_t length;
	char text[];
};
/* Interned; "" for NULL and when there is no room left. Handles of NVTX are such notes. */
const struct gt_note *gt_note(const char *text, size_t length);
void gt_mark(enum gt_op op, const struct gt_note *domain, const char *name, uint64_t range);
uint64_t gt_mark_range(void); /* a number for a range of the process */
void gt_marks_start(void);    /* recording has begun */

/* ---- oom.c: refused requests and their reports ---------------------------------------------- */

struct gt_refusal {
	int device;
	enum gt_space space;
	enum gt_api api;
	uint64_t size;
	int result;			    /* of the driver */
	uint64_t device_free, device_total; /* GT_UNKNOWN_BYTES */
	uint64_t torch_allocated, torch_reserved;
	struct gt_where where;
};
void gt_record_refusal(const struct gt_refusal *r); /* the driver said no */
void gt_record_torch_oom(
	const struct gt_refusal *r); /* torch raised; says the one line on stderr */
void gt_settle(int device, enum gt_space space, uint64_t size);
/* A report of the calling thread may wait for its outcome. */
extern GT_TLS_SHARED bool gt_refused;

/* A request was granted: settles this thread's refusals. */
static inline void gt_granted(int device, enum gt_space space, uint64_t size)
{
	if (gt_unlikely(gt_refused))
		gt_settle(device, space, size);
}

#pragma GCC visibility pop

#endif
