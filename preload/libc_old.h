/* SPDX-License-Identifier: MIT */
/*
 * What glibc 2.34 moved from libdl and libpthread into libc, asked for by the version that both the
 * old and the new homes carry: one binary, built on a new system, then loads on glibc 2.17 and up.
 * NEEDED stays libc alone, so before 2.34 a program without libdl or libpthread has none of these:
 * the references are weak, and each caller says what it does without.
 */
#ifndef GT_LIBC_OLD_H
#define GT_LIBC_OLD_H

#include <dlfcn.h>
#include <pthread.h>

#if defined(__x86_64__)
#define GT_LIBC_FIRST "GLIBC_2.2.5"
#elif defined(__aarch64__)
#define GT_LIBC_FIRST "GLIBC_2.17"
#endif

#define GT_LIBC_OLD(name)                                                                    \
	extern __typeof__(name) gt_libc_##name __attribute__((weak, visibility("default"))); \
	__asm__(".symver gt_libc_" #name "," #name "@" GT_LIBC_FIRST)

GT_LIBC_OLD(dlopen);
GT_LIBC_OLD(dlerror);
GT_LIBC_OLD(pthread_key_create);
GT_LIBC_OLD(pthread_setspecific);

/* NULL without libdl. */
static inline void *gt_dlopen(const char *name, int flags)
{
	return gt_libc_dlopen ? gt_libc_dlopen(name, flags) : NULL;
}

/* A failure of ours is not the program's to read. */
static inline void gt_forget_dlerror(void)
{
	if (gt_libc_dlerror)
		gt_libc_dlerror();
}

/* Without libpthread no thread ends before the process does: nothing to do, and that is success. */
static inline int gt_thread_key(pthread_key_t *ret, void (*destructor)(void *))
{
	return gt_libc_pthread_key_create ? gt_libc_pthread_key_create(ret, destructor) : 0;
}

static inline int gt_thread_set(pthread_key_t key, const void *value)
{
	return gt_libc_pthread_setspecific ? gt_libc_pthread_setspecific(key, value) : 0;
}

#endif
