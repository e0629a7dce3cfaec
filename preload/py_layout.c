/* SPDX-License-Identifier: MIT */
/*
 * Field offsets of CPython's structures, one row per minor version and threading model: the layouts
 * of a minor version do not change once it is released. A version without a row is refused, never
 * guessed. From 3.13 on the interpreter carries a table of its own offsets, which must agree.
 */
#include <string.h>

#include "py.h"

#define OBJECT	  .ob_type = 8, .ob_size = 16, .bytes_data = 32
#define OBJECT_FT .ob_type = 24, .ob_size = 32, .bytes_data = 48
#define STR_BITS  .state_compact = 5, .state_ascii = 6
#define STR_WCHAR .str_length = 16, .str_state = 32, .str_ascii = 48, .str_compact = 72, STR_BITS
#define STR	  .str_length = 16, .str_state = 32, .str_ascii = 40, .str_compact = 56, STR_BITS
#define STR_FT	  .str_length = 32, .str_state = 48, .str_ascii = 56, .str_compact = 72

/* 3.8 to 3.10: frames are objects, linked by f_back. */
#define FRAME_OBJECTS                                                                    \
	.chain = GT_PY_OBJECTS, .ts_frame = 24, .ts_thread_id = 176, .ts_interp = 16,    \
	.frame_back = 24, .frame_code = 32, .code_first_line = 40, .code_filename = 104, \
	.code_name = 112, .code_linetable = 120, OBJECT, STR_WCHAR

/* 3.12 on: frames on the data stack, with a shim frame at each entry from C. */
#define FRAMES                                                                       \
	.lines = GT_PY_LOCATIONS, .ts_interp = 16, .frame_back = 8, .frame_code = 0, \
	.frame_instr = 56

#define CODE                                                                               \
	.code_first_line = 68, .code_version = 92, .code_filename = 112, .code_name = 120, \
	.code_qualname = 128, .code_linetable = 136, OBJECT, STR

#define CODE_FT                                                                             \
	.code_first_line = 84, .code_version = 108, .code_filename = 128, .code_name = 136, \
	.code_qualname = 144, .code_linetable = 152, OBJECT_FT, STR_FT

static const struct gt_py_layout layouts[] = {
	{.minor = 8, .lines = GT_PY_LNOTAB, .frame_instr = 104, FRAME_OBJECTS},
	{.minor = 9, .lines = GT_PY_LNOTAB, .frame_instr = 104, FRAME_OBJECTS},
	{.minor = 10, .lines = GT_PY_RANGES, .frame_instr = 96, FRAME_OBJECTS},
	{.minor = 11,
	 .chain = GT_PY_CFRAME,
	 .lines = GT_PY_LOCATIONS,
	 .ts_frame = 56,
	 .ts_thread_id = 152,
	 .ts_interp = 16,
	 .cframe_frame = 8,
	 .frame_back = 48,
	 .frame_code = 32,
	 .frame_instr = 56,
	 .frame_entry = 68,
	 .frame_owner = 69,
	 .code_first_line = 72,
	 .code_filename = 112,
	 .code_name = 120,
	 .code_qualname = 128,
	 .code_linetable = 136,
	 .code_first_traceable = 168,
	 .code_bytecode = 184,
	 OBJECT,
	 STR_WCHAR},
	{.minor = 12,
	 .chain = GT_PY_CFRAME,
	 FRAMES,
	 CODE,
	 .ts_frame = 56,
	 .ts_thread_id = 136,
	 .cframe_frame = 0,
	 .frame_owner = 70,
	 .code_first_traceable = 176,
	 .code_bytecode = 192},
	{.minor = 13,
	 .chain = GT_PY_DIRECT,
	 FRAMES,
	 CODE,
	 .ts_frame = 72,
	 .ts_thread_id = 152,
	 .frame_owner = 70,
	 .code_first_traceable = 184,
	 .code_bytecode = 200},
	{.minor = 13,
	 .free_threaded = true,
	 .chain = GT_PY_DIRECT,
	 FRAMES,
	 CODE_FT,
	 STR_BITS,
	 .ts_frame = 72,
	 .ts_thread_id = 152,
	 .frame_owner = 70,
	 .code_first_traceable = 200,
	 .code_bytecode = 216},
	{.minor = 14,
	 .chain = GT_PY_DIRECT,
	 FRAMES,
	 CODE,
	 .ts_frame = 72,
	 .ts_thread_id = 152,
	 .frame_owner = 74,
	 .code_first_traceable = 192,
	 .code_bytecode = 208},
	{.minor = 14,
	 .free_threaded = true,
	 .chain = GT_PY_DIRECT,
	 FRAMES,
	 CODE_FT,
	 .ts_frame = 72,
	 .ts_thread_id = 152,
	 .frame_owner = 78,
	 .frame_tlbc = 72,
	 .code_first_traceable = 208,
	 .code_tlbc = 224,
	 .code_bytecode = 232,
	 .state_compact = 11,
	 .state_ascii = 12},
};

static const char *number(const char *s, unsigned *ret)
{
	unsigned n = 0;

	while (*s >= '0' && *s <= '9' && n < 1000)
		n = n * 10 + (unsigned)(*s++ - '0');
	*ret = n;
	return s;
}

/* "3.12.1 (main, ...)": alphas and betas may still have changed, their layouts are not known. */
const struct gt_py_layout *gt_py_layout_find(const char *version, const char **ret_reason)
{
	bool free_threaded = strstr(version, "free-threading") != NULL;
	unsigned minor = 0, micro;
	const char *end = version;
	size_t i;

	*ret_reason = "unknown version";
	if (strncmp(version, "3.", 2))
		return NULL;
	end = number(version + 2, &minor);
	if (*end == '.')
		end = number(end + 1, &micro);
	if (*end == 'a' || *end == 'b') {
		*ret_reason = "pre-release version";
		return NULL;
	}
	for (i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++)
		if (layouts[i].minor == minor && layouts[i].free_threaded == free_threaded)
			return &layouts[i];
	return NULL;
}

/* Where _PyRuntime's table has an offset, and the field of ours it must equal. */
struct offset_entry {
	uint16_t at, ours;
};

#define ENTRY(at, field)                                 \
	{                                                \
		at, offsetof(struct gt_py_layout, field) \
	}

static const struct offset_entry offsets_13[] = {
	ENTRY(184, ts_frame),
	ENTRY(192, ts_thread_id),
	ENTRY(232, frame_back),
	ENTRY(240, frame_code),
	ENTRY(248, frame_instr),
	ENTRY(264, frame_owner),
	ENTRY(280, code_filename),
	ENTRY(288, code_name),
	ENTRY(296, code_qualname),
	ENTRY(304, code_linetable),
	ENTRY(312, code_first_line),
	ENTRY(344, code_bytecode),
	ENTRY(360, ob_type),
	ENTRY(520, ob_size),
	ENTRY(528, bytes_data),
	ENTRY(544, str_state),
	ENTRY(552, str_length),
	ENTRY(560, str_ascii),
	{0, 0},
};

static const struct offset_entry offsets_14[] = {
	ENTRY(208, ts_frame),
	ENTRY(216, ts_thread_id),
	ENTRY(256, frame_back),
	ENTRY(264, frame_code),
	ENTRY(272, frame_instr),
	ENTRY(288, frame_owner),
	ENTRY(320, code_filename),
	ENTRY(328, code_name),
	ENTRY(336, code_qualname),
	ENTRY(344, code_linetable),
	ENTRY(352, code_first_line),
	ENTRY(384, code_bytecode),
	ENTRY(408, ob_type),
	ENTRY(600, ob_size),
	ENTRY(608, bytes_data),
	ENTRY(624, str_state),
	ENTRY(632, str_length),
	ENTRY(640, str_ascii),
	{0, 0},
};

static const struct offset_entry offsets_14t[] = {
	ENTRY(304, frame_tlbc),
	ENTRY(392, code_tlbc),
	{0, 0},
};

static bool offsets_equal(const struct gt_py_layout *l, const char *runtime,
			  const struct offset_entry *e)
{
	uint16_t ours;

	for (; e->at; e++) {
		memcpy(&ours, (const char *)l + e->ours, sizeof(ours));
		if (gt_py_word(runtime, e->at) != ours)
			return false;
	}
	return true;
}

const char *gt_py_layout_compare(const struct gt_py_layout *l, const void *runtime)
{
	if (l->minor < 13)
		return NULL;
	if (!runtime || memcmp(runtime, "xdebugpy", 8))
		return "no table of offsets";
	if (gt_py_word(runtime, 8) >> 16 != (0x0300u | l->minor))
		return "table of offsets of another version";
	if (gt_py_word(runtime, 16) != l->free_threaded)
		return "table of offsets of another threading model";
	if (!offsets_equal(l, runtime, l->minor == 13 ? offsets_13 : offsets_14))
		return "fields are elsewhere";
	if (l->code_tlbc && !offsets_equal(l, runtime, offsets_14t))
		return "fields are elsewhere";
	return NULL;
}
