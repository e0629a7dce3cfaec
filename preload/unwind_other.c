/* SPDX-License-Identifier: MIT */
/*
 * Complete unwinders that are not ours: libgcc's _Unwind_Backtrace and libunwind's unw_backtrace.
 * For stacks with a frame that the own walker leaves alone (signal handlers, odd registers, code
 * that was announced by __register_frame), and by wish. Neither is linked: libunwind beside libgcc
 * in the global scope would take over the exceptions of the program.
 *
 * Entry points are found when recording starts, in what is loaded. Where there is nothing a library
 * is opened, privately and behind the start: the loader's locks are not for a moment when one of
 * ours is held, and a dlopen is not for an allocation.
 *
 * libgcc comes first: it is always right, if slow. libunwind keeps rules of objects that were
 * replaced at the same address, so it only serves where there is no libgcc.
 *
 * Both walk from here outwards; the frames inside the hook are cut off. libgcc may take the
 * loader's lock and that of registered frames: the one exception to "no foreign locks", none of
 * ours is held.
 */
#include <dlfcn.h>
#include <unwind.h> /* the compiler's, for types only */
#include "elf.h"
#include "libc_old.h"
#include "unwind.h"

static struct {
	_Unwind_Reason_Code (*backtrace)(_Unwind_Trace_Fn, void *);
	_Unwind_Ptr (*pc)(struct _Unwind_Context *, int *);
	_Unwind_Word (*cfa)(struct _Unwind_Context *);
} libgcc;

static int (*unw_backtrace)(void **, int);

static bool find_libgcc(void)
{
	static const char library[] = "libgcc_s.so.1";
	void *backtrace = gt_elf_in(library, "_Unwind_Backtrace");

	*(void **)&libgcc.pc = gt_elf_in(library, "_Unwind_GetIPInfo");
	*(void **)&libgcc.cfa = gt_elf_in(library, "_Unwind_GetCFA");
	if (backtrace && libgcc.pc && libgcc.cfa)
		gt_store((void **)&libgcc.backtrace, backtrace);
	return gt_load(&libgcc.backtrace);
}

static bool find_libunwind(void)
{
	gt_store((void **)&unw_backtrace, gt_elf_in("libunwind.so.8", "unw_backtrace"));
	return gt_load(&unw_backtrace);
}

static bool open_library(const char *name)
{
	return gt_dlopen(name, RTLD_LAZY | RTLD_LOCAL);
}

void gt_other_start(void)
{
	if (gt_options.unwinder == GT_UNWIND_LIBUNWIND)
		find_libunwind();
	else if (gt_options.unwinder != GT_UNWIND_OWN)
		find_libgcc();
}

void gt_other_open(void)
{
	uint32_t wish = gt_options.unwinder;

	if (wish == GT_UNWIND_OWN || libgcc.backtrace || unw_backtrace)
		return;
	if (wish != GT_UNWIND_LIBUNWIND && open_library("libgcc_s.so.1") && find_libgcc())
		return;
	if (wish != GT_UNWIND_LIBGCC && open_library("libunwind.so.8"))
		find_libunwind();
}

/* ---- libgcc ---------------------------------------------------------------------------------- */

struct trail {
	struct gt_stack *s;
	const struct gt_regs *from;
	bool begun; /* the hook's own frames are behind */
	enum gt_unwound how;
};

static bool push(struct gt_stack *s, uint64_t pc)
{
	if (s->pushed == s->depth - 1)
		return false;
	s->scratch[s->pushed++].pc = pc;
	return true;
}

/* libgcc ends a whole stack with a frame at 0, an incomplete one without. */
static _Unwind_Reason_Code collect(struct _Unwind_Context *context, void *arg)
{
	struct trail *t = arg;
	int interrupted = 0;
	uint64_t pc = libgcc.pc(context, &interrupted);

	if (!t->begun) {
		if (pc != t->from->pc || libgcc.cfa(context) != t->from->sp)
			return _URC_NO_REASON;
		t->begun = true;
		t->s->pushed = 0;
	}
	if (!pc) {
		t->how = GT_UNWOUND;
		return _URC_NO_REASON;
	}
	/* readers look up pc - 1; the instruction that a signal interrupted is pc itself */
	if (push(t->s, pc + !!interrupted))
		return _URC_NO_REASON;
	t->how = GT_UNWOUND_CUT;
	return _URC_END_OF_STACK;
}

static bool walk_libgcc(struct gt_stack *s, const struct gt_regs *regs, enum gt_unwound *ret_how)
{
	struct trail t = {s, regs, false, GT_UNWOUND_STOPPED};

	libgcc.backtrace(collect, &t);
	if (t.begun)
		*ret_how = t.how;
	return t.begun;
}

/* ---- libunwind ------------------------------------------------------------------------------- */

/* The record is void by now: its frames hold the list for a moment. */
static bool walk_libunwind(struct gt_stack *s, const struct gt_regs *regs, enum gt_unwound *ret_how)
{
	void **pc = (void **)s->frames;
	int n = unw_backtrace(pc, (int)(s->depth * sizeof(*s->frames) / sizeof(*pc))), i = 0;

	while (i < n && (uint64_t)pc[i] != regs->pc)
		i++;
	if (i >= n)
		return false;
	s->pushed = 0;
	*ret_how = gt_rule_is_end((uint64_t)pc[n - 1]) ? GT_UNWOUND : GT_UNWOUND_STOPPED;
	for (; i < n; i++)
		if (!push(s, (uint64_t)pc[i]))
			*ret_how = GT_UNWOUND_CUT;
	return true;
}

bool gt_other_walk(struct gt_stack *s, const struct gt_regs *regs, enum gt_unwound *ret_how)
{
	s->n = 0;
	if (gt_load(&libgcc.backtrace))
		return walk_libgcc(s, regs, ret_how);
	return gt_load(&unw_backtrace) && walk_libunwind(s, regs, ret_how);
}
