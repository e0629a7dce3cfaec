/* SPDX-License-Identifier: MIT */
/* Libraries for lookup.c: NUMBER is what their functions return, PREFIX starts the names of the
 * asking ones. */
#include <dlfcn.h>
#include <stddef.h>

#define NAME_(prefix, rest) prefix##rest
#define NAME(prefix, rest)  NAME_(prefix, rest)

int who(void);
int cuWho(void);
int ompt_start_tool(void);
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

/* As OpenMP runtimes do at their start: a look-up of the next one behind the asker's own, which goes
 * round for ever if the asker is not known. */
int ompt_start_tool(void)
{
	static int depth;
	int next;

	if (++depth > 8)
		return -99;
	next = call(dlsym(RTLD_NEXT, "ompt_start_tool"));
	depth--;
	return next < -1 ? next : NUMBER * 100 + next;
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
