/* SPDX-License-Identifier: MIT */
/*
 * Walks the frames of the calling thread and finds their nodes. First the chain is only copied,
 * innermost first: code object and instruction of each frame. Then it is compared, from the
 * outermost frame on, with the last stack of this thread, whose nodes are kept: a frame with the
 * same caller, the same code object (the same by its number, or since no code object has ended) and
 * the same instruction has the same node. What differs, as a rule the innermost frame or two, is
 * looked at closely and looked up.
 */
#include <pthread.h>

#include "py.h"

#define OWNER_GENERATOR 1u
#define OWNER_SHIM	3u /* from 3.12 on: this and above are entries from C, without code */
#define OWNER_LAST	4u

/* In the lowest bit of raw_frame.instr, a pointer to 16-bit units: this frame was entered from C. */
#define ENTERED 1ll

struct raw_frame {
	const char *frame, *code;
	int64_t instr; /* f_lasti, prev_instr or instr_ptr as it is, and ENTERED */
};

struct walk {
	const struct gt_py_layout *l;
	const char *code_type, *interp;
	uint32_t count, limit;
	bool truncated;
	uint32_t calls;				 /* from C, innermost, that have no frame */
	struct raw_frame frame[GT_PY_DEPTH_MAX]; /* innermost first; 12 KiB of stack */
};

/* ---- the chain ------------------------------------------------------------------------------- */

/* False: enough frames. */
static bool keep(struct walk *w, const char *f, const char *code, int64_t instr)
{
	if (w->count == w->limit) {
		w->truncated = true;
		return false;
	}
	w->frame[w->count++] = (struct raw_frame){f, code, instr};
	return true;
}

/* 3.8 to 3.10: each frame is an object and real. */
static bool copy_objects(struct walk *w, const char *ts)
{
	const struct gt_py_layout *l = w->l;
	const char *f;

	for (f = gt_py_ptr(ts, l->ts_frame); f; f = gt_py_ptr(f, l->frame_back)) {
		if (gt_unlikely(!gt_py_plausible(f)))
			return false;
		if (!keep(w, f, gt_py_ptr(f, l->frame_code), gt_py_i32(f, l->frame_instr)))
			break;
	}
	return true;
}

/* The frame kept last, or none yet, is the first of a call from C. */
static void enter(struct walk *w)
{
	if (w->count)
		w->frame[w->count - 1].instr |= ENTERED;
	else
		w->calls++;
}

/* 3.11 on: shims are in between, so the number of steps has its own limit. */
static bool copy_frames(struct walk *w, const char *ts)
{
	const struct gt_py_layout *l = w->l;
	const char *f = gt_py_ptr(ts, l->ts_frame);
	uint32_t steps = 4 * GT_PY_DEPTH_MAX;
	uint8_t owner;

	if (l->chain == GT_PY_CFRAME)
		f = gt_py_plausible(f) ? gt_py_ptr(f, l->cframe_frame) : NULL;
	for (; f; f = gt_py_ptr(f, l->frame_back)) {
		if (gt_unlikely(!gt_py_plausible(f) || !steps--))
			return false;
		owner = (uint8_t)f[l->frame_owner];
		if (l->minor >= 12 && owner >= OWNER_SHIM) {
			if (gt_unlikely(owner > OWNER_LAST))
				return false;
			if (owner == OWNER_SHIM)
				enter(w);
			continue;
		}
		if (!keep(w, f, (const char *)(gt_py_word(f, l->frame_code) & ~3ull),
			  (int64_t)gt_py_word(f, l->frame_instr)))
			break;
		if (l->frame_entry && f[l->frame_entry])
			enter(w);
	}
	return true;
}

/* ---- one frame ------------------------------------------------------------------------------- */

/* Free-threaded 3.14: each thread may run its own copy of the bytecode, number index. */
static const char *bytecode(const struct gt_py_layout *l, const struct raw_frame *r)
{
	const char *own = r->code + l->code_bytecode, *copies;
	int32_t index;

	if (!l->code_tlbc)
		return own;
	index = gt_py_i32(r->frame, l->frame_tlbc);
	copies = gt_py_ptr(r->code, l->code_tlbc);
	if (!gt_py_plausible(copies) || index <= 0 || (uint64_t)index >= gt_py_word(copies, 0))
		return own;
	return gt_py_ptr(copies + 8 * (uint64_t)index, 8);
}

/* Bytes from the start of the bytecode. 3.10 counts instructions of two bytes. */
static int64_t address(const struct gt_py_layout *l, const struct raw_frame *r)
{
	if (l->chain == GT_PY_OBJECTS)
		return l->lines == GT_PY_RANGES ? 2 * r->instr : r->instr;
	return (const char *)(r->instr & ~ENTERED) - bytecode(l, r);
}

/*
 * From 3.11 on: is the frame past its first instructions? One that is still being set up does not
 * count in Python's own tracebacks either; neither does the frame that cleans up after __init__.
 */
static bool complete(const struct gt_py_layout *l, const struct raw_frame *r, int64_t addr)
{
	return !l->code_first_traceable || (uint8_t)r->frame[l->frame_owner] == OWNER_GENERATOR ||
	       addr >= 2 * (int64_t)gt_py_i32(r->code, l->code_first_traceable);
}

/* Until 3.10 each frame is. */
static uint32_t entered(const struct gt_py_layout *l, const struct raw_frame *r)
{
	return l->chain == GT_PY_OBJECTS || r->instr & ENTERED;
}

/* Anything impossible counts as not started. */
static int32_t instruction(const struct gt_py_layout *l, const char *code, int64_t addr)
{
	if (l->lines == GT_PY_LOCATIONS && addr > 2 * (int64_t)gt_py_word(code, l->ob_size))
		return -1;
	return addr < 0 || addr > INT32_MAX ? -1 : (int32_t)addr;
}

enum look { LOOK_FRAME, LOOK_SKIP, LOOK_TORN };

/* From 3.13 on frames may run something that is no code object: there is no line to show. */
static enum look look_at(const struct walk *w, const struct raw_frame *r, struct gt_py_frame *ret)
{
	const struct gt_py_layout *l = w->l;
	int64_t addr;

	if (gt_unlikely(!gt_py_plausible(r->code) ||
			gt_py_ptr(r->code, l->ob_type) != w->code_type))
		return l->minor < 13 ? LOOK_TORN : LOOK_SKIP;
	addr = address(l, r);
	if (!complete(l, r, addr))
		return LOOK_SKIP;
	*ret = (struct gt_py_frame){
		.code = r->code,
		.identity = gt_py_identity(l, r->code, w->interp),
		.addr = instruction(l, r->code, addr),
		.calls = entered(l, r),
	};
	return LOOK_FRAME;
}

/* ---- the last stack -------------------------------------------------------------------------- */

static uint32_t version(const struct gt_py_layout *l, const char *code)
{
	return l->code_version ? (uint32_t)gt_py_i32(code, l->code_version) : 1;
}

/* How many frames, from the outermost on, are those of the last stack. */
static uint32_t compare(const struct walk *w, struct gt_py_last *last, uint64_t ended)
{
	const struct raw_frame *r = &w->frame[w->count];
	const struct gt_py_known *k = last->known;
	uint32_t n = last->count < w->count ? last->count : w->count, i;

	if (last->interp != w->interp || last->ended != ended)
		return 0;
	for (i = 0; i < n; i++, k++) {
		r--;
		if (r->code != k->code || r->instr != k->instr || !k->version ||
		    version(w->l, r->code) != k->version)
			break;
	}
	return i;
}

/*
 * Looks up the frames from the index-th outermost on, and remembers them. A frame that is skipped
 * leaves its call from C to the next one inwards, in the end to none.
 */
static bool extend(struct walk *w, struct gt_py_last *last, uint32_t index, uint32_t *node)
{
	struct gt_py_frame frame;
	const struct raw_frame *r;
	uint32_t calls = 0;
	enum look look;

	for (; index < w->count; index++) {
		r = &w->frame[w->count - 1 - index];
		look = look_at(w, r, &frame);
		if (gt_unlikely(look == LOOK_TORN))
			return false;
		if (look == LOOK_FRAME) {
			frame.calls += calls;
			calls = 0;
			*node = gt_py_node(w->l, *node, &frame);
		} else {
			calls += entered(w->l, r);
		}
		if (gt_unlikely(look == LOOK_FRAME && !*node)) {
			gt_count_lost(GT_LOST_PYTHON);
			return true;
		}
		if (last)
			last->known[index] = (struct gt_py_known){
				.code = r->code,
				.instr = r->instr,
				.version = look == LOOK_FRAME ? version(w->l, r->code) : 0,
				.node = *node,
			};
	}
	w->calls += calls;
	return true;
}

/* 3.8 to 3.11: without a count of ended code objects an address proves nothing. */
static bool comparable(const struct walk *w, uint64_t ended)
{
	return !w->truncated && (w->l->code_version || ended);
}

static bool find_node(struct walk *w, uint32_t *ret_node)
{
	uint64_t ended = w->l->code_version ? 0 : gt_py_ended();
	struct gt_py_last *last = comparable(w, ended) ? gt_python_last() : NULL;
	uint32_t index = last ? compare(w, last, ended) : 0;
	bool sane;

	*ret_node = index ? last->known[index - 1].node : 0;
	if (index == w->count)
		return true;
	if (w->truncated) {
		gt_count_lost(GT_LOST_TRUNCATED);
		*ret_node = gt_py_node_truncated();
	}
	if (last)
		last->count = 0;
	sane = extend(w, last, index, ret_node);
	if (!sane)
		*ret_node = 0;
	if (last && *ret_node) {
		last->count = w->count;
		last->interp = w->interp;
		last->ended = ended;
	}
	return sane;
}

bool gt_py_walk(const struct gt_py_layout *l, const char *code_type, const char *ts,
		uint32_t *ret_node)
{
	struct walk w;

	if (!gt_py_plausible(ts) || gt_py_word(ts, l->ts_thread_id) != (uint64_t)pthread_self())
		return false;
	w.l = l;
	w.code_type = code_type;
	w.interp = gt_py_ptr(ts, l->ts_interp);
	w.count = 0;
	w.limit = gt_py_depth();
	w.calls = 0;
	w.truncated = false;
	if (!(l->chain == GT_PY_OBJECTS ? copy_objects(&w, ts) : copy_frames(&w, ts)))
		return false;
	if (!find_node(&w, ret_node))
		return false;
	if (gt_unlikely(w.calls) && *ret_node)
		*ret_node = gt_py_node_calls(*ret_node, w.calls);
	return true;
}
