/* SPDX-License-Identifier: MIT */
/*
 * Lists the extents of a trace: they stand one behind the other from the header to gt_header.end,
 * so a list is a walk, and one bad length makes everything behind it unreachable. Of a cut file,
 * read with --partial, the last extent is listed with the length that is left of it.
 */
#include <stdlib.h>
#include <string.h>
#include "read/reader.h"

#define PAGE 4096u

/*
 * One head, consistent: a ring extent may be handed to another lane while its fields are copied.
 * false = it is being recycled just now (or was when its process died): nothing in it counts.
 */
static bool head_copy(const struct gt_source *source, uint64_t at, struct gt_extent *ret)
{
	const uint64_t gen_at = at + offsetof(struct gt_extent, gen);
	uint64_t gen;

	for (int tries = 0; tries < 1000; tries++) {
		gen = gt_source_word(source, gen_at);
		if (gt_source_copy(source, at, ret, sizeof(*ret)))
			return false;
		if (ret->gen == gen && gt_source_word(source, gen_at) == gen)
			return ret->kind != GT_EXTENT_RING || !(gen & 1);
	}
	return false;
}

/* NULL, or why nothing behind this head can be believed. */
static const char *head_bad(const struct gt_extent *e, uint64_t at, uint64_t room, bool partial)
{
	if (e->kind == 0)
		return "an extent without a kind";
	if (e->offset != at)
		return "an extent that says it is elsewhere";
	if (e->length < PAGE || e->length % PAGE)
		return "an extent's length is not in whole pages";
	if (e->length > room && !partial)
		return "an extent is longer than the file";
	if (e->kind != GT_EXTENT_DEFS && e->kind != GT_EXTENT_RING)
		return NULL;
	if (e->used > e->length || e->used % 8 || (e->used && e->used < sizeof(*e)))
		return "an extent's used bytes are not inside it";
	return NULL;
}

/* Loaded once: an extent that is listed later is none of this walk's business. */
static uint64_t listed_end(struct gt_source *source)
{
	uint64_t end = gt_source_word(source, offsetof(struct gt_header, end));

	if (source->live && end > source->size)
		gt_source_grow(source);
	return end;
}

/* Where the extent at this place ends, told even while it is being recycled. */
static uint64_t length_at(const struct gt_source *source, uint64_t at)
{
	return gt_source_word(source, at + offsetof(struct gt_extent, length));
}

/* From here on length and used are inside the file, whatever the head says. */
static int keep(struct gt_extents *list, struct gt_extent *e, uint64_t room)
{
	if (e->length > room)
		e->length = room;
	if (e->used > e->length)
		e->used = e->length;
	if (e->used < sizeof(*e))
		e->used = sizeof(*e);
	if (gt_grow(&list->at, &list->capacity, list->count, sizeof(*e)))
		return -1;
	list->at[list->count++] = *e;
	return 0;
}

int gt_extents_list(struct gt_source *source, bool partial, struct gt_extents *list,
		    struct gt_error *err)
{
	uint64_t end = listed_end(source), at, length;
	struct gt_extent e;
	const char *bad;

	list->count = 0;
	if (end > source->size && !partial)
		return gt_fail(
			err, source->path,
			"cut at byte %llu of %llu: copy it again, or read what is there with "
			"--partial",
			(unsigned long long)source->size, (unsigned long long)end);
	if (end > source->size)
		end = source->size;
	for (at = GT_HEADER_SIZE; at < end && end - at >= sizeof(e); at += length) {
		length = length_at(source, at);
		if (head_copy(source, at, &e)) {
			bad = head_bad(&e, at, end - at, partial);
			if (bad && partial)
				return 0;
			if (bad)
				return gt_damaged(err, source->path, at, "%s", bad);
			if (keep(list, &e, end - at))
				return gt_fail_memory(err, source->path);
		}
		if (length < PAGE || length % PAGE || length > end - at)
			break;
	}
	if (at != end && !partial)
		return gt_damaged(err, source->path, at, "no extent where one must begin");
	return 0;
}

uint64_t gt_defs_used(const struct gt_extents *list)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < list->count; i++)
		if (list->at[i].kind == GT_EXTENT_DEFS)
			sum += list->at[i].used;
	return sum;
}
