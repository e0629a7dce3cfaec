/* SPDX-License-Identifier: MIT */
/*
 * Arrays: the wrappers are the GT_ARRAY rows of hooks.def, their accounting is hook.c's. The driver
 * does not tell what an array takes, so the bytes are those of its shape; the driver's own layout
 * may add to that. An array without memory of its own (sparse, mapped later) has none until memory
 * is mapped into it, and that is a handle's.
 */
#include "hook.h"

#define GT_ARRAY GT_WRAP
#include "hooks.def"

#define LAYERED	 0x01 /* CUDA_ARRAY3D_LAYERED: depth counts layers, which no level halves */
#define CUBEMAP	 0x04
#define SPARSE	 0x40
#define DEFERRED 0x80

/* Of one texel of a plain format, per channel; 0 = the format says it all (texel_bits). */
static uint32_t channel_bits(int format)
{
	switch (format) {
	case 0x01: /* unsigned and signed integers */
	case 0x08:
		return 8;
	case 0x02:
	case 0x09:
	case 0x10: /* half */
		return 16;
	case 0x03:
	case 0x0a:
	case 0x20: /* float */
		return 32;
	default:
		return 0;
	}
}

static uint32_t texel_bits(int format, uint32_t channels)
{
	static const uint8_t normalized[] = {8, 16, 32, 16, 32, 64}; /* 1, 2, 4 of 8; of 16 bits */

	if (channel_bits(format))
		return channel_bits(format) * channels;
	if (format >= 0xc0 && format <= 0xcb)
		return normalized[(format - 0xc0) % 6];
	if (format == 0x91 || format == 0x92 || format == 0x97 || format == 0x98)
		return 4; /* BC1, BC4: 8 bytes for 4 x 4 */
	if (format >= 0x93 && format <= 0x9e)
		return 8; /* BC2, BC3, BC5, BC6H, BC7: 16 bytes */
	if (format == 0xb0)
		return 12; /* NV12 */
	return format == 0x50 ? 32 : 0;
}

static uint64_t at_least(uint64_t value, uint64_t least)
{
	return value > least ? value : least;
}

/* As the driver does: one at least, and none behind the one that is a single texel. */
static uint32_t clamped(const struct gt_array3d *shape, uint32_t levels)
{
	uint64_t depth = shape->flags & LAYERED ? 0 : shape->depth;
	uint32_t most = 64 - (uint32_t)__builtin_clzll(shape->width | shape->height | depth | 1);

	return levels < most ? (uint32_t)at_least(levels, 1) : most;
}

uint64_t gt_array3d_bytes(const struct gt_array3d *shape, uint32_t levels)
{
	bool layers = shape && shape->flags & (LAYERED | CUBEMAP);
	uint64_t texels = 0;

	if (!shape || shape->flags & (SPARSE | DEFERRED))
		return 0;
	levels = clamped(shape, levels);
	for (uint32_t i = 0; i < levels; i++)
		texels += at_least(shape->width >> i, 1) * at_least(shape->height >> i, 1) *
			  at_least(layers ? shape->depth : shape->depth >> i, 1);
	return texels * texel_bits(shape->format, shape->channels) / 8;
}

uint64_t gt_array3d_v1_bytes(const struct gt_array3d_v1 *shape)
{
	if (!shape)
		return 0;
	return gt_array3d_bytes(&(struct gt_array3d){.width = shape->width,
						     .height = shape->height,
						     .depth = shape->depth,
						     .format = shape->format,
						     .channels = shape->channels,
						     .flags = shape->flags},
				1);
}

uint64_t gt_array_v2_bytes(const struct gt_array_v2 *shape)
{
	if (!shape)
		return 0;
	return gt_array3d_bytes(&(struct gt_array3d){.width = shape->width,
						     .height = shape->height,
						     .format = shape->format,
						     .channels = shape->channels},
				1);
}

uint64_t gt_array_v1_bytes(const struct gt_array_v1 *shape)
{
	if (!shape)
		return 0;
	return gt_array_v2_bytes(&(struct gt_array_v2){.width = shape->width,
						       .height = shape->height,
						       .format = shape->format,
						       .channels = shape->channels});
}
