/* SPDX-License-Identifier: MIT */
/* See out.h. Colour is only ever an addition: nothing is said by it alone. */
#define _GNU_SOURCE
#include "out/out.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <wchar.h>
#include "model/xalloc.h"

static unsigned int terminal_width(int fd)
{
	const char *columns = getenv("COLUMNS");
	struct winsize size;

	if (ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col)
		return size.ws_col;
	return columns && atoi(columns) > 0 ? (unsigned int)atoi(columns) : 80;
}

static bool locale_is_utf8(void)
{
	const char *names[] = {"LC_ALL", "LC_CTYPE", "LANG"};

	for (size_t i = 0; i < 3; i++) {
		const char *value = getenv(names[i]);

		if (value && *value)
			return strcasestr(value, "utf-8") || strcasestr(value, "utf8");
	}
	return false;
}

static FILE *open_file(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);

	return fd < 0 ? NULL : fdopen(fd, "w");
}

int gt_out_open(struct gt_out *out, const char *path, enum gt_format format, bool all)
{
	const char *no_colour = getenv("NO_COLOR");
	const char *term = getenv("TERM");

	*out = (struct gt_out){.file = stdout, .format = format, .all = all, .width = 120};
	if (path && strcmp(path, "-")) {
		out->file = open_file(path);
		return out->file ? 0 : -1;
	}
	if (!isatty(STDOUT_FILENO))
		return 0;
	out->terminal = true;
	out->colour = !(no_colour && *no_colour) && !(term && strcmp(term, "dumb") == 0);
	out->utf8 = locale_is_utf8();
	out->width = terminal_width(STDOUT_FILENO);
	return 0;
}

int gt_out_close(struct gt_out *out, bool keep)
{
	int bad;

	if (!out->file) /* of a picture that was not drawn */
		return 0;
	if (out->whole.file)
		return gt_file_finish(&out->whole, keep);
	bad = ferror(out->file);
	if (out->file != stdout)
		bad |= fclose(out->file);
	else
		bad |= fflush(out->file);
	return bad ? -1 : 0;
}

/* Length of the valid, printable UTF-8 character at text; 0 = none. */
static size_t printable(const char *text, int *ret_width)
{
	mbstate_t state = {0};
	wchar_t wide;
	size_t length = mbrtowc(&wide, text, strlen(text), &state);

	if (length == (size_t)-1 || length == (size_t)-2 || length == 0)
		return 0;
	*ret_width = wcwidth(wide);
	return *ret_width < 0 ? 0 : length;
}

char *gt_escape(const char *text)
{
	char *result = gt_xcalloc(strlen(text) * 4 + 1, 1), *to = result;

	while (*text) {
		int width;
		size_t length = printable(text, &width);

		if (length) {
			to = mempcpy(to, text, length);
			text += length;
		} else {
			to += sprintf(to, "\\x%02x", (unsigned char)*text++);
		}
	}
	return result;
}

size_t gt_text_width(const char *text)
{
	size_t sum = 0;

	while (*text) {
		int width = 1;
		size_t length = printable(text, &width);

		sum += (size_t)width;
		text += length ? length : 1;
	}
	return sum;
}

/* Bytes at the begin of text that take at most width columns. */
static size_t bytes_in(const char *text, size_t width)
{
	size_t used = 0;

	while (text[used]) {
		int wide = 1;
		size_t length = printable(text + used, &wide);

		if ((size_t)wide > width)
			break;
		width -= (size_t)wide;
		used += length ? length : 1;
	}
	return used;
}

static bool within_number(const char *text, size_t at)
{
	return isdigit((unsigned char)text[at - 1]) && isdigit((unsigned char)text[at]);
}

void gt_cut_text(char *text, size_t width)
{
	size_t all = gt_text_width(text), head, skip;

	if (all <= width || width < 8)
		return;
	head = bytes_in(text, (width - 2) / 3);
	skip = bytes_in(text, all - (width - 2 - (width - 2) / 3));
	/* Half of a line's number would be another line. */
	for (; head && within_number(text, head) && text[skip]; head++)
		skip++;
	while (within_number(text, skip))
		skip++;
	text[head] = '.';
	text[head + 1] = '.';
	memmove(text + head + 2, text + skip, strlen(text + skip) + 1);
}

static const char *style_start(enum gt_style style)
{
	static const char *const codes[] = {
		[GT_PLAIN] = "",       [GT_BOLD] = "\033[1m",	     [GT_DIM] = "\033[2m",
		[GT_RED] = "\033[31m", [GT_RED_BOLD] = "\033[1;31m",
	};

	return codes[style];
}

static void put_line(struct gt_out *out, enum gt_style style, const char *format, va_list arguments)
{
	char *raw = gt_xvasprintf(format, arguments), *safe = gt_escape(raw);
	bool styled = out->colour && style != GT_PLAIN;

	fprintf(out->file, "%s%s%s\n", styled ? style_start(style) : "", safe,
		styled ? "\033[0m" : "");
	free(safe);
	free(raw);
}

void gt_line(struct gt_out *out, enum gt_style style, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	put_line(out, style, format, arguments);
	va_end(arguments);
}

void gt_next(struct gt_out *out, const char *format, ...)
{
	va_list arguments;

	if (!out->terminal)
		return;
	va_start(arguments, format);
	put_line(out, GT_DIM, format, arguments);
	va_end(arguments);
}

size_t gt_screen_rows(const struct gt_out *out, size_t other_lines)
{
	if (!out->terminal || out->all)
		return 0;
	return other_lines + 3 < GT_SCREEN_LINES ? GT_SCREEN_LINES - other_lines : 3;
}

bool gt_is_wide(const struct gt_out *out)
{
	return out->width >= 120;
}
