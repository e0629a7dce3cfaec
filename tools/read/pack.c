/* SPDX-License-Identifier: MIT */
/* See pack.h: names and lines as records of append.c, each text once. Called from cmd/pack.c. */
#include <stdlib.h>
#include <string.h>
#include "read/append.h"
#include "read/pack.h"

#define HASH_NONFATAL_OOM	 1
#define uthash_nonfatal_oom(obj) ((obj)->lost = true)
#include <uthash.h>

struct string {
	UT_hash_handle hh;
	uint32_t id;
	bool lost;
	char text[];
};

struct gt_pack {
	struct gt_append *append;
	struct string *strings;
	uint32_t next_id;
};

struct gt_pack *gt_pack_new(const struct gt_trace *trace)
{
	struct gt_pack *pack = calloc(1, sizeof(*pack));

	if (!pack)
		return NULL;
	pack->append = gt_append_new(trace);
	pack->next_id = (uint32_t)trace->string_count;
	return pack->append ? pack : gt_pack_free(pack);
}

struct gt_pack *gt_pack_free(struct gt_pack *pack)
{
	struct string *string, *next;

	if (!pack)
		return NULL;
	HASH_ITER(hh, pack->strings, string, next) {
		HASH_DEL(pack->strings, string);
		free(string);
	}
	gt_append_free(pack->append);
	free(pack);
	return NULL;
}

/* ---- records --------------------------------------------------------------------------------- */

static uint32_t define_string(struct gt_pack *pack, const char *text, size_t length)
{
	struct gt_rec_string *rec = gt_append_record(pack->append, GT_REC_STRING,
						     sizeof(struct gt_rec_string) + length);

	if (!rec)
		return 0;
	rec->id = pack->next_id++;
	rec->text_length = (uint32_t)length;
	memcpy(rec + 1, text, length);
	return rec->id;
}

static uint32_t string_id(struct gt_pack *pack, const char *text)
{
	const size_t length = strlen(text);
	struct string *string;
	uint32_t id;

	if (!length)
		return 0;
	HASH_FIND(hh, pack->strings, text, length, string);
	if (string)
		return string->id;
	id = define_string(pack, text, length);
	string = calloc(1, sizeof(*string) + length + 1);
	if (!string)
		return id;
	string->id = id;
	memcpy(string->text, text, length);
	HASH_ADD(hh, pack->strings, text, length, string);
	if (string->lost)
		free(string);
	return id;
}

void gt_pack_name(struct gt_pack *pack, const struct gt_pack_name *name)
{
	const uint32_t function = name->function ? string_id(pack, name->function) : 0;
	const uint32_t file = string_id(pack, name->file);
	struct gt_rec_name *rec = gt_append_record(pack->append, GT_REC_NAME, sizeof(*rec));

	if (!rec)
		return;
	rec->module = name->module;
	rec->pc = name->pc;
	rec->function = function;
	rec->file = file;
	rec->line = name->line;
	rec->inlined = name->inlined;
}

void gt_pack_source(struct gt_pack *pack, const char *file, int line, const char *text)
{
	const uint32_t file_id = string_id(pack, file), text_id = string_id(pack, text);
	struct gt_rec_source *rec = gt_append_record(pack->append, GT_REC_SOURCE, sizeof(*rec));

	if (!rec)
		return;
	rec->file = file_id;
	rec->line = line;
	rec->text = text_id;
}

int gt_pack_write(struct gt_pack *pack, const char *path, struct gt_error *err)
{
	return gt_append_write(pack->append, path, err);
}
