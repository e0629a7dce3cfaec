/* SPDX-License-Identifier: MIT */
/*
 * A trace opened for reading: definitions, the state of every lane after its last committed event,
 * and the history that the ring still holds. The only code that knows the file's bytes is in this
 * folder; everyone else sees the structures below. The file is hostile input: every length, offset,
 * index and count is checked before use, and a damaged file gives one gt_error, never a crash. The
 * file may belong to a running process: what is copied is consistent (the rules stand in
 * docs/format.md).
 */
#ifndef GT_TRACE_H
#define GT_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <gputrace/format.h>

/* What went wrong, ready to print behind "gputrace: ": "FILE: what, where: what to do". */
struct gt_error {
	int status; /* exit status: 2 usage, 3 unreadable */
	char text[1024];
};

struct gt_event { /* an event, decoded */
	uint64_t seq, us;
	uint64_t addr, size;
	uint64_t birth_us;
	uint64_t extra;
	uint64_t requested; /* as of its block */
	uint32_t lane, site, free_site, aux, pool;
	uint16_t thread, birth_thread, stream;
	uint8_t op;    /* enum gt_op */
	uint8_t space; /* enum gt_space */
};

struct gt_block { /* a live block */
	uint64_t addr, size;
	uint64_t birth_us;
	uint32_t site; /* index in its lane */
	uint16_t stream, thread;
	uint8_t space;
	uint32_t pool;	    /* of the gt_trace's pools; 0 = not in one of its own, or not known */
	uint64_t requested; /* of torch, before it rounded up; 0 = not known */
};

/*
 * In a torch snapshot a free has two halves, and its extra says how many microseconds later the second
 * was told. aux GT_FREE_EARLIER: it was before the history, which begins with its block pending.
 */
#define GT_FREE_EARLIER 1u

/* The block that an event begins or ends. */
static inline struct gt_block gt_block_of(const struct gt_event *event)
{
	return (struct gt_block){
		.addr = event->addr,
		.size = event->size,
		.birth_us = event->birth_us,
		.site = event->site,
		.stream = event->stream,
		.thread = event->birth_thread,
		.space = event->space,
		.pool = event->pool,
		.requested = event->requested,
	};
}

struct gt_bytes { /* text with its length: NUL terminated too, but may hold NULs */
	const char *text;
	uint32_t length;
};

struct gt_module {
	struct gt_bytes path;
	uint64_t start, end, bias;
	uint8_t build_id[32];
	uint32_t build_id_length;
	uint64_t unloaded_us; /* 0 = still mapped */
};

struct gt_node {     /* native frame */
	uint64_t pc; /* return address or GT_PC_* */
	uint32_t parent;
	uint32_t module; /* index + 1 into modules of the object mapped there then; 0 = none */
};

struct gt_pycode {
	uint32_t file, name, qualname; /* indexes into strings; 0 = "" */
	int32_t first_line;
	bool native; /* no Python: another recorder joined the two stacks, and gave it its name */
};

struct gt_pynode {
	uint32_t parent, code;
	int32_t line;
	uint16_t calls; /* 1 + calls of the interpreter from C between parent and it; 0 = ? */
};

struct gt_site_def {
	uint32_t native, python; /* indexes into nodes, pynodes; 0 = none */
	uint16_t api;		 /* enum gt_api */
	uint8_t space, mask;
};

struct gt_thread_def {
	uint32_t tid;
	uint64_t us;
	struct gt_bytes name;
};

struct gt_stream_def {
	uint64_t handle;
	int32_t device;
};

struct gt_device_def {
	int32_t ordinal;
	uint64_t total;
	uint8_t uuid[16];
	struct gt_bytes name;
};

struct gt_context_def {
	uint64_t handle, us;
	int64_t bytes;
	int32_t device;
	uint32_t flags, native, python, thread;
};

struct gt_name_def { /* of a packed trace: a frame at a return address */
	uint64_t pc;
	uint32_t module, function, file;
	int32_t line;
	bool inlined;
};

struct gt_source_def {
	uint32_t file, text;
	int32_t line;
};

struct gt_pool_def { /* of torch: the pool of a graph, or a MemPool */
	uint64_t first, second;
};

struct gt_info {
	struct gt_bytes key, value;
};

struct gt_trace_lane { /* after event ctr's seq; everything here agrees with everything else */
	uint32_t lane;
	int32_t device;
	uint64_t seq; /* last committed event */
	struct gt_ctr ctr;
	struct gt_block *blocks; /* the live set, by address then space */
	size_t block_count;
	struct gt_site *sites; /* totals; [0] is "unknown" */
	struct gt_site_def *site_defs;
	size_t site_count;	 /* of both */
	uint64_t history_first;	 /* first event still held; seq + 1 = none */
	uint64_t history_us;	 /* its time; 0 when history_first is 1 */
	uint64_t incomplete_seq; /* 0 = whole */
	uint64_t lost;
};

/* Tables are indexed by id; [0] is a zero entry so that "none" needs no test. */
struct gt_trace {
	const char *path;
	struct gt_header header;
	bool partial;  /* read with GT_OPEN_PARTIAL from a cut file: totals are not complete */
	bool running;  /* its process is alive on this machine */
	bool snapshot; /* a torch snapshot: of the driver and of other processes nothing is known */
	bool database; /* read from an SQLite export: it has no bytes of its own */
	bool merged;   /* a torch snapshot of the run was merged into it */
	bool totals;   /* read with GT_OPEN_TOTALS: lanes have neither blocks nor history */
	uint64_t last_us; /* of the last event of any lane */

	struct gt_info *infos;
	size_t info_count;
	struct gt_bytes *strings;
	size_t string_count;
	struct gt_module *modules; /* [0] is a zero entry too */
	size_t module_count;
	struct gt_node *nodes;
	size_t node_count;
	struct gt_pycode *pycodes;
	size_t pycode_count;
	struct gt_pynode *pynodes;
	size_t pynode_count;
	struct gt_thread_def *threads;
	size_t thread_count;
	struct gt_stream_def *streams;
	size_t stream_count;
	struct gt_device_def *devices;
	size_t device_count; /* in the order seen; no zero entry */
	struct gt_context_def *contexts;
	size_t context_count;
	struct gt_name_def *names; /* no zero entry, as for sources */
	size_t name_count;
	struct gt_source_def *sources;
	size_t source_count;
	struct gt_pool_def *pools;
	size_t pool_count;
	struct gt_report *reports; /* by state (number) */
	size_t report_count;
	struct gt_trace_lane *lanes; /* by lane number, only those that exist */
	size_t lane_count;

	struct gt_reader *reader; /* private to tools/read */
};

#define GT_OPEN_PARTIAL 1u
#define GT_OPEN_TOTALS	2u /* counters and sites alone: does not grow with blocks or events */

/* 0, or -1 with err filled. */
int gt_trace_open(const char *path, unsigned int flags, struct gt_trace **ret,
		  struct gt_error *err);
struct gt_trace *gt_trace_close(struct gt_trace *trace); /* accepts NULL, returns NULL */

/*
 * look.c: counters and sites of a trace that was opened with GT_OPEN_TOTALS, as they are now; its
 * definitions stay. 0; 1: there are new definitions, close it and open it again; -1 with err.
 */
int gt_trace_look(struct gt_trace *trace, struct gt_error *err);

/* Last value of an info key, or NULL. */
const struct gt_bytes *gt_trace_info(const struct gt_trace *trace, const char *key);

/*
 * A walk over the history of one lane: gt_cursor_next from history_first forward, or gt_cursor_prev
 * from the last event backward. NULL at the end; err (may be NULL) tells damage from the end. The
 * event is valid until the next call. One extent is held decoded at a time, or a few: see ahead.c.
 */
struct gt_cursor *gt_cursor_new(const struct gt_trace *trace, size_t lane_index);
struct gt_cursor *gt_cursor_free(struct gt_cursor *cursor);
const struct gt_event *gt_cursor_next(struct gt_cursor *cursor, struct gt_error *err);
const struct gt_event *gt_cursor_prev(struct gt_cursor *cursor, struct gt_error *err);

/* From here gt_cursor_prev gives the event seq, or the nearest before it that the history has. */
void gt_cursor_seek(struct gt_cursor *cursor, uint64_t seq);

/* All lanes merged: order inside a lane by sequence, lanes by running maximum of time. */
struct gt_merge *gt_merge_new(const struct gt_trace *trace);
struct gt_merge *gt_merge_free(struct gt_merge *merge);
const struct gt_event *gt_merge_next(struct gt_merge *merge, struct gt_error *err);

/* Bytes of a site of the lane when its total k (enum gt_total) was at its peak. */
static inline uint64_t gt_site_at_peak(const struct gt_trace_lane *lane, size_t site, int k)
{
	const struct gt_site *line = &lane->sites[site];

	if (!(lane->site_defs[site].mask >> k & 1))
		return 0;
	return line->last_seq <= lane->ctr.peak_seq[k] ? line->live : line->at[k];
}

/* check.c: what can be derived against what is stored; each difference is said in a line. */
typedef void gt_say(void *ctx, const char *line);
/* Number of differences. history: decode all of it too, not only the state. */
size_t gt_trace_check(const struct gt_trace *trace, bool history, gt_say *say, void *ctx);

/* names.c: one word per number of the format; "unknown" for those of later versions. */
const char *gt_op_name(unsigned int op);
const char *gt_space_name(unsigned int space);
const char *gt_api_name(unsigned int api);
const char *gt_lost_name(unsigned int reason);

#endif
