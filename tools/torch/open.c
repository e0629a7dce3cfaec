/* SPDX-License-Identifier: MIT */
/*
 * See open.h. Pickles and databases show themselves by their first bytes; everything else is left to the
 * reader of traces, which says what it found. The pickle is read whole: it is no log that grows. Called by
 * cmd/session.c and cmd/dump.c.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "read/beneath.h"
#include "sqlite/open.h"
#include "torch/events.h"
#include "torch/open.h"

struct file {
	uint8_t *bytes;
	size_t length;
};

static int fail(struct gt_error *err, const char *path, const char *text)
{
	err->status = 3;
	snprintf(err->text, sizeof(err->text), "%s: %s", path, text);
	return -1;
}

static size_t read_some(int fd, uint8_t *to, size_t length)
{
	size_t done = 0;
	ssize_t n;

	while (done < length) {
		n = read(fd, to + done, length - done);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		done += (size_t)n;
	}
	return done;
}

enum input {
	IS_OTHER, /* a trace, or nothing that can be opened: no word about it here */
	IS_PICKLE,
	IS_SQLITE,
};

static enum input kind_of(int fd)
{
	uint8_t head[16];
	size_t length = fd < 0 ? 0 : read_some(fd, head, sizeof(head));

	if (!length || lseek(fd, 0, SEEK_SET))
		return IS_OTHER;
	if (gt_looks_pickled(head, length < 4 ? length : 4))
		return IS_PICKLE;
	return gt_looks_like_sqlite(head, length) ? IS_SQLITE : IS_OTHER;
}

static int read_whole(int fd, const char *path, struct file *ret, struct gt_error *err)
{
	struct stat st;

	if (fstat(fd, &st) || !S_ISREG(st.st_mode))
		return fail(err, path, "not a regular file");
	ret->bytes = malloc((size_t)st.st_size + 1);
	if (!ret->bytes)
		return fail(err, path, "not enough memory to read it");
	ret->length = read_some(fd, ret->bytes, (size_t)st.st_size);
	return 0;
}

static int refused(const char *path, const struct gt_unpickle_error *why, struct gt_error *err)
{
	err->status = 3;
	if (why->memory)
		return fail(err, path, "not enough memory to read it");
	if (why->code)
		snprintf(err->text, sizeof(err->text),
			 "%s: refused at byte %llu: %s: this pickle would run code when loaded, "
			 "and a torch snapshot is only data",
			 path, (unsigned long long)why->offset, why->text);
	else
		snprintf(err->text, sizeof(err->text),
			 "%s: damaged at byte %llu: %s: copy it again, or dump the snapshot again",
			 path, (unsigned long long)why->offset, why->text);
	return -1;
}

static int tell(const char *path, struct gt_values *values, struct gt_trace **ret,
		struct gt_error *err)
{
	struct gt_build *build = gt_build_new(path);
	struct gt_torch torch = {0};
	int rc;

	if (!build)
		return fail(err, path, "not enough memory to read it");
	rc = gt_torch_read(path, values, build, &torch, err);
	if (!rc && gt_torch_tell(&torch, build))
		rc = fail(err, path, "not enough memory to read it");
	gt_torch_clear(&torch);
	gt_values_clear(values); /* before the lanes are made: they are the larger half */
	if (rc) {
		gt_build_free(build);
		return rc;
	}
	return gt_build_end(build, ret, err);
}

static int open_pickle(int fd, const char *path, struct gt_trace **ret, struct gt_error *err)
{
	struct gt_unpickle_error why;
	struct gt_values values = {0};
	struct file file = {0};
	int rc = read_whole(fd, path, &file, err);

	if (!rc && gt_unpickle(file.bytes, file.length, &values, &why))
		rc = refused(path, &why, err);
	if (!rc)
		rc = tell(path, &values, ret, err);
	gt_values_clear(&values);
	free(file.bytes);
	return rc;
}

int gt_open(const char *path, unsigned int flags, unsigned int part, unsigned int *ret_parts,
	    struct gt_trace **ret, struct gt_error *err)
{
	int fd = gt_open_read(path), rc;

	err->status = 0;
	*ret_parts = 1;
	switch (kind_of(fd)) {
	case IS_PICKLE:
		rc = open_pickle(fd, path, ret, err);
		break;
	case IS_SQLITE:
		rc = gt_sqlite_open(fd, path, part, ret, ret_parts, err);
		break;
	default:
		rc = gt_trace_open(path, flags, ret, err);
	}
	if (fd >= 0)
		close(fd);
	return rc;
}
