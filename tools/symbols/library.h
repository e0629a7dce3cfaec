/* SPDX-License-Identifier: MIT */
/*
 * Whose code a frame is: the user's own, or which part of the machinery under it. Decided by names
 * alone; the table is library.c.
 */
#ifndef GT_SYMBOLS_LIBRARY_H
#define GT_SYMBOLS_LIBRARY_H

enum gt_library {
	GT_LIBRARY_USER,   /* none of the others */
	GT_LIBRARY_SYSTEM, /* the C library, the loader, OpenMP, ... */
	GT_LIBRARY_CXX,	   /* C++ runtime, unwinders */
	GT_LIBRARY_CUDA,   /* driver and runtime, and what is preloaded before them */
	GT_LIBRARY_VENDOR, /* cuBLAS, NCCL, ...: owners of memory, but not the user's code */
	GT_LIBRARY_TORCH,
	GT_LIBRARY_PYTHON,  /* the interpreter and its standard library */
	GT_LIBRARY_PACKAGE, /* installed packages other than torch */
};

enum gt_library gt_library_of_object(const char *path);

/* Of a native frame in an object that is the user's: libraries are linked in and inlined too. */
enum gt_library gt_library_of_frame(const char *function, const char *file);

enum gt_library gt_library_of_python(const char *file);

/* From now on the user's Python files are those that match, "*" and "?" match any; NULL: the
 * default. Torch's own stay torch's. The text is not copied. */
void gt_library_mine(const char *glob);

const char *gt_base_name(const char *path);

#endif
