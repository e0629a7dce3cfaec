/* SPDX-License-Identifier: MIT */
/*
 * See canvas.h. Text is laid out by the widths of DejaVu Sans, which Debian has and cairo takes, so
 * that the three kinds of file agree to the pixel; where a browser has another font it is one as wide
 * (Verdana) or narrower. Called from timeline.c and bars.c.
 */
#include "chart/canvas.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "out/out.h"
#include "page/text.h"

enum gt_picture gt_picture_of(const char *path)
{
	static const char *const others[] = {".jpg", ".jpeg", ".gif", ".webp", ".bmp",
					     ".eps", ".ps",   ".tif", ".tiff"};
	const char *end = path ? strrchr(path, '.') : NULL;

	if (!end)
		return GT_PICTURE_NONE;
	if (!strcasecmp(end, ".svg"))
		return GT_PICTURE_SVG;
	if (!strcasecmp(end, ".png"))
		return GT_PICTURE_PNG;
	if (!strcasecmp(end, ".pdf"))
		return GT_PICTURE_PDF;
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (!strcasecmp(end, others[i]))
			return GT_PICTURE_OTHER;
	return GT_PICTURE_NONE;
}

bool gt_canvas_can(enum gt_picture picture)
{
	return picture == GT_PICTURE_SVG || gt_canvas_cairo_is_here();
}

struct gt_canvas *gt_canvas_new(FILE *file, enum gt_picture picture, double width, double height,
				const char *title)
{
	struct gt_canvas *canvas = picture == GT_PICTURE_SVG
					   ? gt_canvas_svg(file, width, height, title)
					   : gt_canvas_cairo(file, picture, width, height, title);

	canvas->file = file;
	canvas->width = width;
	canvas->height = height;
	gt_draw_rectangle(canvas, 0, 0, width, height, 0xffffff);
	return canvas;
}

/* ---- shapes ---------------------------------------------------------------------------------- */

void gt_draw_rectangle(struct gt_canvas *canvas, double x, double y, double width, double height,
		       gt_color fill)
{
	if (width > 0 && height > 0)
		canvas->kind->rectangle(canvas, (struct gt_xy){x, y}, (struct gt_xy){width, height},
					fill);
}

void gt_draw_shape(struct gt_canvas *canvas, const struct gt_xy *points, size_t count,
		   gt_color fill, const char *name)
{
	if (count > 2)
		canvas->kind->shape(canvas, points, count, fill, name);
}

/* The middle of the nearest pixel, for lines of odd width. */
static double sharp(double at, double width)
{
	double whole = (double)(long)(at + 0.5);

	return width < 1.25 ? whole - 0.5 : whole;
}

void gt_draw_line(struct gt_canvas *canvas, double x0, double y0, double x1, double y1,
		  struct gt_pen pen)
{
	if (x0 == x1)
		x0 = x1 = sharp(x0, pen.width);
	if (y0 == y1)
		y0 = y1 = sharp(y0, pen.width);
	canvas->kind->line(canvas, (struct gt_xy){x0, y0}, (struct gt_xy){x1, y1}, pen);
}

/* ---- text ------------------------------------------------------------------------------------ */

/* Thousandths of its size that each character from space to ~ takes. */
static const uint16_t regular[95] = {
	318,  401, 460, 838, 636, 950, 780, 275, 390, 390, 500, 838, 318, 361, 318, 337,
	636,  636, 636, 636, 636, 636, 636, 636, 636, 636, 337, 337, 838, 838, 838, 531,
	1000, 684, 686, 698, 770, 632, 575, 775, 752, 295, 295, 656, 557, 863, 748, 787,
	603,  787, 695, 635, 611, 732, 684, 989, 685, 611, 685, 390, 337, 390, 838, 500,
	500,  613, 635, 550, 635, 615, 352, 635, 634, 278, 278, 579, 278, 974, 634, 612,
	635,  635, 411, 521, 392, 634, 592, 818, 592, 592, 525, 636, 337, 636, 838,
};
static const uint16_t bold[95] = {
	348,  456, 521, 838, 696, 1002, 872, 306,  457, 457, 523, 838, 380, 415,  380, 365,
	696,  696, 696, 696, 696, 696,	696, 696,  696, 696, 400, 400, 838, 838,  838, 580,
	1000, 774, 762, 734, 830, 683,	683, 821,  837, 372, 372, 775, 637, 995,  837, 850,
	733,  850, 770, 720, 682, 812,	774, 1103, 771, 724, 725, 457, 365, 457,  838, 500,
	500,  675, 716, 593, 716, 678,	435, 716,  712, 343, 343, 665, 343, 1042, 712, 687,
	716,  716, 493, 595, 478, 712,	652, 924,  645, 652, 582, 712, 365, 712,  838,
};

/* Letters beyond ASCII count as wide ones: a sum too large leaves room, one too small overlaps. */
double gt_text_length(struct gt_type type, const char *text)
{
	const uint16_t *widths = type.bold ? bold : regular;
	double sum = 0;

	for (const unsigned char *at = (const unsigned char *)text; *at; at++) {
		if (*at >= 32 && *at < 127)
			sum += widths[*at - 32];
		else if ((*at & 0xc0) != 0x80)
			sum += *at < 0xe0 ? 700 : 1000;
	}
	return sum * type.size / 1000;
}

void gt_draw_text(struct gt_canvas *canvas, double x, double y, struct gt_type type,
		  const char *text)
{
	char *clean = gt_page_clean(text, strlen(text));

	if (*clean)
		canvas->kind->text(canvas, (struct gt_xy){x, y}, type, clean);
	free(clean);
}

void gt_draw_text_in(struct gt_canvas *canvas, double x, double y, double width,
		     struct gt_type type, const char *text)
{
	char *clean = gt_page_clean(text, strlen(text));
	size_t columns = gt_text_width(clean);

	while (gt_text_length(type, clean) > width && columns > 8)
		gt_cut_text(clean, --columns);
	if (*clean && gt_text_length(type, clean) <= width)
		canvas->kind->text(canvas, (struct gt_xy){x, y}, type, clean);
	free(clean);
}
