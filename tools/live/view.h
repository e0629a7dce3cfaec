/* SPDX-License-Identifier: MIT */
/* What is shown of the processes: the user's choices, changed by keys; and how it is drawn. */
#ifndef GT_LIVE_VIEW_H
#define GT_LIVE_VIEW_H

#include "live/live.h"
#include "live/screen.h"

enum gt_live_key { /* others are characters */
		   GT_KEY_UP = 256,
		   GT_KEY_DOWN,
		   GT_KEY_PAGE_UP,
		   GT_KEY_PAGE_DOWN,
		   GT_KEY_HOME,
		   GT_KEY_END,
		   GT_KEY_BACK, /* escape, backspace */
};

struct gt_view {
	bool quit, paused, help;
	bool once;	/* no keys: printed, not looked at */
	bool stack;	/* of the chosen row, in place of the rows */
	size_t process; /* whose rows; SIZE_MAX = all */
	uint32_t total; /* enum gt_total */
	enum gt_live_sort sort;
	double every;		       /* seconds between looks */
	const struct gt_live_row *row; /* chosen; NULL = the first */
	size_t top;		       /* first line of the list that is shown */
	size_t page;		       /* lines of it: set by drawing */
	const char *nothing;	       /* said while there is no process */
};

void gt_view_key(struct gt_view *view, const struct gt_live *live, int key);

/* Place of the chosen row in the sorted rows; it stays the same row when they move. */
size_t gt_view_place(const struct gt_view *view, struct gt_live_row *const *rows, size_t count);

const char *gt_live_sort_name(enum gt_live_sort sort);
const char *gt_live_total_name(uint32_t total);

/* draw.c */
void gt_live_draw(struct gt_screen *screen, struct gt_live *live, struct gt_view *view);

/* terminal.c: shows the processes until the user has enough. find: called before each look. */
int gt_live_terminal(struct gt_live *live, struct gt_view *view, bool utf8,
		     void (*find)(struct gt_live *live, void *ctx), void *ctx);

#endif
