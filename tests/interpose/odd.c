/* SPDX-License-Identifier: MIT */
/*
 * Runs the driver of odd_driver.c through its oddities and prints what a program can see of them.
 *
 * usage: odd quirks | reload
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

static int (*init)(unsigned);
static int (*alloc)(uint64_t *, size_t);
static int (*pitched)(uint64_t *, size_t *, size_t, size_t, unsigned);
static int (*release)(uint64_t);
static int (*resolve1)(const char *, void **, int, uint64_t);
static int (*resolve2)(const char *, void **, int, uint64_t, int *);
static void (*answer)(int), (*set_errno)(int);

static void *load(void)
{
	void *h = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);

	if (!h)
		return NULL;
	*(void **)&init = dlsym(h, "cuInit");
	*(void **)&alloc = dlsym(h, "cuMemAlloc_v2");
	*(void **)&pitched = dlsym(h, "cuMemAllocPitch_v2");
	*(void **)&release = dlsym(h, "cuMemFree_v2");
	*(void **)&resolve1 = dlsym(h, "cuGetProcAddress");
	*(void **)&resolve2 = dlsym(h, "cuGetProcAddress_v2");
	*(void **)&answer = dlsym(h, "odd_answer");
	*(void **)&set_errno = dlsym(h, "odd_errno");
	printf("lacking: %d %d\n", dlsym(h, "cuMemCreate") == NULL, dlsym(h, "cuInit_v9") == NULL);
	return h;
}

static void resolvers(void)
{
	void *p = (void *)&p;
	int status = -7, rc;

	rc = resolve1("cuNothing", &p, 12000, 0);
	printf("v1 unknown: %d, untouched %d\n", rc, p == (void *)&p);
	rc = resolve1("cuMemAlloc", &p, 12000, 8);
	printf("v1 flags: %d, untouched %d\n", rc, p == (void *)&p);
	rc = resolve2("cuNothing", &p, 12000, 0, &status);
	printf("v2 unknown: %d %d, NULL %d\n", rc, status, p == NULL);
	rc = resolve2("cuMemAlloc", &p, 12000, 0, NULL);
	printf("v2 without status: %d, as dlsym %d\n", rc, p == *(void **)&alloc);
	rc = resolve2("", &p, 0, 0, &status);
	printf("probe: %d %d, NULL %d\n", rc, status, p == NULL);
}

/* 7 blocks; frees that the driver refuses with each of these codes, which rule each of them has. */
static void refused_frees(void)
{
	static const int codes[] = {1, 700, 4, 709, 999, 201, 2};
	uint64_t p[7];

	for (int i = 0; i < 7; i++)
		alloc(&p[i], 1000 << i);
	for (int i = 0; i < 7; i++) {
		answer(codes[i]);
		printf("free: %d\n", release(p[i]));
	}
	answer(0);
}

/* As an argument errno might be read before the call. */
static void show(const char *what, int rc)
{
	printf("%s %d errno %d\n", what, rc, errno);
	errno = 0;
}

static void quirks(void)
{
	uint64_t p = 0;
	size_t pitch = 0;

	printf("init %d\n", init(0));
	resolvers();
	set_errno(EINTR);
	errno = 0;
	show("alloc", alloc(&p, 512));
	show("free", release(p));
	set_errno(0);
	show("nested", pitched(&p, &pitch, 100, 3, 4));
	refused_frees();
}

static void reload(void)
{
	uint64_t p;

	for (int i = 0; i < 3; i++) {
		void *h = load();

		printf("alloc %d\n", alloc(&p, 4096));
		printf("free %d\n", release(p));
		printf("close %d\n", dlclose(h));
		/* Into the hole, so that the next one comes to lie elsewhere. */
		mmap(NULL, 1 << 14, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	}
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "reload")) {
		reload();
		return 0;
	}
	if (!load())
		return 3;
	quirks();
	return 0;
}
