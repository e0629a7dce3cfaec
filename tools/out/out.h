/* SPDX-License-Identifier: MIT */
/*
 * Where a command's answer goes: the destination and what it can show. Everything printed for
 * people passes through gt_line or a table, which escape what a terminal would obey: names come
 * from files that others wrote.
 */
#ifndef GT_OUT_H
#define GT_OUT_H

#include <stdbool.h>
#include <stdio.h>
#include "out/file.h"

enum gt_format {
	GT_FORMAT_TEXT,
	GT_FORMAT_JSON,
	GT_FORMAT_CSV,
	GT_FORMAT_MD,
};

enum gt_style {
	GT_PLAIN,
	GT_BOLD,
	GT_DIM,
	GT_RED,
	GT_RED_BOLD,
};

#define GT_SCREEN_LINES 24

struct gt_out {
	FILE *file;
	enum gt_format format;
	bool terminal; /* cut to the screen, say what comes next */
	bool colour;
	bool utf8; /* the terminal draws blocks */
	bool all;  /* never cut */
	unsigned int width;
	unsigned int picture; /* enum gt_picture that the file is to be; 0 = text */
	const char *path;     /* of a picture: created when there is something to draw */
	struct gt_file whole; /* the picture, with the same file */
};

/* Destination = path, or standard output when path is NULL or "-". 0, or -1 with errno set. */
int gt_out_open(struct gt_out *out, const char *path, enum gt_format format, bool all);

/*
 * Flushes and closes; a picture that is not to be kept leaves what was there. 0, or -1 with errno set
 * when not everything was written.
 */
int gt_out_close(struct gt_out *out, bool keep);

/* One line of text in a style; the newline is added. */
void gt_line(struct gt_out *out, enum gt_style style, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* The hint at the end of a screen; nothing in a pipe. */
void gt_next(struct gt_out *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Printable copy, to be freed: control characters and invalid UTF-8 become \xNN. */
char *gt_escape(const char *text);

/* Columns that printable UTF-8 text takes on the screen. */
size_t gt_text_width(const char *text);

/* Makes text fit the columns: ".." in place of what is left out of its middle. */
void gt_cut_text(char *text, size_t width);

/* Room for rows between the other lines of a screen; 0 = as many as there are. */
size_t gt_screen_rows(const struct gt_out *out, size_t other_lines);

/* The layout with the wide columns: pipes, files and terminals of 120 columns. */
bool gt_is_wide(const struct gt_out *out);

#endif
