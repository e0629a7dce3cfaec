/* SPDX-License-Identifier: MIT */
/*
 * See source.h. Text comes from the trace, if it was packed, else from the file, if that has not
 * been written to since the trace began: a line that was not there in the run would mislead. Files
 * are read once; they may be anything, so only regular ones of a sane size count.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "symbols/source.h"

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#define FILE_MAX       (8u << 20)
#define LINE_MAX_BYTES 200u

struct line_key {
	const char *file; /* clean texts are unique */
	uint64_t line;
};

struct packed {
	struct line_key key;
	UT_hash_handle hh;
	const char *text;
};

struct file {
	UT_hash_handle hh;
	const char *name;
	char *bytes; /* NULL = not to be had */
	size_t size;
};

struct gt_sources {
	const struct gt_trace *trace;
	struct gt_text *text;
	struct packed *packed;
	struct file *files;
};

/* ---- packed lines ---------------------------------------------------------------------------- */

static const char *clean(struct gt_sources *sources, uint32_t id)
{
	const struct gt_bytes *string = &sources->trace->strings[id];

	return gt_text_clean(sources->text, string->text, string->length);
}

static void add_packed(struct gt_sources *sources, const struct gt_source_def *def)
{
	struct packed *packed = calloc(1, sizeof(*packed));

	if (!packed)
		return;
	packed->key = (struct line_key){clean(sources, def->file), (uint64_t)def->line};
	packed->text = clean(sources, def->text);
	HASH_ADD(hh, sources->packed, key, sizeof(packed->key), packed);
}

struct gt_sources *gt_sources_new(const struct gt_trace *trace, struct gt_text *text)
{
	struct gt_sources *sources = calloc(1, sizeof(*sources));

	if (!sources)
		return NULL;
	sources->trace = trace;
	sources->text = text;
	for (size_t i = 0; i < trace->source_count; i++)
		add_packed(sources, &trace->sources[i]);
	return sources;
}

struct gt_sources *gt_sources_free(struct gt_sources *sources)
{
	struct packed *packed, *next_packed;
	struct file *file, *next_file;

	if (!sources)
		return NULL;
	HASH_ITER(hh, sources->packed, packed, next_packed) {
		HASH_DEL(sources->packed, packed);
		free(packed);
	}
	HASH_ITER(hh, sources->files, file, next_file) {
		HASH_DEL(sources->files, file);
		free(file->bytes);
		free(file);
	}
	free(sources);
	return NULL;
}

/* ---- files ----------------------------------------------------------------------------------- */

static bool as_in_the_run(const struct gt_sources *sources, const struct stat *st)
{
	const uint64_t began = sources->trace->header.real_us;
	const uint64_t written =
		(uint64_t)st->st_mtim.tv_sec * 1000000 + (uint64_t)st->st_mtim.tv_nsec / 1000;

	return S_ISREG(st->st_mode) && st->st_size <= FILE_MAX && written <= began;
}

/* A script keeps the name by which it was started, relative to where that was. */
static int open_source(const struct gt_sources *sources, const char *name)
{
	const int flags = O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY;
	const struct gt_bytes *cwd = gt_trace_info(sources->trace, "cwd");
	char *path;
	int fd;

	if (*name == '/' || !cwd || *name == '<')
		return *name == '/' ? open(name, flags) : -1;
	if (asprintf(&path, "%s/%s", cwd->text, name) < 0)
		return -1;
	fd = open(path, flags);
	free(path);
	return fd;
}

static void read_file(const struct gt_sources *sources, struct file *file)
{
	int fd = open_source(sources, file->name);
	struct stat st;

	if (fd < 0)
		return;
	if (!fstat(fd, &st) && as_in_the_run(sources, &st))
		file->bytes = malloc((size_t)st.st_size + 1);
	if (file->bytes) {
		ssize_t n = read(fd, file->bytes, (size_t)st.st_size);

		file->size = n > 0 ? (size_t)n : 0;
	}
	close(fd);
}

static const struct file *file_of(struct gt_sources *sources, const char *name)
{
	struct file *file;

	HASH_FIND(hh, sources->files, name, strlen(name), file);
	if (file)
		return file;
	file = calloc(1, sizeof(*file));
	if (!file)
		return NULL;
	file->name = name;
	read_file(sources, file);
	HASH_ADD_KEYPTR(hh, sources->files, name, strlen(name), file);
	return file;
}

/* ---- lines ----------------------------------------------------------------------------------- */

static bool blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\f';
}

/* Cut at a whole character: a UTF-8 sequence is at most four bytes. */
static size_t cut(const char *at, size_t length)
{
	if (length <= LINE_MAX_BYTES)
		return length;
	length = LINE_MAX_BYTES;
	while (length > LINE_MAX_BYTES - 4 && ((unsigned char)at[length] & 0xc0) == 0x80)
		length--;
	return length;
}

static const char *line_in(struct gt_sources *sources, const struct file *file, int line)
{
	const char *at = file->bytes, *end = at + file->size, *stop;

	for (; at && line > 1; line--) {
		at = memchr(at, '\n', (size_t)(end - at));
		at = at ? at + 1 : NULL;
	}
	if (!at || at == end)
		return "";
	stop = memchr(at, '\n', (size_t)(end - at));
	stop = stop ? stop : end;
	while (at < stop && blank(*at))
		at++;
	while (at < stop && blank(stop[-1]))
		stop--;
	return gt_text_clean(sources->text, at, cut(at, (size_t)(stop - at)));
}

const char *gt_sources_line(struct gt_sources *sources, const char *name, int line)
{
	struct line_key key = {gt_text_clean(sources->text, name, strlen(name)), (uint64_t)line};
	const struct file *file;
	struct packed *packed;

	if (line <= 0)
		return "";
	HASH_FIND(hh, sources->packed, &key, sizeof(key), packed);
	if (packed || sources->trace->name_count)
		return packed ? packed->text : "";
	file = file_of(sources, key.file);
	return file && file->bytes ? line_in(sources, file, line) : "";
}
