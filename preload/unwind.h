/* SPDX-License-Identifier: MIT */
/*
 * Native stack capture, inside: who does what, and what they share. Only the files named here include
 * this; everybody else captures through gt_where_capture (preload.h).
 *
 *   stack_native.c  the capture itself, a thread's state
 *   unwind_own.c    the walker of every day: a cached rule per pc, the verified tail of the last stack
 *   unwind_cfi.c    .eh_frame to the rule of one pc: a miss of the rule cache, nothing else
 *   unwind_other.c  libgcc and libunwind: frames that need a complete unwinder, or by wish
 *   modules.c       pc to object file and its unwind information; records of objects
 *   native_nodes.c  stack to node id
 */
#ifndef GT_UNWIND_H
#define GT_UNWIND_H

#include "preload.h"

/* ---- rules: how to leave a frame ------------------------------------------------------------- */

enum gt_rule_kind {
	GT_RULE_NONE = 0,
	GT_RULE_LONG = 1,      /* in the cache: see the long table */
	GT_RULE_SP = 2,	       /* CFA = sp + cfa */
	GT_RULE_FP = 3,	       /* CFA = fp + cfa */
	GT_RULE_END = 4,       /* outermost frame: _start, clone */
	GT_RULE_REALIGNED = 5, /* CFA = *(fp + cfa), caller's fp at fp + fp_at */
	GT_RULE_OTHER = 6, /* signal frames, odd registers, expressions: a complete unwinder's */
	GT_RULE_STOP = 7,  /* the object's unwind information leaves it out */
};

struct gt_rule {
	enum gt_rule_kind kind;
	bool fp_saved; /* else the caller's fp is this frame's */
	int64_t cfa;
	int64_t fp_at, ra_at; /* where they are saved, from the CFA unless said otherwise */
};

#include "unwind_arch.h"

/* ---- modules.c ------------------------------------------------------------------------------- */

struct gt_module {	     /* an object file mapped */
	uint64_t start, end; /* executable range */
	uint64_t bias;
	uint64_t frames;		 /* .eh_frame_hdr; 0 = none */
	uint64_t readable, readable_end; /* the segment that holds it and .eh_frame */
	uint32_t id;			 /* of its record; 0 = never seen on a stack */
	uint8_t build_id_length;	 /* known from then on */
	uint8_t build_id[32];
	char name[27]; /* base name, cut, terminated */
};

/*
 * The module whose code holds this address; looks for new and gone ones first, writes the record of
 * one met for the first time. Takes the loader's lock for a moment: only for a miss of the rule
 * cache.
 */
bool gt_module_find(uint64_t address, struct gt_module *ret);
bool gt_modules_unsettled(void);      /* a dlclose is under way: use and fill no caches */
uint32_t gt_modules_generation(void); /* changes when cached rules and records became void */
void gt_modules_forget(void);	      /* in a forked child */

/* ---- unwind_cfi.c ---------------------------------------------------------------------------- */

/* The rule of the instruction at pc (one before a return address). Never fails: OTHER or STOP. */
void gt_cfi_rule(const struct gt_module *module, uint64_t pc, struct gt_rule *ret);

/* ---- native_nodes.c -------------------------------------------------------------------------- */

/*
 * One state of the walk, and what the walk read to get there. Addresses are kept as distances below
 * the base of the thread's record: 24 bytes instead of 32, the cost of a capture is cache misses.
 */
struct gt_frame {
	uint64_t pc, fp;
	uint32_t sp;	  /* base - sp */
	uint32_t fp_slot; /* base - address fp was read from; GT_SLOT_KEPT, GT_SLOT_UNSURE */
};
#define GT_SLOT_KEPT   0u /* fp passed through */
#define GT_SLOT_UNSURE 1u /* more was read than the return address and fp */
_Static_assert(sizeof(struct gt_frame) == 24, "struct gt_frame is not 24 bytes");

/* Hashes of paths, from the root on: fills chain[from..to), chain[i] covers frames 0 to i. */
void gt_chain_extend(const struct gt_frame *frames, uint64_t *chain, unsigned from, unsigned to);
/* The node of frames[n - 1], root first. 0 = could not be kept. */
uint32_t gt_nodes_intern(const struct gt_frame *frames, const uint64_t *chain, unsigned n);
void gt_nodes_retire(uint64_t start, uint64_t end); /* code there may be other code from now on */
void gt_nodes_forget(void);

/* ---- unwind_own.c ---------------------------------------------------------------------------- */

enum gt_unwound {
	GT_UNWOUND = 0,	    /* to the outermost frame */
	GT_UNWOUND_CUT,	    /* at the depth limit */
	GT_UNWOUND_STOPPED, /* no unwind information: nobody knows what is outside */
	GT_UNWOUND_OTHER,   /* met a frame that needs a complete unwinder */
};

/*
 * A thread's last stack and working space, in its own mapping. frames and chain are root first, so
 * that the tail that two stacks share keeps its place.
 */
struct gt_stack {
	uint64_t readable, readable_end; /* stack memory found readable; may be too small */
	uint64_t base;			 /* sp and fp_slot count down from here */
	uint32_t generation;		 /* of the modules at that time */
	uint32_t depth;			 /* elements of the arrays: limit and one root marker */
	uint32_t n;			 /* frames; 0 = nothing to compare with */
	uint32_t node;			 /* of the whole */
	uint32_t pushed;		 /* frames of scratch in use */
	bool busy;
	size_t mapped; /* bytes, this struct and the arrays */
	struct gt_frame *frames;
	uint64_t *chain;
	struct gt_frame *scratch; /* innermost first */
	struct gt_py_last *python;
};

/*
 * Walks from regs. On return frames[0..kept) of the record are the outer part and
 * scratch[0..pushed) the new inner one, innermost first; the record itself is unchanged.
 */
enum gt_unwound gt_walk(struct gt_stack *s, const struct gt_regs *regs, uint32_t *ret_kept);
void gt_rules_clear(void);
void gt_rules_forget(void);	  /* in a forked child */
bool gt_rule_is_end(uint64_t pc); /* the outermost frame returns nowhere */

/* ---- stack_native.c -------------------------------------------------------------------------- */

bool gt_stacks_running(void); /* started, and in this very process */

/* ---- unwind_other.c -------------------------------------------------------------------------- */

void gt_other_start(void); /* finds the entry points in what is loaded */
void gt_other_open(void);  /* or opens a library; with no lock held */
/* Return addresses from regs on into scratch, innermost first. false = no unwinder, scratch as it
 * was. */
bool gt_other_walk(struct gt_stack *s, const struct gt_regs *regs, enum gt_unwound *ret_how);

#endif
