/* SPDX-License-Identifier: MIT */
/*
 * One object file, opened to name addresses in it. Addresses are in the file's own terms. A thin
 * layer over libdwfl, which finds separate debug information by build-id and alternate files by
 * itself; a sorted symbol table is ours, because libdwfl searches symbols from the first to the
 * last.
 */
#ifndef GT_SYMBOLS_OBJECT_H
#define GT_SYMBOLS_OBJECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gt_line {	    /* a function at an address; texts live as long as the object */
	const char *symbol; /* linker's name or plain name; NULL = not known */
	const char *file;   /* NULL = not known */
	int line;
	bool inlined; /* into the one that follows */
};

struct gt_object;

#define GT_LINES_MAX 64u /* inlining deeper than this is cut at the outer end */

/*
 * 0; -ENOENT: no such file, or not one that can be read as an object; -ESTALE: the file there has
 * another build-id (id of 0 bytes: the recorder found none, any file will do).
 */
int gt_object_open(const char *path, const uint8_t *id, size_t id_length, struct gt_object **ret);
/* Changes when the file, or the debug information found for its build-id, does. */
uint64_t gt_object_stamp(const char *path, const uint8_t *id, size_t id_length);

/* Ask the servers of $DEBUGINFOD_URLS too. */
void gt_object_use_servers(void);

struct gt_object *gt_object_free(struct gt_object *object);

/* Fills lines, innermost first, and returns how many, at least 1. */
size_t gt_object_lines(struct gt_object *object, uint64_t address,
		       struct gt_line lines[GT_LINES_MAX]);

#endif
