/* SPDX-License-Identifier: MIT */
/*
 * See plot.h. A column stands for a slice of time and shows its maximum: a mean would hide the very
 * peak that ended the run. In use is drawn in eighths of a row, cached on top of it in whole rows.
 */
#define _GNU_SOURCE
#include "out/plot.h"

#include <string.h>
#include "model/xalloc.h"
#include "out/number.h"

#define LABEL 6 /* columns of the scale at the left */

size_t gt_plot_columns(const struct gt_out *out)
{
	unsigned int width = out->width > 200 ? 200 : out->width;

	return width > LABEL + 12 ? width - LABEL - 2 : 10;
}

static uint64_t largest(const struct gt_plot *plot)
{
	uint64_t most = 1;

	for (size_t i = 0; i < plot->columns; i++)
		if (plot->held[i] > most)
			most = plot->held[i];
	return most;
}

/* The character of one cell: how much of its height is in use, else whether it is held. */
static const char *cell(const struct gt_out *out, uint64_t used, uint64_t held, uint64_t low,
			uint64_t height)
{
	static const char *const eighths[] = {"", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
	uint64_t part = used <= low ? 0 : used >= low + height ? 8 : (used - low) * 8 / height;

	if (part && out->utf8)
		return eighths[part];
	if (part >= 4)
		return "#";
	if (held > low + height / 2)
		return out->utf8 ? "░" : ":";
	return part ? "-" : " ";
}

/* Scale in GiB or MiB: one decimal is enough to read a height. */
static double scaled(uint64_t bytes, bool gib)
{
	return (double)bytes / (gib ? 1 << 30 : 1 << 20);
}

static void print_row(struct gt_out *out, const struct gt_plot *plot, uint64_t top, int row,
		      bool gib)
{
	uint64_t rows = (uint64_t)plot->rows, height = top / rows ? top / rows : 1;
	uint64_t low = height * (uint64_t)row;
	const char *edge = out->utf8 ? "│" : "|";

	if (row % 2)
		fprintf(out->file, "%*.*f %s", LABEL - 2, gib ? 1 : 0, scaled(low + height, gib),
			edge);
	else
		fprintf(out->file, "%*s %s", LABEL - 2, "", edge);
	for (size_t i = 0; i < plot->columns; i++)
		fputs(cell(out, plot->used[i], plot->held[i], low, height), out->file);
	fprintf(out->file, "%s\n", edge);
}

void gt_plot_print(struct gt_out *out, const struct gt_plot *plot)
{
	uint64_t most = largest(plot);
	uint64_t top = plot->top && plot->top < 4 * most ? plot->top : most;
	bool gib = top >= 2ull << 30;
	char card[GT_SIZE_TEXT];

	fprintf(out->file, "%*s   %s in use   %s cached   top = %s%s\n", LABEL - 2,
		gib ? "GiB" : "MiB", out->utf8 ? "█" : "#", out->utf8 ? "░" : ":",
		top == plot->top ? "the card's " : "", gt_size_text(top, card));
	for (int row = plot->rows - 1; row >= 0; row--)
		print_row(out, plot, top, row, gib);
	fprintf(out->file, "%*s  %-*s%*s\n", LABEL - 2, "", (int)plot->columns / 2, plot->from,
		(int)(plot->columns - plot->columns / 2) + 1, plot->to);
}

char *gt_plot_bar(const struct gt_out *out, int64_t value, uint64_t most, size_t columns)
{
	static const char *const eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
	uint64_t size = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
	uint64_t parts = most ? (uint64_t)((double)size / (double)most * (double)columns * 8) : 0;
	const char *whole = value < 0 ? "░" : "█";
	char *bar = gt_xcalloc(4 * columns + 8, 1), *to = bar;

	if (!out->utf8)
		whole = value < 0 ? "-" : "#";
	for (uint64_t i = 0; i < parts / 8; i++)
		to = stpcpy(to, whole);
	if (parts % 8 && out->utf8 && value > 0)
		stpcpy(to, eighths[parts % 8]);
	else if (parts % 8 >= 4 || (parts && parts < 8))
		stpcpy(to, whole);
	return bar;
}
