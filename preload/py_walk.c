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

/* 3.8 to 3.10: each frame is an object and real. */
static bool copy_objects(struct walk *w, const char *ts)
{
	const struct gt_py_layout *l = w->l;
	struct raw_frame *r = w->frame, *end = r + w->limit;
	const char *f = gt_py_ptr(ts, l->ts_frame);

	for (; f && r < end; f = gt_py_ptr(f, l->frame_back)) {
		if (gt_unlikely(!gt_py_plausible(f)))
			return false;
		*r++ = (struct raw_frame){
			.frame = f,
			.code = gt_py_ptr(f, l->frame_code),
			.instr = gt_py_i32(f, l->frame_instr),
		};
	}
	w->truncated = f != NULL;
	w->count = (uint32_t)(r - w->frame);
	return true;
}

/* The frame kept last, or none yet, is the first of a call from C. end: of those kept. */
static inline void enter(struct walk *w, struct raw_frame *end)
{
	if (end > w->frame)
		end[-1].instr |= ENTERED;
	else
		w->calls++;
}

/*
 * 3.11 on: shims are in between, so the number of steps has its own limit. What the loop needs of
 * the layout is in variables: a load of a frame is not one that the compiler moves others across.
 */
static bool copy_frames(struct walk *w, const char *ts)
{
	const struct gt_py_layout *l = w->l;
	const uint16_t back = l->frame_back, owner_at = l->frame_owner, entry_at = l->frame_entry;
	const uint16_t code_at = l->frame_code, instr_at = l->frame_instr;
	const unsigned shim = l->minor >= 12 ? OWNER_SHIM : UINT8_MAX + 1;
	struct raw_frame *r = w->frame, *end = r + w->limit;
	const char *f = gt_py_ptr(ts, l->ts_frame);
	uint32_t steps = 4 * GT_PY_DEPTH_MAX;

	if (l->chain == GT_PY_CFRAME)
		f = gt_py_plausible(f) ? gt_py_ptr(f, l->cframe_frame) : NULL;
	for (; f; f = gt_py_ptr(f, back)) {
		if (gt_unlikely(!gt_py_plausible(f) || !steps--))
			return false;
		if (gt_unlikely((uint8_t)f[owner_at] >= shim)) {
			if ((uint8_t)f[owner_at] > OWNER_LAST)
				return false;
			if ((uint8_t)f[owner_at] == OWNER_SHIM)
				enter(w, r);
			continue;
		}
		if (gt_unlikely(r == end)) {
			w->truncated = true;
			break;
		}
		*r++ = (struct raw_frame){
			.frame = f,
			.code = (const char *)(gt_py_word(f, code_at) & ~3ull),
			.instr = (int64_t)gt_py_word(f, instr_at),
		};
		if (gt_unlikely(entry_at && f[entry_at]))
			enter(w, r);
	}
	w->count = (uint32_t)(r - w->frame);
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

/* Is it the code object that it was? */
static inline bool same_code(const struct gt_py_known *k, const char *code, uint16_t version_at)
{
	if (code != k->code || !k->version)
		return false;
	return !version_at || (uint32_t)gt_py_i32(code, version_at) == k->version;
}

static bool usable(const struct gt_py_last *last, const char *interp, uint64_t ended)
{
	return last && last->interp == interp && last->ended == ended;
}

/* How many frames, from the outermost on, are those of the last stack. */
static uint32_t compare(const struct walk *w, struct gt_py_last *last, uint64_t ended)
{
	const struct raw_frame *r = &w->frame[w->count];
	const struct gt_py_known *k = last->known;
	uint32_t n = last->count < w->count ? last->count : w->count, i;
	const uint16_t version_at = w->l->code_version;

	if (!usable(last, w->interp, ended))
		return 0;
	for (i = 0; i < n; i++, k++) {
		r--;
		if (r->instr != k->instr || !same_code(k, r->code, version_at))
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

/*
 * Is this the last stack again, as it is in a loop? Then it is not worth copying. 3.11 on; the same
 * questions as in copy_frames and compare, but from the innermost frame on: where the answer is no,
 * it is known after one frame as a rule. One copy of it for 3.11, which has no shims, and one for
 * all later ones, where code objects have versions.
 */
static inline __attribute__((always_inline)) bool
is_last(const struct gt_py_layout *l, const char *f, const struct gt_py_last *last, bool shims)
{
	const uint16_t back = l->frame_back, owner_at = l->frame_owner, entry_at = l->frame_entry;
	const uint16_t code_at = l->frame_code, instr_at = l->frame_instr;
	const struct gt_py_known *k = &last->known[last->count - 1];
	uint32_t steps = 4 * GT_PY_DEPTH_MAX; /* between frames */
	int64_t now;

	if (!gt_py_plausible(f) || (shims && (uint8_t)f[owner_at] >= OWNER_SHIM))
		return false;
	for (;; k--) {
		const char *code = (const char *)(gt_py_word(f, code_at) & ~3ull);

		if (!same_code(k, code, shims ? l->code_version : 0))
			return false;
		now = (int64_t)gt_py_word(f, instr_at);
		if (!shims)
			now |= entry_at && f[entry_at];
		f = gt_py_ptr(f, back);
		while (shims && gt_py_plausible(f) &&
		       gt_unlikely((uint8_t)f[owner_at] >= OWNER_SHIM)) {
			if ((uint8_t)f[owner_at] > OWNER_LAST || !steps--)
				return false;
			now |= (uint8_t)f[owner_at] == OWNER_SHIM;
			f = gt_py_ptr(f, back);
		}
		if (now != k->instr)
			return false;
		if (k == last->known)
			return !f;
		if (gt_unlikely(!gt_py_plausible(f)))
			return false;
	}
}

static bool find_last(const struct gt_py_layout *l, const char *ts, uint32_t *ret_node)
{
	uint64_t ended = l->code_version ? 0 : gt_py_ended();
	const struct gt_py_last *last;
	const char *f;

	if (l->chain == GT_PY_OBJECTS || (!l->code_version && !ended))
		return false;
	last = gt_python_last();
	if (!usable(last, gt_py_ptr(ts, l->ts_interp), ended) || !last->count)
		return false;
	f = gt_py_ptr(ts, l->ts_frame);
	if (l->chain == GT_PY_CFRAME)
		f = gt_py_plausible(f) ? gt_py_ptr(f, l->cframe_frame) : NULL;
	if (!(l->minor >= 12 ? is_last(l, f, last, true) : is_last(l, f, last, false)))
		return false;
	*ret_node = last->known[last->count - 1].node;
	return true;
}

bool gt_py_walk(const struct gt_py_layout *l, const char *code_type, const char *ts,
		uint32_t *ret_node)
{
	struct walk w;

	if (!gt_py_plausible(ts) || gt_py_word(ts, l->ts_thread_id) != (uint64_t)pthread_self())
		return false;
	if (find_last(l, ts, ret_node))
		return true;
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
