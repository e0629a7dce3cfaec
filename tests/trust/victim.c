/* SPDX-License-Identifier: MIT */
/*
 * A process that comes to grief, or makes others, while it allocates. What returned to it is counted
 * in a file that outlives it, so that a test can say which calls a trace has lost.
 *
 * usage: victim MODE [N]     environment VICTIM_BOOK: the file, struct book
 *
 * MODE is a row of a table below. Prints nothing but what a mode says on purpose.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

int cuInit(unsigned flags);
int cuDevicePrimaryCtxRetain(void **context, int device);
int cuCtxSetCurrent(void *context);
int cuMemAlloc_v2(uint64_t *p, size_t size);
int cuMemFree_v2(uint64_t p);

#define PAGES 256

struct page { /* a process, once more after exec: calls that have returned */
	uint64_t pid, allocs, frees;
};

static struct book {
	uint64_t used;
	struct page pages[PAGES];
} * book;

static struct page *mine;
static void *context;
static char *self;
extern char **environ;

static void fail(const char *what)
{
	printf("%s: %s\n", what, strerror(errno));
	fflush(stdout);
	_exit(70);
}

static void open_book(void)
{
	int fd = open(getenv("VICTIM_BOOK") ?: "", O_RDWR | O_CLOEXEC);

	book = mmap(NULL, sizeof(*book), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (fd < 0 || book == MAP_FAILED)
		fail("VICTIM_BOOK");
	close(fd);
}

static void new_page(void)
{
	mine = &book->pages[__atomic_fetch_add(&book->used, 1, __ATOMIC_RELAXED) % PAGES];
	mine->pid = (uint64_t)syscall(SYS_getpid);
}

static uint64_t allocate(size_t size)
{
	uint64_t p = 0;

	if (cuMemAlloc_v2(&p, size))
		fail("alloc");
	__atomic_fetch_add(&mine->allocs, 1, __ATOMIC_RELAXED);
	return p;
}

static void release(uint64_t p)
{
	if (cuMemFree_v2(p))
		fail("free");
	__atomic_fetch_add(&mine->frees, 1, __ATOMIC_RELAXED);
}

/* Two allocations and a free each. */
static void work(int rounds)
{
	for (int i = 0; i < rounds; i++) {
		uint64_t p = allocate(512 + (size_t)i % 100 * 512);

		allocate(512);
		release(p);
	}
}

static void *for_ever(void *arg)
{
	cuCtxSetCurrent(context);
	for (;;)
		release(allocate(1024));
	return NULL;
}

static pthread_t start(void *(*f)(void *), void *arg)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, f, arg))
		fail("thread");
	return thread;
}

static void others(int n)
{
	while (n--)
		start(for_ever, NULL);
}

/* ---- death ---------------------------------------------------------------------------------- */

static void die_segv(int n)
{
	volatile int *volatile nowhere = NULL;

	*nowhere = n;
}

static void die_abort(int n)
{
	abort();
}

static void die_kill(int n)
{
	raise(SIGKILL);
}

static void die_exit_at_once(int n)
{
	_exit(3);
}

static void die_quick_exit(int n)
{
	quick_exit(3);
}

static void die_exit(int n)
{
	exit(3);
}

static void die_exec(int n)
{
	execl(self, self, "work", "40", NULL);
	fail("exec");
}

/* Killed from outside, when the test likes. */
static void wait_for_it(int n)
{
	puts("ready");
	fflush(stdout);
	for (;;)
		work(1), usleep(10);
}

/* Its threads go round with the same few blocks until it is killed. */
static void go_round(int n)
{
	puts("ready");
	fflush(stdout);
	for_ever(NULL);
}

/* Threads cancelled between their calls; the others and the recorder go on. */
static void *cancellable(void *arg)
{
	cuCtxSetCurrent(context);
	for (;;) {
		release(allocate(2048));
		pthread_testcancel();
	}
	return NULL;
}

static void cancel(int n)
{
	for (int i = 0; i < n; i++) {
		pthread_t thread = start(cancellable, NULL);

		work(3);
		pthread_cancel(thread);
		pthread_join(thread, NULL);
	}
}

/* The test closes our input when it has seen enough. */
static void cancel_until_told(int n)
{
	struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};

	while (!poll(&input, 1, 0))
		cancel(1);
}

/* ---- threads -------------------------------------------------------------------------------- */

/*
 * Times that the destructor runs. What the last of them allocates has the recorder's own destructor
 * run once more, in the fourth and last round that glibc grants. In that round the race detector
 * leaves the thread, and that of gcc 14 then dies at any function that it has instrumented, be it
 * ours or not (TraceSkipGap reads the thread's trace, which is gone): built for it, it is one less.
 */
#ifndef AT_END
#define AT_END 3
#endif

static pthread_key_t key;

/* Runs while the thread's own variables are being taken down, and comes back. */
static void at_end_of_thread(void *arg)
{
	intptr_t left = (intptr_t)arg;

	release(allocate(4096));
	if (left > 1)
		pthread_setspecific(key, (void *)(left - 1));
}

static void *one_shot(void *arg)
{
	cuCtxSetCurrent(context);
	pthread_setspecific(key, (void *)AT_END);
	work(1);
	return NULL;
}

static void short_threads(int n)
{
	pthread_key_create(&key, at_end_of_thread);
	for (int i = 0; i < n; i += 4) {
		pthread_t thread[4];

		for (int k = 0; k < 4; k++)
			thread[k] = start(one_shot, NULL);
		for (int k = 0; k < 4; k++)
			pthread_join(thread[k], NULL);
	}
}

static bool late;

static void at_exit(void)
{
	work(5);
}

static __attribute__((destructor)) void at_unload(void)
{
	if (late)
		work(5);
}

static void allocate_late(int n)
{
	late = true;
	atexit(at_exit);
	work(n);
}

/* ---- processes ------------------------------------------------------------------------------ */

static void reap(void)
{
	int status;

	while (wait(&status) > 0)
		if (status)
			printf("child: status %x\n", status);
}

static void end_child(int rounds)
{
	new_page();
	work(rounds);
	exit(0);
}

static void fork_many(int n)
{
	for (int i = 0; i < n; i++)
		if (!fork())
			end_child(7 + i);
	reap();
}

static void *fork_here(void *arg)
{
	fork_many((int)(intptr_t)arg);
	return NULL;
}

static void fork_from_thread(int n)
{
	pthread_join(start(fork_here, (void *)(intptr_t)n), NULL);
}

static void fork_nested(int n)
{
	if (n && !fork()) {
		new_page();
		work(n);
		fork_nested(n - 1);
		exit(0);
	}
	reap();
}

/* The grandchild outlives all and says so by its book. */
static void daemonise(int n)
{
	int gone[2];
	char byte;

	if (pipe2(gone, O_CLOEXEC))
		fail("pipe");
	if (!fork()) {
		setsid();
		if (fork())
			_exit(0);
		for (int fd = 0; fd < 256; fd++)
			if (fd != gone[1])
				close(fd);
		end_child(n);
	}
	close(gone[1]);
	reap();
	if (read(gone[0], &byte, 1))
		fail("daemon");
}

static void clone_one(int n)
{
	if (!syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL))
		end_child(n);
	reap();
}

static void vfork_exec(int n)
{
	if (!vfork()) {
		execl(self, self, "work", "9", NULL);
		_exit(9);
	}
	reap();
}

static void spawn(int n)
{
	char *args[] = {self, (char *)"work", (char *)"9", NULL};
	pid_t pid;

	if (posix_spawn(&pid, self, NULL, NULL, args, environ))
		fail("spawn");
	reap();
}

/* ---- starvation ----------------------------------------------------------------------------- */

static void limit(int what, rlim_t value)
{
	struct rlimit r = {value, RLIM_INFINITY};

	getrlimit(what, &r);
	r.rlim_cur = value;
	if (setrlimit(what, &r))
		fail("setrlimit");
}

static rlim_t address_space(void)
{
	unsigned long pages = 0;
	FILE *f = fopen("/proc/self/statm", "re");

	if (!f || fscanf(f, "%lu", &pages) != 1)
		fail("statm");
	fclose(f);
	return (rlim_t)pages * 4096;
}

static void few_descriptors(int n)
{
	limit(RLIMIT_NOFILE, (rlim_t)n);
}

static void short_files(int n)
{
	limit(RLIMIT_FSIZE, (rlim_t)n * 4096);
}

static void little_space(int n)
{
	limit(RLIMIT_AS, address_space() + ((rlim_t)n << 10));
}

static bool jumping;

/* Also what the recorder sees, if it asks. */
int clock_gettime(clockid_t id, struct timespec *ts)
{
	long rc = syscall(SYS_clock_gettime, id, ts);
	static unsigned n;

	if (jumping)
		ts->tv_sec += (int)(n++ * 2654435761u) >> 12;
	return (int)rc;
}

static void jump(int n)
{
	jumping = true;
}

/* A sandbox in which a system call fails. */
static void forbid(int number, unsigned error)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)number, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof(filter) / sizeof(*filter), filter};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		fail("seccomp");
}

static void sandbox(int n)
{
	static const int calls[] = {SYS_fallocate, SYS_openat,	 SYS_mmap,	 SYS_ftruncate,
				    SYS_madvise,   SYS_mremap,	 SYS_newfstatat, SYS_readlink,
				    SYS_getcwd,	   SYS_prlimit64};

	forbid(calls[n], EPERM);
}

static void use_up_quota(int n)
{
	work(n);
	forbid(SYS_fallocate, EDQUOT);
}

/* Waits for a line: the test does something to the file meanwhile. */
static void pause_here(int n)
{
	puts("ready");
	fflush(stdout);
	getchar();
}

static void pause_between(int n)
{
	work(n);
	pause_here(n);
	work(n);
}

/* ---- stepped through ------------------------------------------------------------------------- */

static __attribute__((noinline)) void at_depth(int depth, int round)
{
	volatile int here = depth; /* no tail call */

	if (depth) {
		at_depth(depth - 1, round);
	} else {
		uint64_t p = allocate(512 + (size_t)round % 100 * 512);

		allocate(512);
		release(p);
	}
	here--;
}

/* The tracer begins behind the first round, and knows sizes and depths: step.c. */
static void deep(int n)
{
	at_depth(0, 0);
	raise(SIGSTOP);
	for (int i = 1; i <= n; i++)
		at_depth(i % 20, i);
	_exit(0);
}

/* ---- SIGBUS --------------------------------------------------------------------------------- */

static void start_driver(void);
static char *volatile gone; /* a page that its file does not have */

/* The program's own: says whether the fault is its own, and mends it. */
static void on_bus(int signal, siginfo_t *info, void *unused)
{
	const char *text = info->si_code == BUS_ADRERR && info->si_addr == gone ? "my own fault\n"
										: "not mine\n";

	if (write(1, text, strlen(text)) < 0 ||
	    mmap(gone, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
		 0) == MAP_FAILED)
		_exit(71);
}

static void handle_bus(void)
{
	struct sigaction action = {.sa_sigaction = on_bus, .sa_flags = SA_SIGINFO};

	sigaction(SIGBUS, &action, NULL);
}

static void fault(void)
{
	int fd = memfd_create("gone", MFD_CLOEXEC);

	gone = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	*gone = 1;
	work(3);
}

static void bus(int n)
{
	siginfo_t info = {.si_code = SI_QUEUE, .si_pid = 4711, .si_value.sival_int = 11};

	if (n == 0)
		fault();
	if (n == 1)
		raise(SIGBUS);
	if (n == 2)
		kill(getpid(), SIGBUS);
	if (n == 3)
		syscall(SYS_rt_sigqueueinfo, getpid(), SIGBUS, &info);
	if (n == 4 && !fork()) /* records nothing */
		fault();
	if (n == 5 && !fork()) {
		new_page();
		work(3);
		fault();
	}
	reap();
}

static void bus_handled(int n)
{
	if (n == 0) /* before anything is recorded */
		handle_bus();
	start_driver();
	work(20);
	if (n == 1)
		handle_bus();
	fault();
}

static void bus_ignored(int n)
{
	signal(SIGBUS, SIG_IGN);
	start_driver();
	work(20);
	raise(SIGBUS);
	work(20);
	fault();
}

/* ---- the table ------------------------------------------------------------------------------ */

static const struct mode {
	const char *name;
	int before;  /* rounds of work before it; -1: not even the driver is started */
	int threads; /* that allocate for ever meanwhile */
	void (*run)(int n);
	int after; /* rounds */
} modes[] = {
	{"work", 0, 0, work, 0},
	{"segv", 50, 2, die_segv, 0},
	{"abort", 50, 2, die_abort, 0},
	{"kill", 50, 2, die_kill, 0},
	{"_exit", 50, 2, die_exit_at_once, 0},
	{"quick_exit", 50, 2, die_quick_exit, 0},
	{"exit", 50, 2, die_exit, 0},
	{"exec", 50, 2, die_exec, 0},
	{"wait", 0, 1, wait_for_it, 0},
	{"round", 0, 3, go_round, 0},
	{"cancel", 10, 1, cancel, 10},
	{"until-told", 10, 1, cancel_until_told, 10},
	{"threads", 1, 0, short_threads, 1},
	{"late", 1, 0, allocate_late, 1},
	{"fork", 20, 0, fork_many, 20},
	{"fork-busy", 20, 2, fork_many, 20},
	{"fork-thread", 20, 0, fork_from_thread, 20},
	{"fork-nested", 20, 0, fork_nested, 20},
	{"fork-first", 0, 0, fork_many, 0},
	{"daemon", 20, 0, daemonise, 20},
	{"clone", 20, 0, clone_one, 20},
	{"vfork", 20, 0, vfork_exec, 20},
	{"spawn", 20, 0, spawn, 20},
	{"descriptors", -1, 0, few_descriptors, 50},
	{"files", -1, 0, short_files, 5000},
	{"space", -1, 0, little_space, 5000},
	{"clock", -1, 0, jump, 3000},
	{"sandbox", -1, 0, sandbox, 3000},
	{"deep", 0, 0, deep, 0},
	{"quota", 0, 0, use_up_quota, 3000},
	{"pause", 0, 0, pause_between, 0},
	{"pause-and-end", 20, 0, pause_here, 0},
	{"bus", 20, 1, bus, 20},
	{"bus-handled", -1, 0, bus_handled, 20},
	{"bus-ignored", -1, 0, bus_ignored, 0},
};

static void start_driver(void)
{
	if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context))
		fail("driver");
}

int main(int argc, char **argv)
{
	const struct mode *m = modes;
	int n = argc > 2 ? atoi(argv[2]) : 0;

	self = argv[0];
	open_book();
	new_page();
	while (strcmp(m->name, argc > 1 ? argv[1] : "work"))
		m++;
	if (m->before >= 0) {
		start_driver();
		others(m->threads);
		work(m->before);
		m->run(n);
	} else {
		m->run(n);
		start_driver();
	}
	work(m->after);
	return 0;
}
