/* SPDX-License-Identifier: MIT */
/*
 * Inside the Python capture: what py_find.c, py_layout.c, py_check.c, py_line.c, py_code.c,
 * py_nodes.c and stack_python.c share. Nothing here takes the GIL, a reference or a lock of the
 * interpreter: the calling thread is inside a C call, so its own chain of frames stands still and
 * each frame keeps its code object and the code object's strings alive until the call returns.
 */
#ifndef GT_PY_H
#define GT_PY_H

#include "preload.h"

/* ---- py_layout.c: where the fields are, per version ---------------------------------------- */

/* How a thread state leads to its innermost frame */
enum gt_py_chain {
	GT_PY_OBJECTS, /* 3.8-3.10: a PyFrameObject */
	GT_PY_CFRAME,  /* 3.11, 3.12: a _PyCFrame that points to an interpreter frame */
	GT_PY_DIRECT,  /* 3.13 on: an interpreter frame */
};

/* Coding of a code object's line table */
enum gt_py_lines {
	GT_PY_LNOTAB,	 /* to 3.9: pairs (address delta, line delta) */
	GT_PY_RANGES,	 /* 3.10: pairs (range length, line delta), -128 = no line */
	GT_PY_LOCATIONS, /* 3.11 on: entries with a head byte >= 0x80 */
};

/* Byte offsets; 0 = the version has no such field, where 0 is not a sensible offset. */
struct gt_py_layout {
	uint8_t minor;
	bool free_threaded;
	uint8_t chain, lines;
	/* thread state */
	uint16_t ts_frame;     /* the frame, or the _PyCFrame */
	uint16_t ts_thread_id; /* pthread_self() of its thread */
	uint16_t ts_interp;
	uint16_t cframe_frame;
	/* frame */
	uint16_t frame_back, frame_code;
	uint16_t frame_instr; /* f_lasti (int), prev_instr or instr_ptr (pointers) */
	uint16_t frame_owner; /* one byte */
	uint16_t frame_entry; /* one byte: entered from C. 3.11; others: all frames, or shims */
	uint16_t frame_tlbc;  /* int32 index of the thread's copy of the bytecode */
	/* code object */
	uint16_t code_filename, code_name, code_qualname;
	uint16_t code_first_line;
	uint16_t code_linetable;
	uint16_t code_version;
	uint16_t code_first_traceable;
	uint16_t code_bytecode;
	uint16_t code_tlbc;
	/* all objects, bytes, str */
	uint16_t ob_type, ob_size;
	uint16_t bytes_data;
	uint16_t str_length, str_state;
	uint16_t str_ascii, str_compact;    /* data behind the header; a pointer at str_compact */
	uint8_t state_compact, state_ascii; /* bits of the state word; kind is bits 2-4 */
};

/* The row for Py_GetVersion()'s text; NULL and a reason if there is none. */
const struct gt_py_layout *gt_py_layout_find(const char *version, const char **ret_reason);
/* Compares a row with the interpreter's own table of offsets (3.13 on); NULL or the reason. */
const char *gt_py_layout_compare(const struct gt_py_layout *l, const void *runtime);

/* ---- reading: plain loads at an offset ----------------------------------------------------- */

static inline uint64_t gt_py_word(const void *p, uint16_t offset)
{
	return __atomic_load_n((const uint64_t *)((const char *)p + offset), __ATOMIC_RELAXED);
}

static inline const char *gt_py_ptr(const void *p, uint16_t offset)
{
	return (const char *)gt_py_word(p, offset);
}

static inline int32_t gt_py_i32(const void *p, uint16_t offset)
{
	return __atomic_load_n((const int32_t *)((const char *)p + offset), __ATOMIC_RELAXED);
}

/* Could this be the address of an object: aligned, not in the first page, in user space? */
static inline bool gt_py_plausible(const void *p)
{
	return !((uintptr_t)p & 7) && (uintptr_t)p - 4096 < (1ull << 47) - 4096;
}

/* ---- py_find.c: the interpreter in this process -------------------------------------------- */

struct gt_py_api {
	void *(*this_thread_state)(void); /* PyGILState_GetThisThreadState */
	int (*is_initialized)(void);
	int (*is_finalizing)(void);
	const char *(*version)(void);
	const char *code_type, *unicode_type, *bytes_type, *type_type;
	const char *runtime; /* _PyRuntime, may be NULL */
};

bool gt_py_find(struct gt_py_api *ret);

/* ---- py_check.c: is the layout true here? Follows pointers only where the kernel lets it --- */

const char *gt_py_check_types(const struct gt_py_layout *l, const struct gt_py_api *api);
/* The thread state and its innermost frame; NULL or the reason. *ret_proved: a frame was seen. */
const char *gt_py_check_frames(const struct gt_py_layout *l, const struct gt_py_api *api,
			       const char *ts, bool *ret_proved);

/* ---- py_watch.c: 3.8 to 3.11 --------------------------------------------------------------- */

void gt_py_watch(const struct gt_py_layout *l, const struct gt_py_api *api);
uint64_t gt_py_ended(void); /* code objects that have ended, plus 1; 0 = not known */

/* ---- py_line.c ----------------------------------------------------------------------------- */

/* Line of the instruction at byte addr (< 0: not started); 0 = that instruction has none. */
int32_t gt_py_line(enum gt_py_lines coding, const uint8_t *table, size_t size, int32_t first_line,
		   int32_t addr);

/* ---- py_code.c: what a code object says ---------------------------------------------------- */

#define GT_PY_TEXT_MAX 4096u /* bytes kept of a file or function name */

/*
 * Which of the code objects that ever were at this address is it? The quick answer may be a number
 * of the moment, the slow one (for one with GT_PY_MOMENT set) depends on the content only.
 */
#define GT_PY_MOMENT (1ull << 63)
uint64_t gt_py_identity(const struct gt_py_layout *l, const char *code, const char *interp);
uint64_t gt_py_fingerprint(const struct gt_py_layout *l, const char *code);
/* Copies a str as UTF-8; bytes that were not decodable in a file name come back as they were. */
size_t gt_py_text(const struct gt_py_layout *l, const char *str, char *buf, size_t size);
int32_t gt_py_code_line(const struct gt_py_layout *l, const char *code, int32_t addr);

/* ---- py_nodes.c: frames become ids --------------------------------------------------------- */

struct gt_py_frame {
	const char *code;
	uint64_t identity;
	int32_t addr;	/* of the instruction, in bytes from the start of the code; -1 none */
	uint32_t calls; /* of the interpreter from C that began between the caller and this frame */
};

/* The node of a frame below parent; 0 = it could not be kept. */
uint32_t gt_py_node(const struct gt_py_layout *l, uint32_t parent, const struct gt_py_frame *frame);
uint32_t gt_py_node_truncated(void); /* the root that stands for outer frames not kept */
/* Calls that execute no frame, innermost: a frame that is being entered or left. */
uint32_t gt_py_node_calls(uint32_t parent, uint32_t calls);
void gt_py_nodes_fork_child(void);

/* ---- py_walk.c: a thread's frames ------------------------------------------------------------ */

#define GT_PY_DEPTH_MAX 512u /* frames, whatever GPUTRACE_DEPTH says */

struct gt_py_known {
	const char *code;
	int64_t instr;
	uint32_t version; /* of the code object, 1 where they have none; 0 = not to be compared */
	uint32_t node;
};

/* A thread's last whole stack, outermost first; in the thread's own memory (stack_native.c). */
struct gt_py_last {
	const char *interp;
	uint64_t ended;
	uint32_t count; /* 0 = nothing to compare with */
	uint32_t spare;
	struct gt_py_known known[];
};

static inline uint32_t gt_py_depth(void)
{
	uint32_t depth = gt_options.depth;

	return depth && depth < GT_PY_DEPTH_MAX ? depth : GT_PY_DEPTH_MAX;
}

static inline size_t gt_py_last_bytes(void)
{
	return sizeof(struct gt_py_last) + gt_py_depth() * sizeof(struct gt_py_known);
}

struct gt_py_last *gt_python_last(void); /* of the calling thread, NULL = no memory */

/* The node of the innermost frame, 0 = none or not kept; false: the frames make no sense. */
bool gt_py_walk(const struct gt_py_layout *l, const char *code_type, const char *ts,
		uint32_t *ret_node);

#endif
