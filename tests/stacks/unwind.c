/* SPDX-License-Identifier: MIT */
/*
 * check-unwind: every scene captures many stacks, each compared with libgcc (and libunwind) frame
 * by frame. Usage: unwind MODULE_A MODULE_B MODULE_C MODULE_BARE FOLDER
 */
#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>
#include "../../preload/preload.h"
#include "jit.h"
#include "scenes.h"

static int failures;
static char **arguments;

static void judge(const char *name, bool good, const char *why)
{
	if (good)
		printf("ok %s\n", name);
	else
		printf("not ok %s: %s\n", name, why);
	failures += !good;
	fflush(stdout);
}

enum wanted { WHOLE, SOME_INCOMPLETE };

/* Runs a scene; all of its captures must equal the reference, and none be lost. */
static void scene(const char *name, void (*run)(const void *), const void *arg, uint64_t at_least,
		  enum wanted wanted)
{
	struct tally a = check_tally(), b;
	uint64_t captures, incomplete;
	char text[200];

	run(arg);
	b = check_tally();
	captures = b.captures - a.captures;
	incomplete = b.incomplete - a.incomplete;
	snprintf(text, sizeof(text),
		 "%lu captures, %lu different from libgcc, %lu from libunwind, %lu incomplete, %lu "
		 "lost",
		 captures, b.different - a.different, b.different_libunwind - a.different_libunwind,
		 incomplete, b.lost - a.lost);
	printf("   %s: %s, %lu frames\n", name, text, b.frames - a.frames);
	judge(name,
	      captures >= at_least && b.different == a.different &&
		      b.different_libunwind == a.different_libunwind && b.lost == a.lost &&
		      (wanted == SOME_INCOMPLETE) == (incomplete > 0),
	      text);
}

/* ---- scenes of scenes.cc --------------------------------------------------------------------- */

static void recursion(const void *arg)
{
	const struct scenes *s = arg;

	for (unsigned i = 0; i < 60; i++)
		s->recursion(i % 120);
}

static void variable_frames(const void *arg)
{
	const struct scenes *s = arg;

	for (unsigned i = 0; i < 400; i++)
		s->variable_frames(i * 2654435761u >> 8);
}

static void realigned_frames(const void *arg)
{
	const struct scenes *s = arg;

	for (unsigned i = 0; i < 200; i++)
		s->realigned_frames(i);
}

static void large_frames(const void *arg)
{
	const struct scenes *s = arg;

	for (unsigned i = 0; i < 40; i++)
		s->large_frames(i % 12);
}

static void callbacks(const void *arg)
{
	const struct scenes *s = arg;

	for (unsigned i = 0; i < 40; i++)
		s->callbacks(i);
}

static void exceptions(const void *arg)
{
	const struct scenes *s = arg;

	for (unsigned i = 0; i < 100; i++)
		s->exceptions(i % 9);
}

static void mixed(const void *arg)
{
	const struct scenes *s = arg;

	for (unsigned i = 0; i < 60; i++)
		s->mixed(i * 77, 4);
}

static void every_compilation(const char *name, void (*run)(const void *), uint64_t at_least)
{
	char text[80];

	for (unsigned i = 0; i < scenes_count; i++) {
		snprintf(text, sizeof(text), "%s [%s]", name, all_scenes[i]->flags);
		scene(text, run, all_scenes[i], at_least, WHOLE);
	}
}

void moving(void (*call)(void), unsigned k, unsigned n);
void saves_fp(void);
void keeps_fp(void);

static void moving_frame_pointers(const void *arg)
{
	unsigned seed = 1;

	for (unsigned i = 0; i < 3000; i++) {
		seed = seed * 1664525u + 1013904223u;
		moving(seed >> 20 & 1 ? saves_fp : keeps_fp, (seed >> 24) % 8, 8);
	}
}

/* ---- threads --------------------------------------------------------------------------------- */

static void *thread_main(void *arg)
{
	unsigned k = *(unsigned *)arg;

	for (unsigned i = 0; i < 12; i++)
		all_scenes[(i + k) % scenes_count]->mixed(i * 31 + k, 3);
	return NULL;
}

static void threads(const void *arg)
{
	pthread_t t[6];
	unsigned k[6];

	for (unsigned i = 0; i < 6; i++) {
		k[i] = i;
		pthread_create(&t[i], NULL, thread_main, &k[i]);
	}
	for (unsigned i = 0; i < 6; i++)
		pthread_join(t[i], NULL);
}

static pthread_key_t late_key;

/* A destructor that allocates device memory, in a thread whose state may be gone already. */
static void late(void *left)
{
	hook();
	if (left != (void *)1)
		pthread_setspecific(late_key, (char *)left - 1);
}

static void *short_thread(void *arg)
{
	pthread_setspecific(late_key, (void *)2);
	hook();
	return NULL;
}

static void short_threads(const void *arg)
{
	pthread_t t;

	pthread_key_create(&late_key, late);
	for (unsigned i = 0; i < 1000; i++) {
		pthread_create(&t, NULL, short_thread, NULL);
		pthread_join(t, NULL);
	}
	pthread_key_delete(late_key);
}

static void nothing_left_behind(void)
{
	long before, after;
	char text[100];

	hook();
	before = double_mapped();
	scene("1,000 short threads", short_threads, NULL, 3000, WHOLE);
	after = double_mapped();
	/* The tree may have doubled its index or key space once; a thread's state is 14 KiB. */
	snprintf(text, sizeof(text), "%ld bytes more than before", after - before);
	judge("short threads leave nothing behind", after - before < 100 * 1024, text);
}

/* ---- signals and other stacks ---------------------------------------------------------------- */

static void on_signal(int number)
{
	all_scenes[0]->recursion(3);
	hook();
}

static void signals(const void *arg)
{
	static char other[65536];
	stack_t stack = {.ss_sp = other, .ss_size = sizeof(other)};
	struct sigaction action = {.sa_handler = on_signal};

	sigaltstack(&stack, NULL);
	for (unsigned i = 0; i < 60; i++) {
		action.sa_flags = i % 2 ? SA_ONSTACK : 0;
		sigaction(SIGUSR1, &action, NULL);
		raise(SIGUSR1);
		all_scenes[i % scenes_count]->recursion(5);
	}
	stack.ss_flags = SS_DISABLE;
	sigaltstack(&stack, NULL);
}

static ucontext_t main_context, coroutine[2];

static void coroutine_main(int k)
{
	for (unsigned i = 0; i < 30; i++) {
		all_scenes[(unsigned)k % scenes_count]->mixed(i, 2);
		swapcontext(&coroutine[k], i % 2 ? &main_context : &coroutine[!k]);
	}
}

/* Two coroutines that switch to each other and back; their stacks are mapped anew each time. */
static void coroutines(const void *arg)
{
	const size_t size = 256 * 1024;

	for (unsigned round = 0; round < 4; round++) {
		void *stack[2];

		for (int k = 0; k < 2; k++) {
			stack[k] = mmap(NULL, size, PROT_READ | PROT_WRITE,
					MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
			getcontext(&coroutine[k]);
			coroutine[k].uc_stack.ss_sp = stack[k];
			coroutine[k].uc_stack.ss_size = size;
			coroutine[k].uc_link = &main_context;
			makecontext(&coroutine[k], (void (*)(void))coroutine_main, 1, k);
		}
		for (unsigned i = 0; i < 12; i++) {
			hook();
			swapcontext(&main_context, &coroutine[i % 2]);
		}
		munmap(stack[0], size);
		munmap(stack[1], size);
	}
}

/* ---- modules --------------------------------------------------------------------------------- */

typedef void (*enter_function)(void (*)(void *), void *);

static void capture_once(void *arg)
{
	*(uint32_t *)arg = hook();
}

/* One call site, so that two stacks through it may be equal to the last word (this file is compiled
 * with frame pointers: none of its variables shows as one). */
static __attribute__((noinline)) uint32_t enter_once(enter_function enter)
{
	uint32_t node;

	enter(capture_once, &node);
	return node;
}

static volatile int stop_threads;

static void *busy_thread(void *arg)
{
	for (unsigned i = 0; !stop_threads; i++)
		all_scenes[i % scenes_count]->mixed(i, 1);
	return NULL;
}

static void close_module(void *handle)
{
	gt_modules_closing();
	dlclose(handle);
	gt_modules_closed();
}

static unsigned same_address, same_node;

/* The file is replaced by one with other frames, same size: the loader puts it where the old one
 * was. */
static void replace_modules(const void *arg)
{
	char path[1024];
	void *last = NULL;
	uint32_t node = 0, last_node;

	snprintf(path, sizeof(path), "%s/replaced.so", arguments[5]);
	same_address = same_node = 0;
	for (unsigned i = 0; i < 60; i++) {
		enter_function enter;
		void *handle;

		unlink(path);
		if (link(arguments[1 + i % 3], path))
			return;
		handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
		enter = (enter_function)dlsym(handle, "enter");
		last_node = node;
		node = enter_once(enter);
		same_address += (void *)enter == last;
		same_node += node == last_node;
		last = (void *)enter;
		close_module(handle);
	}
}

static void replaced_modules(void)
{
	char text[100];
	pthread_t t[2];

	scene("module replaced at its address", replace_modules, NULL, 60, WHOLE);
	snprintf(text, sizeof(text), "%u of 59 at the same address, %u with the old node",
		 same_address, same_node);
	judge("replaced module: same address, other nodes", same_address > 30 && !same_node, text);
	stop_threads = 0;
	for (unsigned i = 0; i < 2; i++)
		pthread_create(&t[i], NULL, busy_thread, NULL);
	scene("module replaced while threads capture", replace_modules, NULL, 60, WHOLE);
	stop_threads = 1;
	for (unsigned i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	judge("replaced module among threads: other nodes", !same_node, "a node was used again");
}

typedef void (*bare_function)(void (*)(void *), void *, int);

static void bare_frames(const void *arg)
{
	void *handle = dlopen(arguments[4], RTLD_NOW | RTLD_LOCAL);
	bare_function bare = (bare_function)dlsym(handle, "bare_outer");
	uint32_t node;

	for (int i = 0; i < 40; i++)
		bare(capture_once, &node, i % 4);
	close_module(handle);
}

static void announced_code(const void *arg)
{
	uint32_t node;

	jit_announced(capture_once, &node, 30);
}

static void silent_code(const void *arg)
{
	uint32_t node;

	jit_silent(capture_once, &node, 30);
}

static void code_outside_objects(void)
{
	if (!jit_here()) {
		printf("skip code outside all objects: not written for this machine\n");
		return;
	}
	scene("code announced by __register_frame", announced_code, NULL, 30, WHOLE);
	scene("code that nobody knows", silent_code, NULL, 30, SOME_INCOMPLETE);
}

/* Absolute, also where the program named the file by a relative path. */
static void object_paths(void)
{
	void *handle = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
	enter_function enter = (enter_function)dlsym(handle, "enter");
	uint64_t addresses[] = {(uint64_t)enter, (uint64_t)&object_paths};
	char wanted[2][PATH_MAX];
	bool good = realpath(arguments[1], wanted[0]) && realpath("/proc/self/exe", wanted[1]);

	enter_once(enter);
	for (unsigned i = 0; i < 2; i++) {
		const char *path = double_module_path(addresses[i]);

		good = good && path && !strcmp(path, wanted[i]);
	}
	judge("paths of objects", good, "not those of the files");
	close_module(handle);
}

static void caller_names(void)
{
	void *handle = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
	uint64_t pc = (uint64_t)dlsym(handle, "enter") + 8;
	bool good = true;

	for (unsigned i = 0; i < 3; i++)
		good = good && gt_caller_is(pc, "module_") && !gt_caller_is(pc, "libc10_cuda") &&
		       !gt_caller_is((uint64_t)&caller_names + 8, "module_") &&
		       !gt_caller_is((uint64_t)&failures, "module_") && gt_caller_is(pc, "m");
	judge("gt_caller_is", good, "wrong object");
	close_module(handle);
	judge("gt_caller_is after dlclose", !gt_caller_is(pc, "module_"),
	      "a closed object answered");
}

/* ---- limits, fork ---------------------------------------------------------------------------- */

static void deep(const void *arg)
{
	for (unsigned i = 0; i < 3; i++) {
		all_scenes[i % scenes_count]->recursion(250);
		all_scenes[i % scenes_count]->recursion(400);
		all_scenes[i % scenes_count]->recursion(20);
		all_scenes[i % scenes_count]->mixed(i, 3);
	}
}

static void depth_limit(void)
{
	struct tally a = check_tally(), b;
	uint64_t counted = double_lost(GT_LOST_TRUNCATED);
	char text[120];

	scene("deeper than the limit", deep, NULL, 2000, WHOLE);
	b = check_tally();
	counted = double_lost(GT_LOST_TRUNCATED) - counted;
	snprintf(text, sizeof(text), "%lu cut, %lu counted, deepest %lu", b.truncated - a.truncated,
		 counted, b.deepest);
	printf("   %s\n", text);
	judge("cut at the limit, marked and counted",
	      b.truncated - a.truncated > 300 && b.truncated - a.truncated < 600 &&
		      counted == b.truncated - a.truncated && b.deepest == 256,
	      text);
}

static void in_child(void)
{
	unsigned nodes_before = double_nodes();
	int status;
	pid_t pid = fork();

	if (!pid) {
		struct tally t;

		gt_modules_closing(); /* before the child records anything */
		gt_modules_closed();
		double_forget();
		gt_stacks_fork_child();
		gt_stacks_start();
		all_scenes[0]->mixed(3, 3);
		t = check_tally();
		_exit(t.different || !t.captures);
	}
	waitpid(pid, &status, 0);
	judge("captures in a forked child", WIFEXITED(status) && !WEXITSTATUS(status),
	      "child failed");
	all_scenes[0]->mixed(3, 3);
	judge("parent after fork", double_nodes() >= nodes_before, "nodes lost");
}

static bool have_libunwind(void)
{
	return dlopen("libunwind.so.8", RTLD_LAZY | RTLD_LOCAL);
}

/* What the other unwinders do as well; libunwind does not tell a signal's frame from a call's. */
static int run_by(const char *name, unsigned unwinder)
{
	if (unwinder == GT_UNWIND_LIBUNWIND && !have_libunwind()) {
		printf("skip stacks by libunwind alone: libunwind.so.8 is not installed\n");
		return 0;
	}
	printf("   by %s alone:\n", name);
	double_start(256, unwinder);
	every_compilation("mixed", mixed, 800);
	scene("threads", threads, NULL, 3000, WHOLE);
	if (unwinder == GT_UNWIND_LIBGCC)
		scene("signal handlers", signals, NULL, 500, WHOLE);
	return failures != 0;
}

int main(int argc, char **argv)
{
	const char *only = getenv("CHECK_UNWINDER");

	if (argc != 6)
		return 2;
	arguments = argv;
	if (only)
		return run_by(only,
			      !strcmp(only, "libgcc") ? GT_UNWIND_LIBGCC : GT_UNWIND_LIBUNWIND);
	double_start(256, GT_UNWIND_AUTO);
	check_with_libunwind = have_libunwind();
	if (!check_with_libunwind)
		printf("skip comparison with libunwind: libunwind.so.8 is not installed\n");
	every_compilation("recursion", recursion, 1500);
	every_compilation("alloca", variable_frames, 800);
	every_compilation("over-aligned frames", realigned_frames, 800);
	every_compilation("large frames", large_frames, 200);
	every_compilation("callbacks from libc", callbacks, 300);
	every_compilation("exceptions", exceptions, 500);
	every_compilation("mixed", mixed, 800);
	scene("moving frame pointers", moving_frame_pointers, NULL, 3000, WHOLE);
	scene("threads", threads, NULL, 3000, WHOLE);
	scene("signal handlers", signals, NULL, 500, WHOLE);
	scene("coroutines", coroutines, NULL, 500, SOME_INCOMPLETE);
	judge("each path has one node", !double_duplicates(), "a path was defined twice");
	check_with_libunwind = false; /* it keeps rules of replaced modules */
	scene("frames without unwind information", bare_frames, NULL, 40, SOME_INCOMPLETE);
	code_outside_objects();
	replaced_modules();
	object_paths();
	caller_names();
	nothing_left_behind();
	depth_limit();
	in_child();
	return failures != 0;
}
