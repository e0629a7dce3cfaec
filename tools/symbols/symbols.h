/* SPDX-License-Identifier: MIT */
/*
 * Stacks as people read them: native nodes through libdw (function, file, line, inline frames,
 * demangled), Python nodes as recorded. Nothing is looked up until a stack is asked for; each pc
 * once.
 */
#ifndef GT_SYMBOLS_H
#define GT_SYMBOLS_H

#include "read/trace.h"

enum gt_frame_kind {
	GT_FRAME_NATIVE,
	GT_FRAME_INLINE, /* inlined into the native frame that follows */
	GT_FRAME_PYTHON,
	GT_FRAME_MARKER, /* "[truncated]", "[incomplete]", "[called by]" in function */
};

const char *gt_frame_kind_name(enum gt_frame_kind kind); /* "python", as data says it */

struct gt_frame { /* all text is valid UTF-8, never NULL, may be "" */
	const char
		*function; /* demangled; "module+0x12f" when unknown, "[anon]" outside any module */
	const char *file;  /* source file; "" when unknown */
	const char *module; /* path of the object file; "" for Python */
	int line;	    /* 0 = unknown */
	enum gt_frame_kind kind;
	bool user; /* the user's own code; of a stack's frames */
};

struct gt_stack {
	const struct gt_frame *frames; /* innermost first */
	size_t count;
};

struct gt_symbols *gt_symbols_new(const struct gt_trace *trace);
struct gt_symbols *gt_symbols_free(struct gt_symbols *symbols);

/* The stack of a pair of innermost nodes, cached: the same pair gives the same pointer. */
struct gt_stack gt_symbols_stack(struct gt_symbols *symbols, uint32_t native, uint32_t python);

enum gt_frames {
	GT_FRAMES_MERGED, /* both stacks, and the caller's that was linked: gt_symbols_stack */
	GT_FRAMES_NATIVE,
	GT_FRAMES_PYTHON,
	GT_FRAMES_THREAD, /* both stacks, but of the thread itself only */
};

struct gt_stack gt_symbols_frames(struct gt_symbols *symbols, uint32_t native, uint32_t python,
				  enum gt_frames which);

/* Ask the servers of $DEBUGINFOD_URLS for debug information too. */
void gt_symbols_use_servers(void);

/*
 * Stacks of a thread that works for another one: that one's Python stack goes behind theirs. They are
 * known by their native node, or by the other one where there is no native stack of its own.
 */
void gt_symbols_link(struct gt_symbols *symbols, const struct gt_site_def *worker, uint32_t python);

/* Place of a stack in an array for all of them, of gt_symbols_places elements. */
static inline size_t gt_symbols_place(const struct gt_trace *trace, uint32_t native,
				      uint32_t python)
{
	return native ? native : trace->node_count + python;
}

static inline size_t gt_symbols_places(const struct gt_trace *trace)
{
	return trace->node_count + trace->pynode_count;
}

/* A line of a source file as it was in the run, without blanks around it; "" = not known. */
const char *gt_symbols_source(struct gt_symbols *symbols, const char *file, int line);

/* Name of the library that asked for the memory: base name of the first module outside the CUDA
 * runtime, the driver, the preload itself and the C++ runtime; "" when there is none. */
const char *gt_symbols_owner(struct gt_symbols *symbols, uint32_t native);

/* The frame that stands for the stack in one line: innermost user frame (Python or native; outside
 * system, CUDA, torch and interpreter libraries), else the innermost named frame. NULL: no frames.
 */
const struct gt_frame *gt_symbols_user_frame(struct gt_symbols *symbols, uint32_t native,
					     uint32_t python);

/* Modules that were asked for and could not be read: their frames are "module+0x12f". */
struct gt_missing {
	const char *path;
	bool changed; /* there is a file, but of another build */
};

/* In the order met; grows with every stack asked for. */
const struct gt_missing *gt_symbols_missing(const struct gt_symbols *symbols, size_t *ret_count);

#endif
