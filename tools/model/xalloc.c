/* SPDX-License-Identifier: MIT */
/* See xalloc.h. Called from model/, out/ and cmd/. */
#define _GNU_SOURCE
#include "model/xalloc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *gt_xchecked(void *pointer)
{
	if (pointer)
		return pointer;
	fputs("gputrace: no memory left on this machine to read the trace\n", stderr);
	exit(3);
}

void *gt_xcalloc(size_t count, size_t size)
{
	return gt_xchecked(calloc(count ? count : 1, size));
}

void *gt_xrealloc(void *old, size_t count, size_t size)
{
	return gt_xchecked(reallocarray(old, count, size));
}

char *gt_xstrdup(const char *text)
{
	return gt_xchecked(strdup(text));
}

char *gt_xvasprintf(const char *format, va_list arguments)
{
	char *text;

	return vasprintf(&text, format, arguments) < 0 ? gt_xchecked(NULL) : text;
}

char *gt_xasprintf(const char *format, ...)
{
	va_list arguments;
	char *text;

	va_start(arguments, format);
	text = gt_xvasprintf(format, arguments);
	va_end(arguments);
	return text;
}

char *gt_xappend(char *text, const char *format, ...)
{
	va_list arguments;
	char *more, *both;

	va_start(arguments, format);
	more = gt_xvasprintf(format, arguments);
	va_end(arguments);
	both = gt_xasprintf("%s%s", text, more);
	free(more);
	free(text);
	return both;
}
