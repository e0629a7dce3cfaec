/* SPDX-License-Identifier: MIT */
/*
 * What a program can find out through dlsym and dlvsym, printed without addresses, so that a run
 * with a preload can be compared with one without: who is next after whom, whose function a handle
 * gives, what dlerror says, errno. The libraries are lookup_lib.c, built as first and second.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int first_next(const char *name), second_next(const char *name); /* results, or -1 for NULL */
int first_default(const char *name);

static void say(const char *what, int result)
{
	const char *message = dlerror();

	printf("%s: %d, errno %d, %s\n", what, result, errno, message ? message : "no error");
	errno = 77;
}

static int call(void *p)
{
	int (*f)(void);

	*(void **)&f = p;
	return f ? f() : -1;
}

/* Names like the driver's in a library that is not the driver must give that library's functions.
 */
static void handle(const char *path)
{
	static const char *const names[] = {
		"cudnnCreate",	   "curl_easy_init", "cu", "cuA",      "cuInit",
		"cuMemAlloc_v2",   "cudaMalloc",     "c",  "cuNoSuch", "cuMemFree_v2",
		"cuGetProcAddress"};
	void *h = dlopen(path, RTLD_NOW | RTLD_LOCAL);

	for (int round = 0; h && round < 2; round++) {
		for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
			dlerror();
			say(names[i], call(dlsym(h, names[i])));
			say(names[i], call(dlvsym(h, names[i], "NONE")));
		}
	}
	if (h)
		say("dlclose", dlclose(h));
	say("no such file", dlopen("/no/such/library.so", RTLD_NOW) != NULL);
}

int main(int argc, char **argv)
{
	errno = 77;
	for (int round = 0; round < 3; round++) {
		say("first next", first_next("who"));
		say("second next", second_next("who"));
		say("default", first_default("who"));
		say("next cuWho", first_next("cuWho"));
		say("default cuWho", first_default("cuWho"));
	}
	say("malloc", dlsym(RTLD_DEFAULT, "malloc") == (void *)malloc);
	say("OpenMP", call(dlsym(RTLD_DEFAULT, "ompt_start_tool")));
	say("two versions", dlvsym(RTLD_DEFAULT, "memcpy", "GLIBC_2.2.5") ==
				    dlvsym(RTLD_DEFAULT, "memcpy", "GLIBC_2.14"));
	say("versioned", dlvsym(RTLD_DEFAULT, "fopen", "GLIBC_9.9") != NULL);
	say("next malloc", dlsym(RTLD_NEXT, "malloc") != NULL);
	if (argc > 1)
		handle(argv[1]);
	return 0;
}
