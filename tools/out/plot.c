/* SPDX-License-Identifier: MIT */
/*
 * See plot.h. A column stands for a slice of time and shows its maximum: a mean would hide the very
 * peak that ended the run. In use is drawn in eighths of a row, cached on top of it in whole rows.
 */
#include "out/plot.h"

#include <string.h>
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
	uint64_t height = top / GT_PLOT_ROWS ? top / GT_PLOT_ROWS : 1;
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
	for (int row = GT_PLOT_ROWS - 1; row >= 0; row--)
		print_row(out, plot, top, row, gib);
	fprintf(out->file, "%*s  %-*.3f%*.3f s\n", LABEL - 2, "", (int)plot->columns / 2,
		plot->seconds_from, (int)(plot->columns - plot->columns / 2) - 1, plot->seconds_to);
}
