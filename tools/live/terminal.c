/* SPDX-License-Identifier: MIT */
/*
 * See view.h: the only file that knows ncurses. Cells go to the terminal as they are, keys become
 * those of view.h; between two looks it waits for a key, no longer. The terminal is as it was when
 * this returns, also after an interrupt.
 */
#define _GNU_SOURCE
#include <ncurses.h>
#include <signal.h>
#include <stdlib.h>
#include "live/view.h"

#define NAMING_SECONDS 0.1 /* but none at first: numbers are there at once */

static volatile sig_atomic_t stopped;

static void stop(int signal)
{
	(void)signal;
	stopped = 1;
}

static void start_terminal(void)
{
	struct sigaction action = {.sa_handler = stop};

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
	set_escdelay(25);
	cbreak();
	noecho();
	nonl();
	keypad(stdscr, TRUE);
	curs_set(0);
	if (has_colors() && !getenv("NO_COLOR")) {
		start_color();
		use_default_colors();
		init_pair(1, COLOR_RED, -1);
	}
}

static attr_t attributes(unsigned char style)
{
	const attr_t values[] = {
		[GT_CELL_PLAIN] = A_NORMAL,	[GT_CELL_BOLD] = A_BOLD,
		[GT_CELL_DIM] = A_DIM,		[GT_CELL_RED] = A_BOLD | COLOR_PAIR(1),
		[GT_CELL_SELECTED] = A_REVERSE,
	};

	return values[style];
}

static void show(const struct gt_screen *screen)
{
	erase();
	for (int line = 0; line < screen->lines; line++) {
		move(line, 0);
		for (int i = 0; i < screen->columns; i++) {
			const struct gt_screen_cell *cell =
				&screen->cells[line * screen->columns + i];

			attrset((int)attributes(cell->style));
			addstr(cell->text);
		}
	}
	refresh();
}

static int key_of(int key)
{
	switch (key) {
	case KEY_UP:
		return GT_KEY_UP;
	case KEY_DOWN:
		return GT_KEY_DOWN;
	case KEY_PPAGE:
		return GT_KEY_PAGE_UP;
	case KEY_NPAGE:
		return GT_KEY_PAGE_DOWN;
	case KEY_HOME:
		return GT_KEY_HOME;
	case KEY_END:
		return GT_KEY_END;
	case KEY_BACKSPACE:
	case 127:
	case 27:
		return GT_KEY_BACK;
	case KEY_ENTER:
		return '\r';
	default:
		return key < KEY_MIN ? key : 0;
	}
}

/* Until the time of the next look, or a key; a resize is one. */
static void wait_for_key(struct gt_view *view, const struct gt_live *live, double until)
{
	double left = (until - gt_live_now()) * 1000;
	int key;

	timeout(view->paused ? 1000 : left > 0 ? (int)left + 1 : 0);
	key = getch();
	if (key != ERR && key != KEY_RESIZE)
		gt_view_key(view, live, key_of(key));
}

static void draw(struct gt_screen *screen, struct gt_live *live, struct gt_view *view)
{
	gt_screen_begin(screen, LINES, COLS);
	gt_live_draw(screen, live, view);
	show(screen);
}

int gt_live_terminal(struct gt_live *live, struct gt_view *view, bool utf8,
		     void (*find)(struct gt_live *live, void *ctx), void *ctx)
{
	struct gt_screen screen = {.utf8 = utf8};
	SCREEN *terminal = newterm(NULL, stdout, stdin);
	double next = 0;

	if (!terminal)
		return -1;
	start_terminal();
	while (!stopped && !view->quit) {
		if (!view->paused && gt_live_now() >= next) {
			next = gt_live_now() + view->every;
			find(live, ctx);
			gt_live_look(live);
			live->naming = NAMING_SECONDS;
		}
		draw(&screen, live, view);
		wait_for_key(view, live, next);
	}
	endwin();
	delscreen(terminal);
	gt_screen_free(&screen);
	return 0;
}
