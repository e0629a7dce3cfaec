/* SPDX-License-Identifier: MIT */
/*
 * The calling thread's Python stack, without the GIL. Called by gt_where_capture inside hooks, that
 * is, synchronously: the thread is inside a C call of its own, its frames stand still. Never from a
 * signal handler, where a frame may be half made.
 *
 * The thread state is the one that the interpreter keeps for this thread, GIL or not; a thread that
 * Python does not know has none, and no Python stack. A layout is trusted after py_check.c has seen
 * it true once; captures that look wrong all the same are dropped and counted, and too many of them
 * in a row end Python capture in this process: a missing stack is better than a wrong one.
 *
 * Sub-interpreters: from 3.12 on the running one's frames are returned; before, the thread's first
 * thread state is all there is, so only the frames of the interpreter that called are seen.
 */
#include <pthread.h>
#include <string.h>

#include "py.h"

#define DEPTH_MAX	512u /* frames; 12 KiB of stack */
#define TORN_MAX	16u  /* wrong captures in a row */
#define OWNER_SHIM	3u   /* from 3.12 on: this and above are entries from C, without code */
#define OWNER_LAST	4u
#define OWNER_GENERATOR 1u

enum state {
	STATE_ABSENT, /* no interpreter found so far */
	STATE_FOUND,  /* there is one whose layout is known, not yet tested on a frame */
	STATE_TRUSTED,
	STATE_REFUSED,
};

static struct {
	uint32_t state;	  /* enum state, stored last */
	uint32_t looking; /* a thread is searching */
	struct gt_lock testing;
	uint32_t captures; /* while absent */
	uint32_t torn;	   /* in a row */
	uint32_t told;	   /* the file knows version and refusal */
	struct gt_py_api api;
	const struct gt_py_layout *layout;
	const char *version, *refused;
} python;

struct walk {
	uint32_t count, limit;
	bool truncated, torn;
	struct gt_py_frame frame[DEPTH_MAX]; /* innermost first */
};

/* ---- walking ------------------------------------------------------------------------------- */

/* Bytes from the start of the code to the instruction; anything impossible means "not started". */
static int32_t instruction(const struct gt_py_layout *l, const char *code, int64_t addr)
{
	if (l->lines == GT_PY_LOCATIONS && addr > 2 * (int64_t)gt_py_word(code, l->ob_size))
		return -1;
	return addr < 0 || addr > INT32_MAX ? -1 : (int32_t)addr;
}

static bool is_code(const struct gt_py_layout *l, const char *p)
{
	return gt_py_plausible(p) && gt_py_ptr(p, l->ob_type) == python.api.code_type;
}

/* False: enough frames. */
static bool keep(struct walk *w, const struct gt_py_layout *l, const char *code, int64_t addr,
		 const char *interp)
{
	if (w->count == w->limit) {
		w->truncated = true;
		return false;
	}
	w->frame[w->count++] = (struct gt_py_frame){
		.code = code,
		.identity = gt_py_identity(l, code, interp),
		.addr = instruction(l, code, addr),
	};
	return true;
}

/* 3.8 to 3.10: each frame is an object and real. 3.10 counts instructions, not bytes. */
static void walk_objects(struct walk *w, const struct gt_py_layout *l, const char *ts)
{
	const char *f, *code, *interp = gt_py_ptr(ts, l->ts_interp);
	int64_t last;

	for (f = gt_py_ptr(ts, l->ts_frame); f; f = gt_py_ptr(f, l->frame_back)) {
		code = gt_py_plausible(f) ? gt_py_ptr(f, l->frame_code) : NULL;
		if (gt_unlikely(!is_code(l, code))) {
			w->torn = true;
			return;
		}
		last = gt_py_i32(f, l->frame_instr);
		if (!keep(w, l, code, l->lines == GT_PY_RANGES ? 2 * last : last, interp))
			return;
	}
}

/* Free-threaded 3.14: each thread may run its own copy of the bytecode, number index. */
static const char *bytecode(const struct gt_py_layout *l, const char *f, const char *code)
{
	const char *copies;
	int32_t index;

	if (!l->code_tlbc)
		return code + l->code_bytecode;
	index = gt_py_i32(f, l->frame_tlbc);
	copies = gt_py_ptr(code, l->code_tlbc);
	if (!gt_py_plausible(copies) || index <= 0 || (uint64_t)index >= gt_py_word(copies, 0))
		return code + l->code_bytecode;
	return gt_py_ptr(copies + 8 * (uint64_t)index, 8);
}

/*
 * Is the frame past its first instructions? One that is still being set up does not count in
 * Python's own tracebacks either; neither does the frame that cleans up after __init__.
 */
static bool complete(const struct gt_py_layout *l, const char *f, const char *code, int64_t addr)
{
	uint8_t owner = (uint8_t)f[l->frame_owner];

	return owner == OWNER_GENERATOR ||
	       addr >= 2 * (int64_t)gt_py_i32(code, l->code_first_traceable);
}

/* One frame of 3.11 or later; false ends the walk. */
static bool visit(struct walk *w, const struct gt_py_layout *l, const char *f, const char *interp)
{
	const char *code;
	uint8_t owner;
	int64_t addr;

	owner = (uint8_t)f[l->frame_owner];
	if (l->minor >= 12 && owner >= OWNER_SHIM) {
		w->torn = owner > OWNER_LAST;
		return !w->torn;
	}
	code = (const char *)(gt_py_word(f, l->frame_code) & ~3ull);
	if (gt_unlikely(!is_code(l, code))) {
		w->torn = l->minor < 13; /* later ones may run other things: no Python line */
		return !w->torn;
	}
	addr = gt_py_ptr(f, l->frame_instr) - bytecode(l, f, code);
	return !complete(l, f, code, addr) || keep(w, l, code, addr, interp);
}

/* 3.11 on. Shims are in between: the number of visits has its own limit. */
static void walk_frames(struct walk *w, const struct gt_py_layout *l, const char *ts)
{
	const char *f = gt_py_ptr(ts, l->ts_frame), *interp = gt_py_ptr(ts, l->ts_interp);
	uint32_t visits = 4 * DEPTH_MAX;

	if (l->chain == GT_PY_CFRAME)
		f = gt_py_plausible(f) ? gt_py_ptr(f, l->cframe_frame) : NULL;
	for (; f; f = gt_py_ptr(f, l->frame_back)) {
		if (gt_unlikely(!gt_py_plausible(f) || !visits--)) {
			w->torn = true;
			return;
		}
		if (!visit(w, l, f, interp))
			return;
	}
}

/* ---- set-up -------------------------------------------------------------------------------- */

static void refuse(const char *reason)
{
	python.refused = reason;
	gt_store(&python.told, 0);
	gt_store(&python.state, STATE_REFUSED);
}

static void look(void)
{
	const char *reason;

	if (!gt_py_find(&python.api))
		return;
	python.version = python.api.version();
	python.layout = gt_py_layout_find(python.version, &reason);
	if (python.layout)
		reason = gt_py_layout_compare(python.layout, python.api.runtime);
	if (!reason)
		reason = gt_py_check_types(python.layout, &python.api);
	if (reason) {
		refuse(reason);
		return;
	}
	gt_py_watch(python.layout, &python.api);
	gt_store(&python.state, STATE_FOUND);
}

static bool begin(void)
{
	return !__atomic_exchange_n(&python.looking, 1, __ATOMIC_ACQUIRE);
}

static void end(void)
{
	gt_store(&python.looking, 0);
}

void gt_python_start(void)
{
	if (gt_load(&python.state) != STATE_ABSENT || !begin())
		return;
	if (gt_load(&python.state) == STATE_ABSENT)
		look();
	end();
}

/* A program may load Python late. Looking takes the loader's lock, so ever more seldom. */
static void look_again(void)
{
	uint32_t n = __atomic_add_fetch(&python.captures, 1, __ATOMIC_RELAXED);

	if (n >= 64 && !(n & (n - 1)))
		gt_python_start();
}

/* The first thread with a frame tests the layout: microseconds, and nothing foreign is called. */
static void test(const char *ts)
{
	const char *reason = NULL;
	bool proved = false;

	gt_lock(&python.testing);
	if (python.state == STATE_FOUND)
		reason = gt_py_check_frames(python.layout, &python.api, ts, &proved);
	if (reason)
		refuse(reason);
	else if (proved)
		gt_store(&python.state, STATE_TRUSTED);
	gt_unlock(&python.testing);
}

/* "3.13.5", with a t behind it for a free-threaded build, as in the name of its executable. */
static void tell_version(void)
{
	char text[32];
	size_t n = strcspn(python.version, " ");

	if (n > sizeof(text) - 1)
		n = sizeof(text) - 1;
	memcpy(text, python.version, n);
	if (strstr(python.version, "free-threading"))
		text[n++] = 't';
	gt_def_info("python", text, n);
}

static void tell(void)
{
	if (__atomic_exchange_n(&python.told, 1, __ATOMIC_ACQ_REL))
		return;
	tell_version();
	if (python.refused)
		gt_def_info("python.refused", python.refused, strlen(python.refused));
}

/* ---- capture ------------------------------------------------------------------------------- */

/* In a process that is finalising, thread states are freed while threads still refer to them. */
static const char *thread_state(void)
{
	if (!python.api.is_initialized() || python.api.is_finalizing())
		return NULL;
	return python.api.this_thread_state();
}

static bool walk(struct walk *w, const struct gt_py_layout *l, const char *ts)
{
	uint32_t depth = gt_options.depth;

	w->count = 0;
	w->limit = depth && depth < DEPTH_MAX ? depth : DEPTH_MAX;
	w->truncated = false;
	w->torn =
		!gt_py_plausible(ts) || gt_py_word(ts, l->ts_thread_id) != (uint64_t)pthread_self();
	if (w->torn)
		return false;
	if (l->chain == GT_PY_OBJECTS)
		walk_objects(w, l, ts);
	else
		walk_frames(w, l, ts);
	return !w->torn;
}

static void count_torn(void)
{
	gt_count_lost(GT_LOST_PYTHON);
	if (__atomic_add_fetch(&python.torn, 1, __ATOMIC_RELAXED) >= TORN_MAX)
		refuse("frames are not as expected");
}

static uint32_t intern(struct walk *w, const struct gt_py_layout *l)
{
	uint32_t i, node = 0;

	if (w->truncated) {
		gt_count_lost(GT_LOST_TRUNCATED);
		node = gt_py_node_truncated();
	}
	for (i = w->count; i-- > 0;) {
		node = gt_py_node(l, node, &w->frame[i]);
		if (gt_unlikely(!node)) {
			gt_count_lost(GT_LOST_PYTHON);
			return 0;
		}
	}
	return node;
}

static uint32_t capture(void)
{
	const char *ts = thread_state();
	struct walk w;

	if (!ts)
		return 0;
	if (gt_unlikely(gt_load(&python.state) == STATE_FOUND))
		test(ts);
	if (gt_unlikely(gt_load(&python.state) != STATE_TRUSTED)) {
		if (python.refused)
			gt_count_lost(GT_LOST_PYTHON);
		return 0;
	}
	if (gt_unlikely(!walk(&w, python.layout, ts))) {
		count_torn();
		return 0;
	}
	if (gt_unlikely(gt_load_relaxed(&python.torn)))
		gt_store_relaxed(&python.torn, 0);
	return intern(&w, python.layout);
}

uint32_t gt_python_capture(void)
{
	uint32_t state = gt_load(&python.state);

	if (state == STATE_ABSENT) {
		look_again();
		return 0;
	}
	if (gt_unlikely(!gt_load_relaxed(&python.told)))
		tell();
	return capture();
}

void gt_python_fork_child(void)
{
	gt_py_nodes_fork_child();
	python.looking = 0;
	python.testing = (struct gt_lock){0};
	python.told = 0;
}
