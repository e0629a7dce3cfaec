/* SPDX-License-Identifier: MIT */
/*
 * Steps side by side: a bar is what was in use at a step's peak, by category, with a line across it
 * where the step ended. The worst step is pointed out. Called from cmd/chart.c.
 */
#include "chart/frame.h"

#include <string.h>

#define PLOT_HEIGHT 300.0
#define BAND	    22.0
#define LEFT	    64.0

static const struct gt_bar *highest(const struct gt_steps_chart *chart)
{
	const struct gt_bar *best = chart->bars;

	for (size_t i = 0; i < chart->bar_count; i++)
		best = chart->bars[i].peak.sum > best->peak.sum ? &chart->bars[i] : best;
	return best;
}

static struct gt_legend legend_of(const struct gt_steps_chart *chart)
{
	struct gt_legend legend = {
		.when = "at the highest peak:",
		.peak = highest(chart)->peak,
		.line = "in use at a step's end",
	};

	for (size_t i = 0; i < chart->bar_count; i++)
		for (int c = 0; c < GT_CATEGORIES; c++)
			legend.seen[c] |= chart->bars[i].peak.bytes[c] > 0;
	return legend;
}

double gt_steps_height(const struct gt_steps_chart *chart)
{
	struct gt_legend legend = legend_of(chart);

	return GT_HEAD_HEIGHT + BAND + PLOT_HEIGHT + 30 + gt_legend_height(&legend) + 10;
}

struct column {
	double from, width, middle;
};

/* Bars have gaps where these can be seen. */
static struct column column_of(const struct gt_plot_area *area, size_t count, size_t index)
{
	double each = (area->right - area->left) / (double)count;
	double gap = each > 6 ? each * 0.18 : each > 3 ? 1 : 0;
	struct column column = {.width = each - gap < 72 ? each - gap : 72};

	column.middle = area->left + each * ((double)index + 0.5);
	column.from = column.middle - column.width / 2;
	return column;
}

static void draw_bar(const struct gt_plot_area *area, const struct gt_bar *bar,
		     struct column column)
{
	uint64_t sum = 0;

	for (int i = 0; i < GT_CATEGORIES; i++) {
		enum gt_category category = gt_layer_order[i];
		double low = gt_frame_y(area, sum), high;

		sum += bar->peak.bytes[category];
		high = gt_frame_y(area, sum);
		gt_draw_rectangle(area->canvas, column.from, high, column.width,
				  low - high > 2 && low < area->bottom ? low - high - 0.8
								       : low - high,
				  gt_layer_color(category));
	}
}

static void draw_end(const struct gt_plot_area *area, const struct gt_bar *bar,
		     struct column column)
{
	double y = gt_frame_y(area, bar->end), beyond = column.width > 30 ? 2 : 0;

	if (!bar->end_known)
		return;
	gt_draw_line(area->canvas, column.from - beyond, y, column.from + column.width + beyond, y,
		     (struct gt_pen){0xffffff, 4, 0});
	gt_draw_line(area->canvas, column.from - beyond, y, column.from + column.width + beyond, y,
		     (struct gt_pen){0x000000, 2, 0});
}

static void draw_number(const struct gt_plot_area *area, const struct gt_bar *bar,
			struct column column, double *end)
{
	struct gt_type type = {11, GT_MUTED, GT_AT_MIDDLE, false, false};
	char text[48];
	double width;

	if (bar->first == bar->last)
		snprintf(text, sizeof(text), "%zu", bar->first);
	else
		snprintf(text, sizeof(text), "%zu-%zu", bar->first, bar->last);
	width = gt_text_length(type, text);
	if (column.middle - width / 2 < *end || column.middle + width / 2 > area->right + 8)
		return;
	gt_draw_text(area->canvas, column.middle, area->bottom + 16, type, text);
	*end = column.middle + width / 2 + 8;
}

static void point_out(const struct gt_plot_area *area, const struct gt_bar *bar,
		      struct column column, const char *text)
{
	struct gt_type type = {12, GT_TEXT, GT_AT_MIDDLE, true, true};
	double y = gt_frame_y(area, bar->peak.sum) - 7, half = gt_text_length(type, text) / 2;
	double x = column.middle;

	if (x - half < area->left)
		x = area->left + half;
	if (x + half > area->right)
		x = area->right - half;
	gt_draw_text(area->canvas, x, y, type, text);
}

void gt_steps_draw(struct gt_canvas *canvas, const struct gt_steps_chart *chart)
{
	struct gt_plot_area area = {.canvas = canvas,
				    .left = LEFT,
				    .right = GT_CHART_WIDTH - GT_MARGIN,
				    .top = GT_HEAD_HEIGHT + BAND};
	const struct gt_bar *worst = highest(chart);
	struct gt_legend legend = legend_of(chart);
	double end = 0;

	area.bottom = area.top + PLOT_HEIGHT;
	gt_frame_scale(&area, worst->peak.sum, chart->card);
	gt_frame_head(canvas, &chart->head);
	gt_frame_grid(&area);
	for (size_t i = 0; i < chart->bar_count; i++) {
		struct column column = column_of(&area, chart->bar_count, i);

		draw_bar(&area, &chart->bars[i], column);
		draw_end(&area, &chart->bars[i], column);
		draw_number(&area, &chart->bars[i], column, &end);
	}
	gt_frame_card(&area, chart->card, false);
	if (chart->worst)
		point_out(&area, worst,
			  column_of(&area, chart->bar_count, (size_t)(worst - chart->bars)),
			  chart->worst);
	gt_draw_text(canvas, area.left - 6, area.bottom + 16,
		     (struct gt_type){11, GT_MUTED, GT_AT_END, false, false}, "step");
	legend.card = chart->card && chart->card <= area.most;
	gt_legend_draw(&area, area.bottom + 32, &legend);
}
