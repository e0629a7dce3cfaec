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
#include <string.h>

#include "py.h"

#define TORN_MAX 16u /* wrong captures in a row */

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

/* ---- set-up -------------------------------------------------------------------------------- */

static void refuse(const char *reason)
{
	python.refused = reason;
	gt_store(&python.told, 0);
	gt_store(&python.state, STATE_REFUSED);
	gt_doctor_python(python.version, "refused", reason);
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
	gt_doctor_python(python.version, "found", "");
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
	if (!reason && proved)
		gt_doctor_python(python.version, "read", "");
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

static void count_torn(void)
{
	gt_count_lost(GT_LOST_PYTHON);
	if (__atomic_add_fetch(&python.torn, 1, __ATOMIC_RELAXED) >= TORN_MAX)
		refuse("frames are not as expected");
}

static uint32_t capture(void)
{
	const char *ts = thread_state();
	uint32_t node;

	if (!ts)
		return 0;
	if (gt_unlikely(gt_load(&python.state) == STATE_FOUND))
		test(ts);
	if (gt_unlikely(gt_load(&python.state) != STATE_TRUSTED)) {
		if (python.refused)
			gt_count_lost(GT_LOST_PYTHON);
		return 0;
	}
	if (gt_unlikely(!gt_py_walk(python.layout, python.api.code_type, ts, &node))) {
		count_torn();
		return 0;
	}
	if (gt_unlikely(gt_load_relaxed(&python.torn)))
		gt_store_relaxed(&python.torn, 0);
	return node;
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
