/* SPDX-License-Identifier: MIT */
/*
 * Finding functions in loaded objects by reading their dynamic sections. Unlike dlsym this leaves
 * dlerror alone, needs no handle, sees objects opened RTLD_LOCAL, and works before our own dlsym
 * does.
 */
#ifndef GT_ELF_H
#define GT_ELF_H

#include <link.h>
#include <stdbool.h>
#include <stdint.h>

struct gt_object {		   /* valid inside the visit only */
	uint64_t base, start, end; /* load bias; first byte, one behind the last */
	const ElfW(Dyn) * dynamic;
	const ElfW(Sym) * symbols;
	const char *strings;
	const char *soname; /* "" if it has none */
	const uint32_t *gnu_hash, *sysv_hash;
	const ElfW(Half) * versions;
};

/* Calls visit for each loaded object in load order until it says true; is that what it said? */
bool gt_elf_each(bool (*visit)(const struct gt_object *object, void *arg), void *arg);

/* Address of a function or variable that the object defines; its default version if it has several. */
void *gt_elf_symbol(const struct gt_object *object, const char *name);

/* The definition that stands behind ours: the first in an object loaded after this library. */
void *gt_elf_next(const char *name);

/* The definition in the loaded object with this SONAME. */
void *gt_elf_in(const char *soname, const char *name);

/*
 * The definition, other than ours, that code at pc was meant to reach: that of an object which the
 * code's own object names as needed, else the first that is loaded.
 */
void *gt_elf_for_caller(uint64_t pc, const char *name);

#endif
