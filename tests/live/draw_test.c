/* SPDX-License-Identifier: MIT */
/*
 * What gputrace live draws and what keys do, without a terminal and without a trace: processes and
 * rows are made here.
 */
#include <criterion/criterion.h>
#include <limits.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "live/view.h"

#define MIB (1 << 20)

static struct gt_trace traces[2];
static struct gt_live live;
static struct gt_view view;
static struct gt_screen screen;

static void add_process(size_t number, uint32_t pid, bool running)
{
	struct gt_live_process *p = &live.processes[number];

	traces[number].header.pid = pid;
	traces[number].running = running;
	*p = (struct gt_live_process){
		.trace = &traces[number], .rank = (long)number, .program = (char *)"train.py"};
	p->devices = calloc(1, sizeof(*p->devices));
	p->device_count = 1;
	p->devices->card = 1024ull * MIB;
	p->devices->now.cur[GT_TOTAL_IN_USE] = 256ull * MIB;
	p->devices->now.cur[GT_TOTAL_RESERVED] = 512ull * MIB;
	p->devices->now.peak[GT_TOTAL_IN_USE] = 768ull * MIB;
	p->devices->now.peak[GT_TOTAL_RESERVED] = 800ull * MIB;
}

static struct gt_live_row *add_row(size_t number, const char *text, uint64_t mib, uint64_t count)
{
	struct gt_live_row *row = calloc(1, sizeof(*row));

	row->key = row->text = row->full = (char *)text;
	row->process = number;
	row->mask = GT_MASK_IN_USE;
	row->bytes = mib * MIB;
	row->count = count;
	row->ever_count = 1;
	HASH_ADD_KEYPTR(hh, live.processes[number].rows, row->key, strlen(row->key), row);
	return row;
}

static void start(void)
{
	setlocale(LC_CTYPE, "C.UTF-8");
	live = (struct gt_live){.count = 2, .device = INT_MIN, .looks = 2};
	live.processes = calloc(2, sizeof(*live.processes));
	add_process(0, 4711, true);
	add_process(1, 4712, false);
	add_row(0, "a.py:1", 10, 3);
	add_row(0, "a.py:2", 30, 1);
	add_row(1, "b.py:3", 20, 9);
	view = (struct gt_view){
		.process = SIZE_MAX, .total = GT_TOTAL_IN_USE, .every = 1, .nothing = "nothing"};
	screen = (struct gt_screen){.utf8 = true};
}

static void draw(int lines, int columns)
{
	gt_screen_begin(&screen, lines, columns);
	gt_live_draw(&screen, &live, &view);
}

/* Is the text on the screen, in a line that begins with the other? */
static bool shows(const char *begin, const char *text)
{
	bool found = false;

	for (int i = 0; i < screen.lines && !found; i++) {
		char *line = gt_screen_line(&screen, i);

		found = !strncmp(line, begin, strlen(begin)) && strstr(line, text);
		free(line);
	}
	return found;
}

Test(live, rows_are_sorted, .init = start)
{
	static const struct {
		enum gt_live_sort sort;
		const char *first;
	} wanted[] = {{GT_LIVE_BY_BYTES, "a.py:2"}, {GT_LIVE_BY_COUNT, "a.py:1"}};

	for (size_t i = 0; i < 2; i++) {
		size_t count;
		struct gt_live_row **rows =
			gt_live_sorted(&live, SIZE_MAX, GT_TOTAL_IN_USE, wanted[i].sort, &count);

		cr_assert_eq(count, 3);
		cr_assert_str_eq(rows[0]->text, wanted[i].first);
		cr_assert_str_eq(rows[2]->text, "b.py:3", "its process has ended");
		free(rows);
	}
}

Test(live, a_level_or_process_leaves_others_out, .init = start)
{
	size_t count;

	free(gt_live_sorted(&live, SIZE_MAX, GT_TOTAL_TORCH, GT_LIVE_BY_BYTES, &count));
	cr_assert_eq(count, 0);
	free(gt_live_sorted(&live, 1, GT_TOTAL_IN_USE, GT_LIVE_BY_BYTES, &count));
	cr_assert_eq(count, 1);
}

Test(live, the_chosen_row_stays_chosen_when_rows_move, .init = start)
{
	gt_view_key(&view, &live, GT_KEY_DOWN);
	cr_assert_str_eq(view.row->text, "a.py:1");
	gt_view_key(&view, &live, 's');
	gt_view_key(&view, &live, 's');
	cr_assert_eq(view.sort, GT_LIVE_BY_COUNT);
	cr_assert_str_eq(view.row->text, "a.py:1");
	gt_view_key(&view, &live, GT_KEY_UP);
	cr_assert_str_eq(view.row->text, "a.py:1", "it is the first now");
	gt_view_key(&view, &live, GT_KEY_END);
	cr_assert_str_eq(view.row->text, "b.py:3");
}

Test(live, tab_goes_through_the_processes, .init = start)
{
	gt_view_key(&view, &live, '\t');
	cr_assert_eq(view.process, 0);
	gt_view_key(&view, &live, '\t');
	cr_assert_eq(view.process, 1);
	draw(24, 80);
	cr_assert(shows(">", "4712"));
	cr_assert_not(shows(" ", "a.py:2"));
	gt_view_key(&view, &live, '\t');
	cr_assert_eq(view.process, SIZE_MAX);
}

Test(live, bar_has_in_use_held_and_peak_of_the_running, .init = start)
{
	draw(24, 80);
	/* 27 columns: a quarter in use, half held, the peak of the one that runs at three quarters */
	cr_assert(shows("GPU 0  ███████░░░░░░░·····▏······· ", "in use 256"));
	cr_assert(shows("GPU 0", "held 512 of 1024 MiB"));
	cr_assert(shows("    4712", "killed"));
	cr_assert(shows("    4711", "running"));
}

Test(live, without_utf8_everything_is_ascii, .init = start)
{
	screen.utf8 = false;
	live.processes[0].rows->trend = 1;
	draw(24, 80);
	cr_assert(shows("GPU 0  #######:::::::.....|....... ", "in use 256"));
	for (size_t i = 0; i < (size_t)24 * 80; i++)
		cr_assert_lt((unsigned char)screen.cells[i].text[0], 128);
}

Test(live, growth_has_an_arrow_even_below_the_unit, .init = start)
{
	live.processes[0].rows->trend = 1;
	live.processes[0].rows->growth = 1000;
	draw(24, 80);
	cr_assert(shows("     10    ▲ <1 ", "a.py:1"));
}

Test(live, a_screen_of_any_size_is_drawn_inside_it, .init = start)
{
	for (int lines = 1; lines < 40; lines += 3)
		for (int columns = 1; columns < 180; columns += 11) {
			for (int mode = 0; mode < 2; mode++) {
				view.help = mode == 1;
				draw(lines, columns);
				cr_assert_eq(screen.lines * screen.columns, lines * columns);
			}
		}
}

Test(live, the_chosen_row_is_scrolled_to, .init = start)
{
	char names[60][16];

	for (int i = 0; i < 60; i++) {
		snprintf(names[i], sizeof(names[i]), "c.py:%d", i + 100);
		add_row(0, names[i], (uint64_t)(100 - i), 1);
	}
	draw(24, 80);
	cr_assert_not(shows(" ", "c.py:150"));
	gt_view_key(&view, &live, GT_KEY_END);
	draw(24, 80);
	cr_assert(shows("     10 ", "a.py:1"), "the smallest is last");
	gt_view_key(&view, &live, GT_KEY_HOME);
	draw(24, 80);
	cr_assert(shows("    100 ", "c.py:100"));
}

Test(live, wide_characters_take_two_cells_and_are_never_halved)
{
	struct gt_screen wide = {.utf8 = true};
	char *line;

	setlocale(LC_CTYPE, "C.UTF-8");
	gt_screen_begin(&wide, 1, 5);
	gt_screen_put(&wide, 0, 0, 5, GT_CELL_PLAIN, "a漢字漢");
	line = gt_screen_line(&wide, 0);
	cr_assert_str_eq(line, "a漢字");
	free(line);
	gt_screen_begin(&wide, 1, 4);
	gt_screen_put(&wide, 0, 0, 4, GT_CELL_PLAIN, "a漢字");
	line = gt_screen_line(&wide, 0);
	cr_assert_str_eq(line, "a漢");
	free(line);
	gt_screen_free(&wide);
}

Test(live, what_a_terminal_would_obey_is_shown_as_text)
{
	struct gt_screen plain = {0};
	char *line;

	gt_screen_begin(&plain, 1, 20);
	gt_screen_put(&plain, 0, 0, 20, GT_CELL_PLAIN, "a\033[2Jb");
	line = gt_screen_line(&plain, 0);
	cr_assert_str_eq(line, "a\\x1b[2Jb");
	free(line);
	gt_screen_free(&plain);
}
