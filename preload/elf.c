/* SPDX-License-Identifier: MIT */
/*
 * Look-ups in the dynamic sections of loaded objects; see elf.h. Takes the loader's lock (inside
 * dl_iterate_phdr), so no lock of ours may be held; allocates nothing, leaves errno and dlerror
 * alone. Called by resolve.c, hook_runtime.c and hook_torch.c, at first uses and after unloads
 * only.
 */
#include <string.h>

#include "elf.h"

static const char here; /* an address inside this library */

/* Not strcmp: a sanitizer looks functions up before its own strcmp works. */
static bool same(const char *a, const char *b)
{
	while (*a && *a == *b) {
		a++;
		b++;
	}
	return *a == *b;
}

/* glibc relocates d_ptr in place, except in read-only dynamic sections; musl never does. */
static const void *dynamic_pointer(const struct gt_object *o, const ElfW(Dyn) * d)
{
	uint64_t p = d->d_un.d_ptr;

	return (const void *)(p < o->base ? o->base + p : p);
}

static void read_dynamic(struct gt_object *o)
{
	const ElfW(Dyn) *soname = NULL;

	for (const ElfW(Dyn) *d = o->dynamic; d->d_tag != DT_NULL; d++) {
		if (d->d_tag == DT_SYMTAB)
			o->symbols = dynamic_pointer(o, d);
		else if (d->d_tag == DT_STRTAB)
			o->strings = dynamic_pointer(o, d);
		else if (d->d_tag == DT_GNU_HASH)
			o->gnu_hash = dynamic_pointer(o, d);
		else if (d->d_tag == DT_HASH)
			o->sysv_hash = dynamic_pointer(o, d);
		else if (d->d_tag == DT_VERSYM)
			o->versions = dynamic_pointer(o, d);
		else if (d->d_tag == DT_SONAME)
			soname = d;
	}
	o->soname = soname && o->strings ? o->strings + soname->d_un.d_val : "";
}

static bool read_object(const struct dl_phdr_info *info, struct gt_object *o)
{
	memset(o, 0, sizeof(*o));
	o->base = info->dlpi_addr;
	o->start = UINT64_MAX;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		uint64_t first = o->base + p->p_vaddr;

		if (p->p_type == PT_DYNAMIC)
			o->dynamic = (const void *)first;
		if (p->p_type != PT_LOAD)
			continue;
		if (first < o->start)
			o->start = first;
		if (first + p->p_memsz > o->end)
			o->end = first + p->p_memsz;
	}
	if (!o->dynamic)
		return false;
	read_dynamic(o);
	return o->symbols && o->strings && (o->gnu_hash || o->sysv_hash);
}

struct each {
	bool (*visit)(const struct gt_object *object, void *arg);
	void *arg;
};

static int each_object(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct each *each = arg;
	struct gt_object o;

	return read_object(info, &o) && each->visit(&o, each->arg);
}

bool gt_elf_each(bool (*visit)(const struct gt_object *object, void *arg), void *arg)
{
	struct each each = {visit, arg};

	return dl_iterate_phdr(each_object, &each) != 0;
}

/* 2: defined, of its default version; 1: defined, of an old version; 0: not it. */
static int fits(const struct gt_object *o, uint32_t index, const char *name)
{
	const ElfW(Sym) *s = &o->symbols[index];
	unsigned type = s->st_info & 15;

	if (s->st_shndx == SHN_UNDEF || !s->st_value ||
	    (type != STT_FUNC && type != STT_OBJECT && type != STT_NOTYPE))
		return 0;
	if (!same(o->strings + s->st_name, name))
		return 0;
	return o->versions && o->versions[index] & 0x8000 ? 1 : 2;
}

static uint32_t gnu_find(const struct gt_object *o, const char *name)
{
	const uint32_t *h = o->gnu_hash;
	uint32_t buckets = h[0], first = h[1], bloom = h[2];
	const uint32_t *bucket = h + 4 + bloom * (sizeof(ElfW(Addr)) / 4),
		       *chain = bucket + buckets;
	uint32_t hash = 5381, found = 0;

	for (const unsigned char *c = (const unsigned char *)name; *c; c++)
		hash = hash * 33 + *c;
	if (!buckets)
		return 0;
	for (uint32_t i = bucket[hash % buckets]; i >= first && i; i++) {
		uint32_t other = chain[i - first];
		int fit = (other | 1) == (hash | 1) ? fits(o, i, name) : 0;

		if (fit == 2)
			return i;
		if (fit)
			found = i;
		if (other & 1)
			break;
	}
	return found;
}

/* Old and vendor-built objects may carry only this table; order does not matter, so scan it. */
static uint32_t sysv_find(const struct gt_object *o, const char *name)
{
	uint32_t count = o->sysv_hash[1], found = 0;

	for (uint32_t i = 1; i < count; i++) {
		int fit = fits(o, i, name);

		if (fit == 2)
			return i;
		if (fit)
			found = i;
	}
	return found;
}

void *gt_elf_symbol(const struct gt_object *o, const char *name)
{
	uint32_t i = o->gnu_hash ? gnu_find(o, name) : sysv_find(o, name);

	return i ? (void *)(o->base + o->symbols[i].st_value) : NULL;
}

static bool holds(const struct gt_object *o, uint64_t addr)
{
	return addr >= o->start && addr < o->end;
}

struct search {
	const char *soname, *name;
	uint64_t pc;
	bool behind; /* our own object has been passed */
	void *found, *any;
};

static bool visit_next(const struct gt_object *o, void *arg)
{
	struct search *s = arg;

	if (holds(o, (uint64_t)&here)) {
		s->behind = true;
		return false;
	}
	s->found = gt_elf_symbol(o, s->name);
	if (s->found && !s->any)
		s->any = s->found;
	return s->found && s->behind;
}

void *gt_elf_next(const char *name)
{
	struct search s = {.name = name};

	return gt_elf_each(visit_next, &s) ? s.found : s.any;
}

static bool visit_soname(const struct gt_object *o, void *arg)
{
	struct search *s = arg;

	if (!same(o->soname, s->soname) || holds(o, (uint64_t)&here))
		return false;
	s->found = gt_elf_symbol(o, s->name);
	return s->found != NULL;
}

void *gt_elf_in(const char *soname, const char *name)
{
	struct search s = {.soname = soname, .name = name};

	return gt_elf_each(visit_soname, &s) ? s.found : NULL;
}

/* For each object that the caller needs, in its order: does it define the name? */
static bool visit_caller(const struct gt_object *o, void *arg)
{
	struct search *s = arg;

	if (!holds(o, s->pc))
		return false;
	for (const ElfW(Dyn) *d = o->dynamic; d->d_tag != DT_NULL && !s->found; d++)
		if (d->d_tag == DT_NEEDED)
			s->found = gt_elf_in(o->strings + d->d_un.d_val, s->name);
	return true;
}

void *gt_elf_for_caller(uint64_t pc, const char *name)
{
	struct search s = {.name = name, .pc = pc};

	gt_elf_each(visit_caller, &s);
	return s.found ? s.found : gt_elf_next(name);
}
