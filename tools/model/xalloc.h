/* SPDX-License-Identifier: MIT */
/*
 * Memory of the command line tool: it cannot go on without, so these end the program with one line.
 * Not for tools/read, whose sizes come from files.
 */
#ifndef GT_XALLOC_H
#define GT_XALLOC_H

#include <stdarg.h>
#include <stddef.h>

void *gt_xcalloc(size_t count, size_t size);
void *gt_xrealloc(void *old, size_t count, size_t size);
char *gt_xstrdup(const char *text);
char *gt_xasprintf(const char *format, ...) __attribute__((format(printf, 1, 2)));
char *gt_xvasprintf(const char *format, va_list arguments) __attribute__((format(printf, 1, 0)));

/* The text with more behind it; text is freed. */
char *gt_xappend(char *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* For what others allocate: pointer, or the end of the program when it is NULL. */
void *gt_xchecked(void *pointer);

/* One more element at the end of an array that grows by doubling; returns it, zeroed. */
#define GT_PUSH(array, count)                                                       \
	(((count) & ((count)-1)) == 0                                               \
		 ? (void)((array) = gt_xrealloc((array), (count) ? 2 * (count) : 1, \
						sizeof(*(array))))                  \
		 : (void)0,                                                         \
	 memset(&(array)[(count)], 0, sizeof(*(array))), &(array)[(count)++])

#endif
