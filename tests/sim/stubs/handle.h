/* SPDX-License-Identifier: MIT */
/*
 * handle.h - opaque handles for the hand-written parts of the stub libraries.
 *
 * A create function must give something that is not NULL and that the destroy function can take
 * back; nothing ever looks inside.
 */
#ifndef GT_SIM_STUB_HANDLE_H
#define GT_SIM_STUB_HANDLE_H

#include <stdlib.h>

#define STUB_CREATE(function)           \
	int function(void **handle);    \
	int function(void **handle)     \
	{                               \
		*handle = malloc(1);    \
		return *handle ? 0 : 1; \
	}

#define STUB_DESTROY(function)      \
	int function(void *handle); \
	int function(void *handle)  \
	{                           \
		free(handle);       \
		return 0;           \
	}

#define STUB_TEXT(function)                                                \
	const char *function(int code);                                    \
	const char *function(int code)                                     \
	{                                                                  \
		return code ? "error of a simulated library" : "no error"; \
	}

#endif
