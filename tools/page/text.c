/* SPDX-License-Identifier: MIT */
/* See text.h. Called wherever a text of a trace is written. */
#define _GNU_SOURCE
#include "page/text.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "model/xalloc.h"

/* Length of the valid sequence at text, its character; 0 = none. */
static size_t decode(const unsigned char *text, size_t length, uint32_t *ret)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	size_t count = text[0] < 0x80	? 1
		       : text[0] < 0xc0 ? 0
		       : text[0] < 0xe0 ? 2
		       : text[0] < 0xf0 ? 3
		       : text[0] < 0xf8 ? 4
					: 0;
	uint32_t value = count < 2 ? text[0] : text[0] & (0x7fu >> count);

	if (!count || count > length)
		return 0;
	for (size_t i = 1; i < count; i++) {
		if ((text[i] & 0xc0) != 0x80)
			return 0;
		value = value << 6 | (text[i] & 0x3f);
	}
	if (value < least[count] || value > 0x10ffff || (value >= 0xd800 && value < 0xe000))
		return 0;
	*ret = value;
	return count;
}

static bool is_hidden(uint32_t c)
{
	return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0xad || c == 0x61c || c == 0x180e ||
	       (c >= 0x200b && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) ||
	       (c >= 0x2060 && c <= 0x206f) || c == 0xfeff || (c >= 0xfff9 && c <= 0xfffb) ||
	       (c >= 0xe0000 && c <= 0xe0fff);
}

char *gt_page_clean(const char *text, size_t length)
{
	char *result;
	size_t size;
	FILE *file = gt_xchecked(open_memstream(&result, &size));
	size_t limit = length > GT_PAGE_TEXT_MAX ? GT_PAGE_TEXT_MAX : length;

	for (size_t i = 0; i < limit;) {
		uint32_t c;
		size_t count = decode((const unsigned char *)text + i, length - i, &c);

		if (!count)
			fprintf(file, "\\x%02x", (unsigned char)text[i]);
		else if (is_hidden(c))
			fprintf(file, c > 0xffff ? "\\U%08x" : "\\u%04x", c);
		else
			fwrite(text + i, 1, count, file);
		i += count ? count : 1;
	}
	if (limit < length)
		fprintf(file, "... (%zu bytes)", length);
	fclose(file);
	return result;
}

json_t *gt_page_string(const char *text)
{
	char *clean = gt_page_clean(text ? text : "", text ? strlen(text) : 0);
	json_t *string = gt_xchecked(json_string(clean));

	free(clean);
	return string;
}

void gt_page_put(FILE *file, const char *text)
{
	char *clean = gt_page_clean(text, strlen(text));

	for (const char *at = clean; *at; at++)
		switch (*at) {
		case '&':
			fputs("&amp;", file);
			break;
		case '<':
			fputs("&lt;", file);
			break;
		case '>':
			fputs("&gt;", file);
			break;
		case '"':
			fputs("&quot;", file);
			break;
		case '\'':
			fputs("&#39;", file);
			break;
		default:
			putc(*at, file);
		}
	free(clean);
}

void gt_page_put_json(FILE *file, const json_t *value)
{
	char *text = gt_xchecked(json_dumps(value, JSON_COMPACT | JSON_ENSURE_ASCII));

	for (const char *at = text; *at; at++)
		if (*at == '<')
			fputs("\\u003c", file);
		else
			putc(*at, file);
	free(text);
}
