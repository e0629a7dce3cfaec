/* SPDX-License-Identifier: MIT */
/*
 * Marks, ranges, steps and windows: what a program may tell gputrace about itself. Every call does
 * nothing when libgputrace.so is not preloaded; there is nothing to link with. For C and C++; other
 * languages call the functions of the same names in the running process (Python: ctypes.CDLL(None)).
 *
 *	gputrace_step();                 a step begins, and with it the one before has ended: 1, 2, 3 ...
 *	gputrace_push("forward");        a range of the calling thread begins,
 *	gputrace_pop();                  ... and the thread's innermost range ends
 *	gputrace_mark("epoch 3");        a moment
 *	gputrace_window_begin("eval");   a stretch of the whole process, over all threads, begins,
 *	gputrace_window_end();           ... and the one begun last ends
 *
 * Names are copied. Numbers in a name are shown and never counted with; equal names are instances
 * of one range, so names with a different number each time are better left without it.
 */
#ifndef GPUTRACE_GPUTRACE_H
#define GPUTRACE_GPUTRACE_H

#ifdef __cplusplus
extern "C" {
#endif

enum gputrace_event_kind {
	GPUTRACE_MARK = 0,
	GPUTRACE_PUSH = 1,
	GPUTRACE_POP = 2,
	GPUTRACE_STEP = 3,
	GPUTRACE_WINDOW_BEGIN = 4,
	GPUTRACE_WINDOW_END = 5,
};

#ifndef GPUTRACE_EVENT_KINDS_ONLY

#if defined(__PIC__) || defined(__PIE__)
/* Undefined and weak: its address is NULL without the preload. */
__attribute__((weak)) void gputrace_event(int kind, const char *name);

static inline void gputrace_tell_(int kind, const char *name)
{
	if (gputrace_event)
		gputrace_event(kind, name);
}
#else
/* In code that cannot move the linker settles undefined weak symbols as NULL for good. */
#include <dlfcn.h>

static inline void gputrace_tell_(int kind, const char *name)
{
	static void (*event)(int, const char *);
	static int looked;

	if (!looked) {
		*(void **)&event = dlsym((void *)0 /* RTLD_DEFAULT */, "gputrace_event");
		looked = 1;
	}
	if (event)
		event(kind, name);
}
#endif

static inline void gputrace_mark(const char *name)
{
	gputrace_tell_(GPUTRACE_MARK, name);
}

static inline void gputrace_push(const char *name)
{
	gputrace_tell_(GPUTRACE_PUSH, name);
}

static inline void gputrace_pop(void)
{
	gputrace_tell_(GPUTRACE_POP, (const char *)0);
}

static inline void gputrace_step(void)
{
	gputrace_tell_(GPUTRACE_STEP, (const char *)0);
}

static inline void gputrace_window_begin(const char *name)
{
	gputrace_tell_(GPUTRACE_WINDOW_BEGIN, name);
}

static inline void gputrace_window_end(void)
{
	gputrace_tell_(GPUTRACE_WINDOW_END, (const char *)0);
}

#endif

#ifdef __cplusplus
}
#endif

#endif
