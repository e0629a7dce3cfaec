/* SPDX-License-Identifier: MIT */
/* Can something be preloaded into this program? */
#ifndef GT_PROGRAM_H
#define GT_PROGRAM_H

enum gt_program_kind {
	GT_PROGRAM_DYNAMIC,
	GT_PROGRAM_STATIC, /* no loader runs, so nothing is preloaded */
	GT_PROGRAM_SETUID, /* the loader drops LD_PRELOAD */
	GT_PROGRAM_OTHER,  /* not found, or not ours to judge */
};

/* Looked up in PATH; of a script the interpreter is judged. */
enum gt_program_kind gt_program_kind(const char *name);

#endif
