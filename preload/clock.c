/* SPDX-License-Identifier: MIT */
/*
 * Trace time: microseconds since the file was opened. It is read once per event inside a lane's
 * lock, where clock_gettime would be a quarter of the whole event; so where the kernel itself keeps
 * time by an invariant TSC, the TSC is scaled here: from an anchor (both clocks read together) that
 * is renewed at each seal and after a fraction of a second, at the rate measured since an earlier
 * anchor. Elsewhere, and for the first milliseconds, CLOCK_MONOTONIC is asked. Takes no lock: who
 * finds the anchor being changed asks the kernel's clock. A lane sees to it that its own time does
 * not go back.
 */
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#if defined(__x86_64__)
#include <cpuid.h>
#include <x86intrin.h>
#endif
#include "recorder.h"

#define SHIFT	  43		/* of rate: 33 bits at 1 GHz, so that ticks may have 30 */
#define MAX_TICKS (1ull << 30)	/* from an anchor: a third of a second */
#define MIN_NS	  10000000ull	/* over which a rate is measured: 10 ms give a few ppm */
#define BASE_NS	  1000000000ull /* then the older end moves on, to follow NTP's corrections */
#define TRIES	  8		/* at reading both clocks undisturbed */

struct moment {
	uint64_t ticks, ns;
};

static struct {
	uint32_t version;		  /* odd while the anchor changes */
	bool invariant;			  /* the TSC may be used, once the rate is known */
	uint64_t rate;			  /* microseconds per tick << SHIFT; 0 = not known yet */
	uint64_t anchor_ticks, anchor_us; /* trace time */
	uint64_t mono_us;		  /* of trace time 0; the file's copy may be cut off */
	struct moment base;		  /* the rate's older end */
} clk;

static uint64_t mono_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

#if defined(__x86_64__)
static uint64_t ticks(void)
{
	return __rdtsc();
}

static bool is_invariant(void)
{
	unsigned int a, b, c, d;
	char source[16];
	int mode = 0;

	if (prctl(PR_GET_TSC, &mode) || mode != PR_TSC_ENABLE)
		return false;
	if (!__get_cpuid(0x80000007, &a, &b, &c, &d) || !(d & 1 << 8))
		return false;
	return gt_read_file("/sys/devices/system/clocksource/clocksource0/current_clocksource",
			    source, sizeof(source)) > 0 &&
	       !strcmp(source, "tsc\n");
}
#else
static uint64_t ticks(void)
{
	return 0;
}

static bool is_invariant(void)
{
	return false;
}
#endif

/* Both clocks at one moment: of several tries, the one with the least between two looks at the TSC.
 */
static struct moment now(void)
{
	struct moment best = {0};
	uint64_t least = UINT64_MAX;

	for (int i = 0; i < TRIES; i++) {
		uint64_t before = ticks(), ns = mono_ns(), between = ticks() - before;

		if (between >= least)
			continue;
		least = between;
		best = (struct moment){before + between / 2, ns};
	}
	return best;
}

void gt_clock_start(void)
{
	struct timespec t;

	memset(&clk, 0, sizeof(clk));
	clk.invariant = is_invariant();
	clk.base = now();
	clock_gettime(CLOCK_REALTIME, &t);
	gt_file->real_us = (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
	clk.mono_us = gt_mono_us();
	gt_file->mono_us = clk.mono_us;
}

/* Only the one who has made the version odd. */
static void set_anchor(void)
{
	struct moment at = now();
	uint64_t ns = at.ns - clk.base.ns, passed = at.ticks - clk.base.ticks;

	gt_store_relaxed(&clk.anchor_ticks, at.ticks);
	gt_store_relaxed(&clk.anchor_us, at.ns / 1000 - clk.mono_us);
	if (ns >= MIN_NS && passed)
		gt_store_relaxed(&clk.rate,
				 (uint64_t)(((unsigned __int128)ns << SHIFT) / passed / 1000));
	if (ns < BASE_NS)
		return;
	gt_store_relaxed(&clk.base.ticks, at.ticks);
	gt_store_relaxed(&clk.base.ns, at.ns);
}

void gt_clock_anchor(void)
{
	uint32_t version = gt_load(&clk.version);

	if (!clk.invariant || version & 1 || mono_ns() - gt_load_relaxed(&clk.base.ns) < MIN_NS ||
	    !__atomic_compare_exchange_n(&clk.version, &version, version + 1, false,
					 __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		return;
	gt_store_barrier();
	set_anchor();
	gt_store(&clk.version, version + 2);
}

/* By the kernel's clock; looks whether the TSC can be used from now on. */
static uint64_t slow_us(void)
{
	uint64_t ns = mono_ns();

	if (clk.invariant && ns - gt_load_relaxed(&clk.base.ns) >= MIN_NS)
		gt_clock_anchor();
	return ns / 1000 - clk.mono_us;
}

uint64_t gt_now_us(void)
{
	uint32_t version = gt_load(&clk.version);
	uint64_t anchor = gt_load_relaxed(&clk.anchor_ticks), us = gt_load_relaxed(&clk.anchor_us);
	uint64_t rate = gt_load_relaxed(&clk.rate), passed;

	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	if (gt_unlikely(!rate || version & 1 || gt_load_relaxed(&clk.version) != version))
		return slow_us();
	passed = ticks() - anchor;
	if (gt_unlikely(passed > MAX_TICKS))
		return slow_us();
	return us + (passed * rate >> SHIFT);
}
