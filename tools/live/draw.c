/* SPDX-License-Identifier: MIT */
/*
 * See view.h: from state and choice to cells. From the top: a title, a bar for each card, a line for
 * each device of each process, then the rows or a stack, keys at the bottom. What does not fit is
 * left out from the bottom of each part, and the part says how much that was.
 */
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "live/view.h"
#include "model/xalloc.h"
#include "out/number.h"
#include "out/out.h"

struct canvas {
	struct gt_screen *screen;
	struct gt_live *live;
	struct gt_view *view;
	enum gt_unit unit; /* of all numbers of bytes */
	int line;	   /* next */
};

struct card { /* devices of processes that are the same piece of hardware */
	const struct gt_live_device *first;
	size_t processes;
	uint64_t in_use, held, peak;
};

static void put(struct canvas *c, int column, int width, enum gt_cell_style style,
		const char *format, ...) __attribute__((format(printf, 5, 6)));

/* width < 0: right-aligned. */
static void put(struct canvas *c, int column, int width, enum gt_cell_style style,
		const char *format, ...)
{
	va_list arguments;
	char *text;

	va_start(arguments, format);
	text = gt_xvasprintf(format, arguments);
	va_end(arguments);
	if (width < 0)
		gt_screen_right(c->screen, c->line, column, -width, style, text);
	else
		gt_screen_put(c->screen, c->line, column, width, style, text);
	free(text);
}

/* Less than half of a unit is not nothing. */
static char *units(const struct canvas *c, double bytes, char buffer[GT_SIZE_TEXT])
{
	long long whole = gt_in_unit((int64_t)bytes, c->unit);

	if (!whole && bytes > 0)
		return strcpy(buffer, "<1");
	snprintf(buffer, GT_SIZE_TEXT, "%lld", whole);
	return buffer;
}

/* A number of bytes, right-aligned. */
static void put_bytes(struct canvas *c, int column, int width, enum gt_cell_style style,
		      double bytes)
{
	char text[GT_SIZE_TEXT];

	gt_screen_right(c->screen, c->line, column, width, style, units(c, bytes, text));
}

/* ---- title and cards ------------------------------------------------------------------------- */

static void draw_title(struct canvas *c)
{
	const size_t count = c->live->count, running = gt_live_running(c->live);
	const char *level = gt_live_total_name(c->view->total);

	put(c, 0, INT_MAX / 2, GT_CELL_BOLD, "gputrace live   %zu process%s, %zu running", count,
	    count == 1 ? "" : "es", running);
	if (c->view->paused)
		put(c, 44, 13, GT_CELL_RED, "paused");
	else if (!c->view->once)
		put(c, 44, 13, GT_CELL_PLAIN, "every %.3g s", c->view->every);
	else if (c->live->looks > 1)
		put(c, 44, 13, GT_CELL_PLAIN, "over %.3g s", c->view->every);
	put(c, 58, INT_MAX / 2, GT_CELL_PLAIN, "%s, by %s", level,
	    gt_live_sort_name(c->view->sort));
	c->line++;
}

static bool same_card(const struct gt_live_device *a, const struct gt_live_device *b)
{
	static const uint8_t none[16];

	if (!memcmp(a->uuid, none, sizeof(none)) || !memcmp(b->uuid, none, sizeof(none)))
		return a->device == b->device;
	return !memcmp(a->uuid, b->uuid, sizeof(a->uuid));
}

static struct card *card_of(struct card **cards, size_t *count, const struct gt_live_device *device)
{
	struct card *card;

	for (size_t i = 0; i < *count; i++)
		if (same_card((*cards)[i].first, device))
			return &(*cards)[i];
	card = GT_PUSH(*cards, *count);
	card->first = device;
	return card;
}

/* What ended holds nothing any more. */
static struct card *find_cards(const struct gt_live *live, size_t *ret_count)
{
	struct card *cards = NULL;
	size_t count = 0;

	for (size_t i = 0; i < live->count; i++)
		for (size_t d = 0; d < live->processes[i].device_count; d++) {
			const struct gt_live_device *device = &live->processes[i].devices[d];
			struct card *card = card_of(&cards, &count, device);

			if (!live->processes[i].trace->running)
				continue;
			card->processes++;
			card->in_use += device->now.cur[GT_TOTAL_IN_USE];
			card->held += device->now.cur[GT_TOTAL_RESERVED];
			card->peak = device->now.peak[GT_TOTAL_IN_USE];
		}
	*ret_count = count;
	return cards;
}

static int bar_column(uint64_t bytes, uint64_t card, int width)
{
	double share = card ? (double)bytes / (double)card : 0;

	return share >= 1 ? width : (int)(share * width + 0.5);
}

/* The peak of one process is a place on the bar; peaks of several have no sum that ever was. */
static void draw_bar(struct canvas *c, int column, int width, const struct card *card)
{
	const bool utf8 = c->screen->utf8;
	int used = bar_column(card->in_use, card->first->card, width);
	int held = bar_column(card->held, card->first->card, width);
	int peak = card->processes == 1 ? bar_column(card->peak, card->first->card, width) : 0;

	for (int i = 0; i < width; i++) {
		const char *text = i < used ? (utf8 ? "█" : "#") : utf8 ? "░" : ":";

		if (i >= used && i >= held)
			text = utf8 ? "·" : ".";
		if (i == peak - 1 && peak > used)
			text = utf8 ? "▏" : "|";
		put(c, column + i, 1, GT_CELL_PLAIN, "%s", text);
	}
}

static void draw_card(struct canvas *c, const struct card *card)
{
	const int columns = c->screen->columns, text = 46, width = columns - 7 - text;
	char number[GT_SIZE_TEXT], total[GT_SIZE_TEXT];

	if (card->first->device < 0)
		put(c, 0, 6, GT_CELL_BOLD, "GPU ?");
	else
		put(c, 0, 6, GT_CELL_BOLD, "GPU %d", card->first->device);
	if (width > 4 && card->first->card)
		draw_bar(c, 7, width, card);
	put(c, columns - text + 1, 16, GT_CELL_PLAIN, "in use %s",
	    units(c, (double)card->in_use, number));
	put(c, columns - text + 17, 32, GT_CELL_PLAIN, "held %s%s%s %s",
	    units(c, (double)card->held, number), card->first->card ? " of " : "",
	    card->first->card ? units(c, (double)card->first->card, total) : "",
	    gt_unit_name(c->unit));
	c->line++;
}

static void draw_cards(struct canvas *c, int most)
{
	size_t count;
	struct card *cards = find_cards(c->live, &count);

	for (size_t i = 0; i < count && (int)i < most; i++)
		draw_card(c, &cards[i]);
	free(cards);
}

/* ---- processes ------------------------------------------------------------------------------- */

/* Columns behind the program's name, from the right end of the screen. */
static void draw_process_head(struct canvas *c, int end)
{
	put(c, 0, end, GT_CELL_DIM, "     pid rank GPU program");
	put(c, end, -7, GT_CELL_DIM, "in use");
	put(c, end + 8, -7, GT_CELL_DIM, "held");
	put(c, end + 16, -7, GT_CELL_DIM, "peak");
	put(c, end + 24, -9, GT_CELL_DIM, "allocs/s");
	put(c, end + 34, -8, GT_CELL_DIM, "%s/s", gt_unit_name(c->unit));
	put(c, end + 43, 10, GT_CELL_DIM, "state");
	c->line++;
}

static void draw_rates(struct canvas *c, int end, const struct gt_live_device *device,
		       enum gt_cell_style style)
{
	if (!device->rated) {
		put(c, end + 24, -9, style, "-");
		put(c, end + 34, -8, style, "-");
		return;
	}
	put(c, end + 24, -9, style, "%.0f", device->allocs_per_second);
	put_bytes(c, end + 34, 8, style, device->bytes_per_second);
}

static void draw_device(struct canvas *c, int end, size_t number,
			const struct gt_live_device *device)
{
	const struct gt_live_process *process = &c->live->processes[number];
	const bool running = process->trace->running;
	const enum gt_cell_style style = running ? GT_CELL_PLAIN : GT_CELL_DIM;
	const char *state = gt_live_state(process);
	const struct gt_ctr *now = &device->now;

	put(c, 0, 1, GT_CELL_BOLD, "%s", c->view->process == number ? ">" : "");
	put(c, 1, -7, style, "%u", process->trace->header.pid);
	if (process->rank >= 0)
		put(c, 9, -4, style, "%ld", process->rank);
	else
		put(c, 9, -4, style, "-");
	if (device->device >= 0)
		put(c, 14, -3, style, "%d", device->device);
	put(c, 18, end - 19, style, "%s", process->program);
	put_bytes(c, end, 7, style, (double)now->cur[GT_TOTAL_IN_USE]);
	put_bytes(c, end + 8, 7, style, (double)now->cur[GT_TOTAL_RESERVED]);
	put_bytes(c, end + 16, 7, style, (double)now->peak[GT_TOTAL_IN_USE]);
	if (running)
		draw_rates(c, end, device, style);
	put(c, end + 43, 10, running ? GT_CELL_PLAIN : GT_CELL_RED, "%s", state);
	if (now->failed)
		put(c, end + 51, 14, GT_CELL_RED, " %llu refused", (unsigned long long)now->failed);
	c->line++;
}

static void draw_processes(struct canvas *c, int most)
{
	const int columns = c->screen->columns;
	const int end = columns >= 96 ? columns - 67 : columns - 51;
	size_t left = 0;

	draw_process_head(c, end);
	for (size_t i = 0; i < c->live->count; i++)
		for (size_t d = 0; d < c->live->processes[i].device_count; d++) {
			if (most-- > 0)
				draw_device(c, end, i, &c->live->processes[i].devices[d]);
			else
				left++;
		}
	if (left) {
		put(c, 1, columns, GT_CELL_DIM, "... %zu more", left);
		c->line++;
	}
}

/* ---- rows ------------------------------------------------------------------------------------ */

static bool shows_pid(const struct canvas *c)
{
	return c->view->process == SIZE_MAX && c->live->count > 1;
}

static int where_column(const struct canvas *c)
{
	return shows_pid(c) ? 41 : 33;
}

static void draw_row_head(struct canvas *c)
{
	const char *unit = gt_unit_name(c->unit);

	put(c, 0, -7, GT_CELL_DIM, "%s", unit);
	put(c, 8, -7, GT_CELL_DIM, "growth");
	put(c, 16, -6, GT_CELL_DIM, "blocks");
	put(c, 23, -8, GT_CELL_DIM, "allocs/s");
	if (shows_pid(c))
		put(c, 32, -7, GT_CELL_DIM, "pid");
	put(c, where_column(c), c->screen->columns, GT_CELL_DIM, "where (%s)",
	    gt_live_total_name(c->view->total));
	c->line++;
}

static const char *arrow_of(const struct canvas *c, int trend)
{
	if (trend > 0)
		return c->screen->utf8 ? "▲" : "^";
	return c->screen->utf8 ? "▼" : "v";
}

/* What grows by less than a unit in a second still grows. */
static void draw_growth(struct canvas *c, const struct gt_live_row *row)
{
	char number[GT_SIZE_TEXT];

	if (row->trend)
		put(c, 8, -7, row->trend > 0 ? GT_CELL_RED : GT_CELL_PLAIN, "%s %s",
		    arrow_of(c, row->trend),
		    units(c, row->growth < 0 ? -row->growth : row->growth, number));
}

static void draw_row(struct canvas *c, const struct gt_live_row *row, bool chosen)
{
	const struct gt_live_process *process = &c->live->processes[row->process];
	const int at = where_column(c), width = c->screen->columns - at;
	const bool running = process->trace->running;
	enum gt_cell_style style = running ? GT_CELL_PLAIN : GT_CELL_DIM;
	char *text = gt_xstrdup(row->text);

	put_bytes(c, 0, 7, style, (double)row->bytes);
	if (running)
		draw_growth(c, row);
	put(c, 16, -6, style, "%llu", (unsigned long long)row->count);
	if (running)
		put(c, 23, -8, style, "%.0f", row->allocs_per_second);
	if (shows_pid(c))
		put(c, 32, -7, style, "%u", process->trace->header.pid);
	gt_cut_text(text, width > 0 ? (size_t)width : 0);
	put(c, at, width, style, "%s", text);
	free(text);
	if (chosen)
		gt_screen_restyle(c->screen, c->line, GT_CELL_SELECTED);
	c->line++;
}

/* The chosen line stays in sight. */
static void scroll_to(struct gt_view *view, size_t place, size_t count)
{
	const size_t page = view->page ? view->page : 1;

	if (place < view->top)
		view->top = place;
	if (place >= view->top + page)
		view->top = place - page + 1;
	if (view->top + page > count)
		view->top = count > page ? count - page : 0;
}

static void draw_rows(struct canvas *c)
{
	const int end = c->screen->lines - 1;
	struct gt_view *view = c->view;
	struct gt_live_row **rows;
	size_t count, place;

	draw_row_head(c);
	view->page = end > c->line ? (size_t)(end - c->line) : 0;
	rows = gt_live_sorted(c->live, view->process, view->total, view->sort, &count);
	place = gt_view_place(view, rows, count);
	scroll_to(view, place, count);
	for (size_t i = view->top; i < count && c->line < end; i++)
		draw_row(c, rows[i], i == place && !view->once);
	if (!count)
		put(c, 1, c->screen->columns, GT_CELL_DIM, "%s",
		    c->live->count ? "nothing on this level" : view->nothing);
	free(rows);
}

/* ---- a stack --------------------------------------------------------------------------------- */

static void draw_frames(struct canvas *c, char **frames, size_t count)
{
	struct gt_view *view = c->view;
	const int end = c->screen->lines - 1;

	view->page = end > c->line ? (size_t)(end - c->line) : 0;
	if (count < view->page || view->top > count - view->page)
		view->top = count > view->page ? count - view->page : 0;
	for (size_t i = view->top; i < count && c->line < end; i++, c->line++) {
		gt_cut_text(frames[i], (size_t)c->screen->columns - 2);
		put(c, 2, c->screen->columns, GT_CELL_PLAIN, "%s", frames[i]);
	}
}

static void draw_stack(struct canvas *c)
{
	const struct gt_live_row *row = c->view->row;
	char number[GT_SIZE_TEXT];
	size_t count;
	char **frames = gt_live_stack(c->live, row, &count);

	put(c, 0, c->screen->columns, GT_CELL_BOLD, "%s %s in %llu blocks: %s",
	    units(c, (double)row->bytes, number), gt_unit_name(c->unit),
	    (unsigned long long)row->count, row->text);
	c->line++;
	put(c, 0, c->screen->columns, GT_CELL_DIM,
	    "Its largest stack, outermost first (%zu frames)", count);
	c->line++;
	draw_frames(c, frames, count);
	for (size_t i = 0; i < count; i++)
		free(frames[i]);
	free(frames);
}

/* ---- all ------------------------------------------------------------------------------------- */

static void draw_keys(struct canvas *c)
{
	c->line = c->screen->lines - 1;
	put(c, 0, c->screen->columns, GT_CELL_DIM, "%s",
	    c->view->stack ? "esc back   up, down scroll   p pause   q quit"
			   : "q quit  p pause  s sort  l level  tab process  enter stack  ? help");
}

static void draw_help(struct canvas *c)
{
	static const char *const lines[] = {
		"In use: handed to the program. Held: taken from the driver. Peak: of in use.",
		"Growth, per second: the least that a line held rose (fell) through four windows",
		"of looks. What goes up and down in each step does not grow.",
		"",
		"  s        sort by bytes, growth, blocks, allocations per second",
		"  l        level: in use, torch's blocks, the driver's allocations",
		"  tab      the lines of one process, of the next one, of all",
		"  enter    the stack behind the chosen line; esc goes back",
		"  p space  pause: the screen stays, the programs go on",
		"  + -      look more often, less often",
		"  q        quit",
	};

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++, c->line++)
		put(c, 0, c->screen->columns, GT_CELL_PLAIN, "%s", lines[i]);
}

/* The unit fits the largest number of bytes on the screen that people compare: what is held. */
static enum gt_unit unit_for(const struct gt_live *live)
{
	uint64_t most = 0;

	for (size_t i = 0; i < live->count; i++)
		for (size_t d = 0; d < live->processes[i].device_count; d++) {
			const struct gt_ctr *now = &live->processes[i].devices[d].now;

			most = now->peak[GT_TOTAL_RESERVED] > most ? now->peak[GT_TOTAL_RESERVED]
								   : most;
		}
	return gt_unit_for(most);
}

void gt_live_draw(struct gt_screen *screen, struct gt_live *live, struct gt_view *view)
{
	struct canvas c = {.screen = screen, .live = live, .view = view, .unit = unit_for(live)};

	draw_title(&c);
	draw_cards(&c, screen->lines / 4);
	if (live->count)
		draw_processes(&c, screen->lines / 4);
	c.line++;
	if (view->help)
		draw_help(&c);
	else if (view->stack && view->row)
		draw_stack(&c);
	else
		draw_rows(&c);
	if (!view->once)
		draw_keys(&c);
}
