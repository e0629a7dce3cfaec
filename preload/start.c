/* SPDX-License-Identifier: MIT */
/*
 * The states of the recorder. Nothing happens before the first CUDA event: no file, no page, no
 * output. That event opens the file in the first directory of GPUTRACE_DIR that works, describes
 * the process in it and turns recording on; a failure of ours turns it off for good and is said in
 * one line. The state lives in a page that a forked child finds zeroed (fork.c), so the child
 * starts its own file at its own first event.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>
#include "recorder.h"

static uint32_t first_state; /* until there is a page; then, without the kernel's help, for ever */
uint32_t *gt_state = &first_state;
uint32_t gt_state_pid;
static uint32_t starter; /* pid that is starting: a lock that a forked child can tell is stale */
static uint32_t exiting; /* pid that began exit() */
GT_TLS bool starting;

uint32_t gt_epoch;
bool gt_unsaid;

/* ---- facts ---------------------------------------------------------------------------------- */

static void copy_text(char *to, size_t size, const char *from)
{
	struct gt_text t = {.buf = to, .size = size};

	gt_text_str(&t, from);
}

/* Base name of the executable, fit for a file name. */
static void executable(char *name, size_t size, char *path, size_t path_size)
{
	ssize_t n = readlink("/proc/self/exe", path, path_size - 1);
	const char *base;

	path[n > 0 ? n : 0] = 0;
	base = strrchr(path, '/');
	copy_text(name, size, base ? base + 1 : path);
	if (!name[0])
		copy_text(name, size, "unknown");
	for (; *name; name++)
		if (!(*name >= '0' && *name <= '9') && !(*name >= 'a' && *name <= 'z') &&
		    !(*name >= 'A' && *name <= 'Z') && !strchr("._+-", *name))
			*name = '_';
}

/* Field 22 of /proc/self/stat: behind the last ')', because the name in field 2 may hold anything.
 */
static uint64_t start_ticks(void)
{
	char buf[1024], *p;
	const char *end;
	uint64_t ticks;
	int n = gt_read_file("/proc/self/stat", buf, sizeof(buf));

	p = n > 0 ? strrchr(buf, ')') : NULL;
	for (int field = 2; p && field < 22; field++)
		p = strchr(p + 1, ' ');
	return p && gt_parse_number(p + 1, &ticks, &end) ? ticks : 0;
}

static void fill_header(struct gt_header *h, const char *comm)
{
	struct utsname uts = {0};
	struct stat st;

	h->version = GT_VERSION;
	h->header_size = GT_HEADER_SIZE;
	h->byte_order = GT_BYTE_ORDER;
	h->stacks = gt_options.stacks;
	h->depth = gt_options.depth;
	h->ring_limit = gt_options.ring;
	h->file_limit = gt_options.max;
	h->pid = (uint32_t)gt_pid();
	h->ppid = (uint32_t)getppid();
	h->start_ticks = start_ticks();
	if (!gt_stat(AT_FDCWD, "/proc/self/ns/pid", &st))
		h->pid_ns = st.st_ino;
	gt_read_file("/proc/sys/kernel/random/boot_id", h->boot_id, sizeof(h->boot_id));
	h->boot_id[strcspn(h->boot_id, "\n")] = 0;
	copy_text(h->comm, sizeof(h->comm), comm);
	uname(&uts);
	copy_text(h->host, sizeof(h->host), uts.nodename);
	gt_clock_start();
	h->end = GT_HEADER_SIZE;
	gt_store_barrier();
	memcpy(h->magic, GT_MAGIC, sizeof(h->magic));
}

static void define_environment(void)
{
	static const char *const names[] = {
		"RANK",
		"LOCAL_RANK",
		"WORLD_SIZE",
		"LOCAL_WORLD_SIZE",
		"GROUP_RANK",
		"MASTER_ADDR",
		"SLURM_PROCID",
		"SLURM_LOCALID",
		"SLURM_JOB_ID",
		"OMPI_COMM_WORLD_RANK",
		"CUDA_VISIBLE_DEVICES",
		"CUDA_MODULE_LOADING",
		"PYTORCH_CUDA_ALLOC_CONF",
		"PYTORCH_ALLOC_CONF",
		"PYTORCH_NO_CUDA_MEMORY_CACHING",
	};
	char key[64];

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		struct gt_text t = {.buf = key, .size = sizeof(key)};
		const char *value = getenv(names[i]);

		if (!value)
			continue;
		gt_text_str(&t, "env.");
		gt_text_str(&t, names[i]);
		gt_def_info(key, value, strlen(value));
	}
}

static void define_command(void)
{
	static char buf[16384];
	int n = gt_read_file("/proc/self/cmdline", buf, sizeof(buf));

	if (n > 0)
		gt_def_info("cmdline", buf, (size_t)n - !buf[n - 1]);
	if (syscall(SYS_getcwd, buf, sizeof(buf)) > 0)
		gt_def_info("cwd", buf, strlen(buf));
}

static void define_process(char *exe)
{
	gt_def_info("exe", exe, gt_redact_path(exe, strlen(exe)));
	if (gt_options.redact)
		gt_def_info("redacted", "1", 1);
	else
		define_command();
	gt_def_info("host", gt_file->host, strlen(gt_file->host));
	if (!gt_options.redact)
		define_environment();
}

/* ---- opening -------------------------------------------------------------------------------- */

/* An absolute path: the file may have to be found again after a chdir. */
static void put_path(struct gt_text *t, const char *dir, size_t length, const char *comm, int copy)
{
	static char cwd[4096];

	t->length = 0;
	if (*dir != '/' && syscall(SYS_getcwd, cwd, sizeof(cwd)) > 0) {
		gt_text_str(t, cwd);
		gt_text_str(t, "/");
	}
	if (length != 1 || *dir != '.') {
		gt_text_bytes(t, dir, length);
		gt_text_str(t, "/");
	}
	gt_text_str(t, "gputrace.");
	gt_text_str(t, comm);
	gt_text_str(t, ".");
	gt_text_u64(t, (uint64_t)gt_pid());
	if (copy > 1) {
		gt_text_str(t, ".");
		gt_text_u64(t, (uint64_t)copy);
	}
	gt_text_str(t, GT_SUFFIX);
}

static int open_in(const char *dir, size_t length, const char *comm, char *exe)
{
	static char path[4096];
	struct gt_text t = {.buf = path, .size = sizeof(path)};
	int rc = -EEXIST;

	for (int copy = 1; rc == -EEXIST && copy < 1000; copy++) {
		put_path(&t, dir, length, comm, copy);
		rc = gt_file_open(path, gt_options.max);
	}
	if (rc)
		return rc;
	fill_header(gt_file, comm);
	define_process(exe);
	if (gt_file->end > GT_HEADER_SIZE)
		return 0;
	/* Not even the first definitions fit, or somebody has cut it already. */
	gt_store_relaxed(&gt_unsaid, false);
	gt_file_forget();
	gt_defs_forget();
	syscall(SYS_unlinkat, -100, path, 0);
	return -ENOSPC;
}

static void say_where(int rc, const char *failed, size_t failed_length)
{
	static char buf[8192];
	struct gt_text t = {.buf = buf, .size = sizeof(buf)};

	if (gt_options.quiet)
		return;
	gt_text_str(&t, "gputrace: cannot write a trace in ");
	gt_text_bytes(&t, failed, failed_length);
	gt_text_str(&t, ": ");
	gt_text_error(&t, -rc);
	gt_text_str(&t, gt_file ? "; recording to "
				: "; not recording (GPUTRACE_DIR names other places)");
	if (gt_file)
		gt_text_str(&t, gt_file_path);
	gt_text_str(&t, "\n");
	gt_stderr(buf);
}

static void say_bad_option(void)
{
	char buf[160];
	struct gt_text t = {.buf = buf, .size = sizeof(buf)};

	if (!gt_options_bad || gt_options.quiet)
		return;
	gt_text_str(&t, "gputrace: GPUTRACE");
	gt_text_str(&t, gt_options_bad);
	gt_text_str(&t, " is not understood; its default is used\n");
	gt_stderr(buf);
}

/* The first directory in which a file can be created, allocated and mapped. */
static bool open_file(void)
{
	char exe[4096], comm[32];
	const char *failed = NULL, *dir = gt_options.dir;
	size_t failed_length = 0, n;
	int why = 0;

	executable(comm, sizeof(comm), exe, sizeof(exe));
	for (; !gt_file && *dir; dir += n + (dir[n] == ':')) {
		int rc;

		n = strcspn(dir, ":");
		rc = n ? open_in(dir, n, comm, exe) : 0;
		if (!rc || failed)
			continue;
		failed = dir;
		failed_length = n;
		why = rc;
	}
	if (failed)
		say_where(why, failed, failed_length);
	return gt_file;
}

/* ---- states --------------------------------------------------------------------------------- */

static void lock_start(void)
{
	uint32_t pid = (uint32_t)gt_pid(), holder = 0;

	while (!__atomic_compare_exchange_n(&starter, &holder, pid, false, __ATOMIC_ACQUIRE,
					    __ATOMIC_RELAXED)) {
		if (holder == pid) {
			syscall(SYS_sched_yield);
			holder = 0;
		}
	}
}

static void use_fork_page(void)
{
	uint32_t *page = gt_fork_page();

	gt_store_relaxed(&gt_state_pid, page ? 0 : (uint32_t)gt_pid());
	if (page)
		gt_store(&gt_state, page);
}

static enum gt_state begin(void)
{
	static bool read;

	if (!read)
		gt_options_read(environ);
	read = true;
	if (!gt_options.on)
		return GT_OFF;
	if (gt_epoch)
		gt_fork_child();
	else
		use_fork_page();
	gt_store(&gt_epoch, gt_epoch + 1);
	gt_store_relaxed(&gt_unsaid, false);
	say_bad_option();
	gt_truncated_watch();
	if (!open_file())
		return GT_OFF;
	if (exiting != gt_file->pid)
		atexit(gt_at_exit);
	gt_stacks_start();
	return gt_load(&gt_file->stop) ? GT_OFF : GT_ON;
}

static bool start(void)
{
	bool on, first = false;

	if (starting) /* a signal handler of this thread, in the middle of it */
		return false;
	starting = true;
	lock_start();
	if (gt_load(gt_state) == GT_IDLE) {
		enum gt_state now = begin();

		if (gt_state_pid)
			gt_store_relaxed(&gt_state_pid, (uint32_t)gt_pid());
		gt_store(gt_state, (uint32_t)now);
		first = now == GT_ON;
	}
	on = gt_load(gt_state) == GT_ON;
	gt_store(&starter, 0);
	if (first) {
		gt_stacks_open();
		gt_marks_start();
		gt_doctor_objects();
	}
	starting = false;
	return on;
}

bool gt_recording(void)
{
	uint32_t now = gt_load(gt_load(&gt_state)), pid = gt_load_relaxed(&gt_state_pid);

	if (gt_unlikely(pid && pid != (uint32_t)gt_pid())) {
		gt_store(gt_state, GT_IDLE);
		now = GT_IDLE;
	}
	if (gt_likely(now == GT_ON))
		return true;
	return now == GT_IDLE && start();
}

/* ---- the end -------------------------------------------------------------------------------- */

/* May be called under a lane's lock, where a write to stderr could wait for its reader. */
void gt_stop(enum gt_stop why)
{
	uint32_t none = GT_STOP_NONE;

	if (!__atomic_compare_exchange_n(&gt_file->stop, &none, (uint32_t)why, false,
					 __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		return;
	gt_store(&gt_file->stop_us, gt_now_us() + 1);
	gt_store(gt_state, GT_OFF);
	gt_store(&gt_unsaid, true);
}

void gt_stop_say(void)
{
	static char buf[8192];
	struct gt_text t = {.buf = buf, .size = sizeof(buf)};
	uint64_t tenths;

	if (gt_likely(!gt_load_relaxed(&gt_unsaid)) ||
	    !__atomic_exchange_n(&gt_unsaid, false, __ATOMIC_RELAXED))
		return;
	if (gt_options.quiet)
		return;
	tenths = gt_file->stop_us / 100000;
	gt_text_str(&t, "gputrace: recording stopped at ");
	gt_text_u64(&t, tenths / 10);
	gt_text_str(&t, ".");
	gt_text_u64(&t, tenths % 10);
	gt_text_str(&t, gt_file->stop == GT_STOP_NO_SPACE ? " s: no space left for "
							  : " s: somebody cut or overwrote ");
	gt_text_str(&t, gt_file_path);
	gt_text_str(&t, gt_file->stop == GT_STOP_NO_SPACE
				? "; the program goes on; the trace is good up to there\n"
				: "; the program goes on\n");
	gt_stderr(buf);
}

/*
 * Registered at the first event, so that it runs before the handlers of everything that was loaded
 * before, and called from the destructor too; the first call counts. A child of vfork that calls
 * exit shares our memory but is not us.
 */
void gt_at_exit(void)
{
	uint32_t pid = (uint32_t)gt_pid();

	if (!gt_started() || exiting == pid)
		return;
	if (gt_file->pid != pid) { /* or this is the first to miss the header */
		gt_stop_say();
		return;
	}
	exiting = pid;
	gt_store(&gt_file->exit_us, gt_now_us() + 1);
	gt_lanes_exit();
	gt_oom_exit();
}

static __attribute__((destructor)) void unload(void)
{
	gt_at_exit();
}
