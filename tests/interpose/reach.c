/* SPDX-License-Identifier: MIT */
/*
 * The same traffic through each way to the driver. Prints every result as the program sees it
 * (code, errno, what the pointer became, the message that dlerror holds at the end), so that a run
 * with a preload can be compared with one without. The last line says what there was to count.
 *
 * usage: reach dlsym|gpa1|gpa2|gpa2-flags1|gpa2-flags2      built with -DELF: reach elf
 * Built with -DEARLY it is a library to preload that does this in its constructor.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef uint64_t ptr;

#define FUNCTIONS(X)                                                             \
	X(cuInit, 2000, (unsigned))                                              \
	X(cuDevicePrimaryCtxRetain, 7000, (void **, int))                        \
	X(cuCtxSetCurrent, 4000, (void *))                                       \
	X(cuMemAlloc_v2, 3020, (ptr *, size_t))                                  \
	X(cuMemAllocPitch_v2, 3020, (ptr *, size_t *, size_t, size_t, unsigned)) \
	X(cuMemAllocManaged, 6000, (ptr *, size_t, unsigned))                    \
	X(cuMemFree_v2, 3020, (ptr))                                             \
	X(cuMemAllocAsync, 11020, (ptr *, size_t, void *))                       \
	X(cuMemFreeAsync, 11020, (ptr, void *))                                  \
	X(cuStreamSynchronize, 2000, (void *))                                   \
	X(cuMemGetInfo_v2, 3020, (size_t *, size_t *))

#define X(name, version, parameters) static int(*p_##name) parameters;
FUNCTIONS(X)
#undef X

/* ---- ways ------------------------------------------------------------------------------------ */

#ifdef ELF /* linked with the driver */
#define X(name, version, parameters) extern int name parameters;
FUNCTIONS(X)
#undef X

static void by_elf(void)
{
#define X(name, version, parameters) p_##name = name;
	FUNCTIONS(X)
#undef X
}
#endif

#ifndef ELF
static void need(void *p, const char *name)
{
	if (p)
		return;
	printf("%s not found\n", name);
	exit(3);
}

/* As runtimes do: the resolver comes from dlsym once, then from itself. */
static void *lookup(const char *way, const char *name, int version, void *driver)
{
	static const char *const no_suffix[] = {"_v2", "_v3"};
	int (*gpa1)(const char *, void **, int, uint64_t);
	int (*gpa2)(const char *, void **, int, uint64_t, int *);
	char base[64];
	uint64_t flags = way[4] ? way[10] - '0' : 0; /* gpa2-flagsN */
	void *p = NULL;
	int status = -1;

	if (!strcmp(way, "dlsym"))
		return dlsym(driver, name);
	snprintf(base, sizeof(base), "%s", name);
	for (int i = 0; i < 2; i++) {
		char *at = strstr(base, no_suffix[i]);

		if (at)
			*at = 0;
	}
	if (!strcmp(way, "gpa1")) {
		*(void **)&gpa1 = dlsym(driver, "cuGetProcAddress");
		need((void *)gpa1, "cuGetProcAddress");
		if (gpa1("cuGetProcAddress", (void **)&gpa1, 11030, 0))
			return NULL;
		return gpa1(base, &p, version, 0) ? NULL : p;
	}
	*(void **)&gpa2 = dlsym(driver, "cuGetProcAddress_v2");
	need((void *)gpa2, "cuGetProcAddress_v2");
	if (gpa2("", &p, 0, 0, &status) || p || status != 1)
		printf("the probe gave %p, status %d\n", p, status);
	if (gpa2("cuGetProcAddress", (void **)&gpa2, 12000, 0, &status))
		return NULL;
	return gpa2(base, &p, version, flags, &status) ? NULL : p;
}

static void by_lookup(const char *way)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW);

	need(driver, "libcuda.so.1");
#define X(name, version, parameters)                               \
	*(void **)&p_##name = lookup(way, #name, version, driver); \
	need((void *)p_##name, #name);
	FUNCTIONS(X)
#undef X
}

#endif

/* ---- traffic --------------------------------------------------------------------------------- */

static struct {
	int allocs, frees, refused, unknown;
	uint64_t live, live_bytes, peak_bytes, pool_bytes;
} count;
static ptr first;

static void show(const char *what, int rc, ptr p)
{
	int err = errno;

	if (p && !first)
		first = p;
	printf("%s %d errno %d at %lld\n", what, rc, err, p ? (long long)(p - first) : -1LL);
	errno = 12345;
}

static void add(int rc, size_t size)
{
	if (rc) {
		count.refused++;
		return;
	}
	count.allocs++;
	count.live++;
	count.live_bytes += size;
	if (count.live_bytes > count.peak_bytes)
		count.peak_bytes = count.live_bytes;
}

static void take(size_t size)
{
	count.frees++;
	count.live--;
	count.live_bytes -= size;
}

#define PLAIN	97 /* prime numbers, and so is their sum: nothing can be counted by halves */
#define PITCHED 31
#define MANAGED 2
#define ASYNC	43

static void alloc_plain(ptr *p)
{
	for (int i = 0; i < PLAIN; i++) {
		int rc = p_cuMemAlloc_v2(&p[i], 1000 + i);

		show("alloc", rc, p[i]);
		add(rc, 1000 + i);
	}
}

static void alloc_others(ptr *p)
{
	for (int i = 0; i < PITCHED; i++) {
		size_t pitch = 0;
		int rc = p_cuMemAllocPitch_v2(&p[i], &pitch, 100 + i, 7, 4);

		show("pitch", rc, p[i]);
		add(rc, pitch * 7);
	}
	for (int i = PITCHED; i < PITCHED + MANAGED; i++) {
		int rc = p_cuMemAllocManaged(&p[i], 4096, 1);

		show("managed", rc, p[i]);
		add(rc, 4096);
	}
}

static void alloc_async(ptr *p)
{
	for (int i = 0; i < ASYNC; i++) {
		int rc = p_cuMemAllocAsync(&p[i], 512 * (i + 1), NULL);

		show("async", rc, p[i]);
		add(rc, 512 * (i + 1));
		count.pool_bytes += 512 * (i + 1);
	}
}

/* Families mix: a plain pointer may be freed in a stream's order, and the other way round. */
static void free_some(const ptr *plain, const ptr *async)
{
	for (int i = 0; i < 53; i++) {
		show("free", i % 3 ? p_cuMemFree_v2(plain[i]) : p_cuMemFreeAsync(plain[i], NULL),
		     0);
		take(1000 + i);
	}
	for (int i = 0; i < 29; i++) {
		show("free", i % 3 ? p_cuMemFreeAsync(async[i], NULL) : p_cuMemFree_v2(async[i]),
		     0);
		take(512 * (i + 1));
		count.pool_bytes -= 512 * (i + 1);
	}
}

static void mistakes(const ptr *plain)
{
	ptr p = 0;
	size_t total;

	for (int i = 0; i < 3; i++) {
		int rc = p_cuMemAlloc_v2(&p, 1ull << 46);

		show("too much", rc, p);
		add(rc, 0);
	}
	show("null", p_cuMemFree_v2(0), 0);
	show("twice", p_cuMemFree_v2(plain[1]), 0);
	show("inside", p_cuMemFree_v2(plain[90] + 1), 0);
	show("unknown", p_cuMemFreeAsync(0x1230000, NULL), 0);
	count.unknown += 3;
	show("info", p_cuMemGetInfo_v2(NULL, &total), 0);
}

#ifdef EARLY /* a library whose constructor does it all, before main and before other constructors \
	      */
#define main early_main
int main(int argc, char **argv);
#endif
int main(int argc, char **argv)
{
	static ptr plain[PLAIN], others[PITCHED + MANAGED], async[ASYNC];
	const char *way = argc > 1 ? argv[1] : "dlsym", *message;
	void *context = NULL;

#ifdef ELF
	by_elf();
#else
	by_lookup(way);
#endif
	errno = 12345;
	show("not yet", p_cuMemAlloc_v2(plain, 1), 0); /* before the trace begins */
	show("init", p_cuInit(0), 0);
	show("retain", p_cuDevicePrimaryCtxRetain(&context, 0), 0);
	show("current", p_cuCtxSetCurrent(context), 0);
	dlerror();
	dlsym(RTLD_DEFAULT, "no_such_function");
	alloc_plain(plain);
	alloc_others(others);
	alloc_async(async);
	message = dlerror();
	printf("dlerror: %s\n", message ? message : "none");
	free_some(plain, async);
	show("sync", p_cuStreamSynchronize(NULL), 0);
	mistakes(plain);
	printf("{\"way\": \"%s\", \"allocs\": %d, \"frees\": %d, \"refused\": %d, \"unknown\": %d, "
	       "\"live\": %llu, \"live_bytes\": %llu, \"peak_bytes\": %llu, \"pool_bytes\": "
	       "%llu}\n",
	       way, count.allocs, count.frees, count.refused, count.unknown,
	       (unsigned long long)count.live, (unsigned long long)count.live_bytes,
	       (unsigned long long)count.peak_bytes, (unsigned long long)count.pool_bytes);
	return 0;
}

#ifdef EARLY
static __attribute__((constructor)) void early(void)
{
	char *argv[] = {(char *)"early", (char *)"gpa2", NULL};

	main(2, argv);
	fflush(stdout);
	_exit(0);
}
#endif
