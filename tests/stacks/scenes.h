/* SPDX-License-Identifier: MIT */
/* Programs whose stacks are hard to walk; compiled several times, see stacks.mk. */
#ifndef SCENES_H
#define SCENES_H

#include "check.h"

#ifdef __cplusplus
extern "C" {
#endif

struct scenes { /* one compilation of scenes.cc */
	const char *flags;
	void (*recursion)(unsigned depth);
	void (*variable_frames)(unsigned seed);	 /* alloca */
	void (*realigned_frames)(unsigned seed); /* over-aligned locals beside alloca */
	void (*large_frames)(unsigned depth);
	void (*callbacks)(unsigned seed); /* qsort, bsearch of libc */
	void (*exceptions)(unsigned depth);
	void (*mixed)(unsigned seed, unsigned depth);
};

extern const struct scenes *const all_scenes[];
extern const unsigned scenes_count;

uint32_t hook(void); /* the next compilation of the hook in turn */

#ifdef __cplusplus
}
#endif

#endif
