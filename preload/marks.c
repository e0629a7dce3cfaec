/* SPDX-License-Identifier: MIT */
/*
 * What the program says of itself: marks, ranges, steps, windows, through gputrace.h or NVTX
 * (hook_nvtx.c). Recorded by lane.c. Called by the program at any time in any thread, also where
 * CUDA is never used: a mark opens no file.
 *
 * Until the first CUDA event they are put aside, at most 256: what matters of them is which ranges
 * are open, and which step runs, when the first memory is asked for. A range that has begun and
 * ended by then has held nothing, so it is taken out again; what comes beyond the limit is counted.
 * Each thread tells its own when recording has begun (the thread that begins it, at once; others at
 * their next mark), because an event belongs to the thread that records it.
 */
#include <string.h>
#define GPUTRACE_EVENT_KINDS_ONLY
#include <gputrace/gputrace.h>
#include "hook.h"

#define NOTE_BYTES  (256u << 10) /* of all notes: untouched pages cost nothing */
#define NOTE_CHAINS 1024u
#define MAX_EARLY   256u
#define MAX_WINDOWS 64u
#define NAME_LIMIT  1024u /* of an early mark's name */

/* ---- notes ----------------------------------------------------------------------------------- */

/*
 * Texts that outlive the recorder of a process: in the library's own memory, so that a forked child
 * keeps those whose addresses the program holds. Only ever added, without a lock, since a thread
 * that holds one may not exist in the child; two threads may add the same text, which then has two
 * notes.
 */
static union {
	char bytes[NOTE_BYTES];
	uint64_t align;
} notes;
static uint32_t notes_used;
static const struct gt_note *chains[NOTE_CHAINS];
static const union {
	struct gt_note note;
	char zeros[sizeof(struct gt_note) + 8]; /* an empty, ended text */
} no_note;

static uint32_t chain_of(const char *text, size_t length)
{
	uint32_t hash = (uint32_t)length;

	while (length--)
		hash = (hash ^ (unsigned char)*text++) * 0x01000193u;
	return hash % NOTE_CHAINS;
}

static struct gt_note *new_note(const char *text, size_t length)
{
	uint32_t size = (uint32_t)(sizeof(struct gt_note) + length + 8) & ~7u;
	uint32_t at = gt_load_relaxed(&notes_used);
	struct gt_note *note;

	do {
		if (length > NAME_LIMIT || at + size > NOTE_BYTES)
			return NULL;
	} while (!__atomic_compare_exchange_n(&notes_used, &at, at + size, true, __ATOMIC_RELAXED,
					      __ATOMIC_RELAXED));
	note = (struct gt_note *)(notes.bytes + at);
	note->length = (uint32_t)length;
	memcpy(note->text, text, length);
	return note;
}

const struct gt_note *gt_note(const char *text, size_t length)
{
	const struct gt_note **head = &chains[text ? chain_of(text, length) : 0], *old;
	struct gt_note *note;

	if (!text || !length)
		return &no_note.note;
	old = gt_load(head);
	for (const struct gt_note *n = old; n; n = n->next)
		if (n->length == length && !memcmp(n->text, text, length))
			return n;
	note = new_note(text, length);
	if (!note)
		return &no_note.note;
	do {
		note->next = old;
	} while (!__atomic_compare_exchange_n(head, &old, note, true, __ATOMIC_RELEASE,
					      __ATOMIC_RELAXED));
	return note;
}

/* ---- recording ------------------------------------------------------------------------------- */

struct early {
	int tid;
	enum gt_op op;
	uint32_t step;
	const struct gt_note *domain; /* NULL = gputrace.h */
	const struct gt_note *name;
	uint64_t range;
};

static struct { /* of the process pid; a child starts its own */
	struct gt_lock lock;
	int pid;
	uint32_t steps;
	uint64_t ranges; /* numbers given */
	uint32_t early_count, early_lost;
	struct early early[MAX_EARLY];
	uint32_t depth; /* of windows, those beyond the limit included */
	uint64_t windows[MAX_WINDOWS];
} marks;
GT_TLS bool inside; /* a signal handler finds its own thread here */

static uint64_t source_of(const struct gt_note *domain)
{
	if (!domain)
		return GT_SOURCE_API;
	return GT_SOURCE_NVTX(domain->length ? gt_def_label(domain->text, domain->length) : 0);
}

static void record(enum gt_op op, const struct gt_note *domain, const char *name, size_t length,
		   uint64_t range, uint32_t step)
{
	bool named = op == GT_OP_MARK || op == GT_OP_PUSH || op == GT_OP_BEGIN;

	if (named && length)
		step = gt_def_label(name, length);
	gt_record_mark(op, source_of(domain), range, step);
}

/* ---- before the first CUDA event ------------------------------------------------------------- */

static void remove_early(uint32_t i)
{
	marks.early_count--;
	memmove(&marks.early[i], &marks.early[i + 1],
		(marks.early_count - i) * sizeof(marks.early[0]));
}

/* Takes out the begin of what e ends. False: there is none, or e ends nothing. */
static bool cancels(const struct early *e)
{
	enum gt_op begin = e->op == GT_OP_POP ? GT_OP_PUSH : GT_OP_BEGIN;

	if (e->op != GT_OP_POP && e->op != GT_OP_END)
		return false;
	for (uint32_t i = marks.early_count; i-- > 0;) {
		const struct early *b = &marks.early[i];

		if (b->op != begin || b->domain != e->domain)
			continue;
		if (e->op == GT_OP_POP ? b->tid != e->tid : b->range != e->range)
			continue;
		remove_early(i);
		return true;
	}
	return false;
}

static void put_aside(const struct early *e)
{
	if (cancels(e))
		return;
	if (marks.early_count < MAX_EARLY)
		marks.early[marks.early_count++] = *e;
	else
		marks.early_lost++;
}

static void tell_early(int tid)
{
	uint32_t i = 0;

	while (i < marks.early_count) {
		struct early e = marks.early[i];

		if (e.tid != tid) {
			i++;
			continue;
		}
		remove_early(i);
		record(e.op, e.domain, e.name->text, e.name->length, e.range, e.step);
	}
}

static void tell_lost(void)
{
	char text[16];
	struct gt_text t = {.buf = text, .size = sizeof(text)};

	gt_text_u64(&t, marks.early_lost);
	gt_def_info("marks.lost", text, t.length);
	marks.early_lost = 0;
}

void gt_marks_start(void)
{
	if (inside || marks.pid != gt_pid())
		return;
	inside = true;
	gt_lock(&marks.lock);
	if (marks.early_lost)
		tell_lost();
	tell_early(gt_tid());
	gt_unlock(&marks.lock);
	inside = false;
}

/* ---- in and out ------------------------------------------------------------------------------ */

/* A child's first call: nothing of its parent's is its own, nor is a lock that was held then. */
static void own(void)
{
	int pid = gt_started() ? (int)gt_file->pid : gt_pid(), before = gt_load(&marks.pid);

	if (gt_likely(before == pid))
		return;
	if (before)
		memset(&marks, 0, sizeof(marks));
	gt_store(&marks.pid, pid);
}

void gt_mark(enum gt_op op, const struct gt_note *domain, const char *name, uint64_t range)
{
	size_t length = name ? strlen(name) : 0;
	bool on = gt_started();
	uint32_t step = 0;

	if (inside)
		return;
	inside = true;
	own();
	if (op == GT_OP_STEP)
		step = __atomic_add_fetch(&marks.steps, 1, __ATOMIC_RELAXED);
	if (!on || gt_unlikely(gt_load_relaxed(&marks.early_count))) {
		gt_lock(&marks.lock);
		if (on)
			tell_early(gt_tid());
		else
			put_aside(&(struct early){gt_tid(), op, step, domain, gt_note(name, length),
						  range});
		gt_unlock(&marks.lock);
	}
	if (on)
		record(op, domain, name, length, range, step);
	inside = false;
}

uint64_t gt_mark_range(void)
{
	own();
	return __atomic_add_fetch(&marks.ranges, 1, __ATOMIC_RELAXED);
}

/* ---- gputrace.h ------------------------------------------------------------------------------ */

static void window_begin(const char *name)
{
	uint64_t range = gt_mark_range();
	uint32_t depth;

	if (inside)
		return;
	gt_mark(GT_OP_BEGIN, NULL, name, range);
	gt_lock(&marks.lock);
	depth = marks.depth++;
	if (depth < MAX_WINDOWS)
		marks.windows[depth] = range;
	gt_unlock(&marks.lock);
}

static void window_end(void)
{
	uint64_t range = 0;

	if (inside)
		return;
	own();
	gt_lock(&marks.lock);
	if (marks.depth && --marks.depth < MAX_WINDOWS)
		range = marks.windows[marks.depth];
	gt_unlock(&marks.lock);
	if (range)
		gt_mark(GT_OP_END, NULL, NULL, range);
}

void gputrace_event(int kind, const char *name)
{
	int err = errno;

	switch (kind) {
	case GPUTRACE_MARK:
		gt_mark(GT_OP_MARK, NULL, name, 0);
		break;
	case GPUTRACE_PUSH:
		gt_mark(GT_OP_PUSH, NULL, name, 0);
		break;
	case GPUTRACE_POP:
		gt_mark(GT_OP_POP, NULL, NULL, 0);
		break;
	case GPUTRACE_STEP:
		gt_mark(GT_OP_STEP, NULL, NULL, 0);
		break;
	case GPUTRACE_WINDOW_BEGIN:
		window_begin(name);
		break;
	case GPUTRACE_WINDOW_END:
		window_end();
		break;
	}
	errno = err;
}

void gputrace_mark(const char *name)
{
	gputrace_event(GPUTRACE_MARK, name);
}

void gputrace_push(const char *name)
{
	gputrace_event(GPUTRACE_PUSH, name);
}

void gputrace_pop(void)
{
	gputrace_event(GPUTRACE_POP, NULL);
}

void gputrace_step(void)
{
	gputrace_event(GPUTRACE_STEP, NULL);
}

void gputrace_window_begin(const char *name)
{
	gputrace_event(GPUTRACE_WINDOW_BEGIN, name);
}

void gputrace_window_end(void)
{
	gputrace_event(GPUTRACE_WINDOW_END, NULL);
}
