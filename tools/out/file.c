/* SPDX-License-Identifier: MIT */
/* See file.h. */
#define _GNU_SOURCE
#include "out/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "model/xalloc.h"

#define FLAGS (O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC)

/* Nothing, or a file: not a device, a pipe or a link that was given a name. */
static bool is_replaceable(const char *path)
{
	struct stat st;

	return lstat(path, &st) ? errno == ENOENT : S_ISREG(st.st_mode);
}

static bool is_regular(int fd)
{
	struct stat st;

	return !fstat(fd, &st) && S_ISREG(st.st_mode);
}

/* The descriptor of the file beside it, whose name goes to *ret; -1: not possible. */
static int open_beside(const char *path, mode_t mode, char **ret)
{
	char *name;
	int fd;

	if (!is_replaceable(path))
		return -1;
	name = gt_xasprintf("%s.%d.new", path, (int)getpid());
	fd = open(name, FLAGS | O_EXCL, mode);
	if (fd >= 0)
		*ret = name;
	else
		free(name);
	return fd;
}

static int open_in_place(const char *path, mode_t mode)
{
	int fd = open(path, FLAGS | O_TRUNC, mode);

	if (fd >= 0 && is_regular(fd))
		fchmod(fd, mode); /* one that was there keeps its mode otherwise */
	return fd;
}

int gt_file_create(struct gt_file *ret, const char *path, mode_t mode)
{
	struct gt_file file = {.path = path && strcmp(path, "-") ? path : NULL};
	int fd;

	if (file.path) {
		fd = open_beside(path, mode, &file.now);
		if (fd < 0) {
			file.now = gt_xstrdup(path);
			fd = open_in_place(path, mode);
		}
		file.file = fd < 0 ? NULL : fdopen(fd, "w");
		if (fd >= 0 && !file.file)
			close(fd);
	} else {
		file.file = stdout;
	}
	if (file.file)
		*ret = file;
	else
		free(file.now);
	return file.file ? 0 : -1;
}

int gt_file_finish(struct gt_file *file, bool keep)
{
	bool bad = ferror(file->file), ours;
	int error;

	if (!file->path)
		return fflush(file->file) || bad ? -1 : 0;
	ours = is_regular(fileno(file->file));
	bad |= fclose(file->file) != 0;
	if (!bad && keep && strcmp(file->now, file->path))
		bad = rename(file->now, file->path) != 0;
	error = errno;
	if (ours && (bad || !keep))
		unlink(file->now);
	free(file->now);
	errno = error;
	return bad ? -1 : 0;
}
