/* SPDX-License-Identifier: MIT */
/*
 * A screen of cells: what is drawn is decided without a terminal, so that a test can read it.
 * draw.c fills one, terminal.c shows it, tests compare its lines.
 */
#ifndef GT_LIVE_SCREEN_H
#define GT_LIVE_SCREEN_H

#include <stdbool.h>

enum gt_cell_style {
	GT_CELL_PLAIN,
	GT_CELL_BOLD,
	GT_CELL_DIM,
	GT_CELL_RED,
	GT_CELL_SELECTED,
};

struct gt_screen_cell {
	char text[8]; /* one character in UTF-8; "" = the right half of a wide one */
	unsigned char style;
};

struct gt_screen {
	int lines, columns;
	bool utf8; /* may show more than ASCII */
	struct gt_screen_cell *cells;
};

void gt_screen_begin(struct gt_screen *screen, int lines, int columns); /* all blank */
void gt_screen_free(struct gt_screen *screen);

/* At most width columns of the text (escaped here); outside the screen nothing happens. */
void gt_screen_put(struct gt_screen *screen, int line, int column, int width,
		   enum gt_cell_style style, const char *text);
void gt_screen_right(struct gt_screen *screen, int line, int column, int width,
		     enum gt_cell_style style, const char *text); /* at the right end of width */
void gt_screen_restyle(struct gt_screen *screen, int line, enum gt_cell_style style);

/* A line without blanks at its end. To be freed. */
char *gt_screen_line(const struct gt_screen *screen, int line);

#endif
