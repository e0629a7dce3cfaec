/* SPDX-License-Identifier: MIT */
/*
 * locks.c - the locks that a hook could be called with, or could need while somebody else holds them.
 *
 * As a program: threads allocate through the driver while others load and unload a library whose
 * constructor and destructor do so too, that is with the loader's lock held. -DLIBRARY makes the
 * library. -DALLOCATOR makes an allocator to preload with a lock, which counts who calls it from inside
 * libgputrace.so: on its way out it says "inside N" on stderr. It asks the loader where that is at
 * its first call only: later, with its lock held, it would wait for a dlclose that waits for it.
 * Last line of the program as of reach.c.
 */
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef ALLOCATOR

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *ptr, size_t size);
void __libc_free(void *ptr);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uintptr_t start, end;
static unsigned long inside;

static int find(struct dl_phdr_info *info, size_t size, void *arg)
{
	const char *name = strrchr(info->dlpi_name, '/');

	if (!name || strcmp(name, "/libgputrace.so") != 0)
		return 0;
	start = info->dlpi_addr;
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_LOAD)
			end = start + info->dlpi_phdr[i].p_vaddr + info->dlpi_phdr[i].p_memsz;
	return 1;
}

static void called(const void *pc)
{
	pthread_mutex_lock(&lock);
	if (!end)
		dl_iterate_phdr(find, NULL);
	inside += (uintptr_t)pc >= start && (uintptr_t)pc < end;
	pthread_mutex_unlock(&lock);
}

void *malloc(size_t size)
{
	called(__builtin_return_address(0));
	return __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
	called(__builtin_return_address(0));
	return __libc_calloc(count, size);
}

void *realloc(void *ptr, size_t size)
{
	called(__builtin_return_address(0));
	return __libc_realloc(ptr, size);
}

void free(void *ptr)
{
	called(__builtin_return_address(0));
	__libc_free(ptr);
}

static __attribute__((destructor)) void say(void)
{
	fprintf(stderr, "inside %lu\n", end ? inside : 999999);
}

#else

int cuInit(unsigned flags);
int cuDevicePrimaryCtxRetain(void **out, int device);
int cuCtxSetCurrent(void *context);
int cuMemAlloc_v2(uint64_t *out, size_t size);
int cuMemFree_v2(uint64_t ptr);

static void use(unsigned n)
{
	uint64_t ptr;

	for (unsigned i = 0; i < n; i++)
		if (cuMemAlloc_v2(&ptr, 512 + i) || cuMemFree_v2(ptr))
			abort();
}

#ifdef LIBRARY

static __attribute__((constructor)) void loaded(void)
{
	use(3);
}

static __attribute__((destructor)) void unloaded(void)
{
	use(2);
}

#else

#define THREADS 4
#define TURNS	100 /* of each thread that loads; the others make as many times 10 allocations */

static void *context;

static void *load(void *path)
{
	cuCtxSetCurrent(context);
	for (int i = 0; i < TURNS; i++) {
		void *library = dlopen(path, RTLD_NOW);

		if (!library || dlclose(library))
			abort();
	}
	return NULL;
}

static void *allocate(void *arg)
{
	cuCtxSetCurrent(context);
	for (int i = 0; i < TURNS; i++) {
		void *p = malloc(100 + i);

		use(10);
		free(p);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	unsigned loads = 2 * TURNS * 5, all = 2 * TURNS * 10;
	pthread_t threads[THREADS];
	uint64_t left;

	/* Two paths: the threads do not wait for each other's copy. */
	if (argc != 3 || cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) ||
	    cuCtxSetCurrent(context) || cuMemAlloc_v2(&left, 1000))
		return 1;
	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, i % 2 ? allocate : load, argv[1 + i / 2]);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	printf("{\"allocs\": %u, \"frees\": %u, \"bytes\": 1000}\n", all + loads + 1, all + loads);
	return 0;
}

#endif
#endif
