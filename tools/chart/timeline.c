/* SPDX-License-Identifier: MIT */
/*
 * Memory over time: layers of categories, what is cached above them, the card's limit, the peak,
 * failures and the program's marks, steps below. Names stand in their layers where these are large
 * enough, since some of the colours are close to white and nothing may be said by colour alone.
 * Called from cmd/chart.c.
 */
#include "chart/frame.h"

#include <stdlib.h>
#include <string.h>
#include "model/xalloc.h"

#define PLOT_HEIGHT 300.0
#define BAND	    34.0 /* above the plot: two rows of names of marks */
#define LEFT	    64.0

struct drawing {
	const struct gt_timeline_chart *chart;
	struct gt_plot_area area;
	struct taken { /* by names of marks */
		double from, to;
		int row;
	} * taken;
	size_t taken_count;
	bool crossed[GT_CHART_SLICES]; /* by a mark's line: not a place for a name */
};

static bool is_seen(const struct gt_timeline_chart *chart, enum gt_category category)
{
	for (size_t i = 0; i < GT_CHART_SLICES; i++)
		if (chart->piles[i].bytes[category])
			return true;
	return false;
}

static bool any_cached(const struct gt_timeline_chart *chart)
{
	for (size_t i = 0; i < GT_CHART_SLICES; i++)
		if (chart->held[i] > chart->piles[i].sum)
			return true;
	return false;
}

static struct gt_legend legend_of(const struct gt_timeline_chart *chart)
{
	struct gt_legend legend = {
		.when = "at the peak:",
		.peak = chart->peak,
		.cached = any_cached(chart),
	};

	for (int c = 0; c < GT_CATEGORIES; c++)
		legend.seen[c] = is_seen(chart, (enum gt_category)c);
	return legend;
}

double gt_timeline_height(const struct gt_timeline_chart *chart)
{
	struct gt_legend legend = legend_of(chart);

	return GT_HEAD_HEIGHT + BAND + PLOT_HEIGHT + 34 + (chart->step_count ? 16 : 0) +
	       gt_legend_height(&legend) + 10;
}

static double x_of(const struct drawing *drawing, uint64_t us)
{
	const struct gt_timeline_chart *chart = drawing->chart;
	double share = (double)(us - chart->from_us) / (double)(chart->to_us - chart->from_us + 1);

	return drawing->area.left + share * (drawing->area.right - drawing->area.left);
}

static double x_of_slice(const struct drawing *drawing, size_t slice)
{
	return drawing->area.left +
	       (drawing->area.right - drawing->area.left) * (double)slice / GT_CHART_SLICES;
}

/* ---- layers ---------------------------------------------------------------------------------- */

/* Bytes up to the top of a layer, by number in the order; -1 is the bottom. */
static uint64_t up_to(const struct gt_pile *pile, int layer)
{
	uint64_t sum = 0;

	for (int i = 0; i <= layer; i++)
		sum += pile->bytes[gt_layer_order[i]];
	return sum;
}

/* A corner where the height changes; what stays the same needs none. */
static void add_point(struct gt_xy *points, size_t *count, double x, double y)
{
	if (*count >= 2 && points[*count - 1].y == y && points[*count - 2].y == y)
		--*count;
	points[(*count)++] = (struct gt_xy){x, y};
}

/* Between two heights of each slice; a layer leaves a line of background under it. */
static void area_between(const struct drawing *drawing, const double *low, const double *high,
			 gt_color fill, const char *name)
{
	struct gt_xy *points = gt_xcalloc(4 * GT_CHART_SLICES, sizeof(*points));
	size_t count = 0;

	for (size_t i = 0; i < GT_CHART_SLICES; i++) {
		add_point(points, &count, x_of_slice(drawing, i), high[i]);
		add_point(points, &count, x_of_slice(drawing, i + 1), high[i]);
	}
	for (size_t i = GT_CHART_SLICES; i-- > 0;) {
		add_point(points, &count, x_of_slice(drawing, i + 1), low[i]);
		add_point(points, &count, x_of_slice(drawing, i), low[i]);
	}
	gt_draw_shape(drawing->area.canvas, points, count, fill, name);
	free(points);
}

struct edges {
	double low[GT_CHART_SLICES], high[GT_CHART_SLICES];
};

/* Where a name has most room above and below it; its width in slices. */
static bool find_room(const struct drawing *drawing, const struct edges *edges, size_t width,
		      size_t *ret_at, double *ret_y)
{
	double best = 14;
	bool found = false;

	for (size_t at = 2; at + width + 2 < GT_CHART_SLICES; at += 2) {
		double high = 0, low = 1e9;

		for (size_t i = at; i < at + width; i++) {
			high = edges->high[i] > high ? edges->high[i] : high;
			low = edges->low[i] < low ? edges->low[i] : low;
			low = drawing->crossed[i] ? 0 : low;
		}
		if (low - high <= best)
			continue;
		best = low - high;
		*ret_at = at;
		*ret_y = (low + high) / 2;
		found = true;
	}
	return found;
}

static void name_area(const struct drawing *drawing, const struct edges *edges, gt_color fill,
		      const char *name)
{
	struct gt_type type = {11, gt_ink_on(fill), GT_AT_MIDDLE, false, false};
	double slice = (drawing->area.right - drawing->area.left) / GT_CHART_SLICES, y;
	size_t width = (size_t)((gt_text_length(type, name) + 8) / slice) + 1, at;

	if (find_room(drawing, edges, width, &at, &y))
		gt_draw_text(drawing->area.canvas,
			     x_of_slice(drawing, at) + slice * (double)width / 2, y + 4, type,
			     name);
}

static void draw_cached(const struct drawing *drawing, struct edges *edges)
{
	const struct gt_timeline_chart *chart = drawing->chart;

	for (size_t i = 0; i < GT_CHART_SLICES; i++) {
		uint64_t used = chart->piles[i].sum, held = chart->held[i];

		edges->low[i] = gt_frame_y(&drawing->area, used);
		edges->high[i] = gt_frame_y(&drawing->area, held > used ? held : used);
	}
	area_between(drawing, edges->low, edges->high, GT_CACHED, "cached");
	name_area(drawing, edges, GT_CACHED, "cached");
}

static void draw_layer(const struct drawing *drawing, int layer, struct edges *edges)
{
	enum gt_category category = gt_layer_order[layer];

	for (size_t i = 0; i < GT_CHART_SLICES; i++) {
		const struct gt_pile *pile = &drawing->chart->piles[i];
		double low = gt_frame_y(&drawing->area, up_to(pile, layer - 1));

		edges->high[i] = gt_frame_y(&drawing->area, up_to(pile, layer));
		edges->low[i] = low - edges->high[i] > 2 && layer ? low - 0.8 : low;
	}
	area_between(drawing, edges->low, edges->high, gt_layer_color(category),
		     gt_layer_name(category));
	name_area(drawing, edges, gt_layer_color(category), gt_layer_name(category));
}

/* Names keep away from the lines of failures, which go through all. */
static void find_crossed(struct drawing *drawing)
{
	const struct gt_timeline_chart *chart = drawing->chart;
	uint64_t span = chart->to_us - chart->from_us + 1;

	for (size_t i = 0; i < chart->mark_count; i++) {
		uint64_t us = chart->marks[i].us;
		size_t slice;

		if (us < chart->from_us || us > chart->to_us ||
		    chart->marks[i].kind == GT_MARK_PEAK)
			continue;
		slice = (size_t)((double)(us - chart->from_us) / (double)span * GT_CHART_SLICES);
		drawing->crossed[slice] = true;
	}
}

static void draw_layers(struct drawing *drawing)
{
	struct edges *edges = gt_xcalloc(1, sizeof(*edges));

	find_crossed(drawing);
	draw_cached(drawing, edges);
	for (int layer = 0; layer < GT_CATEGORIES; layer++)
		if (is_seen(drawing->chart, gt_layer_order[layer]))
			draw_layer(drawing, layer, edges);
	free(edges);
}

/* ---- marks ----------------------------------------------------------------------------------- */

static bool is_free(const struct drawing *drawing, double from, double to, int row)
{
	for (size_t i = 0; i < drawing->taken_count; i++) {
		const struct taken *taken = &drawing->taken[i];

		if (taken->row == row && taken->from < to && from < taken->to)
			return false;
	}
	return true;
}

struct seat { /* of a name */
	double from;
	int row; /* 0 is next to the plot; -1 = there is no room */
};

static void take(struct drawing *drawing, double from, double to, int row)
{
	*GT_PUSH(drawing->taken, drawing->taken_count) = (struct taken){from, to, row};
}

/* Right or left of its line, which goes down through the row below; failures like to be on top. */
static struct seat seat_for(struct drawing *drawing, enum gt_mark_kind kind, double x, double width)
{
	const struct gt_plot_area *area = &drawing->area;

	for (int i = 0; i < 4; i++) {
		int row = (i / 2) ^ (kind == GT_MARK_FAILURE);
		double from = i % 2 ? x - 4 - width : x + 4;

		if (from + width > area->right || from < area->left ||
		    !is_free(drawing, from - 4, from + width + 2, row) ||
		    (row && !is_free(drawing, x - 3, x + 3, 0)))
			continue;
		take(drawing, from, from + width, row);
		take(drawing, x - 1, x + 1, 0);
		if (row)
			take(drawing, x - 1, x + 1, 1);
		return (struct seat){from, row};
	}
	return (struct seat){0, -1};
}

static double top_at(const struct drawing *drawing, double x)
{
	const struct gt_plot_area *area = &drawing->area;
	double share = (x - area->left) / (area->right - area->left);
	size_t slice = (size_t)(share * GT_CHART_SLICES);

	if (slice >= GT_CHART_SLICES)
		slice = GT_CHART_SLICES - 1;
	return gt_frame_y(area, drawing->chart->piles[slice].sum);
}

/* A mark's line goes down to what it names: the peak's to its top, others' through all. */
static void draw_mark(struct drawing *drawing, const struct gt_chart_mark *mark)
{
	static const struct gt_pen pens[] = {
		[GT_MARK_FAILURE] = {GT_FAILURE, 1.5, 0},
		[GT_MARK_PEAK] = {GT_TEXT, 1, 0},
		[GT_MARK_REFUSED] = {GT_FAILURE, 1, 3},
		[GT_MARK_NAMED] = {GT_MUTED, 1, 2},
	};
	struct gt_type type = {11, pens[mark->kind].color, GT_AT_START,
			       mark->kind == GT_MARK_FAILURE, true};
	const struct gt_plot_area *area = &drawing->area;
	double x = x_of(drawing, mark->us);
	struct seat seat = seat_for(drawing, mark->kind, x, gt_text_length(type, mark->text));
	double y = area->top - 7 - 14 * (seat.row > 0 ? 1 : 0);

	gt_draw_line(area->canvas, x, seat.row < 0 ? area->top : y - 9, x,
		     mark->kind == GT_MARK_PEAK ? top_at(drawing, x) : area->bottom,
		     pens[mark->kind]);
	if (seat.row >= 0)
		gt_draw_text(area->canvas, seat.from, y, type, mark->text);
}

static void draw_marks(struct drawing *drawing)
{
	const struct gt_timeline_chart *chart = drawing->chart;

	for (size_t i = 0; i < chart->mark_count; i++)
		if (chart->marks[i].us >= chart->from_us && chart->marks[i].us <= chart->to_us)
			draw_mark(drawing, &chart->marks[i]);
	free(drawing->taken);
}

/* ---- time ------------------------------------------------------------------------------------ */

/* One, two or five times a power of ten, so that there are about eight. */
static uint64_t time_step(uint64_t span)
{
	static const uint64_t factors[] = {1, 2, 5};
	uint64_t power = 1;

	for (;; power *= 10)
		for (int i = 0; i < 3; i++)
			if (span / (factors[i] * power) <= 8)
				return factors[i] * power;
}

static void time_text(char *text, size_t size, uint64_t us, uint64_t span, uint64_t step)
{
	bool ms = span < 100000;
	int decimals = 0;

	for (uint64_t whole = ms ? 1000 : 1000000; step < whole; whole /= 10)
		decimals++;
	snprintf(text, size, "%.*f", decimals, (double)us / (ms ? 1e3 : 1e6));
}

static void draw_time(const struct drawing *drawing)
{
	const struct gt_timeline_chart *chart = drawing->chart;
	const struct gt_plot_area *area = &drawing->area;
	struct gt_type type = {11, GT_MUTED, GT_AT_MIDDLE, false, false};
	struct gt_pen pen = {GT_EDGE, 1, 0};
	uint64_t span = chart->to_us - chart->from_us, step = time_step(span);
	uint64_t us = (chart->from_us + step - 1) / step * step;
	const char *unit = span < 100000 ? "ms" : "s";
	double end =
		area->right - gt_text_length(type, unit) - 8; /* of the numbers: apart from it */
	char text[32];

	for (; us <= chart->to_us; us += step) {
		double x = x_of(drawing, us);

		gt_draw_line(area->canvas, x, area->bottom, x, area->bottom + 4, pen);
		time_text(text, sizeof(text), us, span, step);
		if (x + gt_text_length(type, text) / 2 < end)
			gt_draw_text(area->canvas, x, area->bottom + 16, type, text);
	}
	type.anchor = GT_AT_END;
	gt_draw_text(area->canvas, area->right, area->bottom + 16, type, unit);
}

/* Numbers of the steps in a row of their own, as many as fit. */
static void draw_steps(const struct drawing *drawing)
{
	const struct gt_timeline_chart *chart = drawing->chart;
	const struct gt_plot_area *area = &drawing->area;
	struct gt_type type = {11, GT_MUTED, GT_AT_START, false, false};
	struct gt_pen pen = {GT_EDGE, 1, 0};
	double y = area->bottom + 32, end = 0;
	char text[32];

	if (!chart->step_count)
		return;
	gt_draw_text(area->canvas, area->left - 6, y,
		     (struct gt_type){11, GT_MUTED, GT_AT_END, false, false}, "step");
	for (size_t i = 0; i < chart->step_count; i++) {
		double x = x_of(drawing, chart->step_us[i]);

		snprintf(text, sizeof(text), "%zu", chart->first_step + i);
		if (x < end || x + gt_text_length(type, text) + 4 > area->right)
			continue;
		gt_draw_line(area->canvas, x, y - 9, x, y + 1, pen);
		gt_draw_text(area->canvas, x + 3, y, type, text);
		end = x + gt_text_length(type, text) + 12;
	}
}

/* ---- all of it ------------------------------------------------------------------------------- */

static uint64_t most_of(const struct gt_timeline_chart *chart)
{
	uint64_t most = 1;

	for (size_t i = 0; i < GT_CHART_SLICES; i++) {
		most = chart->piles[i].sum > most ? chart->piles[i].sum : most;
		most = chart->held[i] > most ? chart->held[i] : most;
	}
	return most;
}

/* At the end of the line where no mark is. */
static bool name_right(const struct drawing *drawing)
{
	const struct gt_timeline_chart *chart = drawing->chart;

	for (size_t i = 0; i < chart->mark_count; i++)
		if (chart->marks[i].us >= chart->from_us && chart->marks[i].us <= chart->to_us &&
		    x_of(drawing, chart->marks[i].us) < drawing->area.left + 90)
			return true;
	return false;
}

void gt_timeline_draw(struct gt_canvas *canvas, const struct gt_timeline_chart *chart)
{
	struct drawing drawing = {
		.chart = chart,
		.area = {.canvas = canvas, .left = LEFT, .right = GT_CHART_WIDTH - GT_MARGIN},
	};
	struct gt_plot_area *area = &drawing.area;
	struct gt_legend legend = legend_of(chart);

	area->top = GT_HEAD_HEIGHT + BAND;
	area->bottom = area->top + PLOT_HEIGHT;
	gt_frame_scale(area, most_of(chart), chart->card);
	gt_frame_head(canvas, &chart->head);
	gt_frame_grid(area);
	draw_layers(&drawing);
	draw_marks(&drawing);
	gt_frame_card(area, chart->card, name_right(&drawing));
	draw_time(&drawing);
	draw_steps(&drawing);
	legend.card = chart->card && chart->card <= area->most;
	gt_legend_draw(area, area->bottom + (chart->step_count ? 46 : 30), &legend);
}
