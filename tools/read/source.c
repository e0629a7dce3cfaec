/* SPDX-License-Identifier: MIT */
/*
 * The bytes of a trace, copied out on request, and its header. Refuses what is no trace of ours
 * with a text that says what it is instead. Called by the rest of tools/read only.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "read/beneath.h"
#include "read/reader.h"

/*
 * Doubling, so that a table costs its elements and not their square; the capacity is never taken
 * from a number in the file, only from elements that were really read.
 */
int gt_grow(void *array, size_t *capacity, size_t count, size_t size)
{
	void **p = array, *bigger;
	size_t want;

	if (count < *capacity)
		return 0;
	want = *capacity ? *capacity * 2 : 16;
	bigger = reallocarray(*p, want, size);
	if (!bigger)
		return -1;
	*p = bigger;
	*capacity = want;
	return 0;
}

/* Says what to do, where we know: traces are 0600, and reading one as another user is common. */
static int fail_open(const char *path, int error, struct gt_error *err)
{
	struct passwd *owner;
	struct stat st;

	if (error == EACCES && !stat(path, &st)) {
		owner = getpwuid(st.st_uid);
		return gt_fail(err, path,
			       "permission denied (owner %s, mode %04o): read it as root or copy "
			       "it as the owner",
			       owner ? owner->pw_name : "unknown",
			       (unsigned int)st.st_mode & 07777);
	}
	if (error == EXDEV)
		return gt_fail(err, path, "leads out of the folder that is served");
	return gt_fail(err, path, "cannot be opened: %s", strerror(error));
}

int gt_source_open(struct gt_source *source, const char *path, struct gt_error *err)
{
	int fd = gt_open_read(path);
	struct stat st;

	memset(source, 0, sizeof(*source));
	source->fd = -1;
	if (fd < 0)
		return fail_open(path, errno, err);
	source->fd = fd;
	source->path = strdup(path);
	if (!source->path)
		return gt_fail_memory(err, path);
	if (fstat(fd, &st))
		return gt_fail(err, path, "cannot be read: %s", strerror(errno));
	if (!S_ISREG(st.st_mode))
		return gt_fail(err, path, "%s, not a trace file",
			       S_ISDIR(st.st_mode) ? "a directory" : "a device or pipe");
	source->size = (uint64_t)st.st_size;
	return 0;
}

void gt_source_close(struct gt_source *source)
{
	if (source->map)
		munmap((void *)source->map, source->size);
	if (source->fd >= 0)
		close(source->fd);
	free(source->path);
	memset(source, 0, sizeof(*source));
	source->fd = -1;
}

/* A shared mapping: stores of the writer are seen without a system call, and in order. */
int gt_source_live(struct gt_source *source, struct gt_error *err)
{
	void *map = mmap(NULL, source->size, PROT_READ, MAP_SHARED, source->fd, 0);

	if (map == MAP_FAILED)
		return gt_fail(err, source->path, "cannot be mapped: %s", strerror(errno));
	source->map = map;
	source->live = true;
	return 0;
}

int gt_source_grow(struct gt_source *source)
{
	struct stat st;
	void *map;

	if (fstat(source->fd, &st))
		return -1;
	if (!source->map || (uint64_t)st.st_size <= source->size)
		return 0;
	map = mremap((void *)source->map, source->size, (size_t)st.st_size, MREMAP_MAYMOVE);
	if (map == MAP_FAILED)
		return -1;
	source->map = map;
	source->size = (uint64_t)st.st_size;
	return 0;
}

/* Written so that no sum can wrap: both numbers may come from the file. */
static bool inside(const struct gt_source *source, uint64_t offset, uint64_t length)
{
	return offset <= source->size && length <= source->size - offset;
}

/* Word by word: a word of a running writer is seen whole, and never after one behind it. */
static void copy_words(const uint8_t *from, uint8_t *to, uint64_t length)
{
	uint64_t word, i;

	for (i = 0; i + 8 <= length; i += 8) {
		word = __atomic_load_n((const uint64_t *)(const void *)(from + i),
				       __ATOMIC_ACQUIRE);
		memcpy(to + i, &word, 8);
	}
	memcpy(to + i, from + i, length - i);
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
}

/*
 * A short read is an error even if it was in range a moment ago: somebody shortens the file. Nobody
 * behind this function holds a pointer into the file, so a value that was checked stays checked.
 */
int gt_source_copy(const struct gt_source *source, uint64_t offset, void *to, uint64_t length)
{
	uint64_t done = 0;
	ssize_t n;

	if (!inside(source, offset, length))
		return -1;
	if (source->map) {
		copy_words(source->map + offset, to, length);
		return 0;
	}
	while (done < length) {
		n = pread(source->fd, (char *)to + done, length - done, (off_t)(offset + done));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return -1;
		done += (uint64_t)n;
	}
	return 0;
}

uint64_t gt_source_word(const struct gt_source *source, uint64_t offset)
{
	uint64_t word;

	return gt_source_copy(source, offset, &word, sizeof(word)) ? 0 : word;
}

/* People give wrong files: show them what this one begins with, made printable. */
static int fail_foreign(const struct gt_source *source, const char *head, size_t length,
			struct gt_error *err)
{
	char shown[4 * 8 + 1], *p = shown;
	size_t i;

	for (i = 0; i < length && !head[i]; i++)
		;
	if (i == length)
		return gt_fail(
			err, source->path,
			"not a gputrace trace (starts with zeros): its process may have ended "
			"before recording began");
	for (i = 0; i < length && i < 8; i++)
		p += isprint((unsigned char)head[i]) && head[i] != '"'
			     ? sprintf(p, "%c", head[i])
			     : sprintf(p, "\\x%02x", (unsigned char)head[i]);
	return gt_fail(
		err, source->path,
		"not a gputrace trace (starts with \"%s\"); torch snapshots (.pickle) are read "
		"too",
		shown);
}

/* Version before size: a later version may have another header, and the advice is then different.
 */
static int check_header(const struct gt_source *source, const struct gt_header *h,
			struct gt_error *err)
{
	if (h->byte_order != GT_BYTE_ORDER)
		return gt_fail(err, source->path,
			       "written on a machine of another byte order: read it there");
	if (h->version == 0 || h->version > GT_VERSION)
		return gt_fail(
			err, source->path,
			"format %u, this gputrace reads %u: the file is fine, update gputrace",
			h->version, GT_VERSION);
	if (h->header_size != GT_HEADER_SIZE || h->end < GT_HEADER_SIZE || h->end > INT64_MAX)
		return gt_damaged(err, source->path, offsetof(struct gt_header, header_size),
				  "header is not sane");
	return 0;
}

int gt_header_read(const struct gt_source *source, struct gt_header *ret, struct gt_error *err)
{
	size_t length = source->size < sizeof(*ret) ? (size_t)source->size : sizeof(*ret);
	size_t magic = length < 8 ? length : 8;

	if (!length)
		return gt_fail(err, source->path, "empty (0 bytes), not a trace: copy it again");
	memset(ret, 0, sizeof(*ret));
	if (gt_source_copy(source, 0, ret, length))
		return gt_fail(err, source->path, "cannot be read: %s", strerror(errno));
	if (memcmp(ret->magic, GT_MAGIC, magic))
		return fail_foreign(source, (const char *)ret, magic, err);
	if (length < sizeof(*ret))
		return gt_fail(err, source->path,
			       "cut at byte %zu, inside the header of %u: copy it again", length,
			       GT_HEADER_SIZE);
	ret->boot_id[sizeof(ret->boot_id) - 1] = 0;
	ret->comm[sizeof(ret->comm) - 1] = 0;
	ret->host[sizeof(ret->host) - 1] = 0;
	return check_header(source, ret, err);
}
