/* SPDX-License-Identifier: MIT */
/*
 * See bar.h. Standard output may be the same terminal, and answers are written while more is read:
 * there stdout becomes a stream that erases the bar first. That the stream of printf can be replaced
 * is the C library's promise (glibc), and spares every place that prints.
 */
#define _GNU_SOURCE
#include "out/bar.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>
#include "read/progress.h"
#include "symbols/library.h"

#define WAIT_SECONDS 1.0
#define PACE_SECONDS 0.1
#define WIDTH	     24 /* of the bar itself */

static bool shown;
static double began, drawn;

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static int columns(void)
{
	struct winsize size;

	return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col ? size.ws_col : 80;
}

/* At once, past stdio's buffers. A bar that cannot be written is no reason to stop. */
static void put(const char *text, int length)
{
	shown = write(STDERR_FILENO, text, (size_t)length) == length;
}

/* The last column stays free: some terminals would begin a new line. Names may hold anything. */
static void draw(const char *what, const char *path, uint64_t done, uint64_t total)
{
	char bar[WIDTH + 1], text[256], line[300];
	const int percent = total ? (int)(done % total * 100 / total) : 0;
	int room = columns() - 1, length;

	memset(bar, '.', WIDTH);
	memset(bar, '#', (size_t)(percent * WIDTH / 100));
	bar[WIDTH] = 0;
	if (total)
		length = snprintf(text, sizeof(text), "[%s] %3d %%  %s %s", bar, percent, what,
				  gt_base_name(path));
	else
		length = snprintf(text, sizeof(text), "%s %s", what, gt_base_name(path));
	if (total && done >= total && length < (int)sizeof(text))
		snprintf(text + length, sizeof(text) - (size_t)length, ", pass %d",
			 (int)(done / total) + 1);
	for (char *at = text; *at; at++)
		*at = (unsigned char)*at < ' ' || *at == 127 ? '?' : *at;
	room = room < 250 ? room : 250;
	length = snprintf(line, sizeof(line), "\r%.*s\033[K", room > 0 ? room : 0, text);
	put(line, length);
}

static void heard(const char *what, const char *path, uint64_t done, uint64_t total)
{
	double time = now();

	if (time - began < WAIT_SECONDS || time - drawn < PACE_SECONDS)
		return;
	drawn = time;
	draw(what, path, done, total);
}

void gt_bar_erase(void)
{
	if (shown)
		put("\r\033[K", 4);
	shown = false;
}

/* Standard output, below its stream. */
static ssize_t erase_and_write(void *cookie, const char *bytes, size_t length)
{
	ssize_t n;

	(void)cookie;
	gt_bar_erase();
	n = write(STDOUT_FILENO, bytes, length);
	return n < 0 ? 0 : n; /* as fopencookie wants errors told */
}

static void replace_stdout(void)
{
	static const cookie_io_functions_t functions = {.write = erase_and_write};
	static bool replaced;
	FILE *file = replaced ? NULL : fopencookie(NULL, "w", functions);

	if (!file)
		return;
	fflush(stdout);
	setvbuf(file, NULL, _IOLBF, 0);
	stdout = file;
	replaced = true;
}

void gt_bar_begin(void)
{
	const char *term = getenv("TERM");

	if (!isatty(STDERR_FILENO) || (term && strcmp(term, "dumb") == 0))
		return;
	if (isatty(STDOUT_FILENO))
		replace_stdout();
	began = now();
	gt_progress_listen(heard);
}

void gt_bar_end(void)
{
	gt_progress_listen(NULL);
	gt_bar_erase();
}
