/* SPDX-License-Identifier: MIT */
/* Libraries for lookup.c: NUMBER is what their functions return, PREFIX starts the names of the
 * asking ones. */
#include <dlfcn.h>
#include <stddef.h>

#define NAME_(prefix, rest) prefix##rest
#define NAME(prefix, rest)  NAME_(prefix, rest)

int who(void);
int cuWho(void);
int cudnnCreate(void);
int curl_easy_init(void);
int cu(void);
int cuA(void);
int cuMemAlloc_v2(void);
int NAME(PREFIX, _next)(const char *name);
int NAME(PREFIX, _default)(const char *name);

int who(void)
{
	return NUMBER;
}

int cuWho(void)
{
	return 10 + NUMBER;
}

static int call(void *p)
{
	int (*f)(void);

	*(void **)&f = p;
	return f ? f() : -1;
}

int NAME(PREFIX, _next)(const char *name)
{
	return call(dlsym(RTLD_NEXT, name));
}

int NAME(PREFIX, _default)(const char *name)
{
	return call(dlsym(RTLD_DEFAULT, name));
}

#ifdef DRIVER_NAMES
int cudnnCreate(void)
{
	return 101;
}

int curl_easy_init(void)
{
	return 102;
}

int cu(void)
{
	return 103;
}

int cuA(void)
{
	return 104;
}

int cuMemAlloc_v2(void)
{
	return 105;
}
#endif
