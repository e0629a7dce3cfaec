/* SPDX-License-Identifier: MIT */
/*
 * ways.c - a library that gets at a driver function in the way that it is asked for. It is linked
 * with the driver, so the addresses of the ELF way are bound by the loader, as in any program.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <string.h>

#define GT_DRIVER(kind, name, result, parameters, arguments, rule) \
	extern void elf_##name(void) __asm__(#name);
#include "../../preload/hooks.def"

static const struct {
	const char *name;
	void (*address)(void);
} elf[] = {
#define GT_DRIVER(kind, name, result, parameters, arguments, rule) {#name, elf_##name},
#include "../../preload/hooks.def"
};

void *way_elf(const char *name);
void *way_dlsym(const char *name);
void *way_dlvsym(const char *name, const char *version);
void *way_gpa1(const char *name, int version, uint64_t flags);
void *way_gpa2(const char *name, int version, uint64_t flags);

void *way_elf(const char *name)
{
	for (size_t i = 0; i < sizeof(elf) / sizeof(elf[0]); i++)
		if (!strcmp(elf[i].name, name))
			return (void *)elf[i].address;
	return NULL;
}

static void *driver(void)
{
	return dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
}

void *way_dlsym(const char *name)
{
	return dlsym(driver(), name);
}

void *way_dlvsym(const char *name, const char *version)
{
	return dlvsym(driver(), name, version);
}

void *way_gpa1(const char *name, int version, uint64_t flags)
{
	int (*ask)(const char *, void **, int, uint64_t);
	void *found = NULL;

	*(void **)&ask = way_dlsym("cuGetProcAddress");
	return ask && !ask(name, &found, version, flags) ? found : NULL;
}

void *way_gpa2(const char *name, int version, uint64_t flags)
{
	int (*ask)(const char *, void **, int, uint64_t, uint32_t *);
	void *found = NULL;
	uint32_t status;

	*(void **)&ask = way_dlsym("cuGetProcAddress_v2");
	return ask && !ask(name, &found, version, flags, &status) ? found : NULL;
}
