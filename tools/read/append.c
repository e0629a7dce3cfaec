/* SPDX-License-Identifier: MIT */
/*
 * See append.h. The copy is the trace byte for byte but for the end in its header; one more extent of
 * definitions follows. It is made beside its place and then moved there, so that the trace itself may
 * be replaced. Called from pack.c and torch.c.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "read/append.h"
#include "read/reader.h"

#define PAGE 4096u

struct gt_append {
	const struct gt_trace *trace;
	uint8_t *records; /* behind room for the extent's head */
	size_t used, capacity;
	bool failed;
};

struct gt_append *gt_append_new(const struct gt_trace *trace)
{
	struct gt_append *append = calloc(1, sizeof(*append));

	if (!append)
		return NULL;
	append->trace = trace;
	append->used = sizeof(struct gt_extent);
	return append;
}

struct gt_append *gt_append_free(struct gt_append *append)
{
	if (append)
		free(append->records);
	free(append);
	return NULL;
}

void *gt_append_record(struct gt_append *append, uint16_t kind, size_t length)
{
	const size_t whole = (length + 7) / 8 * 8, end = append->used + whole;
	struct gt_rec rec = {.kind = kind, .length = (uint32_t)whole};
	uint8_t *at;

	if (end > append->capacity) {
		uint8_t *grown = realloc(append->records, 2 * end + PAGE);

		if (!grown) {
			append->failed = true;
			return NULL;
		}
		append->records = grown;
		append->capacity = 2 * end + PAGE;
	}
	at = append->records + append->used;
	memset(at, 0, whole);
	memcpy(at, &rec, sizeof(rec));
	append->used = end;
	return at;
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

static int count_definitions(const struct gt_append *append, uint64_t *ret, struct gt_error *err)
{
	struct gt_extents list = {0};
	int rc = gt_extents_list(&append->trace->reader->source, false, &list, err);

	*ret = 0;
	for (size_t i = 0; !rc && i < list.count; i++)
		*ret += list.at[i].kind == GT_EXTENT_DEFS;
	free(list.at);
	return rc;
}

static int write_extent(const struct gt_append *append, int fd, uint64_t offset, uint64_t index)
{
	static const uint8_t zeros[PAGE];
	struct gt_extent head = {
		.kind = GT_EXTENT_DEFS,
		.lane = GT_LANE_NONE,
		.offset = offset,
		.length = (append->used + PAGE - 1) / PAGE * PAGE,
		.used = append->used,
		.first_index = index,
	};

	memcpy(append->records, &head, sizeof(head));
	if (write_all(fd, append->records, append->used))
		return -1;
	return write_all(fd, zeros, head.length - head.used);
}

static int write_file(const struct gt_append *append, int fd, struct gt_error *err)
{
	const struct gt_source *source = &append->trace->reader->source;
	const uint64_t end = gt_source_word(source, offsetof(struct gt_header, end));
	const uint64_t added = append->records ? (append->used + PAGE - 1) / PAGE * PAGE : 0;
	uint64_t index;

	if (count_definitions(append, &index, err))
		return -1;
	if (copy_trace(source, fd, end, end + added) ||
	    (added && write_extent(append, fd, end, index)) || fsync(fd))
		return gt_fail(err, append->trace->path, "cannot be copied: %s", strerror(errno));
	return 0;
}

int gt_append_write(struct gt_append *append, const char *path, struct gt_error *err)
{
	char *temporary;
	int fd, rc;

	if (append->failed || asprintf(&temporary, "%s.XXXXXX", path) < 0)
		return gt_fail_memory(err, append->trace->path);
	fd = mkostemp(temporary, O_CLOEXEC);
	rc = fd < 0 ? gt_fail(err, path, "cannot be written: %s", strerror(errno))
		    : write_file(append, fd, err);
	if (fd >= 0 && close(fd) && !rc)
		rc = gt_fail(err, path, "cannot be written: %s", strerror(errno));
	if (!rc && rename(temporary, path))
		rc = gt_fail(err, path, "cannot be written: %s", strerror(errno));
	if (rc && fd >= 0)
		unlink(temporary);
	free(temporary);
	return rc;
}
