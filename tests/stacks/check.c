/* SPDX-License-Identifier: MIT */
/* Captures and their comparison with libgcc (linked here, never in the library) and libunwind. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unwind.h>
#include "../../preload/preload.h"
#include "check.h"

bool check_with_libunwind, check_first_only;
static struct tally tally;

struct reference {
	const struct gt_regs *from;
	bool begun, crossed_signal;
	struct path path;
};

static _Unwind_Reason_Code collect(struct _Unwind_Context *context, void *arg)
{
	struct reference *r = arg;
	int interrupted = 0;
	uint64_t pc = _Unwind_GetIPInfo(context, &interrupted);

	if (!r->begun)
		r->begun = pc == r->from->pc && _Unwind_GetCFA(context) == r->from->sp;
	if (!r->begun || !pc)
		return _URC_NO_REASON;
	r->crossed_signal |= interrupted;
	if (r->path.n < MAX_FRAMES)
		r->path.pc[r->path.n++] = pc + !!interrupted;
	return _URC_NO_REASON;
}

static void add(uint64_t *counter, uint64_t n)
{
	__atomic_add_fetch(counter, n, __ATOMIC_RELAXED);
}

/* Ours is a prefix if cut by the depth limit, equal otherwise. */
static bool equal(const struct path *ours, const struct path *theirs)
{
	unsigned n = ours->n;

	if (ours->marker != GT_PC_TRUNCATED && !check_first_only && n != theirs->n)
		return false;
	if (n > theirs->n)
		return false;
	while (n-- > 0)
		if (ours->pc[n] != theirs->pc[n])
			return false;
	return true;
}

static void print(const char *name, const struct path *p)
{
	Dl_info info;

	fprintf(stderr, "  %s: %u frames, marker %u\n", name, p->n, (unsigned)p->marker);
	for (unsigned i = 0; i < p->n && i < 40; i++) {
		info.dli_sname = info.dli_fname = NULL;
		dladdr((void *)(p->pc[i] - 1), &info);
		fprintf(stderr, "    %2u %#lx %s (%s)\n", i, (unsigned long)p->pc[i],
			info.dli_sname ? info.dli_sname : "?",
			info.dli_fname ? info.dli_fname : "?");
	}
}

static void complain(const char *who, const struct path *ours, const struct path *theirs)
{
	static int said;

	if (__atomic_add_fetch(&said, 1, __ATOMIC_RELAXED) > 3)
		return;
	fprintf(stderr, "different from %s:\n", who);
	print("ours", ours);
	print(who, theirs);
}

static bool libunwind_path(const struct gt_regs *regs, struct path *ret)
{
	static int (*backtrace)(void **, int);
	static __thread void *pc[MAX_FRAMES];
	int n, i = 0;

	if (!gt_load(&backtrace)) {
		void *handle = dlopen("libunwind.so.8", RTLD_LAZY | RTLD_LOCAL);

		if (!handle)
			return false;
		gt_store(&backtrace, (int (*)(void **, int))dlsym(handle, "unw_backtrace"));
	}
	n = backtrace(pc, MAX_FRAMES);
	while (i < n && (uint64_t)pc[i] != regs->pc)
		i++;
	for (ret->n = 0; i < n; i++)
		ret->pc[ret->n++] = (uint64_t)pc[i];
	return true;
}

static void count(const struct path *ours)
{
	uint64_t deepest = gt_load(&tally.deepest);

	add(&tally.captures, 1);
	add(&tally.frames, ours->n);
	add(&tally.truncated, ours->marker == GT_PC_TRUNCATED);
	add(&tally.incomplete, ours->marker == GT_PC_INCOMPLETE);
	if (ours->n > deepest)
		gt_store(&tally.deepest, ours->n);
}

uint32_t check_capture(const struct gt_regs *regs)
{
	static __thread struct path ours, other;
	static __thread struct reference r;
	struct gt_where where = gt_where_capture(regs);

	r.from = regs;
	r.begun = r.crossed_signal = false;
	r.path.n = 0;
	_Unwind_Backtrace(collect, &r);
	double_path(where.native, &ours);
	count(&ours);
	if (!where.native) {
		add(&tally.lost, 1);
	} else if (!r.begun || !equal(&ours, &r.path)) {
		add(&tally.different, 1);
		complain("libgcc", &ours, &r.path);
	} else if (check_with_libunwind && !r.crossed_signal && libunwind_path(regs, &other) &&
		   !equal(&ours, &other)) {
		add(&tally.different_libunwind, 1);
		complain("libunwind", &ours, &other);
	}
	return where.native;
}

struct tally check_tally(void)
{
	return tally;
}
