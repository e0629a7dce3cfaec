/* SPDX-License-Identifier: MIT */
/*
 * Stops after every store into the trace file and judges the file as if the process had been killed
 * right there: every lane must be exactly what the model says it was after the event that the
 * lane's sequence names, and every event whose call has returned must be in it. The file's bytes
 * change at stores only, so this sees every state that stepping through all instructions would,
 * zstd's stores included, and is fifty times faster: the mapping is read-only, a store faults, its
 * page is opened for one instruction (the trap flag), and closed again.
 *
 *   stores NAME CALLS SEED LANES [VARIABLE=VALUE...]	variables: the recorder's
 *
 * Exit status 0: all states good; 1: a bad one, described. Built with a fault in the store order
 * (GT_MUTANT) it must end with 1.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ucontext.h>
#include <unistd.h>
#include "../../preload/recorder.h"
#include "model.h"

#define PAGE	  4096u
#define TRAP_FLAG 0x100
#define MAX_OPEN  4 /* pages that one instruction writes to */

static struct {
	const char *name;
	struct program program;
	struct model model;
	size_t call; /* the one that runs */
	bool armed;
	uint8_t *before; /* the file as it was at the last look */
	uint64_t before_end;
	bool history; /* the last store may have changed it */
	char *open[MAX_OPEN];
	unsigned open_count;
	uint64_t stores, states;
} t;

/* ---- judging -------------------------------------------------------------------------------- */

static const char *judge_lane(const struct ck_file *f, uint32_t lane)
{
	uint64_t least = t.call ? t.program.calls[t.call - 1].events[lane] : 0;
	uint64_t most = t.program.calls[t.call].events[lane];
	struct ck_lane l = {0};
	const char *why;

	if (!ck_has_lane(f, lane))
		return least ? "a lane is missing" : NULL;
	why = ck_lane(f, lane, t.history, &l);
	if (!why && (l.head.seq < least || l.head.seq > most))
		why = l.head.seq < least ? "an event is lost" : "an event came early";
	if (!why && l.head.lost)
		why = "history was given up";
	if (!why)
		why = model_compare(&t.model, lane, &l);
	ck_lane_free(&l);
	return why;
}

static void fail(const char *why)
{
	printf("not ok %s: call %lu, store %lu: %s\n", t.name, t.call, t.stores, why);
	fflush(stdout);
	_exit(1);
}

static void judge(void)
{
	static struct ck_file f;
	const char *why = ck_open(&f, gt_file, gt_file->end);

	for (uint32_t lane = 0; lane < t.program.lanes && !why; lane++)
		why = judge_lane(&f, lane);
	if (why)
		fail(why);
}

/*
 * Every extent of this file is one page. Readers do not look at a ring extent's bytes behind `used`, where
 * zstd writes most; decoding the history after each of them would take most of the time.
 */
static bool touches_history(const char *page, const uint8_t *before)
{
	const struct gt_extent *e = (const void *)page, *old = (const void *)before;
	const struct gt_lane *now = (const void *)(e + 1);
	const struct gt_lane *then = (const void *)(old + 1);
	uint64_t used = e->used > old->used ? e->used : old->used;

	if (e->kind == GT_EXTENT_LANE)
		return now->sealed != then->sealed;
	if (e->kind == GT_EXTENT_RING && old->kind == GT_EXTENT_RING && used < PAGE)
		return memcmp(page, before, used) != 0;
	return e->kind != GT_EXTENT_LIVE && e->kind != GT_EXTENT_SITES && e->kind != GT_EXTENT_DEFS;
}

/* Did the pages just written change? A new end shows bytes that were not looked at before. */
static bool changed(void)
{
	bool any = gt_file->end != t.before_end;

	t.history = any;
	for (unsigned i = 0; i < t.open_count; i++) {
		uint64_t at = (uint64_t)(t.open[i] - (char *)gt_file);

		if (!memcmp(t.open[i], t.before + at, PAGE))
			continue;
		any = true;
		t.history |= touches_history(t.open[i], t.before + at);
		memcpy(t.before + at, t.open[i], PAGE);
	}
	t.before_end = gt_file->end;
	return any;
}

/* ---- stopping ------------------------------------------------------------------------------- */

static void on_fault(int sig, siginfo_t *info, void *context)
{
	ucontext_t *u = context;
	char *page = (char *)((uintptr_t)info->si_addr & ~(uintptr_t)(PAGE - 1));

	if (!t.armed || page < (char *)gt_file || page >= (char *)gt_file + gt_options.max ||
	    t.open_count == MAX_OPEN)
		fail("a fault that is none of ours");
	t.open[t.open_count++] = page;
	if (mprotect(page, PAGE, PROT_READ | PROT_WRITE))
		fail("mprotect");
	u->uc_mcontext.gregs[REG_EFL] |= TRAP_FLAG;
}

static void on_trap(int sig, siginfo_t *info, void *context)
{
	ucontext_t *u = context;
	bool look = changed();

	for (unsigned i = 0; i < t.open_count; i++)
		mprotect(t.open[i], PAGE, PROT_READ);
	t.open_count = 0;
	t.stores++;
	t.states += look;
	u->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG;
	if (look)
		judge();
}

void *__real_mmap(void *at, size_t length, int prot, int flags, int fd, off_t offset);
void *__wrap_mmap(void *at, size_t length, int prot, int flags, int fd, off_t offset);

/* New pieces of the file come closed. */
void *__wrap_mmap(void *at, size_t length, int prot, int flags, int fd, off_t offset)
{
	if (t.armed && (flags & MAP_SHARED) && fd >= 0)
		prot &= ~PROT_WRITE;
	return __real_mmap(at, length, prot, flags, fd, offset);
}

static void arm(void)
{
	struct sigaction fault = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
	struct sigaction trap = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO | SA_ONSTACK};
	stack_t stack = {.ss_size = 1 << 20, .ss_sp = malloc(1 << 20)};

	sigaltstack(&stack, NULL);
	sigaction(SIGSEGV, &fault, NULL);
	sigaction(SIGTRAP, &trap, NULL);
	t.before = calloc(1, gt_options.max);
	mprotect(gt_file, gt_file->end, PROT_READ);
	t.armed = true;
}

/* ---- the end -------------------------------------------------------------------------------- */

static void judge_end(void)
{
	static struct ck_file f;
	const char *why = ck_open(&f, gt_file, gt_file->end);
	uint64_t fills = 0, kept[2] = {0};

	for (uint32_t lane = 0; lane < t.program.lanes && !why; lane++) {
		struct ck_lane l;

		why = ck_lane(&f, lane, true, &l);
		if (!why && l.head.seq != t.model.lane[lane].event_count)
			why = "the end is missing";
		if (!why)
			why = model_backward(&t.model, lane, &l);
		kept[lane] = l.event_count;
		ck_lane_free(&l);
	}
	if (why)
		fail(why);
	for (size_t i = 0; i < f.extent_count; i++)
		if (f.extents[i].serial > fills)
			fills = f.extents[i].serial;
	printf("# %s: %lu calls, %lu + %lu events (%lu + %lu kept), %lu stores, %lu states\n",
	       t.name, t.call, t.model.lane[0].event_count, t.model.lane[1].event_count, kept[0],
	       kept[1], t.stores, t.states);
	printf("# %s: extents: %lu definitions, %lu live, %lu sites, %lu ring (filled %lu times)\n",
	       t.name, f.kinds[GT_EXTENT_DEFS], f.kinds[GT_EXTENT_LIVE], f.kinds[GT_EXTENT_SITES],
	       f.kinds[GT_EXTENT_RING], fills);
	printf("ok %s\n", t.name);
}

int main(int argc, char **argv)
{
	size_t calls = argc > 4 ? strtoul(argv[2], NULL, 0) : 0;

	if (!calls) {
		fprintf(stderr, "usage: stores NAME CALLS SEED LANES [VARIABLE=VALUE...]\n");
		return 2;
	}
	setenv("GPUTRACE_EXTENT", "4K", 1);
	setenv("GPUTRACE_CELLS", "16", 1);
	setenv("GPUTRACE_RING", "24K", 1);
	setenv("GPUTRACE_MAX", "4M", 1);
	setenv("GPUTRACE_QUIET", "1", 1);
	for (int i = 5; i < argc; i++)
		putenv(argv[i]);
	t.name = argv[1];
	t.program = (struct program){
		.lanes = (uint32_t)atoi(argv[4]), .blocks = 800, .stacks = 40, .grow = 40};
	program_make(&t.program, strtoull(argv[3], NULL, 0), calls);
	model_make(&t.model, &t.program);
	if (!gt_recording())
		return 2;
	unlink(gt_file_path);
	arm();
	for (; t.call < t.program.count; t.call++)
		program_call(&t.program, t.call);
	t.call--;
	t.history = true;
	judge();
	judge_end();
	fflush(stdout);
	_exit(0);
}
