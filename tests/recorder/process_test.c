/* SPDX-License-Identifier: MIT */
/*
 * The recorder in its process: files and their names, limits, lost descriptors, the exit mark, the
 * clock, refused requests and what becomes of them. Each case is a process of its own.
 */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "../../preload/recorder.h"
#include "model.h"

static char dir[] = "/tmp/gputrace-test-XXXXXX";

static void setup(void)
{
	cr_assert(mkdtemp(dir) != NULL);
	setenv("GPUTRACE_DIR", dir, 1);
	setenv("GPUTRACE_QUIET", "1", 1);
}

static void teardown(void)
{
	char command[64];

	snprintf(command, sizeof(command), "rm -rf %s", dir);
	cr_assert(zero(int, system(command)));
}

TestSuite(process, .init = setup, .fini = teardown);

static void allocate(uint64_t addr, uint64_t size)
{
	struct gt_alloc a = {.space = GT_SPACE_DRIVER,
			     .mask = GT_MASK_RESERVED | GT_MASK_IN_USE,
			     .api = GT_API_MEM_ALLOC,
			     .addr = addr,
			     .size = size,
			     .where.native = 1 + (addr >> 12) % 50};

	gt_record_alloc(&a);
}

/* Lane 0 of a file, in memory or of a process that has ended. */
static void read_lane(const char *path, struct ck_lane *ret, struct gt_header *ret_header)
{
	static struct ck_file f;
	int fd = open(path, O_RDONLY);
	off_t size = lseek(fd, 0, SEEK_END);
	void *base = mmap(NULL, (size_t)size, PROT_READ, MAP_SHARED, fd, 0);

	cr_assert(base != MAP_FAILED, "%s", path);
	cr_assert(zero(ptr, (void *)ck_open(&f, base, (uint64_t)size)));
	cr_assert(zero(ptr, (void *)ck_lane(&f, 0, true, ret)));
	if (ret_header)
		*ret_header = *f.header;
	close(fd);
}

/* ---- files ---------------------------------------------------------------------------------- */

Test(process, file_is_private_and_named_after_the_process)
{
	char want[4200];
	struct stat st;

	snprintf(want, sizeof(want), "%s/gputrace.process_test.%d.gtrace", dir, getpid());
	cr_assert(gt_recording());
	cr_assert(eq(str, gt_file_path, want));
	cr_assert(zero(int, stat(want, &st)));
	cr_assert(eq(u32, st.st_mode & 07777, 0600));
}

Test(process, taken_names_get_a_number_and_links_are_not_followed)
{
	char path[4200], want[4200];

	snprintf(path, sizeof(path), "%s/gputrace.process_test.%d.gtrace", dir, getpid());
	cr_assert(zero(int, symlink("/tmp/elsewhere", path)));
	snprintf(want, sizeof(want), "%s/gputrace.process_test.%d.2.gtrace", dir, getpid());
	cr_assert(gt_recording());
	cr_assert(eq(str, gt_file_path, want));
	cr_assert(ne(int, access("/tmp/elsewhere", F_OK), 0));
}

Test(process, first_directory_that_works)
{
	char list[200];

	snprintf(list, sizeof(list), "/nonexistent:/proc:%s", dir);
	setenv("GPUTRACE_DIR", list, 1);
	cr_assert(gt_recording());
	cr_assert(zero(int, strncmp(gt_file_path, dir, strlen(dir))));
}

Test(process, no_directory_works)
{
	setenv("GPUTRACE_DIR", "/nonexistent:/proc", 1);
	cr_assert(not(gt_recording()));
	cr_assert(not(gt_recording()));
}

Test(process, off)
{
	setenv("GPUTRACE", "0", 1);
	cr_assert(not(gt_recording()));
	cr_assert(zero(int, rmdir(dir))); /* nothing in it */
	cr_assert(zero(int, mkdir(dir, 0700)));
}

/* SIGXFSZ would kill: the limit must be seen before the file system does. */
Test(process, file_size_limit)
{
	struct rlimit limit = {1 << 20, 1 << 20};

	setenv("GPUTRACE_EXTENT", "64K", 1);
	cr_assert(zero(int, setrlimit(RLIMIT_FSIZE, &limit)));
	cr_assert(gt_recording());
	for (uint64_t i = 0; i < 100000 && !gt_file->stop; i++)
		allocate(i << 20, 1 << 20);
	cr_assert(eq(u32, gt_file->stop, GT_STOP_NO_SPACE));
	cr_assert(le(u64, gt_file->end, 1 << 20));
	cr_assert(not(gt_recording()));
}

/* Nor back to its old length, as a hole. */
Test(process, cut_file_is_not_grown)
{
	const off_t length = GT_HEADER_SIZE + 100;
	struct stat st;

	cr_assert(gt_recording());
	cr_assert(zero(int, truncate(gt_file_path, length)));
	cr_assert(zero(ptr, gt_extent_new(GT_EXTENT_LIVE, 0, 0, 0)));
	cr_assert(eq(u32, gt_file->stop, GT_STOP_TRUNCATED));
	cr_assert(not(gt_recording()));
	cr_assert(zero(int, stat(gt_file_path, &st)));
	cr_assert(eq(long, st.st_size, length));
}

/* What a daemon does. The descriptor's number then belongs to a file of the program. */
Test(process, descriptors_closed_and_directory_left)
{
	char path[4200];
	struct ck_lane l;
	struct stat st;
	int fds[200];

	snprintf(path, sizeof(path), "%s/mine", dir);
	setenv("GPUTRACE_EXTENT", "4K", 1);
	setenv("GPUTRACE_CELLS", "16", 1);
	cr_assert(gt_recording());
	allocate(1 << 20, 512);
	for (int fd = 10; fd < 1024; fd++)
		close(fd);
	cr_assert(zero(int, chdir("/")));
	for (int i = 0; i < 200; i++)
		fds[i] = dup2(open(path, O_RDWR | O_CREAT, 0600), 850 + i);
	for (uint64_t i = 2; i < 2000; i++)
		allocate(i << 20, 512);
	cr_assert(zero(u32, gt_file->stop));
	read_lane(gt_file_path, &l, NULL);
	cr_assert(eq(sz, l.block_count, 1999));
	cr_assert(zero(int, fstat(fds[0], &st)));
	cr_assert(zero(i64, st.st_size));
}

static void wait_for(pid_t pid)
{
	int status;

	cr_assert(eq(int, waitpid(pid, &status, 0), pid));
	cr_assert(eq(int, status, 7 << 8));
}

static void path_of(pid_t pid, char *path, size_t size)
{
	snprintf(path, size, "%s/gputrace.process_test.%d.gtrace", dir, pid);
}

Test(process, exit_is_marked_and_teardown_recorded_after_it)
{
	struct gt_header h;
	struct ck_lane l;
	char path[4200];
	pid_t pid = fork();

	if (!pid) {
		cr_assert(gt_recording());
		allocate(1 << 20, 512);
		gt_at_exit();
		gt_record_free(0, GT_SPACE_DRIVER, 1 << 20, GT_API_MEM_FREE, (struct gt_where){0},
			       NULL);
		gt_at_exit();
		_exit(7);
	}
	wait_for(pid);
	path_of(pid, path, sizeof(path));
	read_lane(path, &l, &h);
	cr_assert(ne(u64, h.exit_us, 0));
	cr_assert(eq(sz, l.event_count, 3));
	cr_assert(eq(u32, l.events[1].op, GT_OP_EXIT));
	cr_assert(eq(u32, l.events[2].op, GT_OP_FREE));
}

Test(process, a_killed_process_has_no_exit_mark)
{
	struct gt_header h;
	struct ck_lane l;
	char path[4200];
	pid_t pid = fork();

	if (!pid) {
		cr_assert(gt_recording());
		allocate(1 << 20, 512);
		_exit(7);
	}
	wait_for(pid);
	path_of(pid, path, sizeof(path));
	read_lane(path, &l, &h);
	cr_assert(zero(u64, h.exit_us));
	cr_assert(eq(sz, l.event_count, 1));
}

/* The child of vfork shares memory with us: neither its exit nor its events may touch our file. */
Test(process, vfork_child_leaves_no_mark)
{
	int status;
	pid_t pid;

	cr_assert(gt_recording());
	allocate(1 << 20, 512);
	pid = vfork();
	if (!pid) {
		gt_at_exit();
		_exit(7);
	}
	cr_assert(eq(int, waitpid(pid, &status, 0), pid));
	cr_assert(zero(u64, gt_file->exit_us));
}

/* ---- clock ---------------------------------------------------------------------------------- */

/* Long enough for the rate to be measured and anchors to be renewed. */
Test(process, time_is_the_kernels)
{
	uint64_t worst = 0, readings = 0;

	cr_assert(gt_recording());
	for (uint64_t began = gt_mono_us(); gt_mono_us() < began + 600000; readings++) {
		uint64_t before = gt_mono_us() - gt_file->mono_us, now = gt_now_us();
		uint64_t after = gt_mono_us() - gt_file->mono_us;
		uint64_t off = now < before ? before - now : now > after ? now - after : 0;

		worst = off > worst ? off : worst;
	}
	cr_assert(gt(u64, readings, 1000));
	cr_assert(lt(u64, worst, 50), "%lu us off", worst);
}

/* ---- refused requests ----------------------------------------------------------------------- */

static void refuse(uint64_t size)
{
	struct gt_refusal r = {.space = GT_SPACE_DRIVER,
			       .api = GT_API_MEM_ALLOC,
			       .size = size,
			       .result = 2,
			       .device_free = 1000,
			       .device_total = 5000,
			       .torch_allocated = GT_UNKNOWN_BYTES,
			       .torch_reserved = GT_UNKNOWN_BYTES,
			       .where.native = 3};

	gt_record_refusal(&r);
}

static void raise_torch(uint64_t size)
{
	struct gt_refusal r = {.space = GT_SPACE_TORCH,
			       .api = GT_API_TORCH,
			       .size = size,
			       .device_free = GT_UNKNOWN_BYTES,
			       .device_total = GT_UNKNOWN_BYTES,
			       .torch_allocated = 77,
			       .torch_reserved = 88};

	gt_record_torch_oom(&r);
}

/* The report of a failure, from the file. */
static const struct gt_report *report(uint32_t number)
{
	for (uint64_t at = GT_HEADER_SIZE; at < gt_file->end;) {
		const struct gt_extent *e = (const void *)((char *)gt_file + at);
		const struct gt_report *r = (const void *)(e + 1);
		uint64_t n = (e->length - sizeof(*e)) / sizeof(*r);

		at += e->length;
		for (uint64_t i = 0; e->kind == GT_EXTENT_REPORTS && i < n; i++)
			if (r[i].state == number)
				return &r[i];
	}
	return NULL;
}

Test(process, granted_on_retry)
{
	cr_assert(gt_recording());
	allocate(1 << 20, 300);
	allocate(2 << 20, 200);
	refuse(4096);
	refuse(4096);
	cr_assert(report(1) != NULL);
	cr_assert(eq(u32, report(1)->tries, 2));
	cr_assert(eq(u32, report(1)->outcome, GT_OUTCOME_PENDING));
	cr_assert(eq(u64, report(1)->requested, 4096));
	cr_assert(eq(u64, report(1)->cur[GT_TOTAL_RESERVED], 500));
	cr_assert(eq(u64, report(1)->device_free, 1000));
	cr_assert(eq(u64, report(1)->seq, 4));
	cr_assert(eq(u32, report(1)->holders, 2));
	cr_assert(eq(u64, report(1)->holder[0].bytes, 300));
	allocate(3 << 20, 4096);
	cr_assert(eq(u32, report(1)->outcome, GT_OUTCOME_RECOVERED));
}

Test(process, raised_and_caught)
{
	cr_assert(gt_recording());
	refuse(4096);
	refuse(4096);
	raise_torch(4000);
	cr_assert(eq(u32, report(1)->space, GT_SPACE_TORCH));
	cr_assert(eq(u64, report(1)->torch_requested, 4000));
	cr_assert(eq(u64, report(1)->requested, 4096));
	cr_assert(eq(u64, report(1)->device_total, 5000));
	cr_assert(eq(u64, report(1)->torch_allocated, 77));
	cr_assert(eq(u32, report(1)->outcome, GT_OUTCOME_PENDING));
	refuse(4096); /* the next failure, not another try */
	cr_assert(report(2) != NULL);
	cr_assert(eq(u32, report(1)->tries, 2));
	allocate(1 << 20, 100);
	cr_assert(eq(u32, report(1)->outcome, GT_OUTCOME_CAUGHT));
	cr_assert(eq(u32, report(2)->outcome, GT_OUTCOME_CAUGHT));
}

static void *other_thread(void *arg)
{
	allocate(9 << 20, 4096);
	return NULL;
}

/* Neither what other threads get, nor what comes after exit() began, settles a failure. */
Test(process, fatal)
{
	pthread_t thread;

	cr_assert(gt_recording());
	refuse(4096);
	raise_torch(4096);
	pthread_create(&thread, NULL, other_thread, NULL);
	pthread_join(thread, NULL);
	gt_at_exit();
	allocate(1 << 20, 4096);
	cr_assert(eq(u32, report(1)->outcome, GT_OUTCOME_PENDING));
}

Test(process, other_errors_are_events_without_a_report)
{
	struct gt_refusal r = {.space = GT_SPACE_DRIVER, .size = 1, .result = 1};
	struct ck_lane l;

	cr_assert(gt_recording());
	gt_record_refusal(&r);
	cr_assert(zero(ptr, (void *)report(1)));
	read_lane(gt_file_path, &l, NULL);
	cr_assert(eq(u32, l.events[0].op, GT_OP_FAILED));
	cr_assert(eq(u32, l.events[0].aux, 1));
	cr_assert(eq(u64, l.ctr.failed, 1));
}

/* The first ones and the last ones are kept. */
Test(process, more_failures_than_reports)
{
	cr_assert(gt_recording());
	for (uint32_t i = 1; i <= 200; i++)
		refuse(i * 512);
	cr_assert(report(1) && report(62) && report(199) && report(200));
	cr_assert(not(report(63) || report(198)));
	cr_assert(eq(u64, report(62)->requested, 62 * 512));
	cr_assert(eq(u64, report(200)->requested, 200 * 512));
	cr_assert(eq(u64, gt_file->lost[GT_LOST_REPORTS], 200 - GT_MAX_REPORTS));
	allocate(1 << 20, 100);
	cr_assert(eq(u32, report(62)->outcome, GT_OUTCOME_CAUGHT));
	cr_assert(eq(u32, report(200)->outcome, GT_OUTCOME_CAUGHT));
}

/* More sites than a report holds: the largest, in order. */
Test(process, largest_holders)
{
	const uint32_t sites = 700;
	const struct gt_report *r;

	cr_assert(gt_recording());
	for (uint32_t i = 0; i < sites; i++) {
		struct gt_alloc a = {.space = GT_SPACE_TORCH,
				     .mask = GT_MASK_TORCH | GT_MASK_IN_USE,
				     .addr = (uint64_t)(i + 1) << 20,
				     .size = 512 * (1 + (uint64_t)i * 389 % sites),
				     .where.native = 1 + i};

		gt_record_alloc(&a);
	}
	allocate(1ull << 40, 1 << 30);
	refuse(4096);
	r = report(1);
	cr_assert(eq(u32, r->holders, GT_REPORT_HOLDERS));
	cr_assert(eq(u64, r->holder[0].bytes, 1 << 30));
	for (uint32_t i = 1; i < GT_REPORT_HOLDERS; i++)
		cr_assert(eq(u64, r->holder[i].bytes, 512ull * (sites + 1 - i)));
}
