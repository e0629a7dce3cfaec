/* SPDX-License-Identifier: MIT */
/*
 * The capture of a stack, called by every hook that records, with no lock of ours held. Native
 * frames become a node here; the state that a thread needs for it lives in one mapping of its own
 * behind one TLS pointer, made at its first capture and given back by the destructor of a pthread
 * key.
 */
#include <string.h>
#include "libc_old.h"
#include "py.h"
#include "unwind.h"

GT_TLS struct gt_stack *mine;
GT_TLS int mine_of; /* process in which it was made: a forked child has lost the mapping */

static int process; /* 0 = not started */
static pthread_key_t key;
static bool have_key;

/*
 * Destructors of other keys may allocate device memory after this one has run: they get a new
 * mapping, and this runs once more.
 */
static void thread_ends(void *stack)
{
	struct gt_stack *s = stack;

	if (s != mine || mine_of != gt_pid())
		return;
	mine = NULL;
	gt_unmap(s, s->mapped);
}

/* At load time, while keys are few: glibc allocates when a thread first sets one beyond the 32nd.
 */
__attribute__((constructor)) static void make_key(void)
{
	have_key = !gt_thread_key(&key, thread_ends);
}

static struct gt_stack *new_stack(void)
{
	uint32_t depth = gt_options.depth + 1;
	size_t native =
		sizeof(struct gt_stack) + depth * (2 * sizeof(struct gt_frame) + sizeof(uint64_t));
	size_t bytes = native + gt_py_last_bytes();
	struct gt_stack *s = have_key ? gt_map(bytes) : NULL;

	if (!s)
		return NULL;
	s->mapped = bytes;
	s->depth = depth;
	s->frames = (struct gt_frame *)(s + 1);
	s->scratch = s->frames + depth;
	s->chain = (uint64_t *)(s->scratch + depth);
	s->python = (struct gt_py_last *)(s->chain + depth);
	if (gt_thread_set(key, s)) {
		gt_unmap(s, bytes);
		return NULL;
	}
	mine = s;
	mine_of = process;
	return s;
}

static struct gt_stack *my_stack(void)
{
	if (gt_unlikely(!process))
		return NULL;
	return gt_likely(mine && mine_of == process) ? mine : new_stack();
}

struct gt_py_last *gt_python_last(void)
{
	struct gt_stack *s = my_stack();

	return s ? s->python : NULL;
}

/* ---- from a walk to a node ------------------------------------------------------------------- */

/* Incomplete stacks get a root of their own, so that no reader takes their outermost frame for
 * main. */
static uint32_t put_marker(struct gt_stack *s, uint32_t kept, uint64_t marker)
{
	uint32_t room = s->depth - 1 - s->pushed, n = kept < room ? kept : room;

	memmove(s->frames + 1, s->frames + kept - n, n * sizeof(*s->frames));
	s->frames[0].pc = marker;
	gt_chain_extend(s->frames, s->chain, 0, n + 1);
	return n + 1;
}

/* The new inner frames behind the kept outer ones. */
static uint32_t append(struct gt_stack *s, uint32_t kept)
{
	uint32_t i, n = kept + s->pushed;

	for (i = 0; i < s->pushed; i++)
		s->frames[n - 1 - i] = s->scratch[i];
	gt_chain_extend(s->frames, s->chain, kept, n);
	return n;
}

static uint64_t marker_of(enum gt_unwound how)
{
	return how == GT_UNWOUND ? 0 : how == GT_UNWOUND_CUT ? GT_PC_TRUNCATED : GT_PC_INCOMPLETE;
}

/*
 * Only a stack that is whole and that the own walker made may serve the next capture: the end of a
 * cut one says nothing of what is beyond, and other unwinders do not tell where they read.
 */
static uint32_t intern(struct gt_stack *s, uint32_t kept, enum gt_unwound how, bool own)
{
	uint64_t marker;
	uint32_t n;

	if (kept + s->pushed > s->depth - 1)
		how = GT_UNWOUND_CUT;
	if (how == GT_UNWOUND_CUT)
		gt_count_lost(GT_LOST_TRUNCATED);
	marker = marker_of(how);
	n = append(s, marker ? put_marker(s, kept, marker) : kept);
	s->node = gt_nodes_intern(s->frames, s->chain, n);
	s->n = own && !marker && s->node && !gt_modules_unsettled() ? n : 0;
	return s->node;
}

/* The own walker marks objects as seen; for frames from elsewhere it is done here. */
static void see_modules(const struct gt_stack *s)
{
	struct gt_module module;
	uint32_t i;

	for (i = 0; i < s->pushed; i++)
		gt_module_find(s->scratch[i].pc - 1, &module);
}

static uint32_t capture(struct gt_stack *s, const struct gt_regs *regs)
{
	bool own = gt_options.unwinder == GT_UNWIND_AUTO || gt_options.unwinder == GT_UNWIND_OWN;
	enum gt_unwound how = GT_UNWOUND_OTHER;
	uint32_t kept = 0;

	s->pushed = 0;
	if (own)
		how = gt_walk(s, regs, &kept);
	if (how == GT_UNWOUND && !s->pushed && kept && kept == s->n)
		return s->node;
	if (how == GT_UNWOUND_OTHER && gt_other_walk(s, regs, &how)) {
		own = false;
		see_modules(s);
	}
	return intern(s, kept, how, own);
}

static uint32_t native(const struct gt_regs *regs)
{
	struct gt_stack *s = my_stack();
	uint32_t node = 0;

	if (s && !s->busy) {
		s->busy = true;
		node = capture(s, regs);
		s->busy = false;
	}
	if (gt_unlikely(!node))
		gt_count_lost(GT_LOST_STACKS);
	return node;
}

struct gt_where gt_where_walk(const struct gt_regs *regs)
{
	struct gt_where where = {0, 0};

	if (gt_options.stacks & GT_STACKS_NATIVE)
		where.native = native(regs);
	if (gt_options.stacks & GT_STACKS_PYTHON)
		where.python = gt_python_capture();
	return where;
}

bool gt_stacks_running(void)
{
	return process && process == gt_pid();
}

void gt_stacks_start(void)
{
	if (gt_options.stacks & GT_STACKS_NATIVE)
		gt_other_start();
	if (gt_options.stacks & GT_STACKS_PYTHON)
		gt_python_start();
	process = gt_pid();
}

void gt_stacks_open(void)
{
	if (gt_options.stacks & GT_STACKS_NATIVE)
		gt_other_open();
}

void gt_stacks_fork_child(void)
{
	gt_rules_forget();
	gt_modules_forget();
	gt_nodes_forget();
	gt_python_fork_child();
	process = gt_pid();
}
