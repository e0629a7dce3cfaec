/* SPDX-License-Identifier: MIT */
/*
 * See text.h. A hash table of strings; called by symbols.c for every name once per address, so it
 * is not tuned. Bytes come from trace files and object files: hostile, any length, any content.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <libiberty/demangle.h>

#include "symbols/text.h"

#define HASH_NONFATAL_OOM	 1
#define uthash_nonfatal_oom(obj) ((obj)->lost = true)
#include <uthash.h>

#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

struct entry {
	UT_hash_handle hh;
	bool lost; /* could not be put into the table */
	char bytes[];
};

struct gt_text {
	struct entry *entries;
};

struct gt_text *gt_text_new(void)
{
	return calloc(1, sizeof(struct gt_text));
}

struct gt_text *gt_text_free(struct gt_text *text)
{
	struct entry *entry, *next;

	if (!text)
		return NULL;
	HASH_ITER(hh, text->entries, entry, next) {
		HASH_DEL(text->entries, entry);
		free(entry);
	}
	free(text);
	return NULL;
}

static const char *intern(struct gt_text *text, const char *bytes, size_t length)
{
	struct entry *entry;

	HASH_FIND(hh, text->entries, bytes, length, entry);
	if (entry)
		return entry->bytes;
	entry = malloc(sizeof(*entry) + length + 1);
	if (!entry)
		return "";
	entry->lost = false;
	memcpy(entry->bytes, bytes, length);
	entry->bytes[length] = '\0';
	HASH_ADD(hh, text->entries, bytes, length, entry);
	if (!entry->lost)
		return entry->bytes;
	free(entry);
	return "";
}

/* Length of the sequence that a lead byte announces, its smallest code point; 0 = no lead byte. */
static unsigned int sequence(uint8_t lead, uint32_t *ret_least)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	unsigned int length = lead < 0x80	      ? 1
			      : (lead & 0xe0) == 0xc0 ? 2
			      : (lead & 0xf0) == 0xe0 ? 3
			      : (lead & 0xf8) == 0xf0 ? 4
						      : 0;

	*ret_least = least[length];
	return length;
}

/* Length of the printable character at the front, 0 if there is none. */
static unsigned int printable(const uint8_t *bytes, size_t left)
{
	uint32_t least, code;
	unsigned int i, length = sequence(bytes[0], &least);

	if (!length || length > left)
		return 0;
	code = length == 1 ? bytes[0] : bytes[0] & (0x7f >> length);
	for (i = 1; i < length; i++) {
		if ((bytes[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (bytes[i] & 0x3f);
	}
	if (code < least || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
		return 0;
	/* C0 and C1 could drive a terminal; U+2028/2029 break lines in viewers */
	return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x2028 || code == 0x2029
		       ? 0
		       : length;
}

const char *gt_text_clean(struct gt_text *text, const char *bytes, size_t length)
{
	char *out = malloc(3 * length + 1);
	size_t i = 0, used = 0;
	const char *clean;

	if (!out)
		return "";
	while (i < length) {
		unsigned int n = printable((const uint8_t *)bytes + i, length - i);

		memcpy(out + used, n ? bytes + i : REPLACEMENT, n ? n : 3);
		used += n ? n : 3;
		i += n ? n : 1;
	}
	clean = intern(text, out, used);
	free(out);
	return clean;
}

const char *gt_text_function(struct gt_text *text, const char *symbol)
{
	char *plain = cplus_demangle(symbol, DMGL_AUTO);
	const char *clean;

	if (!plain)
		return gt_text_clean(text, symbol, strlen(symbol));
	clean = gt_text_clean(text, plain, strlen(plain));
	free(plain);
	return clean;
}
