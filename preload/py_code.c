/* SPDX-License-Identifier: MIT */
/*
 * Reads code objects: names, lines and what tells one from another at the same address. The frame
 * that led here holds the object, so it and its strings stay as they are during the call.
 */
#include <string.h>

#include "py.h"

/* ---- names --------------------------------------------------------------------------------- */

/* A str's characters: 1, 2 or 4 bytes each. */
struct chars {
	const void *data;
	size_t length;
	unsigned kind;
};

static struct chars str_chars(const struct gt_py_layout *l, const char *str)
{
	uint32_t state = (uint32_t)gt_py_i32(str, l->str_state);
	struct chars c = {
		.length = gt_py_word(str, l->str_length),
		.kind = state >> 2 & 7,
	};

	if (!(state >> l->state_compact & 1))
		c.data = gt_py_ptr(str, l->str_compact);
	else
		c.data = str + (state >> l->state_ascii & 1 ? l->str_ascii : l->str_compact);
	if ((c.kind != 1 && c.kind != 2 && c.kind != 4) || !c.data)
		c.length = 0;
	return c;
}

static uint32_t char_at(const struct chars *c, size_t i)
{
	if (c->kind == 1)
		return ((const uint8_t *)c->data)[i];
	if (c->kind == 2)
		return ((const uint16_t *)c->data)[i];
	return ((const uint32_t *)c->data)[i];
}

/* Undecodable bytes of a path are U+DC80..U+DCFF in a str: written as the bytes that they stand
 * for. */
static size_t utf8(uint32_t c, char out[4])
{
	if (c >= 0xdc80 && c <= 0xdcff) {
		out[0] = (char)(c - 0xdc00);
		return 1;
	}
	if (c < 0x80) {
		out[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		out[0] = (char)(0xc0 | c >> 6);
		out[1] = (char)(0x80 | (c & 63));
		return 2;
	}
	if (c < 0x10000) {
		out[0] = (char)(0xe0 | c >> 12);
		out[1] = (char)(0x80 | (c >> 6 & 63));
		out[2] = (char)(0x80 | (c & 63));
		return 3;
	}
	out[0] = (char)(0xf0 | (c >> 18 & 7));
	out[1] = (char)(0x80 | (c >> 12 & 63));
	out[2] = (char)(0x80 | (c >> 6 & 63));
	out[3] = (char)(0x80 | (c & 63));
	return 4;
}

size_t gt_py_text(const struct gt_py_layout *l, const char *str, char *buf, size_t size)
{
	struct chars c = str_chars(l, str);
	size_t i, n, used = 0;
	char one[4];

	for (i = 0; i < c.length; i++) {
		n = utf8(char_at(&c, i), one);
		if (used + n > size)
			break;
		memcpy(buf + used, one, n);
		used += n;
	}
	return used;
}

/* ---- lines --------------------------------------------------------------------------------- */

/* An instruction without a line (start of a generator, clean-up code) is shown at the first line.
 */
int32_t gt_py_code_line(const struct gt_py_layout *l, const char *code, int32_t addr)
{
	const char *table = gt_py_ptr(code, l->code_linetable);
	int32_t first = gt_py_i32(code, l->code_first_line), line;

	line = gt_py_line(l->lines, (const uint8_t *)table + l->bytes_data,
			  gt_py_word(table, l->ob_size), first, addr);
	return line ? line : first;
}

/* ---- identity ------------------------------------------------------------------------------ */

static uint64_t mix(uint64_t h, uint64_t v)
{
	h = (h ^ v) * 0x9e3779b97f4a7c15ull;
	return h ^ h >> 32;
}

static uint64_t load64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

/* Two independent chains, so that the multiplications overlap. */
static uint64_t hash_bytes(uint64_t h, const uint8_t *p, size_t n)
{
	uint64_t a = h, b = h ^ n, tail = 0;

	for (; n >= 16; n -= 16, p += 16) {
		a = (a ^ load64(p)) * 0x9e3779b97f4a7c15ull;
		b = (b ^ load64(p + 8)) * 0xd6e8feb86659fd93ull;
		a ^= a >> 32;
		b ^= b >> 32;
	}
	if (n >= 8) {
		a = mix(a, load64(p));
		p += 8;
		n -= 8;
	}
	memcpy(&tail, p, n);
	return mix(mix(a, tail), b);
}

/* The address, the length and the last characters of a name. */
static uint64_t hash_name(const struct gt_py_layout *l, uint64_t h, const char *str)
{
	struct chars c = str_chars(l, str);
	size_t bytes = c.length * c.kind;
	uint64_t tail = 0;

	memcpy(&tail, (const char *)c.data + (bytes < 8 ? 0 : bytes - 8), bytes < 8 ? bytes : 8);
	return mix(mix(h, (uint64_t)str ^ c.length << 48), tail);
}

/* Longer tables count by both ends: the whole object is the same but for lines in the middle. */
#define TABLE_END 1024u

/*
 * File, name, first line and the line table. Objects that agree in all of them are the same place
 * in the source.
 */
uint64_t gt_py_fingerprint(const struct gt_py_layout *l, const char *code)
{
	const char *table = gt_py_ptr(code, l->code_linetable);
	uint64_t size = gt_py_word(table, l->ob_size);
	uint64_t h = mix(size, (uint64_t)(uint32_t)gt_py_i32(code, l->code_first_line));

	h = hash_name(l, h, gt_py_ptr(code, l->code_filename));
	h = hash_name(l, h, gt_py_ptr(code, l->code_name));
	table += l->bytes_data;
	if (size <= 2 * TABLE_END)
		return hash_bytes(h, (const uint8_t *)table, size) & ~GT_PY_MOMENT;
	h = hash_bytes(h, (const uint8_t *)table, TABLE_END);
	return hash_bytes(h, (const uint8_t *)table + size - TABLE_END, TABLE_END) & ~GT_PY_MOMENT;
}

/*
 * From 3.12 on each code object has a number of its own, per interpreter. Before, as long as no
 * code object has ended, the address alone will do. When the numbers have run out, the content.
 */
uint64_t gt_py_identity(const struct gt_py_layout *l, const char *code, const char *interp)
{
	uint32_t version = l->code_version ? (uint32_t)gt_py_i32(code, l->code_version) : 0;
	uint64_t ended;

	if (gt_likely(version))
		return ((uint64_t)interp << 32 ^ version) & ~GT_PY_MOMENT;
	ended = l->code_version ? 0 : gt_py_ended();
	return ended ? ended | GT_PY_MOMENT : gt_py_fingerprint(l, code);
}
