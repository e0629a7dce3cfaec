/* SPDX-License-Identifier: MIT */
/*
 * See canvas.h: PNG and PDF, by cairo. It is loaded and not linked: with what it needs it is twenty
 * libraries, and every command would pay for them at its start. Where it is not installed these two
 * kinds of file cannot be written, and the message says so; all else works.
 */
#include "chart/canvas.h"

#include <cairo/cairo-pdf.h>
#include <cairo/cairo.h>
#include <dlfcn.h>
#include <stdlib.h>
#include "model/xalloc.h"

#define LIBRARY "libcairo.so.2"
#define SCALE	2.0 /* pixels of a PNG per unit: screens have them, and text stays sharp */

#define FUNCTIONS(X)                           \
	X(cairo_image_surface_create)          \
	X(cairo_pdf_surface_create_for_stream) \
	X(cairo_pdf_surface_set_metadata)      \
	X(cairo_surface_write_to_png_stream)   \
	X(cairo_surface_destroy)               \
	X(cairo_surface_finish)                \
	X(cairo_surface_status)                \
	X(cairo_create)                        \
	X(cairo_destroy)                       \
	X(cairo_scale)                         \
	X(cairo_set_source_rgb)                \
	X(cairo_set_line_width)                \
	X(cairo_set_line_join)                 \
	X(cairo_set_dash)                      \
	X(cairo_rectangle)                     \
	X(cairo_move_to)                       \
	X(cairo_line_to)                       \
	X(cairo_close_path)                    \
	X(cairo_fill)                          \
	X(cairo_stroke)                        \
	X(cairo_select_font_face)              \
	X(cairo_set_font_size)                 \
	X(cairo_text_extents)                  \
	X(cairo_text_path)                     \
	X(cairo_show_text)

#define FUNCTION(name) __typeof__(&name) name;
/* Once it is known that they are here. */
static struct {
	FUNCTIONS(FUNCTION)
} call;

struct cairo_canvas {
	struct gt_canvas canvas;
	cairo_surface_t *surface;
	cairo_t *cairo;
	bool png;
};

static struct cairo_canvas *mine(struct gt_canvas *canvas)
{
	return (struct cairo_canvas *)canvas;
}

bool gt_canvas_cairo_is_here(void)
{
	void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	bool all = library;

#define LOAD(name) all = all && (call.name = (__typeof__(&name))dlsym(library, #name));
	FUNCTIONS(LOAD)
	return all;
}

static void set_color(struct cairo_canvas *c, gt_color color)
{
	call.cairo_set_source_rgb(c->cairo, (color >> 16) / 255.0, (color >> 8 & 255) / 255.0,
				  (color & 255) / 255.0);
}

static void rectangle(struct gt_canvas *canvas, struct gt_xy at, struct gt_xy size, gt_color fill)
{
	struct cairo_canvas *c = mine(canvas);

	set_color(c, fill);
	call.cairo_rectangle(c->cairo, at.x, at.y, size.x, size.y);
	call.cairo_fill(c->cairo);
}

static void shape(struct gt_canvas *canvas, const struct gt_xy *points, size_t count, gt_color fill,
		  const char *name)
{
	struct cairo_canvas *c = mine(canvas);

	(void)name;
	set_color(c, fill);
	call.cairo_move_to(c->cairo, points[0].x, points[0].y);
	for (size_t i = 1; i < count; i++)
		call.cairo_line_to(c->cairo, points[i].x, points[i].y);
	call.cairo_close_path(c->cairo);
	call.cairo_fill(c->cairo);
}

static void line(struct gt_canvas *canvas, struct gt_xy from, struct gt_xy to, struct gt_pen pen)
{
	struct cairo_canvas *c = mine(canvas);
	const double dashes[] = {pen.dash, pen.dash / 2};

	set_color(c, pen.color);
	call.cairo_set_line_width(c->cairo, pen.width);
	call.cairo_set_dash(c->cairo, dashes, pen.dash > 0 ? 2 : 0, 0);
	call.cairo_move_to(c->cairo, from.x, from.y);
	call.cairo_line_to(c->cairo, to.x, to.y);
	call.cairo_stroke(c->cairo);
}

static void put_halo(struct cairo_canvas *c, struct gt_xy at, const char *text)
{
	set_color(c, 0xffffff);
	call.cairo_set_line_width(c->cairo, 3);
	call.cairo_set_line_join(c->cairo, CAIRO_LINE_JOIN_ROUND);
	call.cairo_set_dash(c->cairo, NULL, 0, 0);
	call.cairo_move_to(c->cairo, at.x, at.y);
	call.cairo_text_path(c->cairo, text);
	call.cairo_stroke(c->cairo);
}

static void text(struct gt_canvas *canvas, struct gt_xy at, struct gt_type type, const char *text)
{
	struct cairo_canvas *c = mine(canvas);
	cairo_text_extents_t extents;

	call.cairo_select_font_face(c->cairo, "DejaVu Sans", CAIRO_FONT_SLANT_NORMAL,
				    type.bold ? CAIRO_FONT_WEIGHT_BOLD : CAIRO_FONT_WEIGHT_NORMAL);
	call.cairo_set_font_size(c->cairo, type.size);
	call.cairo_text_extents(c->cairo, text, &extents);
	if (type.anchor != GT_AT_START)
		at.x -= extents.x_advance / (type.anchor == GT_AT_MIDDLE ? 2 : 1);
	if (type.halo)
		put_halo(c, at, text);
	set_color(c, type.color);
	call.cairo_move_to(c->cairo, at.x, at.y);
	call.cairo_show_text(c->cairo, text);
}

static cairo_status_t put(void *file, const unsigned char *data, unsigned int length)
{
	return fwrite(data, 1, length, file) == length ? CAIRO_STATUS_SUCCESS
						       : CAIRO_STATUS_WRITE_ERROR;
}

static int finish(struct gt_canvas *canvas)
{
	struct cairo_canvas *c = mine(canvas);
	cairo_status_t status = CAIRO_STATUS_SUCCESS;

	call.cairo_destroy(c->cairo);
	if (c->png)
		status = call.cairo_surface_write_to_png_stream(c->surface, put, canvas->file);
	call.cairo_surface_finish(c->surface);
	if (!status)
		status = call.cairo_surface_status(c->surface);
	call.cairo_surface_destroy(c->surface);
	free(c);
	return status ? -1 : 0;
}

/* A date in the file would make two files of one trace differ. */
static cairo_surface_t *make_pdf(FILE *file, double width, double height, const char *title)
{
	cairo_surface_t *surface =
		call.cairo_pdf_surface_create_for_stream(put, file, width, height);

	call.cairo_pdf_surface_set_metadata(surface, CAIRO_PDF_METADATA_TITLE, title);
	call.cairo_pdf_surface_set_metadata(surface, CAIRO_PDF_METADATA_CREATOR, "gputrace");
	call.cairo_pdf_surface_set_metadata(surface, CAIRO_PDF_METADATA_CREATE_DATE,
					    "2000-01-01T00:00:00Z");
	return surface;
}

struct gt_canvas *gt_canvas_cairo(FILE *file, enum gt_picture picture, double width, double height,
				  const char *title)
{
	static const struct gt_canvas_kind kind = {rectangle, shape, line, text, finish};
	struct cairo_canvas *c = gt_xcalloc(1, sizeof(*c));

	c->png = picture == GT_PICTURE_PNG;
	c->canvas.kind = &kind;
	c->surface =
		c->png ? call.cairo_image_surface_create(CAIRO_FORMAT_RGB24, (int)(width * SCALE),
							 (int)(height * SCALE))
		       : make_pdf(file, width, height, title);
	c->cairo = call.cairo_create(c->surface);
	if (c->png)
		call.cairo_scale(c->cairo, SCALE, SCALE);
	return &c->canvas;
}
