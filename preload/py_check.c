/* SPDX-License-Identifier: MIT */
/*
 * The one test of a layout against the interpreter at hand, before anything is loaded through it.
 * Every pointer met here may be garbage if the layout is wrong, so each word is first offered to
 * the kernel (readable.h). Runs once per process; afterwards plain loads are enough.
 */
#include <pthread.h>

#include "py.h"
#include "readable.h"

/* A word behind a pointer that may be wrong. The word may straddle two pages. */
static bool try_word(const char *p, uint16_t offset, uint64_t *ret)
{
	uint64_t at = (uint64_t)p + offset;

	if (!gt_py_plausible(p) || !gt_readable(at & ~7ull) || !gt_readable((at + 7) & ~7ull))
		return false;
	*ret = gt_py_word(p, offset);
	return true;
}

static bool try_ptr(const char *p, uint16_t offset, const char **ret)
{
	uint64_t w;

	if (!try_word(p, offset, &w))
		return false;
	*ret = (const char *)w;
	return true;
}

static bool has_type(const struct gt_py_layout *l, const char *object, const char *type)
{
	const char *t;

	return try_ptr(object, l->ob_type, &t) && t == type;
}

/* The types are objects too, of a known type at a known address: shows where ob_type is. */
const char *gt_py_check_types(const struct gt_py_layout *l, const struct gt_py_api *api)
{
	if (!has_type(l, api->code_type, api->type_type) ||
	    !has_type(l, api->unicode_type, api->type_type) ||
	    !has_type(l, api->bytes_type, api->type_type))
		return "objects have another header";
	return NULL;
}

static bool member_has_type(const struct gt_py_layout *l, const char *code, uint16_t offset,
			    const char *type)
{
	const char *member;

	return !offset || (try_ptr(code, offset, &member) && has_type(l, member, type));
}

static bool table_is_sane(const struct gt_py_layout *l, const char *code)
{
	const char *table;
	uint64_t size;

	return try_ptr(code, l->code_linetable, &table) && try_word(table, l->ob_size, &size) &&
	       size < 1u << 30;
}

static const char *check_code(const struct gt_py_layout *l, const struct gt_py_api *api,
			      const char *code)
{
	uint64_t line;

	if (!member_has_type(l, code, l->code_filename, api->unicode_type) ||
	    !member_has_type(l, code, l->code_name, api->unicode_type) ||
	    !member_has_type(l, code, l->code_qualname, api->unicode_type))
		return "names of code objects are elsewhere";
	if (!member_has_type(l, code, l->code_linetable, api->bytes_type) ||
	    !table_is_sane(l, code))
		return "line tables are elsewhere";
	if (!try_word(code, l->code_first_line, &line) || (int32_t)line < 0 ||
	    (int32_t)line > 1 << 30)
		return "first lines are elsewhere";
	return NULL;
}

/* From the innermost frame outwards to one that runs a code object; shims may lie in between. */
static const char *check_chain(const struct gt_py_layout *l, const struct gt_py_api *api,
			       const char *frame, bool *ret_proved)
{
	const char *code, *reason;
	int steps;

	for (steps = 0; frame && steps < 64; steps++) {
		if (!try_ptr(frame, l->frame_code, &code))
			return "frames are elsewhere";
		code = (const char *)((uintptr_t)code & ~3ull);
		if (has_type(l, code, api->code_type)) {
			reason = check_code(l, api, code);
			*ret_proved = !reason;
			return reason;
		}
		if (l->minor < 12)
			return "frames have no code object";
		if (!try_ptr(frame, l->frame_back, &frame))
			return "frames are elsewhere";
	}
	return frame ? "frames have no code object" : NULL;
}

const char *gt_py_check_frames(const struct gt_py_layout *l, const struct gt_py_api *api,
			       const char *ts, bool *ret_proved)
{
	const char *frame;
	uint64_t self;

	*ret_proved = false;
	if (!try_word(ts, l->ts_thread_id, &self) || self != (uint64_t)pthread_self())
		return "thread states are not as expected";
	if (!try_ptr(ts, l->ts_frame, &frame))
		return "thread states are not as expected";
	if (l->chain == GT_PY_CFRAME && !try_ptr(frame, l->cframe_frame, &frame))
		return "thread states are not as expected";
	return check_chain(l, api, frame, ret_proved);
}
