/* SPDX-License-Identifier: MIT */
/*
 * See cache.h. The folder is $XDG_CACHE_HOME/gputrace or ~/.cache/gputrace. It may hold anything,
 * put there by anyone: a folder or file that is a link, or that others may write to, is not used;
 * a file's contents count only if lengths, order and hash are right, and every offset is checked.
 * Files are replaced whole, by rename, so two tools at once lose at most each other's additions.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "symbols/cache.h"

#define MAGIC	   0x31656d616e5f7467ull /* "gt_name1" */
#define FILE_MAX   (16u << 20)
#define FOLDER_MAX (256u << 20)
#define NAME_BYTES 80

struct head {
	uint64_t magic, stamp;
	uint64_t hash; /* XXH64 of what follows the head */
	uint32_t records, text_bytes;
};

struct record { /* of one address: behind each other, innermost first; by address */
	uint64_t address;
	uint32_t symbol, file; /* offsets into the texts, which begin with "" for unknown */
	int32_t line;
	uint32_t inlined;
};

struct added {
	uint64_t address;
	size_t order;
	struct gt_line line;
};

struct gt_cache {
	char name[NAME_BYTES];
	uint64_t stamp;
	uint8_t *bytes; /* the file; NULL = none */
	const struct record *records;
	size_t record_count;
	const char *texts;
	struct added *added;
	size_t added_count, room;
};

/* ---- the folder ------------------------------------------------------------------------------ */

/* Ours alone to write. */
static bool trusted(int fd, mode_t type)
{
	struct stat st;

	return !fstat(fd, &st) && (st.st_mode & S_IFMT) == type && st.st_uid == geteuid() &&
	       !(st.st_mode & 022);
}

static char *folder_path(void)
{
	const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	char *path = NULL;

	if (cache && *cache == '/') {
		if (asprintf(&path, "%s/gputrace", cache) < 0)
			return NULL;
	} else if (home && *home == '/') {
		if (asprintf(&path, "%s/.cache/gputrace", home) < 0)
			return NULL;
	}
	return path;
}

/* The folder and the one that it is in; nothing further up is made. */
static void make_folder(char *path)
{
	char *slash = strrchr(path, '/');

	*slash = '\0';
	mkdir(path, 0700);
	*slash = '/';
	mkdir(path, 0700);
}

static int open_folder(bool make)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	char *path = folder_path();
	int fd;

	if (!path)
		return -1;
	fd = open(path, flags);
	if (fd < 0 && errno == ENOENT && make) {
		make_folder(path);
		fd = open(path, flags);
	}
	free(path);
	if (fd >= 0 && !trusted(fd, S_IFDIR)) {
		close(fd);
		return -1;
	}
	return fd;
}

/* ---- reading --------------------------------------------------------------------------------- */

static bool in_order(const struct record *records, size_t count, uint32_t text_bytes)
{
	for (size_t i = 0; i < count; i++) {
		if (records[i].symbol >= text_bytes || records[i].file >= text_bytes)
			return false;
		if (i && records[i].address < records[i - 1].address)
			return false;
	}
	return true;
}

/* Takes the bytes if they are what this tool wrote for this stamp. */
static bool take(struct gt_cache *cache, const uint8_t *bytes, size_t size)
{
	const struct head *head = (const struct head *)bytes;
	const char *texts;

	if (size < sizeof(*head) || head->magic != MAGIC || head->stamp != cache->stamp)
		return false;
	if (size - sizeof(*head) !=
	    (uint64_t)head->records * sizeof(struct record) + head->text_bytes)
		return false;
	texts = (const char *)bytes + size - head->text_bytes;
	if (!head->text_bytes || texts[0] || texts[head->text_bytes - 1])
		return false;
	if (XXH64(head + 1, size - sizeof(*head), 0) != head->hash ||
	    !in_order((const struct record *)(head + 1), head->records, head->text_bytes))
		return false;
	cache->records = (const struct record *)(head + 1);
	cache->record_count = head->records;
	cache->texts = texts;
	return true;
}

static uint8_t *read_all(int fd, size_t *ret_size)
{
	struct stat st;
	uint8_t *bytes;
	ssize_t n;

	if (!trusted(fd, S_IFREG) || fstat(fd, &st) || st.st_size > FILE_MAX)
		return NULL;
	bytes = malloc((size_t)st.st_size + 1);
	if (!bytes)
		return NULL;
	n = read(fd, bytes, (size_t)st.st_size);
	*ret_size = n > 0 ? (size_t)n : 0;
	return bytes;
}

static void load(struct gt_cache *cache)
{
	int folder = open_folder(false), fd = -1;
	size_t size = 0;

	if (folder < 0)
		return;
	fd = openat(folder, cache->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	close(folder);
	if (fd < 0)
		return;
	cache->bytes = read_all(fd, &size);
	close(fd);
	if (cache->bytes && take(cache, cache->bytes, size))
		return;
	free(cache->bytes);
	cache->bytes = NULL;
}

struct gt_cache *gt_cache_open(const uint8_t *id, size_t id_length, uint64_t stamp)
{
	const char *wish = getenv("GPUTRACE_CACHE");
	struct gt_cache *cache;

	if (!id_length || id_length > 32 || (wish && !strcmp(wish, "0")))
		return NULL;
	cache = calloc(1, sizeof(*cache));
	if (!cache)
		return NULL;
	for (size_t i = 0; i < id_length; i++)
		sprintf(cache->name + 2 * i, "%02x", id[i]);
	strcat(cache->name, ".names");
	cache->stamp = stamp;
	load(cache);
	return cache;
}

static struct gt_line line_of(const struct gt_cache *cache, const struct record *record)
{
	return (struct gt_line){
		.symbol = record->symbol ? cache->texts + record->symbol : NULL,
		.file = record->file ? cache->texts + record->file : NULL,
		.line = record->line,
		.inlined = record->inlined & 1,
	};
}

size_t gt_cache_find(const struct gt_cache *cache, uint64_t address,
		     struct gt_line lines[GT_LINES_MAX])
{
	size_t low = 0, high = cache->record_count, count = 0;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (cache->records[middle].address < address)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < cache->record_count && cache->records[low].address == address &&
	       count < GT_LINES_MAX;
	     low++)
		lines[count++] = line_of(cache, &cache->records[low]);
	return count;
}

/* ---- writing --------------------------------------------------------------------------------- */

static bool add(struct gt_cache *cache, uint64_t address, const struct gt_line *line)
{
	if (cache->added_count == cache->room) {
		size_t room = 2 * cache->room + 64;
		struct added *grown = reallocarray(cache->added, room, sizeof(*grown));

		if (!grown)
			return false;
		cache->added = grown;
		cache->room = room;
	}
	cache->added[cache->added_count] = (struct added){address, cache->added_count, *line};
	cache->added_count++;
	return true;
}

void gt_cache_add(struct gt_cache *cache, uint64_t address, const struct gt_line *lines,
		  size_t count)
{
	const size_t before = cache->added_count;

	for (size_t i = 0; i < count; i++)
		if (!add(cache, address, &lines[i])) {
			cache->added_count = before;
			return;
		}
}

static int by_address(const void *a, const void *b)
{
	const struct added *x = a, *y = b;

	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	return x->order < y->order ? -1 : 1;
}

/* What was read is added to what is new; both are then in one list. */
static void join(struct gt_cache *cache)
{
	for (size_t i = 0; i < cache->record_count; i++) {
		struct gt_line line = line_of(cache, &cache->records[i]);

		add(cache, cache->records[i].address, &line);
	}
	qsort(cache->added, cache->added_count, sizeof(*cache->added), by_address);
}

struct texts {
	FILE *file;
	char *bytes;
	size_t size;
};

/* Equal texts follow each other closely in a sorted list: repeating the last one catches most. */
static uint32_t put_text(struct texts *texts, const char *text, const char **last,
			 uint32_t *last_at)
{
	if (!text || !*text)
		return 0;
	if (*last && !strcmp(*last, text))
		return *last_at;
	*last_at = (uint32_t)ftell(texts->file);
	*last = text;
	fwrite(text, 1, strlen(text) + 1, texts->file);
	return *last_at;
}

static struct record *make_records(const struct gt_cache *cache, struct texts *texts)
{
	struct record *records = calloc(cache->added_count, sizeof(*records));
	const char *last[2] = {NULL, NULL};
	uint32_t at[2] = {0, 0};

	texts->file = records ? open_memstream(&texts->bytes, &texts->size) : NULL;
	if (!texts->file) {
		free(records);
		return NULL;
	}
	fputc(0, texts->file);
	for (size_t i = 0; i < cache->added_count; i++) {
		const struct added *added = &cache->added[i];

		records[i].address = added->address;
		records[i].symbol = put_text(texts, added->line.symbol, &last[0], &at[0]);
		records[i].file = put_text(texts, added->line.file, &last[1], &at[1]);
		records[i].line = added->line.line;
		records[i].inlined = added->line.inlined;
	}
	if (!fclose(texts->file))
		return records;
	free(records);
	return NULL;
}

static uint64_t hash_of(const struct record *records, size_t bytes, const struct texts *texts)
{
	XXH64_state_t *state = XXH64_createState();
	uint64_t hash = 0;

	if (!state)
		return 0;
	XXH64_reset(state, 0);
	XXH64_update(state, records, bytes);
	XXH64_update(state, texts->bytes, texts->size);
	hash = XXH64_digest(state);
	XXH64_freeState(state);
	return hash;
}

static bool write_parts(const struct gt_cache *cache, int fd, const struct record *records,
			const struct texts *texts)
{
	const size_t bytes = cache->added_count * sizeof(*records);
	const struct head head = {
		.magic = MAGIC,
		.stamp = cache->stamp,
		.hash = hash_of(records, bytes, texts),
		.records = (uint32_t)cache->added_count,
		.text_bytes = (uint32_t)texts->size,
	};

	return sizeof(head) + bytes + texts->size <= FILE_MAX &&
	       write(fd, &head, sizeof(head)) == (ssize_t)sizeof(head) &&
	       write(fd, records, bytes) == (ssize_t)bytes &&
	       write(fd, texts->bytes, texts->size) == (ssize_t)texts->size;
}

static void replace(const struct gt_cache *cache, int folder, const struct record *records,
		    const struct texts *texts)
{
	char temporary[NAME_BYTES + 24];
	bool good;
	int fd;

	snprintf(temporary, sizeof(temporary), ".%s.%d", cache->name, (int)getpid());
	fd = openat(folder, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return;
	good = write_parts(cache, fd, records, texts);
	good = !close(fd) && good;
	if (!good || renameat(folder, temporary, folder, cache->name))
		unlinkat(folder, temporary, 0);
}

/* Files go, in the folder's own order, until those that stay are half of what is allowed. */
static void prune(int folder)
{
	DIR *dir = fdopendir(dup(folder));
	struct dirent *entry;
	uint64_t total = 0;
	struct stat st;

	for (int pass = 0; dir && pass < 2; pass++) {
		rewinddir(dir);
		while ((entry = readdir(dir))) {
			if (fstatat(folder, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) ||
			    !S_ISREG(st.st_mode))
				continue;
			if (!pass)
				total += (uint64_t)st.st_size;
			else if (total > FOLDER_MAX / 2 && !unlinkat(folder, entry->d_name, 0))
				total -= (uint64_t)st.st_size;
		}
		if (total <= FOLDER_MAX)
			break;
	}
	if (dir)
		closedir(dir);
}

static void save(struct gt_cache *cache)
{
	int folder = open_folder(true);
	struct texts texts = {0};
	struct record *records;

	if (folder < 0)
		return;
	join(cache);
	records = make_records(cache, &texts);
	if (records) {
		replace(cache, folder, records, &texts);
		prune(folder);
	}
	free(records);
	free(texts.bytes);
	close(folder);
}

struct gt_cache *gt_cache_close(struct gt_cache *cache)
{
	if (!cache)
		return NULL;
	if (cache->added_count)
		save(cache);
	free(cache->added);
	free(cache->bytes);
	free(cache);
	return NULL;
}
