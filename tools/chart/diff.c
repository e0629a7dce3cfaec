/* SPDX-License-Identifier: MIT */
/*
 * What changed, line by line: bars to the right are more in B, to the left less; each has its sign in
 * print beside it. Rows add up to the last one as printed. Called from cmd/chart.c.
 */
#include "chart/frame.h"

#include <stdlib.h>
#include <string.h>
#include "model/xalloc.h"

#define ROW   24.0
#define NAMES 350.0 /* columns, from the left */
#define A_END 430.0
#define B_END 505.0
#define BARS  580.0 /* the space of the bars, behind that of the numbers of those to the left */

double gt_diff_height(const struct gt_diff_chart *chart)
{
	return GT_HEAD_HEIGHT + 28 + ROW * (double)(chart->row_count + 1) + 24;
}

struct scale {
	double zero, each; /* where nothing is; of a byte */
};

/* Only as much to the left as something becomes less. */
static struct scale scale_of(const struct gt_diff_chart *chart)
{
	double less = 0, more = 0, room = GT_CHART_WIDTH - GT_MARGIN - 70 - BARS;
	struct scale scale;

	for (size_t i = 0; i < chart->row_count; i++) {
		double change = (double)chart->rows[i].b - (double)chart->rows[i].a;

		more = change > more ? change : more;
		less = -change > less ? -change : less;
	}
	scale.each = less + more > 0 ? room / (less + more) : 0;
	scale.zero = BARS + less * scale.each;
	return scale;
}

static void put_number(struct gt_canvas *canvas, double x, double y, bool heavy, int64_t value,
		       uint64_t bytes)
{
	struct gt_type type = {12, GT_TEXT, GT_AT_END, heavy, false};
	char text[32];

	snprintf(text, sizeof(text), value || !bytes ? "%lld" : "<1", (long long)value);
	gt_draw_text(canvas, x, y, type, text);
}

static void draw_bar(struct gt_canvas *canvas, struct scale scale, double y, double change,
		     int64_t printed, bool heavy)
{
	double width = (change < 0 ? -change : change) * scale.each;
	struct gt_type type = {12, change < 0 ? GT_LESS_TEXT : GT_MORE_TEXT,
			       change < 0 ? GT_AT_END : GT_AT_START, heavy, false};
	char text[32];

	snprintf(text, sizeof(text),
		 printed      ? "%+lld"
		 : change < 0 ? "-<1"
			      : "+<1",
		 (long long)printed);
	if (change == 0) {
		type.color = GT_MUTED;
		snprintf(text, sizeof(text), "0");
	}
	if (heavy)
		width = 0;
	gt_draw_rectangle(canvas, change < 0 ? scale.zero - width : scale.zero, y - 12, width, 16,
			  change < 0 ? GT_LESS_FILL : GT_MORE_FILL);
	gt_draw_text(canvas, change < 0 ? scale.zero - width - 6 : scale.zero + width + 6, y, type,
		     text);
}

static void draw_row(struct gt_canvas *canvas, struct scale scale, double y,
		     const struct gt_chart_change *row, int64_t a, int64_t b, bool heavy)
{
	struct gt_type type = {12, GT_TEXT, GT_AT_START, heavy, false};

	gt_draw_text_in(canvas, GT_MARGIN, y, NAMES - GT_MARGIN, type, row->name);
	put_number(canvas, A_END, y, heavy, a, row->a);
	put_number(canvas, B_END, y, heavy, b, row->b);
	draw_bar(canvas, scale, y, (double)row->b - (double)row->a, b - a, heavy);
}

static int64_t *apportion(const struct gt_diff_chart *chart, bool second, int64_t divisor)
{
	int64_t *parts = gt_xcalloc(chart->row_count + 1, sizeof(*parts));
	int64_t *result = gt_xcalloc(chart->row_count + 1, sizeof(*result));
	uint64_t whole = second ? chart->whole.b : chart->whole.a;

	for (size_t i = 0; i < chart->row_count; i++)
		parts[i] = (int64_t)(second ? chart->rows[i].b : chart->rows[i].a);
	gt_apportion(parts, chart->row_count, divisor, gt_round_to((int64_t)whole, divisor),
		     result);
	free(parts);
	return result;
}

static void draw_titles(struct gt_canvas *canvas, enum gt_unit unit, double y, double zero)
{
	struct gt_type type = {12, GT_MUTED, GT_AT_END, false, false};
	struct gt_pen pen = {GT_EDGE, 1, 0};
	char text[64];

	gt_draw_text(canvas, A_END, y, type, "A");
	gt_draw_text(canvas, B_END, y, type, "B");
	type.anchor = GT_AT_START;
	snprintf(text, sizeof(text), "In use by lines, %s", gt_unit_name(unit));
	gt_draw_text(canvas, GT_MARGIN, y, type, text);
	gt_draw_text(canvas, zero + 6, y, type, "B - A");
	gt_draw_line(canvas, GT_MARGIN, y + 7, GT_CHART_WIDTH - GT_MARGIN, y + 7, pen);
}

void gt_diff_draw(struct gt_canvas *canvas, const struct gt_diff_chart *chart)
{
	uint64_t most = chart->whole.a > chart->whole.b ? chart->whole.a : chart->whole.b;
	enum gt_unit unit = gt_unit_for(most);
	int64_t divisor = gt_unit_bytes(unit);
	int64_t *a = apportion(chart, false, divisor), *b = apportion(chart, true, divisor);
	struct scale scale = scale_of(chart);
	double top = GT_HEAD_HEIGHT + 18, y = top;
	struct gt_pen pen = {GT_EDGE, 1, 0};

	gt_frame_head(canvas, &chart->head);
	draw_titles(canvas, unit, y, scale.zero);
	for (size_t i = 0; i < chart->row_count; i++)
		draw_row(canvas, scale, y += ROW, &chart->rows[i], a[i], b[i], false);
	gt_draw_line(canvas, scale.zero, top + 7, scale.zero, y + 10, pen);
	gt_draw_line(canvas, GT_MARGIN, y + 10, GT_CHART_WIDTH - GT_MARGIN, y + 10, pen);
	draw_row(canvas, scale, y + ROW + 4, &chart->whole,
		 gt_in_unit((int64_t)chart->whole.a, unit),
		 gt_in_unit((int64_t)chart->whole.b, unit), true);
	free(a);
	free(b);
}
