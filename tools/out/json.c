/* SPDX-License-Identifier: MIT */
/* See json.h. Numbers stay integers; keys keep the order in which they were set. */
#define _GNU_SOURCE
#include "out/json.h"

#include <stdlib.h>
#include <string.h>
#include <wchar.h>
#include "model/xalloc.h"

json_t *gt_json_answer(const char *command)
{
	return json_pack("{s:i, s:s}", "schema", GT_JSON_SCHEMA, "command", command);
}

json_t *gt_json_number(uint64_t value, bool known)
{
	return known ? json_integer((json_int_t)value) : json_null();
}

json_t *gt_json_seconds(uint64_t us, bool known)
{
	return known ? json_real((double)us / 1e6) : json_null();
}

json_t *gt_json_text(const char *text, size_t length)
{
	json_t *string = json_stringn(text, length);
	char *clean, *to;

	if (string)
		return string;
	clean = to = gt_xcalloc(length + 1, 3);
	for (size_t i = 0; i < length;) {
		mbstate_t state = {0};
		wchar_t wide;
		size_t used = mbrtowc(&wide, text + i, length - i, &state);
		bool bad = used == (size_t)-1 || used == (size_t)-2;

		to = mempcpy(to, bad ? "\xef\xbf\xbd" : text + i, bad ? 3 : used ? used : 1);
		i += bad || !used ? 1 : used;
	}
	string = json_stringn(clean, (size_t)(to - clean));
	free(clean);
	return string ? string : json_null();
}

json_t *gt_json_name(const char *text)
{
	return text && *text ? gt_json_text(text, strlen(text)) : json_null();
}

void gt_json_put(FILE *file, const char *text)
{
	json_t *string = gt_json_text(text, strlen(text));

	json_dumpf(string, file, JSON_ENCODE_ANY);
	json_decref(string);
}

void gt_json_print(struct gt_out *out, json_t *answer)
{
	json_dumpf(answer, out->file, JSON_INDENT(1) | JSON_REAL_PRECISION(15));
	putc('\n', out->file);
	json_decref(answer);
}
