/* SPDX-License-Identifier: MIT */
/*
 * An answer that fits. Who reads it is a model with a limited context, to whom half a JSON text is
 * none: so lists lose their ends, as many elements as it takes, and the answer begins with what it
 * left out and of how many. All lists give way alike, since the commands print the largest first.
 * Called from mcp_tools.c.
 */
#include <stdlib.h>
#include <string.h>

#include "cmd/mcp.h"
#include "model/xalloc.h"

struct bound {
	size_t most;	  /* elements of a list */
	size_t text;	  /* bytes of a text */
	json_t *left_out; /* by path: shown, of */
};

static json_t *bounded(struct bound *bound, const json_t *value, const char *path);

static void leave_out(struct bound *bound, const char *path, size_t shown, size_t of)
{
	json_t *entry = json_object_get(bound->left_out, path);

	if (!entry) {
		entry = json_pack("{s:i, s:i}", "shown", 0, "of", 0);
		json_object_set_new(bound->left_out, path, entry);
	}
	json_integer_set(json_object_get(entry, "shown"),
			 json_integer_value(json_object_get(entry, "shown")) + (json_int_t)shown);
	json_integer_set(json_object_get(entry, "of"),
			 json_integer_value(json_object_get(entry, "of")) + (json_int_t)of);
}

static json_t *bounded_array(struct bound *bound, const json_t *value, const char *path)
{
	json_t *result = json_array();
	char *inner = gt_xasprintf("%s[]", path);
	size_t count = json_array_size(value), shown = count < bound->most ? count : bound->most;

	for (size_t i = 0; i < shown; i++)
		json_array_append_new(result, bounded(bound, json_array_get(value, i), inner));
	if (shown < count)
		leave_out(bound, path, shown, count);
	free(inner);
	return result;
}

static json_t *bounded_object(struct bound *bound, const json_t *value, const char *path)
{
	json_t *result = json_object(), *member;
	const char *key;

	json_object_foreach((json_t *)value, key, member) {
		char *inner = gt_xasprintf("%s%s%s", path, *path ? "." : "", key);

		json_object_set_new(result, key, bounded(bound, member, inner));
		free(inner);
	}
	return result;
}

/* Never within a character. */
static json_t *bounded_text(struct bound *bound, const json_t *value, const char *path)
{
	const char *text = json_string_value(value);
	size_t length = json_string_length(value), kept = bound->text;

	if (length <= kept)
		return json_copy((json_t *)value);
	while (kept && ((unsigned char)text[kept] & 0xc0) == 0x80)
		kept--;
	leave_out(bound, path, kept, length);
	return json_stringn(text, kept);
}

static json_t *bounded(struct bound *bound, const json_t *value, const char *path)
{
	if (json_is_array(value))
		return bounded_array(bound, value, path);
	if (json_is_object(value))
		return bounded_object(bound, value, path);
	if (json_is_string(value))
		return bounded_text(bound, value, path);
	return json_deep_copy(value);
}

static char *attempt(const json_t *answer, size_t most, size_t text)
{
	struct bound bound = {most, text, json_object()};
	json_t *part = bounded(&bound, answer, ""), *whole = json_object();
	char *result;

	json_object_set_new(whole, "left_out", bound.left_out);
	json_object_update(whole, part);
	result = gt_xchecked(json_dumps(whole, JSON_COMPACT));
	json_decref(part);
	json_decref(whole);
	if (strlen(result) <= GT_MCP_ANSWER)
		return result;
	free(result);
	return NULL;
}

char *gt_mcp_bounded(json_t *answer)
{
	char *text = gt_xchecked(json_dumps(answer, JSON_COMPACT));

	if (strlen(text) > GT_MCP_ANSWER) {
		size_t most = 256;

		free(text);
		text = NULL;
		for (; !text && most; most = most * 2 / 3)
			text = attempt(answer, most, most > 8 ? 4096 : 256);
	}
	json_decref(answer);
	return text ? text : gt_xstrdup("{\"left_out\":\"everything: the answer is too large\"}");
}
