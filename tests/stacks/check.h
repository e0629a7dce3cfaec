/* SPDX-License-Identifier: MIT */
/*
 * Differential test of native stack capture: every capture is compared, frame by frame, with
 * libgcc's _Unwind_Backtrace and, where asked, libunwind. The recorder behind it is a double that
 * keeps definitions in memory (double.c).
 */
#ifndef CHECK_H
#define CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct gt_regs;

enum { MAX_FRAMES = 4096 };

struct path { /* return addresses, innermost first; marker = GT_PC_* or 0 */
	uint64_t pc[MAX_FRAMES];
	unsigned n;
	uint64_t marker;
};

struct tally {
	uint64_t captures, different, different_libunwind;
	uint64_t frames, truncated, incomplete, lost, deepest;
};

/* What a hook does: capture from regs, compare, count. The node is returned. */
uint32_t check_capture(const struct gt_regs *regs);
extern bool check_with_libunwind; /* per thread of the test: off for dlclose scenes */
extern bool check_first_only;	  /* against libgcc's frames as far as ours go */
struct tally check_tally(void);

/* The hook in several compilations: gcc and clang, with and without optimisation and frame pointer.
 */
extern uint32_t (*const check_hooks[])(void);
extern const unsigned check_hook_count;

/* double.c */
void double_start(unsigned depth, unsigned unwinder);
extern bool double_any_pc; /* nodes may lie in objects that have no record */
void double_forget(void);  /* a new file, as in a forked child */
void double_path(uint32_t node, struct path *ret);
unsigned double_nodes(void), double_modules(void), double_unloads(void);
unsigned double_duplicates(void); /* paths defined twice; after an unload there may be such */
long double_mapped(void);	  /* bytes of gt_map in use */
uint64_t double_lost(unsigned why);
const char *double_module_path(uint64_t pc); /* of the object there, NULL = no record */

#ifdef __cplusplus
}
#endif

#endif
