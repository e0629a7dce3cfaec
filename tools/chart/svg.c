/* SPDX-License-Identifier: MIT */
/* See canvas.h: a picture for browsers and editors, with text that is text. */
#include "chart/canvas.h"

#include <stdlib.h>
#include "model/xalloc.h"
#include "page/text.h"

static void rectangle(struct gt_canvas *canvas, struct gt_xy at, struct gt_xy size, gt_color fill)
{
	fprintf(canvas->file,
		"<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" fill=\"#%06x\"/>\n",
		at.x, at.y, size.x, size.y, fill);
}

/* Steps are what shapes consist of: a move along one axis names only that. */
static void shape(struct gt_canvas *canvas, const struct gt_xy *points, size_t count, gt_color fill,
		  const char *name)
{
	fprintf(canvas->file, "<path fill=\"#%06x\" d=\"M%.2f %.2f", fill, points[0].x,
		points[0].y);
	for (size_t i = 1; i < count; i++) {
		if (points[i].y == points[i - 1].y)
			fprintf(canvas->file, "H%.2f", points[i].x);
		else if (points[i].x == points[i - 1].x)
			fprintf(canvas->file, "V%.2f", points[i].y);
		else
			fprintf(canvas->file, "L%.2f %.2f", points[i].x, points[i].y);
	}
	fputs("Z\">", canvas->file);
	if (name) {
		fputs("<title>", canvas->file);
		gt_page_put(canvas->file, name);
		fputs("</title>", canvas->file);
	}
	fputs("</path>\n", canvas->file);
}

static void line(struct gt_canvas *canvas, struct gt_xy from, struct gt_xy to, struct gt_pen pen)
{
	fprintf(canvas->file, "<path fill=\"none\" stroke=\"#%06x\" stroke-width=\"%.2f\"",
		pen.color, pen.width);
	if (pen.dash > 0)
		fprintf(canvas->file, " stroke-dasharray=\"%.1f %.1f\"", pen.dash, pen.dash / 2);
	fprintf(canvas->file, " d=\"M%.2f %.2fL%.2f %.2f\"/>\n", from.x, from.y, to.x, to.y);
}

static void text(struct gt_canvas *canvas, struct gt_xy at, struct gt_type type, const char *text)
{
	static const char *const anchors[] = {"", " text-anchor=\"middle\"",
					      " text-anchor=\"end\""};

	fprintf(canvas->file, "<text x=\"%.2f\" y=\"%.2f\" font-size=\"%g\" fill=\"#%06x\"%s%s%s>",
		at.x, at.y, type.size, type.color, anchors[type.anchor],
		type.bold ? " font-weight=\"bold\"" : "",
		type.halo ? " stroke=\"#ffffff\" stroke-width=\"3\" stroke-linejoin=\"round\" "
			    "paint-order=\"stroke\""
			  : "");
	gt_page_put(canvas->file, text);
	fputs("</text>\n", canvas->file);
}

static int finish(struct gt_canvas *canvas)
{
	int bad;

	fputs("</svg>\n", canvas->file);
	bad = ferror(canvas->file);
	free(canvas);
	return bad ? -1 : 0;
}

struct gt_canvas *gt_canvas_svg(FILE *file, double width, double height, const char *title)
{
	static const struct gt_canvas_kind kind = {rectangle, shape, line, text, finish};
	struct gt_canvas *canvas = gt_xcalloc(1, sizeof(*canvas));

	canvas->kind = &kind;
	fprintf(file,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%g\" height=\"%g\" "
		"viewBox=\"0 0 %g %g\" role=\"img\" "
		"font-family=\"DejaVu Sans,Verdana,sans-serif\">\n<title>",
		width, height, width, height);
	gt_page_put(file, title);
	fputs("</title>\n", file);
	return canvas;
}
