/* SPDX-License-Identifier: MIT */
/*
 * What the files of tools/read share with each other and nobody else. From the bottom:
 *
 *   source.c   bytes of the file: copied, never pointed at        error.c    texts of gt_error
 *   extents.c  the list of extents                                alive.c    is the writer running?
 *   columns.c  raw bytes of a chunk -> events                     frame.c    extent -> chunks
 *   history.c  a lane's sealed chunks and its staging             cursor.c   walk over one, merge.c
 *   ahead.c    decodes for a walk on the other cores
 *   defs.c     definitions                                        lanes.c    snapshot of a lane
 *   replay.c   snapshot -> state after one event                  trace.c    gt_trace_open
 *   look.c     totals of a running process                        check.c    derived against stored
 *   progress.c how far reading is, for a progress bar
 *   build.c    a trace from something else than a trace file      beneath.c  how files are opened
 *   restore.c  a trace from its parts, as rows of another file
 *   append.c   a copy with more definitions: pack.c (names), torch.c (what a snapshot knows)
 *
 * The file is hostile and may change under us: everything is copied to private memory first,
 * checked there, and used from there. Nothing is allocated from a number in the file unless the
 * file is large enough to hold what the number promises.
 */
#ifndef GT_READER_H
#define GT_READER_H

#include "read/trace.h"

/* ---- error.c -------------------------------------------------------------------------------- */

/* All return -1. gt_fail: "PATH: text". err may be NULL. */
int gt_fail(struct gt_error *err, const char *path, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
int gt_fail_memory(struct gt_error *err, const char *path);
/* "PATH: damaged at byte OFFSET: text: copy it again, or read what is whole with --partial" */
int gt_damaged(struct gt_error *err, const char *path, uint64_t offset, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/* ---- source.c ------------------------------------------------------------------------------- */

/*
 * A file that nobody writes is read with pread: whoever shortens it meanwhile gives an error, not
 * SIGBUS. Only the file of a process that may be running is mapped, since the order of loads
 * matters there, and such a file never shrinks.
 */
struct gt_source {
	char *path;
	int fd;
	bool live;     /* mapped; words are loaded in order */
	uint64_t size; /* bytes that may be read */
	const uint8_t *map;
};

int gt_source_open(struct gt_source *source, const char *path, struct gt_error *err);
void gt_source_close(struct gt_source *source);
int gt_source_live(struct gt_source *source, struct gt_error *err); /* from now on map it */
int gt_source_grow(struct gt_source *source); /* looks at the size again; -1 = cannot be mapped */
/* Copies, in 8-byte words from low to high when live; 0, or -1 when the range is not in the file.
 */
int gt_source_copy(const struct gt_source *source, uint64_t offset, void *to, uint64_t length);
/* One aligned word (acquire): 0 outside the file. */
uint64_t gt_source_word(const struct gt_source *source, uint64_t offset);
int gt_header_read(const struct gt_source *source, struct gt_header *ret, struct gt_error *err);

/* Room for one more: grows *array (of *capacity elements of size bytes) to hold count + 1. */
int gt_grow(void *array, size_t *capacity, size_t count, size_t size);

/* ---- alive.c -------------------------------------------------------------------------------- */

enum gt_alive {
	GT_ALIVE_NO, /* other boot, or no such process */
	GT_ALIVE_YES,
	GT_ALIVE_MAYBE, /* same boot, but a pid namespace that we cannot look into */
};
enum gt_alive gt_alive(const struct gt_header *header);

/* ---- extents.c ------------------------------------------------------------------------------ */

struct gt_extents {
	struct gt_extent *at; /* in file order; extents being recycled are left out */
	size_t count, capacity;
};
int gt_extents_list(struct gt_source *source, bool partial, struct gt_extents *ret,
		    struct gt_error *err);
uint64_t gt_defs_used(const struct gt_extents *list); /* bytes: definitions only grow */

/* ---- columns.c ------------------------------------------------------------------------------ */

struct gt_limits { /* largest value accepted per column */
	uint64_t max[GT_COLS];
	bool clamp; /* larger ones are taken for 0 instead: partial traces */
};
#define GT_SCRATCH(count) ((GT_COLS - 1) * (size_t)(count))
void gt_limits_widths(struct gt_limits *ret); /* those of the fields of gt_event */
struct gt_window {		 /* the newest decoded events of an extent, without a gap */
	struct gt_event *events; /* event q is at q & (capacity - 1) */
	size_t capacity;	 /* a power of two */
	uint64_t from, to;	 /* from <= q < to */
	uint64_t whole; /* what is before it may refer to events before from, and is not complete */
	uint32_t lane;
};
static inline struct gt_event *gt_window_at(const struct gt_window *w, uint64_t seq)
{
	return &w->events[seq & (w->capacity - 1)];
}
/*
 * Appends count events to the window, which has room for more than these: they may refer to those
 * before. scratch: GT_SCRATCH(count) words. NULL, or what is wrong; then the window is as before.
 */
const char *gt_columns_decode(const uint8_t *raw, size_t length, const struct gt_limits *limits,
			      struct gt_window *window, size_t count, uint64_t *scratch);
void gt_event_of_cell(const struct gt_cell *cell, uint32_t lane, struct gt_event *ret);
/* False: it names something that is not defined (and limits do not say to take that for 0). */
bool gt_event_within(struct gt_event *event, const struct gt_limits *limits);

/* ---- frame.c -------------------------------------------------------------------------------- */

#define GT_RECYCLED 1 /* the writer took the extent for something new */

struct gt_chunk_at { /* a chunk of a decoded extent */
	uint64_t first_seq;
	uint64_t offset; /* in the file, for messages */
	size_t raw, raw_length;
	uint32_t events;
};

struct gt_zstd_frame {		    /* one extent, decompressed as far as it was committed */
	uint64_t offset, gen, used; /* which, and how far; offset 0 = none */
	struct ZSTD_DCtx_s *stream;
	uint8_t *packed, *raw;
	size_t packed_capacity, raw_capacity, raw_length;
	struct gt_chunk_at *chunks;
	size_t chunk_count, chunk_capacity;
};
/* 0, GT_RECYCLED, or -1. The extent that is held already is continued, not decoded again. */
int gt_zstd_frame_load(struct gt_zstd_frame *frame, const struct gt_source *source,
		       const struct gt_extent *extent, struct gt_error *err);
void gt_zstd_frame_free(struct gt_zstd_frame *frame);
/* Checks a chunk's header against its surroundings; room = bytes from it to the extent's used. */
const char *gt_chunk_bad(const struct gt_chunk *chunk, uint32_t lane, uint64_t room);
static inline uint64_t gt_chunk_span(const struct gt_chunk *chunk)
{
	return sizeof(*chunk) + (((uint64_t)chunk->packed + 7) & ~7ull);
}

/* ---- history.c ------------------------------------------------------------------------------ */

struct gt_stretch { /* the chunks of one ring extent */
	struct gt_extent extent;
	uint64_t first_seq, last_seq; /* last gapless run of chunks */
	uint64_t first_us, last_us;
};

struct gt_history { /* of one lane: chunks, then what was still in staging */
	uint32_t lane;
	uint64_t first_seq, last_seq, first_us, last_us; /* first_seq = last_seq + 1: none */
	struct gt_stretch *stretches;			 /* by sequence, gapless */
	size_t stretch_count, stretch_capacity;
	struct gt_event *tail;
	uint64_t tail_first;
	size_t tail_count;
};
/* Takes the cells of tail (valid up to last_seq) and lists the chunks before them. */
int gt_history_build(struct gt_history *history, struct gt_source *source,
		     const struct gt_extents *extents, bool partial, struct gt_error *err);
void gt_history_free(struct gt_history *history);

/* ---- cursor.c ------------------------------------------------------------------------------- */

struct gt_unit { /* of a history: events from <= q < to of a stretch, which are decoded at once */
	size_t stretch;
	uint64_t from, to;
};
static inline bool gt_unit_has(const struct gt_unit *unit, uint64_t seq)
{
	return seq >= unit->from && seq < unit->to;
}

struct gt_cursor {
	const struct gt_source *source;
	const struct gt_history *history;
	struct gt_limits limits;
	const struct gt_lane_added *added; /* NULL = nothing */
	uint64_t position;	/* sequence of what gt_cursor_next gives; 0 = at neither end yet */
	struct gt_window hand;	/* out of which events are given: window, or one of ahead's */
	struct gt_unit unit;	/* where the walk is */
	struct gt_ahead *ahead; /* NULL = none */
	struct gt_zstd_frame frame;
	struct gt_window window; /* of the frame */
	uint64_t *scratch;
	size_t scratch_count; /* events that it is for */
};
void gt_cursor_init(struct gt_cursor *cursor, const struct gt_source *source,
		    const struct gt_history *history, const struct gt_limits *limits);
void gt_cursor_release(struct gt_cursor *cursor);
/* The event of a sequence in the history: 0, GT_RECYCLED, -1. */
int gt_cursor_at(struct gt_cursor *cursor, uint64_t seq, const struct gt_event **ret,
		 struct gt_error *err);
/* The unit of a sequence; false: it is in no chunk. */
bool gt_unit_of(const struct gt_history *history, uint64_t seq, struct gt_unit *ret);
/* All of a unit into the window: 0, or whatever else: not to be had at once. */
int gt_cursor_fill(struct gt_cursor *cursor, const struct gt_unit *unit);

/* ---- ahead.c -------------------------------------------------------------------------------- */

/* Units from that of seq on, direction 1 or -1, as this cursor decodes them. NULL: does not pay. */
struct gt_ahead *gt_ahead_start(const struct gt_cursor *like, uint64_t seq, int direction);
/* The next unit, until the next call. -1: it is not that of seq, or cannot be had. */
int gt_ahead_get(struct gt_ahead *ahead, uint64_t seq, struct gt_window *ret);
struct gt_ahead *gt_ahead_stop(struct gt_ahead *ahead); /* accepts NULL, returns NULL */

/* ---- defs.c --------------------------------------------------------------------------------- */

struct gt_lane_sites { /* site definitions of a lane; [0] is "unknown" */
	struct gt_site_def *defs;
	size_t count, capacity;
};
struct gt_lane_added { /* what a torch snapshot knows of a lane's events, or of its blocks */
	struct gt_added *at;
	size_t count, capacity;
};
struct gt_block_of_text { /* text lives in a list of these */
	struct gt_block_of_text *next;
	size_t used, size;
	char text[];
};
/* Tables of definitions, in gt_reader.capacity. */
enum gt_def_table {
	GT_TABLE_INFOS,
	GT_TABLE_STRINGS,
	GT_TABLE_MODULES,
	GT_TABLE_NODES,
	GT_TABLE_PYCODES,
	GT_TABLE_PYNODES,
	GT_TABLE_THREADS,
	GT_TABLE_STREAMS,
	GT_TABLE_DEVICES,
	GT_TABLE_CONTEXTS,
	GT_TABLE_NAMES,
	GT_TABLE_SOURCES,
	GT_TABLE_POOLS,
	GT_TABLE_COUNT,
};
/* The next element of a table, zeroed, or NULL. */
#define GT_ADD(trace, table, which)                                                \
	(gt_grow(&(trace)->table##s, &(trace)->reader->capacity[GT_TABLE_##which], \
		 (trace)->table##_count, sizeof(*(trace)->table##s))               \
		 ? NULL                                                            \
		 : memset(&(trace)->table##s[(trace)->table##_count++], 0,         \
			  sizeof(*(trace)->table##s)))
/* Entry 0 of each table that is indexed by an id from 1, and site 0 of each lane. 0 or -1. */
int gt_defs_begin(struct gt_trace *trace);
int gt_sites_grow(struct gt_lane_sites *sites);
/*
 * Text outlives the buffer that it was read into; it lies in blocks that are never moved, so pointers
 * into them stay. 0 or -1.
 */
int gt_text_keep(struct gt_reader *reader, const void *text, uint32_t length, struct gt_bytes *ret);
/* Fills the tables of the trace; each lane has at least site 0. */
int gt_defs_read(struct gt_trace *trace, const struct gt_extents *extents, struct gt_error *err);
/* What a report names that is not there, or NULL. */
const char *gt_report_bad(const struct gt_trace *trace, const struct gt_report *report);
int gt_reports_read(struct gt_trace *trace, const struct gt_extents *extents, struct gt_error *err);
void gt_defs_free(struct gt_trace *trace);

/* ---- lanes.c, replay.c ---------------------------------------------------------------------- */

struct gt_image { /* a lane copied while it may have changed: between seq0 and seq1 */
	struct gt_extent extent;
	uint64_t seq0, seq1;
	struct gt_ctr ctr0, ctr1;
	uint32_t cap;
	int32_t device;
	uint64_t incomplete_seq, lost;
	bool totals;	       /* no slots, and of the history what the totals need */
	struct gt_site *lines; /* line i is exact after event line_seq[i] */
	uint64_t *line_seq;
	size_t line_count;
	struct gt_slot *slots; /* those with a key */
	size_t slot_count, slot_capacity;
	struct gt_history history;
};
/* A lane is listed before it has cells; then it has no events either, and is not looked at. */
bool gt_lane_has_cells(const struct gt_source *source, const struct gt_extent *lane);
/* Both 0, GT_RECYCLED = changes too fast, try again, -1. The first takes seq0 and ctr0 alone. */
int gt_image_begin(struct gt_image *image, const struct gt_source *source,
		   const struct gt_extent *extent, struct gt_error *err);
/*
 * known: extents listed before, if definitions have not grown since they were read; or NULL. chunks:
 * decode them where staging was lapped, which else is GT_RECYCLED.
 */
int gt_image_take(struct gt_image *image, const struct gt_trace *trace,
		  const struct gt_extent *extent, const struct gt_extents *known, bool chunks,
		  struct gt_error *err);
int gt_image_lines(struct gt_image *image, size_t count); /* room for count lines, new ones zero */
void gt_image_free(struct gt_image *image);
uint64_t gt_image_seq(const struct gt_image *image, const struct gt_source *source); /* now */
/* The cells up to seq1 that are still there become the tail of the image's history. */
int gt_image_staging(struct gt_image *image, const struct gt_source *source, struct gt_error *err);
/* Brings the image to seq1 and hands blocks, sites and history over to the lane. */
int gt_image_settle(struct gt_image *image, struct gt_trace *trace, struct gt_trace_lane *lane,
		    struct gt_error *err);

/* ---- torch.c --------------------------------------------------------------------------------- */

/* Puts what is known of them into the window's events from a sequence on. */
void gt_added_window(const struct gt_lane_added *added, struct gt_window *window, uint64_t from);
/* Into a lane's blocks, which are by address, and into the end of its history. */
void gt_added_lane(const struct gt_reader *reader, struct gt_trace_lane *lane,
		   struct gt_history *history);

/* ---- trace.c -------------------------------------------------------------------------------- */

struct gt_reader {
	struct gt_source source;
	struct gt_history *histories; /* beside gt_trace.lanes */
	struct gt_lane_sites sites[GT_MAX_LANES];
	struct gt_lane_added added[GT_MAX_LANES], alive[GT_MAX_LANES];
	struct gt_block_of_text *text;
	size_t capacity[GT_TABLE_COUNT];
	uint64_t defs_used; /* of the definitions that were read; 0 = not yet */
	uint64_t expected;  /* bytes, of progress.h */
};
/* Images of all lanes, by number; count images are the caller's to free, also after an error. */
int gt_images_take(struct gt_trace *trace, bool chunks, struct gt_image **ret_images,
		   size_t *ret_count, struct gt_error *err);
void gt_images_free(struct gt_image *images, size_t count);
/* With a reader and nothing in it; path NULL: it is not known yet. NULL = no memory. */
struct gt_trace *gt_trace_blank(const char *path);
/* The lanes of the trace from their images, whose histories move. */
void gt_lanes_free(struct gt_trace_lane *lanes, struct gt_history *histories, size_t count);
int gt_images_settle(struct gt_trace *trace, struct gt_image *images, size_t count,
		     struct gt_error *err);
/* Limits for events of a lane: ids that are defined. */
void gt_limits_of(const struct gt_trace *trace, uint32_t lane, struct gt_limits *ret);

#endif
