/* SPDX-License-Identifier: MIT */
/*
 * The trace file, to the byte. The only header that the recorder (preload/) and the readers (tools/,
 * tests/) share; docs/format.md is its prose. Little endian; every 64-bit word is 8-aligned; sizes in
 * bytes; times in microseconds since gt_header.mono_us unless said otherwise.
 *
 *   0        gt_header                                4096 bytes
 *   4096     extent | extent | extent ...             up to gt_header.end; nothing is sparse
 *
 *   extent = gt_extent (64 bytes) + content, whole pages. By kind:
 *     DEFS     records (gt_rec), append-only, committed by gt_extent.used
 *     LIVE     gt_slot[], the blocks alive in one lane
 *     SITES    gt_site[], the totals of one lane's sites
 *     LANE     gt_lane, then the cells of the staging ring
 *     RING     chunks of sealed events, recycled whole
 *     REPORTS  gt_report[], what was held when a request for memory failed
 *
 * A lane is one device (or the host, or "device unknown"); its events have a gapless sequence that
 * starts at 1. One word, gt_lane.seq, commits an event: whatever the event changed is either not
 * looked at before (slot with key 0, the other counter, the other redo line, an unused cell) or can be
 * written again with absolute values from the cell and the redo line of the last event.
 */
#ifndef GPUTRACE_FORMAT_H
#define GPUTRACE_FORMAT_H

#include <stdint.h>

#define GT_MAGIC       "GPUTRACE" /* gt_header.magic, 8 bytes, no terminator */
#define GT_VERSION     2u	  /* readers refuse larger ones */
#define GT_BYTE_ORDER  0x01020304u
#define GT_HEADER_SIZE 4096u
#define GT_SUFFIX      ".gtrace"

/* ---- totals -------------------------------------------------------------------------------- */

/* The three sums that a lane keeps, each with its exact peak. A site adds to those in its mask. */
enum gt_total {
	GT_TOTAL_RESERVED = 0, /* held from the driver */
	GT_TOTAL_TORCH = 1,    /* torch blocks */
	GT_TOTAL_IN_USE = 2,   /* torch blocks + driver allocations that are no pool segment */
	GT_TOTALS = 3,
};

#define GT_MASK_RESERVED (1u << GT_TOTAL_RESERVED)
#define GT_MASK_TORCH	 (1u << GT_TOTAL_TORCH)
#define GT_MASK_IN_USE	 (1u << GT_TOTAL_IN_USE)

/* ---- header -------------------------------------------------------------------------------- */

/* Reasons for which something is not in the file; gt_header.lost counts each. */
enum gt_lost {
	GT_LOST_EVENTS = 0,    /* events not recorded at all: no lane, nested in a hook or signal */
	GT_LOST_SITES = 1,     /* events on a site without a stack: theirs could not be defined */
	GT_LOST_STACKS = 2,    /* stacks not captured */
	GT_LOST_TRUNCATED = 3, /* stacks cut at the depth limit */
	GT_LOST_STREAMS = 4,   /* streams beyond the 16-bit ids */
	GT_LOST_THREADS = 5,   /* threads beyond the 16-bit ids */
	GT_LOST_REPORTS = 6,   /* failures without a report of their own */
	GT_LOST_PYTHON = 7,    /* Python stacks refused or torn */
	GT_LOST_REASONS = 8,
};

/* gt_header.stop: why recording ended before the process did. NO_SPACE: the disk is full or
 * GPUTRACE_MAX is reached, and there is no history left to give up. */
enum gt_stop {
	GT_STOP_NONE = 0,
	GT_STOP_NO_SPACE = 1,
	GT_STOP_ERROR = 2,
	GT_STOP_TRUNCATED = 3, /* somebody made the file shorter */
};

#define GT_STACKS_NATIVE 1u /* bits of gt_header.stacks */
#define GT_STACKS_PYTHON 2u
#define GT_STACKS_FREE	 4u /* frees carry a site too */

struct gt_header {
	char magic[8];
	uint32_t version;
	uint32_t header_size;
	uint32_t byte_order;
	uint32_t stacks;     /* GT_STACKS_* wanted */
	uint64_t end;	     /* offset behind the last listed extent; grows (store release) */
	uint64_t mono_us;    /* CLOCK_MONOTONIC at time 0 */
	uint64_t real_us;    /* CLOCK_REALTIME at time 0, since 1970 */
	uint64_t ring_limit; /* GPUTRACE_RING */
	uint64_t file_limit; /* GPUTRACE_MAX */
	uint32_t pid, ppid;  /* 64 */
	uint64_t
		start_ticks; /* start of the process, field 22 of /proc/PID/stat: pid + this is unique per boot */
	uint64_t pid_ns;  /* inode of /proc/self/ns/pid */
	uint64_t exit_us; /* time at which exit() began, plus 1; 0 = it never did */
	uint64_t stop_us; /* time at which recording stopped, plus 1; 0 = it did not */
	uint32_t stop;	  /* enum gt_stop */
	uint32_t depth;	  /* frames kept per stack */
	char boot_id[40]; /* 112: /proc/sys/kernel/random/boot_id, NUL padded */
	char comm[32];	  /* 152: base name of the executable, NUL padded */
	char host[72];	  /* 184: host name, NUL padded */
	uint64_t lost[GT_LOST_REASONS]; /* 256: enum gt_lost */
	uint8_t spare[GT_HEADER_SIZE - 320];
};

/* ---- extents ------------------------------------------------------------------------------- */

enum gt_extent_kind {
	GT_EXTENT_DEFS = 1,
	GT_EXTENT_LIVE = 2,
	GT_EXTENT_SITES = 3,
	GT_EXTENT_LANE = 4,
	GT_EXTENT_RING = 5,
	GT_EXTENT_REPORTS = 6,
};

#define GT_LANE_NONE UINT32_MAX /* gt_extent.lane of DEFS and REPORTS */

/*
 * At the head of each extent. A new one: all fields, then kind, then gt_header.end. A recycled ring
 * extent: gen made odd, used = 0, lane, serial, first_seq, (kind), gen made even. Readers of a running
 * process copy and then look at gen again.
 */
struct gt_extent {
	uint32_t kind; /* enum gt_extent_kind; unknown kinds are skipped by length */
	uint32_t lane;
	uint64_t offset;      /* of this header in the file, as a check */
	uint64_t length;      /* header included, whole pages */
	uint64_t gen;	      /* odd while being recycled */
	uint64_t used;	      /* DEFS, RING: bytes committed, header included (store release) */
	uint64_t first_seq;   /* RING: sequence of the first event; LANE: 1 */
	uint64_t first_index; /* LIVE, SITES, REPORTS: index of the first element; DEFS: number */
	/* of DEFS extents made before: the order in which they are read */
	uint64_t serial; /* RING: counts fills in this file, from 1; orders a lane's extents */
};

/* ---- keys, blocks, sites ------------------------------------------------------------------- */

/* Name spaces of block keys: an address can be a segment and, in torch, a block at once. */
enum gt_space {
	GT_SPACE_NONE = 0,
	GT_SPACE_DRIVER = 1,  /* device pointers: plain, pitched, managed, stream-ordered */
	GT_SPACE_TORCH = 2,   /* blocks of torch's caching allocator */
	GT_SPACE_HANDLE = 3,  /* VMM physical handles */
	GT_SPACE_MAPPING = 4, /* VMM mappings: address ranges, no bytes of their own */
	GT_SPACE_POOL = 5,    /* backing of a stream-ordered pool */
	GT_SPACE_HOST = 6,    /* pinned or registered host memory */
	GT_SPACE_ARRAY = 7,
	GT_SPACE_IPC = 8, /* memory of another process or another API: in no total */
	GT_SPACE_CONTEXT = 9,
	GT_SPACE_MODULE = 10,
	GT_SPACE_GRAPH = 11, /* what a device holds for its graphs */
	GT_SPACE_RANGE = 12, /* reserved addresses, no bytes of their own */
};

/* Key = address in the upper 57 bits, space in the lower 7; it is a live block's whole state. */
#define GT_KEY(addr, space) ((uint64_t)(addr) << 7 | (uint64_t)(space))
#define GT_KEY_ADDR(key)    ((uint64_t)(key) >> 7)
#define GT_KEY_SPACE(key)   ((unsigned)((key)&127))

/* Two 48+16 bit pairs: size and stream id; time and thread id. */
#define GT_PACK(v48, v16) (((uint64_t)(v48)&0xffffffffffffull) | (uint64_t)(v16) << 48)
#define GT_LOW48(w)	  ((uint64_t)(w)&0xffffffffffffull)
#define GT_HIGH16(w)	  ((unsigned)((uint64_t)(w) >> 48))

struct gt_slot { /* LIVE: one live block; free while key is 0 */
	uint64_t key;
	uint64_t size_stream; /* size, stream id */
	uint64_t birth;	      /* time, thread id */
	uint32_t site;	      /* index in its lane */
	uint32_t spare;	      /* the recorder's own: links its free slots, else the block's event */
};

/*
 * SITES: exact at every event. Bytes of the site when total k was at its peak:
 * last_seq <= gt_ctr.peak_seq[k] ? live : at[k]   (only for k in the site's mask).
 */
struct gt_site {
	uint64_t at[GT_TOTALS];
	uint64_t last_seq; /* last event that changed this site */
	uint64_t live;	   /* bytes */
	uint64_t live_count;
	uint64_t ever; /* bytes allocated, ever */
	uint64_t ever_count;
};

/* ---- lanes --------------------------------------------------------------------------------- */

#define GT_DEVICE_HOST	  (-1)
#define GT_DEVICE_UNKNOWN (-2)
#define GT_MAX_LANES	  66u /* devices 0..63, host, unknown */

struct gt_ctr { /* counters after an even / odd event */
	uint64_t cur[GT_TOTALS];
	uint64_t peak[GT_TOTALS];
	uint64_t peak_seq[GT_TOTALS]; /* the event that made it; a tie keeps the first */
	uint64_t peak_us[GT_TOTALS];
	uint64_t allocs, frees; /* events, all spaces: allocs - frees = live_count */
	uint64_t alloc_bytes, free_bytes;
	uint64_t live_count;
	uint64_t unknown_frees;	 /* frees of pointers that were never seen */
	uint64_t implicit_frees; /* of frees: address handed out again without a free */
	uint64_t failed;	 /* refused requests */
	uint64_t torch_allocs;	 /* of allocs, in GT_SPACE_TORCH */
	uint64_t spare[3];
};

struct gt_redo {       /* the whole new line of the site of an even / odd event */
	uint32_t site; /* UINT32_MAX: the event changed no site */
	uint32_t spare[15];
	struct gt_site line;
};

struct gt_lane {	 /* LANE: behind the extent header */
	uint64_t seq;	 /* the commit word: number of the last event */
	uint64_t sealed; /* events <= sealed are in chunks; their cells may be overwritten */
	uint32_t cap;	 /* cells, a power of two */
	int32_t device;	 /* ordinal, GT_DEVICE_HOST or GT_DEVICE_UNKNOWN */
	uint64_t incomplete_seq; /* first event that could not be kept whole; 0 = none */
	uint64_t lost; /* events missing in its history for want of room; totals have them */
	uint64_t spare0[3];
	struct gt_ctr ctr[2];	/* ctr[seq & 1] holds */
	struct gt_redo redo[2]; /* redo[seq & 1] holds */
	uint8_t spare1[1024 - 64 - 64 - 2 * 192 - 2 * 128];
};

#define GT_CELLS_OFFSET 1024u /* of the first cell from the start of a LANE extent */

/* ---- events -------------------------------------------------------------------------------- */

enum gt_op {
	GT_OP_ALLOC = 1, /* aux of a module: GT_CONTEXT_ALONE */
	GT_OP_FREE = 2,
	GT_OP_IMPLICIT_FREE = 3, /* the address was handed out again without a free seen */
	GT_OP_UNFREE = 4,	/* the free before was refused: block is back, with its old birth */
	GT_OP_UNKNOWN_FREE = 5, /* key was not live; no effect */
	GT_OP_FAILED = 6,   /* size (at most 2^48 - 1) refused; aux = CUDA result, extra = free */
	GT_OP_OOM = 7,	    /* torch raised OutOfMemoryError; size = its request, aux = report */
	GT_OP_EXIT = 8,	    /* exit() began; what follows is teardown */
	GT_OP_MARK = 9,	    /* aux = string id; these four and the two last: see below */
	GT_OP_PUSH = 10,    /* range of the thread begins; aux = string id */
	GT_OP_POP = 11,	    /* its innermost range of the same source ends */
	GT_OP_STEP = 12,    /* aux = step number, from 1 */
	GT_OP_SAMPLE = 13,  /* size = device total, extra = device free */
	GT_OP_PENDING = 14, /* torch block (address, size) freed, aux streams still use it */
	GT_OP_SETTLED = 15, /* ... and now none does */
	GT_OP_BEGIN = 16,   /* range of the process begins; size = its number, aux = string id */
	GT_OP_END = 17,	    /* the range of that number ends */
};

/* +1: the block named is alive after the event, -1: it is not any more, 0: no block changes. */
static inline __attribute__((always_inline)) int gt_op_effect(unsigned int op)
{
	switch (op) {
	case GT_OP_ALLOC:
	case GT_OP_UNFREE:
		return 1;
	case GT_OP_FREE:
	case GT_OP_IMPLICIT_FREE:
		return -1;
	default:
		return 0;
	}
}

/*
 * What the program says of itself (mark, push, pop, step, begin, end) is one event on the host's
 * lane and one on each device's lane that exists: the copies have the same extra, which counts such
 * events from 1, so the place of each in the order of every lane is known to the event. A device's
 * lane without a copy had its first event later, or has lost that part of its history. addr is the
 * source, a name space of ranges: GT_SOURCE_API, or NVTX with the string id of its domain.
 */
#define GT_SOURCE_API	       0u
#define GT_SOURCE_NVTX(domain) ((uint64_t)(domain) << 1 | 1) /* domain 0 = the default one */

struct gt_cell {	 /* one event in staging: cell of event q is cells[q & (cap - 1)] */
	uint64_t seq_op; /* seq << 8 | op */
	uint64_t time_thread;
	uint64_t key;
	uint64_t size_stream;
	uint64_t birth; /* of the block: time, thread; the event's own if it has no older block */
	uint32_t site;	/* of the block, index in its lane */
	uint32_t slot;	/* of the block in LIVE; UINT32_MAX none */
	uint32_t free_site; /* of the free, if GT_STACKS_FREE; else 0 */
	uint32_t aux;
	uint64_t extra;
};

/* RING: chunks, 8-aligned, one behind the other from the extent header to gt_extent.used. The
 * compressed bytes of one extent's chunks are one zstd frame, flushed at the end of each chunk. */
#define GT_CHUNK_MAGIC	    0x4b435447u /* "GTCK" */
#define GT_MAX_CHUNK_EVENTS 65536u	/* so also of gt_lane.cap; readers refuse more */
#define GT_BACK_MAX	    32768u	/* of column BACK: what readers must keep */
#define GT_WINDOW_LOG	    20		/* of the frames; readers refuse windows above 2^24 */

struct gt_chunk {
	uint32_t magic;
	uint32_t lane;
	uint64_t first_seq;
	uint32_t events;
	uint32_t raw;	 /* bytes before compression */
	uint32_t packed; /* bytes that follow; padded with zeros to 8 */
	uint32_t spare;
	uint64_t first_us, last_us;
	uint64_t hash; /* XXH64, seed 0, of the packed bytes */
	uint64_t spare1;
};

/*
 * A chunk's raw bytes: columns, each a gt_column and its bytes. Missing column = all zero. Values of
 * one event: v0, v1 ...; previous value of the first event is 0.
 *   CONST   one varint: every value is this
 *   BYTES   one byte per value
 *   DELTA   zigzag varint of the difference to the value before (mod 2^64)
 *   ROTATED as DELTA, of the value rotated right by 9 bits (addresses, sizes)
 *   PLAIN   varint per value
 * varint = LEB128, 7 bits a byte, least first, at most 10 bytes. zigzag(d) = d << 1 ^ d >> 63.
 *
 * BACK has a value for each event that ends a block. One that is not 0 says how many events before,
 * in the same extent, the alloc of that block is; what gt_column_whole names is then taken from
 * there (and the birth is its time and thread), and those columns have no value for this event. OP
 * and BACK stand before all other columns.
 */
enum gt_column_id {
	GT_COL_OP = 1,
	GT_COL_SPACE = 2,
	GT_COL_TIME = 3, /* microseconds */
	GT_COL_THREAD = 4,
	GT_COL_ADDR = 5,
	GT_COL_SIZE = 6,
	GT_COL_STREAM = 7,
	GT_COL_AGE = 8, /* time - birth time, so 0 for an alloc */
	GT_COL_BIRTH_THREAD = 9,
	GT_COL_SITE = 10,
	GT_COL_FREE_SITE = 11,
	GT_COL_AUX = 12,
	GT_COL_EXTRA = 13,
	GT_COL_BACK = 14, /* since version 2, see above */
	GT_COLS = 15,
};

enum gt_column_coding {
	GT_CODE_CONST = 1,
	GT_CODE_BYTES = 2,
	GT_CODE_DELTA = 3,
	GT_CODE_ROTATED = 4,
	GT_CODE_PLAIN = 5,
};

/* Does the column have values of those events only that do not refer to another? */
static inline int gt_column_whole(unsigned int id)
{
	return id == GT_COL_SPACE || (id >= GT_COL_ADDR && id <= GT_COL_SITE);
}

struct gt_column {
	uint8_t id;	/* enum gt_column_id; unknown ids are skipped by length */
	uint8_t coding; /* enum gt_column_coding */
	uint16_t spare;
	uint32_t length; /* bytes that follow, unpadded */
};

/* ---- definitions --------------------------------------------------------------------------- */

/* Which call made a block: part of its site. Name as the program calls it. */
#define GT_APIS(X)                                        \
	X(NONE, "")                                       \
	X(MEM_ALLOC, "cuMemAlloc")                        \
	X(MEM_ALLOC_PITCH, "cuMemAllocPitch")             \
	X(MEM_ALLOC_MANAGED, "cuMemAllocManaged")         \
	X(MEM_ALLOC_ASYNC, "cuMemAllocAsync")             \
	X(MEM_ALLOC_FROM_POOL, "cuMemAllocFromPoolAsync") \
	X(TORCH, "torch")                                 \
	X(MEM_FREE, "cuMemFree")                          \
	X(MEM_FREE_ASYNC, "cuMemFreeAsync")               \
	X(MEM_CREATE, "cuMemCreate")                      \
	X(MEM_MAP, "cuMemMap")                            \
	X(POOL, "memory pool")                            \
	X(HOST_ALLOC, "cuMemHostAlloc")                   \
	X(HOST_REGISTER, "cuMemHostRegister")             \
	X(ARRAY, "cuArrayCreate")                         \
	X(ARRAY_3D, "cuArray3DCreate")                    \
	X(MIPMAP, "cuMipmappedArrayCreate")               \
	X(IPC_OPEN, "cuIpcOpenMemHandle")                 \
	X(EXTERNAL, "cuImportExternalMemory")             \
	X(CONTEXT, "context")                             \
	X(MODULE, "module")                               \
	X(GRAPH, "graph memory")                          \
	X(ADDRESS_RESERVE, "cuMemAddressReserve")

enum gt_api {
#define X(id, name) GT_API_##id,
	GT_APIS(X)
#undef X
};

enum gt_rec_kind {
	GT_REC_INFO = 1,
	GT_REC_STRING = 2,
	GT_REC_MODULE = 3,
	GT_REC_UNLOAD = 4,
	GT_REC_NODE = 5,
	GT_REC_PYCODE = 6,
	GT_REC_PYNODE = 7,
	GT_REC_SITE = 8,
	GT_REC_THREAD = 9,
	GT_REC_STREAM = 10,
	GT_REC_DEVICE = 11,
	GT_REC_CONTEXT = 12,
	GT_REC_NAME = 13, /* written by gputrace pack only, as is the next */
	GT_REC_SOURCE = 14,
	GT_REC_POOL = 15, /* written by gputrace merge only, as are the next two */
	GT_REC_EVENTS = 16,
	GT_REC_BLOCKS = 17,
};

struct gt_rec {		 /* head of each record in DEFS; records never span extents */
	uint16_t kind;	 /* enum gt_rec_kind; unknown kinds are skipped by length */
	uint16_t more;	 /* PYNODE: gt_rec_pynode; else 0 */
	uint32_t length; /* head included, a multiple of 8, zero padded */
};

/* Text fields are bytes, not checked UTF-8, without a terminator. */

struct gt_rec_info {	   /* a fact of the process: "exe", "cmdline" (NUL between arguments), */
	struct gt_rec rec; /* "cwd", "host", "env.RANK", "driver" ...; later ones replace */
	uint32_t key_length;
	uint32_t value_length;
	/* key, value */
};

struct gt_rec_string {
	struct gt_rec rec;
	uint32_t id; /* from 1, in order */
	uint32_t text_length;
	/* text */
};

struct gt_rec_module {	   /* an object file mapped; a node belongs to the modules mapped when */
	struct gt_rec rec; /* it was defined, that is, those whose record stands before it */
	uint32_t id;	   /* from 1, in order */
	uint32_t path_length;
	uint64_t start, end;  /* executable address range: first byte, one behind the last */
	uint64_t bias;	      /* address in memory - address in the file's own terms */
	uint8_t build_id[32]; /* zero padded */
	uint32_t build_id_length;
	uint32_t spare;
	/* path */
};

struct gt_rec_unload {
	struct gt_rec rec;
	uint32_t module;
	uint32_t spare;
	uint64_t us;
};

/* Root markers: a chain whose root has one of these instead of an address is not whole. */
#define GT_PC_TRUNCATED	 1ull /* outer frames beyond the depth limit are missing */
#define GT_PC_INCOMPLETE 2ull /* the unwinder could not go on */

struct gt_rec_node { /* a frame of a native stack: path in a tree, root = outermost */
	struct gt_rec rec;
	uint32_t id;	 /* from 1, in order */
	uint32_t parent; /* the caller; smaller than id; 0 = root */
	uint64_t pc;	 /* return address (look up pc - 1) or GT_PC_* */
};

struct gt_rec_pycode {
	struct gt_rec rec;
	uint32_t id;		       /* from 1, in order */
	uint32_t file, name, qualname; /* string ids, 0 = unknown */
	int32_t first_line;
	uint32_t spare;
};

/*
 * One call of the interpreter's C function can execute several Python frames, and now and then none
 * that counts. rec.more = 1 + how many such calls began between the caller and this frame (at most
 * GT_PY_CALLS_MAX), 0 = not known. A node of code 0 with a parent is no frame: it only adds to that.
 */
#define GT_PY_CALLS_MAX 15u

struct gt_rec_pynode {
	struct gt_rec rec;
	uint32_t id;	 /* from 1, in order */
	uint32_t parent; /* the caller; 0 = outermost */
	uint32_t code;	 /* 0 without parent = outer frames beyond the depth limit are missing */
	int32_t line;
};

struct gt_rec_site {
	struct gt_rec rec;
	uint32_t lane;
	uint32_t index;	 /* in its lane, from 1, in order; 0 is never defined, mask 0 */
	uint32_t native; /* innermost node, 0 = none */
	uint32_t python; /* innermost node, 0 = none */
	uint8_t space;	 /* enum gt_space */
	uint8_t mask;	 /* GT_MASK_*: the totals its blocks add to; 0 for frees, failures */
	uint16_t api;	 /* enum gt_api */
	uint32_t spare;
};

struct gt_rec_thread {
	struct gt_rec rec;
	uint32_t id;  /* from 1, in order; 0 = unknown */
	uint32_t tid; /* of the kernel */
	uint64_t us;  /* first event */
	uint32_t name_length;
	uint32_t spare;
	/* name */
};

struct gt_rec_stream {
	struct gt_rec rec;
	uint32_t id; /* from 1, in order; 0 = the default stream */
	int32_t device;
	uint64_t handle; /* as the program has it */
};

struct gt_rec_device {
	struct gt_rec rec;
	int32_t ordinal;
	uint32_t name_length;
	uint64_t total; /* bytes; 0 = unknown */
	uint8_t uuid[16];
	/* name */
};

#define GT_CONTEXT_ALONE   1u /* nothing else was allocated or created while it was measured */
#define GT_CONTEXT_PRIMARY 2u
#define GT_CONTEXT_GREEN   4u /* part of a primary one */

struct gt_rec_context {
	struct gt_rec rec;
	uint64_t handle;
	uint64_t us;
	int64_t bytes; /* device memory that went with its creation; INT64_MIN = not measured */
	int32_t device;
	uint32_t flags;		 /* GT_CONTEXT_* */
	uint32_t native, python; /* who created it: innermost nodes */
	uint32_t thread;
	uint32_t spare;
};

/* A frame at a return address; several of one address follow each other, innermost first. */
struct gt_rec_name {
	struct gt_rec rec;
	uint32_t module;
	uint32_t inlined; /* 1: into the one that follows */
	uint64_t pc;
	uint32_t function, file; /* string ids, 0 = unknown */
	int32_t line;		 /* 0 = unknown */
	uint32_t spare;
};

struct gt_rec_source { /* a line of a source file as it was */
	struct gt_rec rec;
	uint32_t file, text; /* string ids */
	int32_t line;
	uint32_t spare;
};

struct gt_rec_pool { /* of torch: that of a graph, or a MemPool */
	struct gt_rec rec;
	uint32_t id; /* from 1, in order */
	uint32_t spare;
	uint64_t first, second;
};

struct gt_rec_added { /* what a torch snapshot knows: of events, or of blocks alive at the end */
	struct gt_rec rec;
	uint32_t lane;
	uint32_t count;
	/* gt_added; of the records of a lane and a kind, which only rises */
};

struct gt_added {
	uint64_t which;		 /* sequence of the event, or key of the block */
	uint64_t requested_pool; /* bytes asked of torch (48 bits, 0 = not known) | pool << 48 */
};

/* ---- reports ------------------------------------------------------------------------------- */

#define GT_REPORT_HOLDERS 256u
#define GT_REPORT_OTHERS  32u
#define GT_MAX_REPORTS	  64u
#define GT_UNKNOWN_BYTES  UINT64_MAX

enum gt_outcome {
	GT_OUTCOME_PENDING = 0,	  /* nothing known yet: fatal if exit() began, else open */
	GT_OUTCOME_RECOVERED = 1, /* the same request was granted later */
	GT_OUTCOME_CAUGHT = 2,	  /* the thread allocated again on this device before exit() */
};

struct gt_holder {
	uint64_t bytes, count;
	uint32_t site; /* index in the report's lane */
	uint32_t spare;
};

struct gt_other { /* a process on the device, from NVML */
	uint64_t bytes;
	uint32_t pid;
	char name[20]; /* NUL padded; empty = not known */
};

/* Fixed size. state is stored last (release) and cleared first when the slot is used again: the
 * first GT_MAX_REPORTS - 2 failures keep their slot, the last two slots alternate. */
struct gt_report {
	uint32_t state;	  /* 0 = not valid; else the failure's number, from 1 */
	uint32_t outcome; /* enum gt_outcome */
	uint32_t lane;
	uint32_t space; /* GT_SPACE_DRIVER, or GT_SPACE_TORCH once torch raised its error */
	uint64_t seq;	/* of its (last) event in the lane */
	uint64_t us;
	uint64_t requested;		    /* bytes asked of the driver, the last try */
	uint64_t torch_requested;	    /* bytes asked of torch; 0 = not through torch */
	uint64_t device_free, device_total; /* GT_UNKNOWN_BYTES = not known */
	uint64_t cur[GT_TOTALS];
	uint64_t torch_allocated, torch_reserved; /* as torch said; GT_UNKNOWN_BYTES = it did not */
	uint64_t outcome_us;
	uint32_t thread;
	uint32_t site;		  /* whose request it was */
	int32_t result;		  /* of the driver */
	uint32_t tries;		  /* refused requests that this report stands for */
	uint32_t holders, others; /* elements used below */
	uint64_t spare[7];
	struct gt_holder holder[GT_REPORT_HOLDERS]; /* largest first, by bytes in use */
	struct gt_other other[GT_REPORT_OTHERS];
};

#define GT_SIZE(type, bytes) _Static_assert(sizeof(type) == (bytes), #type " is not " #bytes)
#ifndef __cplusplus
GT_SIZE(struct gt_header, GT_HEADER_SIZE);
GT_SIZE(struct gt_extent, 64);
GT_SIZE(struct gt_slot, 32);
GT_SIZE(struct gt_site, 64);
GT_SIZE(struct gt_ctr, 192);
GT_SIZE(struct gt_redo, 128);
GT_SIZE(struct gt_lane, GT_CELLS_OFFSET - 64);
GT_SIZE(struct gt_cell, 64);
GT_SIZE(struct gt_chunk, 64);
GT_SIZE(struct gt_column, 8);
GT_SIZE(struct gt_rec_info, 16);
GT_SIZE(struct gt_rec_string, 16);
GT_SIZE(struct gt_rec_module, 80);
GT_SIZE(struct gt_rec_unload, 24);
GT_SIZE(struct gt_rec_node, 24);
GT_SIZE(struct gt_rec_pycode, 32);
GT_SIZE(struct gt_rec_pynode, 24);
GT_SIZE(struct gt_rec_site, 32);
GT_SIZE(struct gt_rec_thread, 32);
GT_SIZE(struct gt_rec_stream, 24);
GT_SIZE(struct gt_rec_device, 40);
GT_SIZE(struct gt_rec_context, 56);
GT_SIZE(struct gt_rec_name, 40);
GT_SIZE(struct gt_rec_source, 24);
GT_SIZE(struct gt_rec_pool, 32);
GT_SIZE(struct gt_rec_added, 16);
GT_SIZE(struct gt_added, 16);
GT_SIZE(struct gt_holder, 24);
GT_SIZE(struct gt_other, 32);
GT_SIZE(struct gt_report, 192 + 24 * GT_REPORT_HOLDERS + 32 * GT_REPORT_OTHERS);
#endif

#endif
