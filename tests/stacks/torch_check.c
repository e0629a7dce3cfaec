/* SPDX-License-Identifier: MIT */
/*
 * Preloaded into a PyTorch process: captures the stack of every torch allocation and free with the
 * library's own objects and compares it with libgcc. Writes the tally to CHECK_OUT at exit.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>
#include "../../preload/unwind.h"
#include "check.h"

struct device {
	int8_t type, index;
};

#define REPORT	 _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE
#define TEXT_(x) #x
#define TEXT(x)	 TEXT_(x)

typedef void report_fn(void *ptr, int64_t size, uint64_t allocated, uint64_t reserved,
		       struct device device);

__attribute__((visibility("default"))) report_fn REPORT;

/* The linker puts this before gt_walk (--wrap): how much of the stacks was taken over as it was? */
enum gt_unwound __real_gt_walk(struct gt_stack *s, const struct gt_regs *regs, uint32_t *ret_kept);
enum gt_unwound __wrap_gt_walk(struct gt_stack *s, const struct gt_regs *regs, uint32_t *ret_kept);

static uint64_t tails, frames_kept, frames_pushed;

enum gt_unwound __wrap_gt_walk(struct gt_stack *s, const struct gt_regs *regs, uint32_t *ret_kept)
{
	enum gt_unwound how = __real_gt_walk(s, regs, ret_kept);

	__atomic_add_fetch(&tails, *ret_kept > 0, __ATOMIC_RELAXED);
	__atomic_add_fetch(&frames_kept, *ret_kept, __ATOMIC_RELAXED);
	__atomic_add_fetch(&frames_pushed, s->pushed, __ATOMIC_RELAXED);
	return how;
}

static void start(void)
{
	static uint32_t started; /* 1 = somebody is at it, 2 = done */
	uint32_t none = 0;

	if (__atomic_compare_exchange_n(&started, &none, 1, false, __ATOMIC_ACQ_REL,
					__ATOMIC_ACQUIRE)) {
		const char *depth = getenv("GPUTRACE_DEPTH");

		double_start(depth ? (unsigned)atoi(depth) : 256, GT_UNWIND_AUTO);
		gt_store(&started, 2);
	}
	while (gt_load(&started) != 2)
		;
}

void REPORT(void *ptr, int64_t size, uint64_t allocated, uint64_t reserved, struct device device)
{
	struct gt_regs regs = GT_REGS_HERE();
	static report_fn *real;

	start();
	check_capture(&regs);
	if (!gt_load(&real))
		gt_store(&real, (report_fn *)dlsym(RTLD_NEXT, TEXT(REPORT)));
	if (real)
		real(ptr, size, allocated, reserved, device);
}

/* In place of the library's own, so that unloads are told. */
int dlclose(void *handle)
{
	static int (*real)(void *);
	int rc;

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "dlclose");
	gt_modules_closing();
	rc = real(handle);
	gt_modules_closed();
	return rc;
}

__attribute__((destructor)) static void report(void)
{
	const char *name = getenv("CHECK_OUT");
	struct tally t = check_tally();
	FILE *f = t.captures && name ? fopen(name, "we") : NULL;

	if (!f)
		return;
	fprintf(f,
		"captures=%lu different=%lu lost=%lu truncated=%lu incomplete=%lu frames=%lu "
		"deepest=%lu "
		"nodes=%u modules=%u unloads=%u duplicates=%u tails=%lu kept=%lu walked=%lu\n",
		t.captures, t.different, t.lost, t.truncated, t.incomplete, t.frames, t.deepest,
		double_nodes(), double_modules(), double_unloads(), double_duplicates(), tails,
		frames_kept, frames_pushed);
	fclose(f);
}
