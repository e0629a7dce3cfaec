/* SPDX-License-Identifier: MIT */
/*
 * A surface to draw a chart on: rectangles, shapes, lines, text. One drawing code for three kinds of
 * file. SVG is written here, not by cairo: cairo turns text into outlines, and then nobody can
 * search, copy or hear it; also it needs no library. PNG and PDF are cairo's, which is loaded when
 * one is asked for: linking it would make every other command start three times as slowly.
 *
 * The same calls give the same bytes: no dates, no addresses.
 */
#ifndef GT_CHART_CANVAS_H
#define GT_CHART_CANVAS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum gt_picture {
	GT_PICTURE_NONE,
	GT_PICTURE_SVG,
	GT_PICTURE_PNG,
	GT_PICTURE_PDF,
	GT_PICTURE_OTHER, /* a picture of a kind that is not made here */
};

/* By the end of the name, whatever its case; NULL is none. */
enum gt_picture gt_picture_of(const char *path);

typedef uint32_t gt_color; /* 0xrrggbb */

enum gt_anchor {
	GT_AT_START,
	GT_AT_MIDDLE,
	GT_AT_END,
};

struct gt_type { /* how text looks */
	double size;
	gt_color color;
	enum gt_anchor anchor;
	bool bold;
	bool halo; /* on the background's colour, where lines pass behind it */
};

struct gt_xy {
	double x, y;
};

struct gt_pen {
	gt_color color;
	double width;
	double dash; /* 0 = an unbroken line */
};

struct gt_canvas;

struct gt_canvas_kind { /* what a kind of file does; see gt_draw_* */
	void (*rectangle)(struct gt_canvas *canvas, struct gt_xy at, struct gt_xy size,
			  gt_color fill);
	void (*shape)(struct gt_canvas *canvas, const struct gt_xy *points, size_t count,
		      gt_color fill, const char *name);
	void (*line)(struct gt_canvas *canvas, struct gt_xy from, struct gt_xy to,
		     struct gt_pen pen);
	void (*text)(struct gt_canvas *canvas, struct gt_xy at, struct gt_type type,
		     const char *text);
	int (*finish)(struct gt_canvas *canvas); /* frees; 0, or -1: not everything was written */
};

struct gt_canvas {
	const struct gt_canvas_kind *kind;
	FILE *file;
	double width, height;
};

/* Is there what this kind of file needs? */
bool gt_canvas_can(enum gt_picture picture);

/* A white one, of a kind that can be made; title is for those who cannot see it. */
struct gt_canvas *gt_canvas_new(FILE *file, enum gt_picture picture, double width, double height,
				const char *title);

/* The kinds; called by gt_canvas_new. */
struct gt_canvas *gt_canvas_svg(FILE *file, double width, double height, const char *title);
struct gt_canvas *gt_canvas_cairo(FILE *file, enum gt_picture picture, double width, double height,
				  const char *title);
bool gt_canvas_cairo_is_here(void);

/* A line that is one pixel wide lies between pixels: whoever draws need not think of it. */
void gt_draw_rectangle(struct gt_canvas *canvas, double x, double y, double width, double height,
		       gt_color fill);
void gt_draw_shape(struct gt_canvas *canvas, const struct gt_xy *points, size_t count,
		   gt_color fill, const char *name);
void gt_draw_line(struct gt_canvas *canvas, double x0, double y0, double x1, double y1,
		  struct gt_pen pen);

/* Names from a trace: what a terminal or a browser would obey, or nobody would see, is escaped. */
void gt_draw_text(struct gt_canvas *canvas, double x, double y, struct gt_type type,
		  const char *text);
/* Cut in its middle where it would be wider. */
void gt_draw_text_in(struct gt_canvas *canvas, double x, double y, double width,
		     struct gt_type type, const char *text);

double gt_text_length(struct gt_type type, const char *text);

#endif
