/* SPDX-License-Identifier: MIT */
/* See frame.h. Called by the charts. */
#include "chart/frame.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const uint8_t gt_layer_order[GT_CATEGORIES] = {
	GT_CATEGORY_WEIGHTS,	 GT_CATEGORY_OPTIMIZER, GT_CATEGORY_WORKSPACES,
	GT_CATEGORY_GRADIENTS,	 GT_CATEGORY_INPUTS,	GT_CATEGORY_ACTIVATIONS,
	GT_CATEGORY_TEMPORARIES, GT_CATEGORY_UNKNOWN,	GT_CATEGORY_NONE,
};

/* Told apart by eyes of all four kinds, next to each other in this order. */
gt_color gt_layer_color(enum gt_category category)
{
	static const gt_color colors[GT_CATEGORIES] = {
		[GT_CATEGORY_NONE] = 0x0072b2,	      [GT_CATEGORY_WEIGHTS] = 0x0072b2,
		[GT_CATEGORY_GRADIENTS] = 0x56b4e9,   [GT_CATEGORY_OPTIMIZER] = 0x009e73,
		[GT_CATEGORY_ACTIVATIONS] = 0xe69f00, [GT_CATEGORY_TEMPORARIES] = 0xd55e00,
		[GT_CATEGORY_INPUTS] = 0xf0e442,      [GT_CATEGORY_WORKSPACES] = 0xcc79a7,
		[GT_CATEGORY_UNKNOWN] = 0x4b535e,
	};

	return colors[category];
}

const char *gt_layer_name(enum gt_category category)
{
	return category ? gt_category_name(category) : "in use";
}

static double luminance(gt_color color)
{
	static const double weights[] = {0.0722, 0.7152, 0.2126};
	double sum = 0;

	for (int i = 0; i < 3; i++) {
		double value = (color >> 8 * i & 255) / 255.0;

		value = value <= 0.04045 ? value / 12.92 : pow((value + 0.055) / 1.055, 2.4);
		sum += weights[i] * value;
	}
	return sum;
}

gt_color gt_ink_on(gt_color fill)
{
	return 1.05 / (luminance(fill) + 0.05) >= 4.5 ? 0xffffff : 0x000000;
}

void gt_frame_head(struct gt_canvas *canvas, const struct gt_chart_head *head)
{
	struct gt_type title = {17, head->failed ? GT_FAILURE : GT_TEXT, GT_AT_START, true, false};
	struct gt_type note = {12, GT_MUTED, GT_AT_START, false, false};
	double room = canvas->width - 2 * GT_MARGIN;

	while (title.size > 13 && gt_text_length(title, head->title) > room)
		title.size -= 1;
	gt_draw_text_in(canvas, GT_MARGIN, 29, room, title, head->title);
	gt_draw_text_in(canvas, GT_MARGIN, 49, room, note, head->note);
}

/* ---- the axis of memory ---------------------------------------------------------------------- */

/* A card much larger than all that was asked for would leave the data a strip at the bottom. */
static bool in_reach(uint64_t most, uint64_t card)
{
	return card && card / 4 < most;
}

void gt_frame_scale(struct gt_plot_area *frame, uint64_t most, uint64_t card)
{
	frame->unit = gt_unit_for(most);
	if (in_reach(most, card) && card > most)
		most = card;
	frame->most = most + most / 20 + 1;
}

double gt_frame_y(const struct gt_plot_area *frame, uint64_t bytes)
{
	return frame->bottom - (frame->bottom - frame->top) * (double)bytes / (double)frame->most;
}

/* Steps are powers of two: memory comes in them, and so a card's size is a round number. */
static uint64_t tick_of(const struct gt_plot_area *frame)
{
	uint64_t step = (uint64_t)gt_unit_bytes(frame->unit);

	while (frame->most / step > 6)
		step *= 2;
	return step;
}

void gt_frame_grid(const struct gt_plot_area *frame)
{
	struct gt_type type = {11, GT_MUTED, GT_AT_END, false, false};
	struct gt_pen grid = {GT_GRID, 1, 0}, axis = {GT_EDGE, 1, 0};
	uint64_t step = tick_of(frame);
	char text[32];

	for (uint64_t bytes = 0; bytes <= frame->most; bytes += step) {
		double y = gt_frame_y(frame, bytes);

		gt_draw_line(frame->canvas, frame->left, y, frame->right, y, bytes ? grid : axis);
		snprintf(text, sizeof(text), "%lld", gt_in_unit((int64_t)bytes, frame->unit));
		gt_draw_text(frame->canvas, frame->left - 6, y + 4, type, text);
	}
	gt_draw_text(frame->canvas, frame->left - 6, frame->top - 6, type,
		     gt_unit_name(frame->unit));
}

void gt_frame_card(const struct gt_plot_area *frame, uint64_t card, bool name_right)
{
	struct gt_type type = {11, GT_FAILURE, name_right ? GT_AT_END : GT_AT_START, false, true};
	struct gt_pen pen = {GT_FAILURE, 1.5, 6};
	double y = gt_frame_y(frame, card);
	char text[48];

	if (!card || card > frame->most)
		return;
	gt_draw_line(frame->canvas, frame->left, y, frame->right, y, pen);
	snprintf(text, sizeof(text), "card %lld", gt_in_unit((int64_t)card, frame->unit));
	gt_draw_text(frame->canvas, name_right ? frame->right - 4 : frame->left + 4, y - 4, type,
		     text);
}

/* ---- legend ---------------------------------------------------------------------------------- */

struct entries {
	const struct gt_plot_area *frame;
	double x, y;
};

static const struct gt_type legend_type = {12, GT_TEXT, GT_AT_START, false, false};

/* Room for an entry, in this row or the next. */
static void begin_entry(struct entries *entries, const char *text)
{
	double width = 16 + gt_text_length(legend_type, text);

	if (entries->x + width > entries->frame->right && entries->x > entries->frame->left) {
		entries->x = entries->frame->left;
		entries->y += GT_LEGEND_ROW;
	}
	gt_draw_text(entries->frame->canvas, entries->x + 16, entries->y + 10, legend_type, text);
}

static void end_entry(struct entries *entries, const char *text)
{
	entries->x += 16 + gt_text_length(legend_type, text) + 16;
}

static void box(struct entries *entries, gt_color fill, const char *text)
{
	struct gt_canvas *canvas = entries->frame->canvas;

	begin_entry(entries, text);
	gt_draw_rectangle(canvas, entries->x, entries->y, 11, 11, GT_EDGE);
	gt_draw_rectangle(canvas, entries->x + 1, entries->y + 1, 9, 9, fill);
	end_entry(entries, text);
}

static void dash(struct entries *entries, struct gt_pen pen, const char *text)
{
	begin_entry(entries, text);
	gt_draw_line(entries->frame->canvas, entries->x - 1, entries->y + 6, entries->x + 12,
		     entries->y + 6, pen);
	end_entry(entries, text);
}

double gt_legend_height(const struct gt_legend *legend)
{
	size_t layers = 0;

	for (int c = 0; c < GT_CATEGORIES; c++)
		layers += legend->seen[c];
	return layers > 4 ? 2 * GT_LEGEND_ROW : GT_LEGEND_ROW;
}

static void layers(struct entries *entries, const struct gt_legend *legend)
{
	int64_t divisor = gt_unit_bytes(entries->frame->unit);
	int64_t parts[GT_CATEGORIES], whole[GT_CATEGORIES];

	for (int i = 0; i < GT_CATEGORIES; i++)
		parts[i] = (int64_t)legend->peak.bytes[gt_layer_order[i]];
	gt_apportion(parts, GT_CATEGORIES, divisor, gt_round_to((int64_t)legend->peak.sum, divisor),
		     whole);
	for (int i = GT_CATEGORIES; i-- > 0;) {
		char text[64];

		if (!legend->seen[gt_layer_order[i]])
			continue;
		snprintf(text, sizeof(text), whole[i] || !parts[i] ? "%s %lld" : "%s <1",
			 gt_layer_name(gt_layer_order[i]), (long long)whole[i]);
		box(entries, gt_layer_color(gt_layer_order[i]), text);
	}
}

void gt_legend_draw(const struct gt_plot_area *frame, double y, const struct gt_legend *legend)
{
	struct entries entries = {frame, frame->left, y};

	gt_draw_text(frame->canvas, entries.x, entries.y + 10,
		     (struct gt_type){12, GT_MUTED, GT_AT_START, false, false}, legend->when);
	entries.x += gt_text_length(legend_type, legend->when) + 14;
	layers(&entries, legend);
	if (legend->cached)
		box(&entries, GT_CACHED, "cached");
	if (legend->line)
		dash(&entries, (struct gt_pen){0x000000, 2, 0}, legend->line);
	if (legend->card)
		dash(&entries, (struct gt_pen){GT_FAILURE, 1.5, 6}, "the card's limit");
}
