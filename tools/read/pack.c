/* SPDX-License-Identifier: MIT */
/*
 * See pack.h. The copy is the trace byte for byte but for the end in its header; one more extent of
 * definitions follows. Readers that do not know the new kinds skip them, and strings are strings.
 * Called from cmd/pack.c.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "read/reader.h"
#include "read/pack.h"

#define HASH_NONFATAL_OOM	 1
#define uthash_nonfatal_oom(obj) ((obj)->lost = true)
#include <uthash.h>

#define PAGE 4096u

struct string {
	UT_hash_handle hh;
	uint32_t id;
	bool lost;
	char text[];
};

struct gt_pack {
	const struct gt_trace *trace;
	struct string *strings;
	uint32_t next_id;
	uint8_t *records; /* behind room for the extent's head */
	size_t used, capacity;
	bool failed;
};

struct gt_pack *gt_pack_new(const struct gt_trace *trace)
{
	struct gt_pack *pack = calloc(1, sizeof(*pack));

	if (!pack)
		return NULL;
	pack->trace = trace;
	pack->next_id = (uint32_t)trace->string_count;
	pack->used = sizeof(struct gt_extent);
	return pack;
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
	free(pack->records);
	free(pack);
	return NULL;
}

/* ---- records --------------------------------------------------------------------------------- */

/* Room for a record, zeroed, its head filled in; NULL = no memory. */
static void *append(struct gt_pack *pack, uint16_t kind, size_t length)
{
	const size_t whole = (length + 7) / 8 * 8, end = pack->used + whole;
	struct gt_rec rec = {.kind = kind, .length = (uint32_t)whole};
	uint8_t *at;

	if (end > pack->capacity) {
		uint8_t *grown = realloc(pack->records, 2 * end + PAGE);

		if (!grown) {
			pack->failed = true;
			return NULL;
		}
		pack->records = grown;
		pack->capacity = 2 * end + PAGE;
	}
	at = pack->records + pack->used;
	memset(at, 0, whole);
	memcpy(at, &rec, sizeof(rec));
	pack->used = end;
	return at;
}

static uint32_t define_string(struct gt_pack *pack, const char *text, size_t length)
{
	struct gt_rec_string *rec =
		append(pack, GT_REC_STRING, sizeof(struct gt_rec_string) + length);

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
	struct gt_rec_name *rec = append(pack, GT_REC_NAME, sizeof(*rec));

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
	struct gt_rec_source *rec = append(pack, GT_REC_SOURCE, sizeof(*rec));

	if (!rec)
		return;
	rec->file = file_id;
	rec->line = line;
	rec->text = text_id;
}

/* ---- the file -------------------------------------------------------------------------------- */

static int write_all(int fd, const void *bytes, size_t length)
{
	const char *at = bytes;

	while (length) {
		ssize_t n = write(fd, at, length);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return -1;
		at += n;
		length -= (size_t)n;
	}
	return 0;
}

static int copy_trace(const struct gt_source *source, int fd, uint64_t end, uint64_t new_end)
{
	static const uint64_t STEP = 1 << 20;
	uint8_t *buffer = malloc(STEP);
	int rc = buffer ? 0 : -1;

	for (uint64_t at = 0; !rc && at < end; at += STEP) {
		const uint64_t length = end - at < STEP ? end - at : STEP;

		rc = gt_source_copy(source, at, buffer, length);
		if (!rc && !at)
			memcpy(buffer + offsetof(struct gt_header, end), &new_end, sizeof(new_end));
		if (!rc)
			rc = write_all(fd, buffer, length);
	}
	free(buffer);
	return rc;
}

static int count_definitions(const struct gt_pack *pack, uint64_t *ret, struct gt_error *err)
{
	struct gt_extents list = {0};
	int rc = gt_extents_list(&pack->trace->reader->source, false, &list, err);

	*ret = 0;
	for (size_t i = 0; !rc && i < list.count; i++)
		*ret += list.at[i].kind == GT_EXTENT_DEFS;
	free(list.at);
	return rc;
}

static int write_extent(const struct gt_pack *pack, int fd, uint64_t offset, uint64_t index)
{
	static const uint8_t zeros[PAGE];
	struct gt_extent head = {
		.kind = GT_EXTENT_DEFS,
		.lane = GT_LANE_NONE,
		.offset = offset,
		.length = (pack->used + PAGE - 1) / PAGE * PAGE,
		.used = pack->used,
		.first_index = index,
	};

	memcpy(pack->records, &head, sizeof(head));
	if (write_all(fd, pack->records, pack->used))
		return -1;
	return write_all(fd, zeros, head.length - head.used);
}

static int write_file(const struct gt_pack *pack, int fd, struct gt_error *err)
{
	const struct gt_source *source = &pack->trace->reader->source;
	const uint64_t end = gt_source_word(source, offsetof(struct gt_header, end));
	const uint64_t added = pack->records ? (pack->used + PAGE - 1) / PAGE * PAGE : 0;
	uint64_t index;

	if (count_definitions(pack, &index, err))
		return -1;
	if (copy_trace(source, fd, end, end + added) ||
	    (added && write_extent(pack, fd, end, index)) || fsync(fd))
		return gt_fail(err, pack->trace->path, "cannot be packed: %s", strerror(errno));
	return 0;
}

int gt_pack_write(struct gt_pack *pack, const char *path, struct gt_error *err)
{
	char *temporary;
	int fd, rc;

	if (pack->failed || asprintf(&temporary, "%s.XXXXXX", path) < 0)
		return gt_fail_memory(err, pack->trace->path);
	fd = mkostemp(temporary, O_CLOEXEC);
	rc = fd < 0 ? gt_fail(err, path, "cannot be written: %s", strerror(errno))
		    : write_file(pack, fd, err);
	if (fd >= 0 && close(fd) && !rc)
		rc = gt_fail(err, path, "cannot be written: %s", strerror(errno));
	if (!rc && rename(temporary, path))
		rc = gt_fail(err, path, "cannot be written: %s", strerror(errno));
	if (rc && fd >= 0)
		unlink(temporary);
	free(temporary);
	return rc;
}
