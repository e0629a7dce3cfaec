/* SPDX-License-Identifier: MIT */
/* See screen.h. */
#define _GNU_SOURCE /* wcwidth */
#include "live/screen.h"

#include <stdlib.h>
#include <string.h>
#include <wchar.h>
#include "model/xalloc.h"
#include "out/out.h"

static struct gt_screen_cell *cell_at(const struct gt_screen *screen, int line, int column)
{
	return &screen->cells[(size_t)line * (size_t)screen->columns + (size_t)column];
}

void gt_screen_begin(struct gt_screen *screen, int lines, int columns)
{
	const size_t count = (size_t)lines * (size_t)columns;

	screen->cells = gt_xrealloc(screen->cells, count + 1, sizeof(*screen->cells));
	screen->lines = lines;
	screen->columns = columns;
	for (size_t i = 0; i < count; i++)
		screen->cells[i] = (struct gt_screen_cell){.text = " "};
}

void gt_screen_free(struct gt_screen *screen)
{
	free(screen->cells);
	*screen = (struct gt_screen){0};
}

/* One character that takes width columns. */
static void put_cell(struct gt_screen *screen, int line, int column, enum gt_cell_style style,
		     const char *text, size_t length, int width)
{
	struct gt_screen_cell *cell = cell_at(screen, line, column);

	if (length >= sizeof(cell->text))
		return;
	memcpy(cell->text, text, length);
	cell->text[length] = 0;
	cell->style = (unsigned char)style;
	if (width == 2)
		*cell_at(screen, line, column + 1) = (struct gt_screen_cell){.style = cell->style};
}

/* What takes no column of its own (accents that follow their letter) is left out. */
void gt_screen_put(struct gt_screen *screen, int line, int column, int width,
		   enum gt_cell_style style, const char *text)
{
	char *safe = gt_escape(text), *at = safe;
	int end = column + width < screen->columns ? column + width : screen->columns;
	mbstate_t state = {0};
	wchar_t wide;

	while (*at && line >= 0 && line < screen->lines && column >= 0) {
		size_t length = mbrtowc(&wide, at, strlen(at), &state);
		int columns = wcwidth(wide);

		if (column + columns > end)
			break;
		if (columns > 0)
			put_cell(screen, line, column, style, at, length, columns);
		column += columns;
		at += length;
	}
	free(safe);
}

void gt_screen_right(struct gt_screen *screen, int line, int column, int width,
		     enum gt_cell_style style, const char *text)
{
	int blank = width - (int)gt_text_width(text);

	blank = blank > 0 ? blank : 0;
	gt_screen_put(screen, line, column + blank, width - blank, style, text);
}

void gt_screen_restyle(struct gt_screen *screen, int line, enum gt_cell_style style)
{
	for (int i = 0; line >= 0 && line < screen->lines && i < screen->columns; i++)
		cell_at(screen, line, i)->style = (unsigned char)style;
}

char *gt_screen_line(const struct gt_screen *screen, int line)
{
	const size_t size = (size_t)screen->columns * sizeof(screen->cells[0].text) + 1;
	char *text = gt_xcalloc(size, 1), *end = text;

	for (int i = 0; i < screen->columns; i++)
		end = stpcpy(end, cell_at(screen, line, i)->text);
	while (end > text && end[-1] == ' ')
		*--end = 0;
	return text;
}
