/* SPDX-License-Identifier: MIT */
/* See escape.h. What is no escape stands for itself. Called by unpickle.c. */
#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "torch/escape.h"

/* As UTF-8, at most 4 bytes; what is no character becomes U+FFFD. */
static size_t put_utf8(char *to, uint32_t code)
{
	if (code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
		code = 0xfffd;
	if (code < 0x80) {
		to[0] = (char)code;
		return 1;
	}
	if (code < 0x800) {
		to[0] = (char)(0xc0 | code >> 6);
		to[1] = (char)(0x80 | (code & 0x3f));
		return 2;
	}
	if (code < 0x10000) {
		to[0] = (char)(0xe0 | code >> 12);
		to[1] = (char)(0x80 | (code >> 6 & 0x3f));
		to[2] = (char)(0x80 | (code & 0x3f));
		return 3;
	}
	to[0] = (char)(0xf0 | code >> 18);
	to[1] = (char)(0x80 | (code >> 12 & 0x3f));
	to[2] = (char)(0x80 | (code >> 6 & 0x3f));
	to[3] = (char)(0x80 | (code & 0x3f));
	return 4;
}

/* Digits of an escape; false: there are not that many. */
static bool hex(const char *at, const char *end, unsigned int digits, uint32_t *ret)
{
	char text[9] = "";

	if (end - at < (ptrdiff_t)digits)
		return false;
	memcpy(text, at, digits);
	for (unsigned int i = 0; i < digits; i++)
		if (!isxdigit((unsigned char)text[i]))
			return false;
	*ret = (uint32_t)strtoul(text, NULL, 16);
	return true;
}

/* Length of the escape at a backslash and its character; 0: none, the backslash is one. */
static size_t escape(const char *at, const char *end, bool quoted, uint32_t *ret)
{
	static const char letters[] = "\\\\''\"\"n\nt\tr\ra\ab\bf\fv\v";
	const char kind = at + 1 < end ? at[1] : 0;

	if (kind == 'u' && !quoted && hex(at + 2, end, 4, ret))
		return 6;
	if (kind == 'U' && !quoted && hex(at + 2, end, 8, ret))
		return 10;
	if (kind == 'x' && quoted && hex(at + 2, end, 2, ret))
		return 4;
	for (size_t i = 0; quoted && kind && letters[i]; i += 2)
		if (letters[i] == kind) {
			*ret = (uint8_t)letters[i + 1];
			return 2;
		}
	return 0;
}

size_t gt_unescape(const char *line, size_t length, bool quoted, char *to)
{
	const char *at = line, *end = line + length;
	size_t used = 0;

	while (at < end) {
		uint32_t code = (uint8_t)*at;
		size_t taken = *at == '\\' ? escape(at, end, quoted, &code) : 1;

		used += put_utf8(to + used, code);
		at += taken ? taken : 1;
	}
	return used;
}
