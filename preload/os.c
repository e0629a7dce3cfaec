/* SPDX-License-Identifier: MIT */
/*
 * The few things the recorder needs from the system: locks, pages, small files, text, one line on
 * stderr. System calls go out directly: the libc wrappers of open, write and their like are
 * cancellation points, and a thread cancelled inside a hook would take a lane's lock with it.
 * Nothing here allocates from the heap, buffers or reports; called from everywhere in preload/.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "preload.h"

#define SPINS 200 /* pauses before the lock's holder is given the processor */

static inline void pause_cpu(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

/* Spinning wins over a futex here: the holder is rarely away for longer than a seal (~30 us). */
void gt_lock_wait(struct gt_lock *lock)
{
	unsigned spins = 0;

	do {
		while (gt_load_relaxed(&lock->held)) {
			pause_cpu();
			if (++spins >= SPINS)
				syscall(SYS_sched_yield);
		}
	} while (__atomic_exchange_n(&lock->held, 1, __ATOMIC_ACQUIRE));
}

bool gt_parse_number(const char *s, uint64_t *ret, const char **ret_end)
{
	uint64_t v = 0;

	if (*s < '0' || *s > '9')
		return false;
	for (; *s >= '0' && *s <= '9'; s++) {
		if (v > (UINT64_MAX - 9) / 10)
			return false;
		v = v * 10 + (uint64_t)(*s - '0');
	}
	*ret = v;
	*ret_end = s;
	return true;
}

/* /proc/self/statm begins with the pages of address space. */
uint64_t gt_space_left(void)
{
	struct rlimit limit;
	const char *end;
	char text[64];
	uint64_t used;

	if (getrlimit(RLIMIT_AS, &limit) || limit.rlim_cur == RLIM_INFINITY)
		return UINT64_MAX;
	if (gt_read_file("/proc/self/statm", text, sizeof(text)) <= 0 ||
	    !gt_parse_number(text, &used, &end))
		return 0;
	used *= (uint64_t)sysconf(_SC_PAGESIZE);
	return limit.rlim_cur > used ? limit.rlim_cur - used : 0;
}

/* A forked child must not find the parent's structures, half changed by another thread. */
void *gt_map(size_t bytes)
{
	void *p;

	if (bytes > gt_space_left() / 8)
		return NULL;
	p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
		 -1, 0);
	if (p == MAP_FAILED)
		return NULL;
	madvise(p, bytes, MADV_DONTFORK);
	return p;
}

void *gt_remap(void *p, size_t bytes, size_t more)
{
	void *q;

	if (!p)
		return gt_map(more);
	if (more - bytes > gt_space_left() / 8)
		return NULL;
	q = mremap(p, bytes, more, MREMAP_MAYMOVE);
	return q == MAP_FAILED ? NULL : q;
}

void gt_unmap(void *p, size_t bytes)
{
	if (p)
		munmap(p, bytes);
}

int gt_tid(void)
{
	return (int)syscall(SYS_gettid);
}

int gt_pid(void)
{
	return (int)syscall(SYS_getpid);
}

uint64_t gt_mono_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

void gt_text_bytes(struct gt_text *t, const char *s, size_t n)
{
	size_t room = t->size - 1 - t->length;

	if (n > room)
		n = room;
	memcpy(t->buf + t->length, s, n);
	t->length += n;
	t->buf[t->length] = 0;
}

void gt_text_str(struct gt_text *t, const char *s)
{
	gt_text_bytes(t, s, strlen(s));
}

void gt_text_u64(struct gt_text *t, uint64_t v)
{
	char digits[20], *p = digits + sizeof(digits);

	do {
		*--p = (char)('0' + v % 10);
		v /= 10;
	} while (v);
	gt_text_bytes(t, p, (size_t)(digits + sizeof(digits) - p));
}

void gt_text_i64(struct gt_text *t, int64_t v)
{
	if (v < 0)
		gt_text_str(t, "-");
	gt_text_u64(t, v < 0 ? 0 - (uint64_t)v : (uint64_t)v);
}

/* libc's strerror translates and allocates; its plain table is newer than the oldest libc we run on. */
void gt_text_error(struct gt_text *t, int error)
{
	static const struct {
		int error;
		const char *text;
	} known[] = {
		{EPERM, "operation not permitted"},
		{ENOENT, "no such folder"},
		{EIO, "input/output error"},
		{ENOMEM, "out of memory"},
		{EACCES, "permission denied"},
		{EEXIST, "file exists"},
		{ENODEV, "files there cannot be mapped"},
		{ENOTDIR, "not a folder"},
		{EINVAL, "invalid argument"},
		{ENFILE, "too many open files in the system"},
		{EMFILE, "too many open files"},
		{EFBIG, "file size limit"},
		{ENOSPC, "no space left on the device"},
		{EROFS, "read-only file system"},
		{ENAMETOOLONG, "path too long"},
		{ELOOP, "a symbolic link"},
		{EDQUOT, "disk quota exceeded"},
		{EOPNOTSUPP, "not supported there"},
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (known[i].error == error) {
			gt_text_str(t, known[i].text);
			return;
		}
	}
	gt_text_str(t, "error ");
	gt_text_i64(t, error);
}

/* The kernel's: libc's stat and fstat have been symbols of their own only since 2.33. "": of the fd. */
int gt_stat(int fd, const char *path, struct stat *ret_st)
{
	return (int)syscall(SYS_newfstatat, fd, path, ret_st, AT_EMPTY_PATH);
}

int gt_open(const char *path, int flags, int mode)
{
	int fd = (int)syscall(SYS_openat, AT_FDCWD, path, flags | O_CLOEXEC, mode);

	return fd < 0 ? -errno : fd;
}

void gt_close(int fd)
{
	if (fd >= 0)
		syscall(SYS_close, fd);
}

int gt_read_file(const char *path, char *buf, size_t size)
{
	int fd = gt_open(path, O_RDONLY, 0);
	size_t n = 0;
	long got;

	if (fd < 0)
		return fd;
	while (n < size - 1) {
		got = syscall(SYS_read, fd, buf + n, size - 1 - n);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		n += (size_t)got;
	}
	buf[n] = 0;
	gt_close(fd);
	return (int)n;
}

/*
 * One write, so that lines of several processes do not mix; a failure is nobody's business. Least of
 * all that of a program which never writes to this pipe that nobody reads: its SIGPIPE is taken back.
 */
void gt_stderr(const char *line)
{
	uint64_t ours = 1ull << (SIGPIPE - 1), blocked = 0;
	struct timespec now = {0};

	if (syscall(SYS_rt_sigprocmask, SIG_BLOCK, &ours, &blocked, sizeof(ours)))
		return;
	if (syscall(SYS_write, STDERR_FILENO, line, strlen(line)) < 0 && errno == EPIPE &&
	    !(blocked & ours))
		syscall(SYS_rt_sigtimedwait, &ours, NULL, &now, sizeof(ours));
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &blocked, NULL, sizeof(blocked));
}
