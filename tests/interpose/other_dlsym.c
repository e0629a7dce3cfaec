/* SPDX-License-Identifier: MIT */
/* Another preload that stands before dlsym, in the way that others do it: in C, libc's by version.
 */
#include <dlfcn.h>

void *dlsym(void *handle, const char *name)
{
	static void *(*real)(void *, const char *);

	if (!real)
		*(void **)&real = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
	if (!real)
		*(void **)&real = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.17");
	return real(handle, name);
}
