/* SPDX-License-Identifier: MIT */
/*
 * Protobuf's wire format as far as the exports need it: varints, fixed words, lengths, tags and nesting. A
 * message is made in memory and becomes a field of another, or goes out.
 */
#ifndef GT_EXPORT_WIRE_H
#define GT_EXPORT_WIRE_H

#include <stddef.h>
#include <stdint.h>

struct gt_wire { /* a message being made; starts zeroed */
	uint8_t *data;
	size_t length, room;
};

void gt_wire_varint(struct gt_wire *to, uint64_t value); /* bare, of a packed field */
void gt_wire_number(struct gt_wire *to, unsigned int field, uint64_t value);
void gt_wire_fixed(struct gt_wire *to, unsigned int field, uint64_t value);
void gt_wire_data(struct gt_wire *to, unsigned int field, const void *data, size_t length);
void gt_wire_text(struct gt_wire *to, unsigned int field, const char *text);

/* The inner message, which it frees, becomes a field of the outer one. */
void gt_wire_message(struct gt_wire *to, unsigned int field, struct gt_wire *inner);
void gt_wire_clear(struct gt_wire *wire);

#endif
