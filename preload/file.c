/* SPDX-License-Identifier: MIT */
/*
 * The mapped trace file. Its address range is reserved once, so that nothing in it ever moves; the
 * file grows by fallocate (a page that the disk cannot hold must fail here, not as SIGBUS in a
 * store) and each piece is mapped over the reservation. Called by extent.c under the extent lock
 * and by start.c; never allocates from the heap, logs or ends the process.
 *
 * The descriptor is kept, because after a chroot or a change of user the path no longer leads to
 * the file, but high up, where programs do not expect theirs, and it is checked before each use:
 * daemons close every descriptor they find, and the number may be somebody else's file by then.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "readable.h"
#include "recorder.h"

#define FD_FIRST 900 /* lowest descriptor used, below the usual limit of 1024 */
#define TRIES	 64  /* of a call that signals interrupt */

struct gt_header *gt_file;
char gt_file_path[4096];

static struct {
	int fd;
	dev_t dev;
	ino_t ino;
	uint64_t reserved; /* bytes of address space from gt_file on */
	uint64_t end;	   /* bytes mapped; gt_header.end is the part that is listed */
	uint64_t last;	   /* where the last piece begins, with a word that is not 0 */
} file = {.fd = -1};

/* The descriptor if it still is our file's, else one opened by the path, else -errno. */
static int checked_fd(void)
{
	struct stat st;

	if (file.fd >= 0 && !gt_stat(file.fd, "", &st) && st.st_dev == file.dev &&
	    st.st_ino == file.ino)
		return file.fd;
	file.fd = gt_open(gt_file_path, O_RDWR | O_NOFOLLOW, 0);
	if (file.fd < 0)
		return file.fd;
	if (!gt_stat(file.fd, "", &st) && st.st_dev == file.dev && st.st_ino == file.ino)
		return file.fd;
	gt_close(file.fd);
	file.fd = -1;
	return -ENOENT;
}

/* For file systems without fallocate: real zeros, never a hole. */
static int write_zeros(int fd, uint64_t offset, uint64_t length)
{
	static const char zeros[4096];

	while (length) {
		size_t n = length < sizeof(zeros) ? length : sizeof(zeros);
		long done = syscall(SYS_pwrite64, fd, zeros, n, offset);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return done ? -errno : -ENOSPC;
		offset += (uint64_t)done;
		length -= (uint64_t)done;
	}
	return 0;
}

static int allocate(int fd, uint64_t offset, uint64_t length)
{
	struct rlimit limit;
	int tries = 0;
	long rc;

	/* Beyond the limit the kernel would send SIGXFSZ, which kills. */
	if (getrlimit(RLIMIT_FSIZE, &limit))
		return -errno;
	if (offset + length > limit.rlim_cur)
		return -EFBIG;
	do
		rc = syscall(SYS_fallocate, fd, 0, offset, length);
	while (rc < 0 && errno == EINTR && ++tries < TRIES);
	if (!rc)
		return 0;
	if (errno == EOPNOTSUPP || errno == ENOSYS || errno == EINTR)
		return write_zeros(fd, offset, length);
	return -errno;
}

/* By somebody: what is missing would come back as a hole if it grew again. */
static bool made_shorter(int fd)
{
	struct stat st;

	return gt_stat(fd, "", &st) || (uint64_t)st.st_size < file.end;
}

/* It has: the cut came in between. */
static bool is_hole(void)
{
	return file.end && !*(volatile uint64_t *)((char *)gt_file + file.last);
}

/* Maps length more bytes of the file; on failure the file is as long as before. */
static int extend(uint64_t length)
{
	char *at = (char *)gt_file + file.end;
	int fd = checked_fd();
	int rc;

	if (fd < 0)
		return fd;
	if (made_shorter(fd))
		goto stop;
	rc = allocate(fd, file.end, length);
	if (rc)
		goto shrink;
	if (is_hole())
		goto stop;
	if (mmap(at, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, (off_t)file.end) ==
	    MAP_FAILED) {
		rc = -errno;
		goto shrink;
	}
	madvise(at, length, MADV_DONTFORK);
	file.last = file.end;
	gt_store_relaxed(&file.end, file.end + length);
	return 0;
stop:
	gt_stop(GT_STOP_TRUNCATED);
	return -EIO;
shrink:
	syscall(SYS_ftruncate, fd, file.end); /* ext4 leaves part of a failed fallocate behind */
	return rc;
}

void *gt_file_grow(uint64_t length)
{
	uint64_t end = gt_file->end;

	/* A child of vfork or clone that shares our memory must not touch the file. */
	if (gt_file->pid != (uint32_t)gt_pid())
		return NULL;
	if (end + length > file.reserved)
		return NULL;
	if (end + length > file.end && extend(end + length - file.end))
		return NULL;
	return (char *)gt_file + end;
}

void gt_file_grown(uint64_t length)
{
	gt_store(&gt_file->end, gt_file->end + length);
}

/* A process whose address space is limited (ulimit -v) keeps most of what is left of it. */
static uint64_t fair_share(uint64_t wanted)
{
	uint64_t share = gt_space_left() / 16;

	return share < wanted ? share & ~(GT_HEADER_SIZE - 1ull) : wanted;
}

/* As much address space as the limit asks for, or as the process may have. */
static void *reserve(uint64_t limit)
{
	void *p = MAP_FAILED;

	for (limit = fair_share(limit); limit >= 16 * GT_HEADER_SIZE; limit /= 2) {
		p = mmap(NULL, limit, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
			 0);
		if (p != MAP_FAILED)
			break;
	}
	if (p == MAP_FAILED)
		return NULL;
	madvise(p, limit, MADV_DONTFORK);
	file.reserved = limit;
	return p;
}

/* Takes the descriptor of the file that has just been made. */
static int keep(int fd)
{
	struct stat st;
	int high;

	high = (int)syscall(SYS_fcntl, fd, F_DUPFD_CLOEXEC, FD_FIRST);
	if (high >= 0) {
		gt_close(fd);
		fd = high;
	}
	file.fd = fd;
	if (gt_stat(fd, "", &st))
		return -errno;
	file.dev = st.st_dev;
	file.ino = st.st_ino;
	return 0;
}

int gt_file_open(const char *path, uint64_t limit)
{
	struct gt_text copy = {.buf = gt_file_path, .size = sizeof(gt_file_path)};
	int fd = gt_open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
	int rc;

	if (fd < 0)
		return fd;
	gt_text_str(&copy, path);
	file.end = 0;
	rc = keep(fd);
	if (rc)
		goto undo;
	gt_file = reserve(gt_round_up(limit, GT_HEADER_SIZE));
	rc = gt_file ? extend(GT_HEADER_SIZE) : -ENOMEM;
	if (!rc)
		return 0;
undo:
	if (gt_file)
		munmap(gt_file, file.reserved);
	gt_file = NULL;
	gt_close(file.fd);
	file.fd = -1;
	syscall(SYS_unlinkat, AT_FDCWD, path, 0);
	return rc;
}

void gt_count_lost(enum gt_lost why)
{
	if (gt_file)
		__atomic_fetch_add(&gt_file->lost[why], 1, __ATOMIC_RELAXED);
}

bool gt_file_has(uintptr_t address)
{
	return address - (uintptr_t)gt_file < gt_load_relaxed(&file.end);
}

/* Shared, because private memory counts against ulimit -d. */
bool gt_file_detach(uintptr_t address)
{
	uintptr_t from = address & ~(GT_HEADER_SIZE - 1ul), base = (uintptr_t)gt_file;
	uint64_t length;

	if (!gt_readable(base))
		from = base;
	length = base + gt_load_relaxed(&file.end) - from;
	if (syscall(SYS_mmap, from, length, PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) == -1)
		return false;
	syscall(SYS_madvise, from, length, MADV_DONTFORK);
	return true;
}

void gt_file_forget(void)
{
	if (gt_file)
		gt_close(checked_fd());
	gt_file = NULL;
	file.fd = -1;
}
