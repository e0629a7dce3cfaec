/* SPDX-License-Identifier: MIT */
/*
 * See wire.h. Here and not from a library: the messages are two, their fields some fifty numbers, and a
 * library would bring a compiler of schemas into the build. Called from pprof.c and perfetto.c.
 */
#include "export/wire.h"

#include <stdlib.h>
#include <string.h>
#include "model/xalloc.h"

enum type {
	VARINT = 0,
	FIXED64 = 1,
	LENGTH = 2,
};

static void put(struct gt_wire *to, const void *data, size_t length)
{
	if (to->length + length > to->room) {
		to->room = 2 * (to->length + length);
		to->data = gt_xrealloc(to->data, to->room, 1);
	}
	if (length)
		memcpy(to->data + to->length, data, length);
	to->length += length;
}

static void put_tag(struct gt_wire *to, unsigned int field, enum type type)
{
	gt_wire_varint(to, (uint64_t)field << 3 | type);
}

void gt_wire_varint(struct gt_wire *to, uint64_t value)
{
	uint8_t text[10];
	size_t length = 0;

	for (; value >= 0x80; value >>= 7)
		text[length++] = (uint8_t)(value | 0x80);
	text[length++] = (uint8_t)value;
	put(to, text, length);
}

void gt_wire_number(struct gt_wire *to, unsigned int field, uint64_t value)
{
	put_tag(to, field, VARINT);
	gt_wire_varint(to, value);
}

void gt_wire_fixed(struct gt_wire *to, unsigned int field, uint64_t value)
{
	put_tag(to, field, FIXED64);
	put(to, &value, sizeof(value)); /* little endian, as we are */
}

void gt_wire_data(struct gt_wire *to, unsigned int field, const void *data, size_t length)
{
	put_tag(to, field, LENGTH);
	gt_wire_varint(to, length);
	put(to, data, length);
}

void gt_wire_text(struct gt_wire *to, unsigned int field, const char *text)
{
	gt_wire_data(to, field, text, strlen(text));
}

void gt_wire_message(struct gt_wire *to, unsigned int field, struct gt_wire *inner)
{
	gt_wire_data(to, field, inner->data, inner->length);
	gt_wire_clear(inner);
}

void gt_wire_clear(struct gt_wire *wire)
{
	free(wire->data);
	*wire = (struct gt_wire){0};
}
