/* SPDX-License-Identifier: MIT */
/*
 * The timeline for readers without scripts: one column of layers per few pixels, each the row of the
 * highest instant of its time. Colours are classes, since the page's policy allows no inline style.
 */
#include "page/build.h"

#include <stdlib.h>
#include <string.h>
#include "model/xalloc.h"
#include "out/number.h"

#define COLUMNS 256
#define WIDTH	768
#define HEIGHT	220
#define LEFT	46

/* From the bottom: what lasts longest lies lowest. */
static const uint8_t order[] = {
	GT_CATEGORY_WEIGHTS,	 GT_CATEGORY_OPTIMIZER, GT_CATEGORY_WORKSPACES,
	GT_CATEGORY_GRADIENTS,	 GT_CATEGORY_INPUTS,	GT_CATEGORY_ACTIVATIONS,
	GT_CATEGORY_TEMPORARIES, GT_CATEGORY_UNKNOWN,	GT_CATEGORY_NONE,
};

struct column {
	int64_t bytes[GT_CATEGORIES];
	int64_t sum;
	bool any;
};

struct drawing {
	const struct gt_page_history *history;
	const uint8_t *categories; /* by shown spot */
	struct column columns[COLUMNS];
	int64_t last[COLUMNS][GT_CATEGORIES]; /* at the end of a column */
	uint64_t from, to, top;
};

static size_t column_at(const struct drawing *drawing, uint64_t us)
{
	uint64_t span = drawing->to - drawing->from + 1;

	return (size_t)((us - drawing->from) * COLUMNS / span);
}

static void keep_highest(struct drawing *drawing, uint64_t us, const int64_t *bytes)
{
	struct column *column = &drawing->columns[column_at(drawing, us)];
	int64_t sum = 0;

	for (int c = 0; c < GT_CATEGORIES; c++)
		sum += bytes[c];
	if (column->any && sum <= column->sum)
		return;
	column->any = true;
	column->sum = sum;
	for (int c = 0; c < GT_CATEGORIES; c++)
		column->bytes[c] = bytes[c];
}

static void fill_columns(struct drawing *drawing)
{
	const struct gt_chain *chain = &drawing->history->chains[GT_CHAIN_HIGH];
	int64_t bytes[GT_CATEGORIES] = {0};
	size_t at = 0;

	for (size_t row = 0; row < chain->count; row++) {
		for (uint32_t i = 0; i < chain->counts[row]; i++, at++)
			bytes[drawing->categories[chain->shifts[at].shown]] +=
				chain->shifts[at].bytes;
		keep_highest(drawing, chain->instants[row].us, bytes);
		memcpy(drawing->last[column_at(drawing, chain->instants[row].us)], bytes,
		       sizeof(bytes));
	}
	for (size_t i = 1; i < COLUMNS; i++) {
		struct column *column = &drawing->columns[i];

		if (column->any)
			continue;
		memcpy(column->bytes, drawing->last[i - 1], sizeof(column->bytes));
		memcpy(drawing->last[i], drawing->last[i - 1], sizeof(column->bytes));
	}
}

static double y_of(const struct drawing *drawing, int64_t bytes)
{
	return HEIGHT - (double)bytes * (HEIGHT - 12) / (double)drawing->top;
}

static void put_layer(FILE *file, const struct drawing *drawing, size_t layer)
{
	double step = (double)(WIDTH - LEFT) / COLUMNS;
	int64_t base[COLUMNS], most = 0;

	for (size_t i = 0; i < COLUMNS; i++) {
		base[i] = 0;
		for (size_t below = 0; below < layer; below++)
			base[i] += drawing->columns[i].bytes[order[below]];
		if (drawing->columns[i].bytes[order[layer]] > most)
			most = drawing->columns[i].bytes[order[layer]];
	}
	if (!most)
		return;
	fprintf(file, "<path class=\"c%d\" d=\"M%d %.1f", order[layer], LEFT,
		y_of(drawing, base[0]));
	for (size_t i = 0; i < COLUMNS; i++)
		fprintf(file, "V%.1fH%.1f",
			y_of(drawing, base[i] + drawing->columns[i].bytes[order[layer]]),
			LEFT + step * (double)(i + 1));
	for (size_t i = COLUMNS; i-- > 0;)
		fprintf(file, "V%.1fH%.1f", y_of(drawing, base[i]), LEFT + step * (double)i);
	fprintf(file, "Z\"><title>%s</title></path>",
		order[layer] ? gt_category_name(order[layer]) : "in use");
}

static void put_axis(FILE *file, const struct drawing *drawing, uint64_t card)
{
	for (int i = 0; i <= 4; i++) {
		int64_t bytes = (int64_t)drawing->top / 4 * i;

		fprintf(file,
			"<text class=\"t\" text-anchor=\"end\" x=\"%d\" y=\"%.1f\">%lld</text>",
			LEFT - 6, y_of(drawing, bytes) + 4, (long long)gt_round_to(bytes, 1 << 20));
	}
	if (card && card <= drawing->top)
		fprintf(file, "<path class=\"card\" d=\"M%d %.1fH%d\"><title>card</title></path>",
			LEFT, y_of(drawing, (int64_t)card), WIDTH);
	fprintf(file,
		"<text class=\"t\" x=\"%d\" y=\"%d\">%.3f s</text>"
		"<text class=\"t\" text-anchor=\"end\" x=\"%d\" y=\"%d\">%.3f s</text>",
		LEFT, HEIGHT + 16, (double)drawing->from / 1e6, WIDTH, HEIGHT + 16,
		(double)drawing->to / 1e6);
}

void gt_page_svg(FILE *file, const struct gt_page_device *device, uint64_t card)
{
	const struct gt_page_history *history = &device->history;
	struct drawing *drawing = gt_xcalloc(1, sizeof(*drawing));
	uint8_t *categories = gt_xcalloc(history->shown_count + 1, 1);
	uint64_t peak = history->lane->ctr.peak[GT_TOTAL_IN_USE];

	for (size_t i = 0; i < history->spot_count; i++)
		categories[history->spots[i].shown] = history->spots[i].category;
	drawing->history = history;
	drawing->categories = categories;
	drawing->from = history->from_us;
	drawing->to = history->trace->last_us;
	drawing->top = card > peak ? card : peak ? peak : 1;
	if (history->slice_count) {
		fill_columns(drawing);
		fprintf(file,
			"<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"Memory in use "
			"over time, MiB\">",
			WIDTH, HEIGHT + 22);
		for (size_t layer = 0; layer < sizeof(order); layer++)
			put_layer(file, drawing, layer);
		put_axis(file, drawing, card);
		fputs("</svg>", file);
	}
	free(categories);
	free(drawing);
}
