/* SPDX-License-Identifier: MIT */
/* See view.h: keys change the choice, nothing else. */
#include "live/view.h"

#include <stdlib.h>

const char *gt_live_sort_name(enum gt_live_sort sort)
{
	static const char *const names[] = {
		[GT_LIVE_BY_BYTES] = "bytes",
		[GT_LIVE_BY_GROWTH] = "growth",
		[GT_LIVE_BY_COUNT] = "blocks",
		[GT_LIVE_BY_RATE] = "allocs/s",
	};

	return names[sort];
}

const char *gt_live_total_name(uint32_t total)
{
	static const char *const names[] = {
		[GT_TOTAL_RESERVED] = "driver",
		[GT_TOTAL_TORCH] = "torch",
		[GT_TOTAL_IN_USE] = "in use",
	};

	return names[total];
}

size_t gt_view_place(const struct gt_view *view, struct gt_live_row *const *rows, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (rows[i] == view->row)
			return i;
	return 0;
}

static size_t moved(size_t place, size_t count, size_t page, int key)
{
	const size_t last = count ? count - 1 : 0;

	switch (key) {
	case GT_KEY_UP:
		return place ? place - 1 : 0;
	case GT_KEY_DOWN:
		return place < last ? place + 1 : last;
	case GT_KEY_PAGE_UP:
		return place > page ? place - page : 0;
	case GT_KEY_PAGE_DOWN:
		return place + page < last ? place + page : last;
	case GT_KEY_HOME:
		return 0;
	case GT_KEY_END:
		return last;
	default:
		return place;
	}
}

/* Through the rows; of a stack through its lines, as far as drawing lets them go. */
static void move(struct gt_view *view, const struct gt_live *live, int key)
{
	struct gt_live_row **rows;
	size_t count;

	if (view->stack) {
		view->top = moved(view->top, SIZE_MAX, view->page, key);
		return;
	}
	rows = gt_live_sorted(live, view->process, view->total, view->sort, &count);
	if (count)
		view->row = rows[moved(gt_view_place(view, rows, count), count, view->page, key)];
	free(rows);
}

static void next_process(struct gt_view *view, const struct gt_live *live)
{
	view->process = view->process == SIZE_MAX ? 0 : view->process + 1;
	if (view->process >= live->count)
		view->process = SIZE_MAX;
	view->row = NULL;
	view->stack = false;
	view->top = 0;
}

static void open_stack(struct gt_view *view, const struct gt_live *live)
{
	if (!view->row)
		move(view, live, GT_KEY_HOME);
	view->stack = view->row;
	view->top = 0;
}

static void back(struct gt_view *view)
{
	if (view->stack)
		view->top = 0;
	view->help = false;
	view->stack = false;
}

/* Slower and faster by two, between ten looks a second and one a minute. */
static void change_pace(struct gt_view *view, double factor)
{
	double every = view->every * factor;

	view->every = every < 0.1 ? 0.1 : every > 60 ? 60 : every;
}

void gt_view_key(struct gt_view *view, const struct gt_live *live, int key)
{
	static const uint32_t next_total[] = {
		[GT_TOTAL_IN_USE] = GT_TOTAL_TORCH,
		[GT_TOTAL_TORCH] = GT_TOTAL_RESERVED,
		[GT_TOTAL_RESERVED] = GT_TOTAL_IN_USE,
	};

	switch (key) {
	case 'q':
		view->quit = true;
		break;
	case 'p':
	case ' ':
		view->paused = !view->paused;
		break;
	case 's':
		view->sort = (view->sort + 1) % GT_LIVE_SORTS;
		break;
	case 'l':
		view->total = next_total[view->total];
		break;
	case '\t':
		next_process(view, live);
		break;
	case '\r':
	case '\n':
		open_stack(view, live);
		break;
	case '-':
	case '+':
		change_pace(view, key == '-' ? 2 : 0.5);
		break;
	case '?':
	case 'h':
		view->help = !view->help;
		break;
	case GT_KEY_BACK:
		back(view);
		break;
	default:
		move(view, live, key == 'k' ? GT_KEY_UP : key == 'j' ? GT_KEY_DOWN : key);
	}
}
