/* SPDX-License-Identifier: MIT */
/*
 * May memory be read? Asked of the kernel, without a descriptor and without a fault: rt_sigprocmask
 * looks at the signal set before it refuses an impossible first argument, answers EFAULT if it cannot,
 * and changes nothing. Keeps errno.
 */
#ifndef GT_READABLE_H
#define GT_READABLE_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The eight bytes at an aligned address. */
static inline bool gt_readable(uint64_t address)
{
	int saved = errno;
	bool readable = syscall(SYS_rt_sigprocmask, ~0, address, NULL, 8) != -1 || errno != EFAULT;

	errno = saved;
	return readable;
}

#endif
