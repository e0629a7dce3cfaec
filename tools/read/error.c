/* SPDX-License-Identifier: MIT */
/*
 * Texts of gt_error: one line that says which file, what, where, and what to do. Bytes of the file
 * that end up in a text are made printable by whoever passes them.
 */
#include <stdarg.h>
#include <stdio.h>
#include "read/reader.h"

static int fill(struct gt_error *err, const char *head, const char *format, va_list args,
		const char *tail)
{
	char what[512];

	vsnprintf(what, sizeof(what), format, args);
	err->status = 3;
	snprintf(err->text, sizeof(err->text), "%s%s%s", head, what, tail);
	return -1;
}

int gt_fail(struct gt_error *err, const char *path, const char *format, ...)
{
	char head[400];
	va_list args;

	if (!err)
		return -1;
	snprintf(head, sizeof(head), "%s: ", path);
	va_start(args, format);
	fill(err, head, format, args, "");
	va_end(args);
	return -1;
}

int gt_fail_memory(struct gt_error *err, const char *path)
{
	return gt_fail(err, path, "not enough memory to read it");
}

int gt_damaged(struct gt_error *err, const char *path, uint64_t offset, const char *format, ...)
{
	char head[440];
	va_list args;

	if (!err)
		return -1;
	snprintf(head, sizeof(head), "%s: damaged at byte %llu: ", path,
		 (unsigned long long)offset);
	va_start(args, format);
	fill(err, head, format, args, ": copy it again, or read what is whole with --partial");
	va_end(args);
	return -1;
}
