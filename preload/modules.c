/* SPDX-License-Identifier: MIT */
/*
 * The object files mapped: where their code and unwind information lie, records of those met in a
 * stack.
 *
 * A private table, sorted by address, follows the loader's list. Whoever misses the rule cache asks
 * the loader first whether anything came or went (two counters, 10 to 60 ns), so that a pc is never
 * looked up in an object that is gone. The list is copied under the loader's lock into a snapshot
 * of our own and merged afterwards under ours; of two snapshots the older one is dropped. None of
 * our locks is held while the loader runs, but for the look into our table that the copy itself
 * makes.
 *
 * Unloading. While a dlclose runs, captures use and fill no caches (gt_modules_unsettled). When it
 * took away an object that had been seen in a stack, rules and records are void (generation) and
 * nodes in its range are not used again. Objects that no stack has touched come and go without any
 * of that.
 */
#include <elf.h>
#include <link.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "unwind.h"

#define MODULES_MAX 4096u /* objects beyond that have no frames: their stacks are incomplete */

static struct gt_lock lock; /* table, count, version */
static struct gt_module *table;
static uint32_t count;
static uint64_t version; /* loads and unloads seen by the table */
static uint32_t last_id;
static uint32_t generation = 1, closing;
GT_TLS volatile bool inside; /* this thread holds the lock */

bool gt_modules_unsettled(void)
{
	return gt_load(&closing) != 0;
}

uint32_t gt_modules_generation(void)
{
	return gt_load(&generation);
}

/* ---- reading one object ---------------------------------------------------------------------- */

static bool within(uint64_t at, uint64_t size, uint64_t start, uint64_t end)
{
	return at >= start && at <= end && size <= end - at;
}

/* Some linkers write several executable segments; what is between them is the object's too. */
static void widen(struct gt_module *m, uint64_t start, uint64_t end)
{
	if (!m->end || start < m->start)
		m->start = start;
	if (end > m->end)
		m->end = end;
}

/* The loadable, readable segment that holds a range; false: none, so it must not be read. */
static bool segment_of(const struct dl_phdr_info *info, uint64_t at, uint64_t size,
		       uint64_t *ret_start, uint64_t *ret_end)
{
	const ElfW(Phdr) *p = info->dlpi_phdr, *end = p + info->dlpi_phnum;

	for (; p < end; p++) {
		uint64_t start = info->dlpi_addr + p->p_vaddr;

		if (p->p_type != PT_LOAD || !(p->p_flags & PF_R) ||
		    !within(at, size, start, start + p->p_memsz))
			continue;
		*ret_start = start;
		*ret_end = start + p->p_memsz;
		return true;
	}
	return false;
}

static void base_name(struct gt_module *m, const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;

	memcpy(m->name, name, strnlen(name, sizeof(m->name) - 1));
}

/* The GNU build-id among the notes from at to end. */
static void read_notes(struct gt_module *m, uint64_t at, uint64_t end, uint64_t align)
{
	uint64_t pad = align == 8 ? 7 : 3;
	const ElfW(Nhdr) * note;
	uint64_t desc, next;

	while (end - at >= sizeof(*note)) {
		note = (const ElfW(Nhdr) *)at;
		desc = at + sizeof(*note) + ((note->n_namesz + pad) & ~pad);
		next = desc + ((note->n_descsz + pad) & ~pad);
		if (next > end || next <= at)
			return;
		if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 &&
		    !memcmp(note + 1, "GNU", 4) && note->n_descsz <= sizeof(m->build_id)) {
			m->build_id_length = (uint8_t)note->n_descsz;
			memcpy(m->build_id, (const void *)desc, note->n_descsz);
			return;
		}
		at = next;
	}
}

static void read_build_id(const struct dl_phdr_info *info, struct gt_module *m)
{
	const ElfW(Phdr) *p = info->dlpi_phdr, *end = p + info->dlpi_phnum;
	uint64_t at, start, stop;

	for (; p < end && !m->build_id_length; p++) {
		at = info->dlpi_addr + p->p_vaddr;
		if (p->p_type == PT_NOTE && segment_of(info, at, p->p_memsz, &start, &stop))
			read_notes(m, at, at + p->p_memsz, p->p_align);
	}
}

static void describe(const struct dl_phdr_info *info, struct gt_module *m)
{
	const ElfW(Phdr) *p = info->dlpi_phdr, *end = p + info->dlpi_phnum;
	uint64_t at;

	*m = (struct gt_module){.bias = info->dlpi_addr};
	base_name(m, info->dlpi_name);
	for (; p < end; p++) {
		at = info->dlpi_addr + p->p_vaddr;
		if (p->p_type == PT_LOAD && p->p_flags & PF_X)
			widen(m, at, at + p->p_memsz);
		else if (p->p_type == PT_GNU_EH_FRAME &&
			 segment_of(info, at, p->p_memsz, &m->readable, &m->readable_end))
			m->frames = at;
	}
}

/* ---- the table ------------------------------------------------------------------------------- */

/*
 * dlclose is no hook that records, so no guard keeps a signal handler out that allocates while its
 * own thread is in here: the handler goes without the table.
 */
static bool lock_table(void)
{
	if (inside)
		return false;
	inside = true;
	gt_lock(&lock);
	return true;
}

static void unlock_table(void)
{
	gt_unlock(&lock);
	inside = false;
}

/* Under the lock. NULL: no known object has code there. */
static struct gt_module *search(uint64_t address)
{
	uint32_t low = 0, high = count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (table[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low && address < table[low - 1].end ? &table[low - 1] : NULL;
}

/* Not proof of the same contents: a file may have been replaced by one of the same layout. */
static bool same_place(const struct gt_module *a, const struct gt_module *b)
{
	return a->start == b->start && a->end == b->end && a->bias == b->bias &&
	       a->frames == b->frames && !strcmp(a->name, b->name);
}

static bool same_build(const struct gt_module *a, const struct gt_module *b)
{
	return a->build_id_length && a->build_id_length == b->build_id_length &&
	       !memcmp(a->build_id, b->build_id, a->build_id_length);
}

static bool seen(const struct gt_module *m)
{
	const struct gt_module *old;
	bool is;

	if (!lock_table())
		return false;
	old = search(m->start);
	is = old && old->id && same_place(old, m);
	unlock_table();
	return is;
}

/* ---- following the loader -------------------------------------------------------------------- */

struct snapshot { /* of the loader's list; sorted once it is complete */
	uint64_t loads, unloads;
	uint32_t n;
	struct gt_module module[MODULES_MAX];
};

static int read_version(struct dl_phdr_info *info, size_t size, void *arg)
{
	*(uint64_t *)arg = info->dlpi_adds + info->dlpi_subs;
	return 1;
}

static int copy_module(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct snapshot *s = arg;
	struct gt_module *m = &s->module[s->n];

	s->loads = info->dlpi_adds;
	s->unloads = info->dlpi_subs;
	if (s->n == MODULES_MAX)
		return 1;
	describe(info, m);
	if (!m->end)
		return 0;
	if (seen(m))
		read_build_id(info, m);
	s->n++;
	return 0;
}

/* Shell sort: a few hundred objects, at each change of the loader's list. */
static void sort(struct gt_module *m, uint32_t n)
{
	struct gt_module moved;
	uint32_t gap, i, j;

	for (gap = n / 2; gap > 0; gap /= 2) {
		for (i = gap; i < n; i++) {
			moved = m[i];
			for (j = i; j >= gap && m[j - gap].start > moved.start; j -= gap)
				m[j] = m[j - gap];
			m[j] = moved;
		}
	}
}

static void define_unload(const struct gt_module *m)
{
	struct gt_rec_unload r = {.rec = {.kind = GT_REC_UNLOAD, .length = sizeof(r)},
				  .module = m->id,
				  .us = gt_now_us()};

	gt_def_append(&r.rec, sizeof(r), NULL, 0, NULL, 0);
}

static void void_caches(void)
{
	gt_rules_clear();
	gt_store(&generation, generation + 1);
}

static uint64_t unloads; /* seen by the table */

/*
 * Is the object of the table also in the snapshot? One that was seen in a stack must be the same
 * build if anything has been unloaded: the same file name may have come back with other contents.
 */
static bool still_there(const struct gt_module *old, struct snapshot *s, uint32_t *at)
{
	struct gt_module *m = s->module;

	while (*at < s->n && m[*at].start < old->start)
		++*at;
	if (*at == s->n || !same_place(old, &m[*at]))
		return false;
	if (old->id && s->unloads != unloads && !same_build(old, &m[*at]))
		return false;
	m[*at].id = old->id;
	m[*at].build_id_length = old->build_id_length;
	memcpy(m[*at].build_id, old->build_id, sizeof(old->build_id));
	return true;
}

/* The snapshot becomes the table; objects keep their ids, gone ones that had one are recorded. */
static void merge(struct snapshot *s)
{
	uint32_t i, at = 0;
	bool gone = false;

	if (s->loads + s->unloads <= version)
		return;
	if (!table)
		table = gt_map(MODULES_MAX * sizeof(*table));
	if (!table)
		return;
	for (i = 0; i < count; i++) {
		if (still_there(&table[i], s, &at) || !table[i].id)
			continue;
		define_unload(&table[i]);
		gt_nodes_retire(table[i].start, table[i].end);
		gone = true;
	}
	memcpy(table, s->module, s->n * sizeof(*table));
	count = s->n;
	unloads = s->unloads;
	gt_store(&version, s->loads + s->unloads);
	if (gone)
		void_caches();
}

/* Asks for the loader's counters first, as nearly always nothing has changed. */
static void refresh(void)
{
	uint64_t now = 0;
	struct snapshot *s;

	dl_iterate_phdr(read_version, &now);
	if (gt_likely(now == gt_load(&version)))
		return;
	s = gt_map(sizeof(*s));
	if (!s)
		return;
	dl_iterate_phdr(copy_module, s);
	sort(s->module, s->n);
	if (lock_table()) {
		merge(s);
		unlock_table();
	}
	gt_unmap(s, sizeof(*s));
}

void gt_modules_closing(void)
{
	__atomic_add_fetch(&closing, 1, __ATOMIC_SEQ_CST);
}

/* Before the first capture, and in a child of fork that has not recorded, there is no table. */
void gt_modules_closed(void)
{
	if (gt_stacks_running())
		refresh();
	if (gt_load(&closing))
		__atomic_sub_fetch(&closing, 1, __ATOMIC_SEQ_CST);
}

/* ---- records --------------------------------------------------------------------------------- */

struct sighting { /* of an object in a stack: what its record needs */
	uint64_t address;
	struct gt_module module;
	size_t folder_length, path_length;
	char folder[4096],
		path[4096]; /* folder: of a path that the program gave as a relative one */
};

static int look_closer(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct sighting *s = arg;

	describe(info, &s->module);
	if (s->address < s->module.start || s->address >= s->module.end)
		return 0;
	read_build_id(info, &s->module);
	s->path_length = strnlen(info->dlpi_name, sizeof(s->path));
	memcpy(s->path, info->dlpi_name, s->path_length);
	return 1;
}

/* Under the lock: gives the object its id, unless it went away or got one meanwhile. */
static void define(const struct sighting *s)
{
	const struct gt_module *from = &s->module;
	struct gt_module *m = search(s->address);
	struct gt_rec_module r = {.rec = {.kind = GT_REC_MODULE, .length = sizeof(r)},
				  .path_length = (uint32_t)(s->folder_length + s->path_length),
				  .start = from->start,
				  .end = from->end,
				  .bias = from->bias,
				  .build_id_length = from->build_id_length};

	if (!m || m->id || !same_place(m, from))
		return;
	r.id = m->id = ++last_id;
	m->build_id_length = from->build_id_length;
	memcpy(m->build_id, from->build_id, sizeof(m->build_id));
	memcpy(r.build_id, from->build_id, sizeof(r.build_id));
	gt_def_append(&r.rec, sizeof(r), s->folder, s->folder_length, s->path, s->path_length);
}

/* The executable has no name in the loader's list; names without a slash are no files (the vdso).
 */
static void complete_path(struct sighting *s)
{
	ssize_t length = s->path_length ? 0 : readlink("/proc/self/exe", s->path, sizeof(s->path));
	long with_nul;

	if (length > 0)
		s->path_length = (size_t)length;
	if (gt_options.redact || s->path[0] == '/' || !memchr(s->path, '/', s->path_length))
		return;
	with_nul = syscall(SYS_getcwd, s->folder, sizeof(s->folder) - 1);
	if (with_nul <= 1 || s->folder[0] != '/')
		return;
	s->folder_length = (size_t)with_nul;
	s->folder[with_nul - 1] = '/';
}

/* First time on a stack. */
static void record_module(uint64_t address)
{
	struct sighting *s = gt_map(sizeof(*s));

	if (!s)
		return;
	s->address = address;
	if (dl_iterate_phdr(look_closer, s)) {
		complete_path(s);
		s->path_length = gt_redact_path(s->path, s->path_length);
		if (lock_table()) {
			define(s);
			unlock_table();
		}
	}
	gt_unmap(s, sizeof(*s));
}

static bool find(uint64_t address, struct gt_module *ret)
{
	const struct gt_module *m;

	if (!lock_table())
		return false;
	m = search(address);
	if (m)
		*ret = *m;
	unlock_table();
	return m != NULL;
}

bool gt_module_find(uint64_t address, struct gt_module *ret)
{
	refresh();
	if (!find(address, ret))
		return false;
	if (!ret->id)
		record_module(address);
	return true;
}

void gt_modules_forget(void)
{
	lock = (struct gt_lock){0};
	inside = false;
	table = NULL;
	count = last_id = closing = 0;
	version = unloads = 0;
	void_caches();
}

/* ---- who called ------------------------------------------------------------------------------ */

#define CALLERS 64u

/* pc << 16 | hash of the prefix in 14 bits, generation in one | answer: one word, no torn entries
 */
static uint64_t callers[CALLERS];

static uint64_t caller_key(uint64_t pc, const char *prefix)
{
	uint64_t h = gt_modules_generation() + 1;

	while (*prefix)
		h = h * 31 + (uint8_t)*prefix++;
	return pc << 16 | (h & 0x7fff) << 1;
}

bool gt_caller_is(uint64_t pc, const char *prefix)
{
	uint64_t key = caller_key(pc, prefix), *slot = &callers[pc * 0x9e3779b97f4a7c15ull >> 58];
	uint64_t entry = gt_load_relaxed(slot);
	struct gt_module m;
	bool is;

	if ((entry & ~UINT64_C(1)) == key && !gt_modules_unsettled())
		return entry & 1;
	is = gt_module_find(pc - 1, &m) && !strncmp(m.name, prefix, strlen(prefix));
	gt_store_relaxed(slot, key | is);
	return is;
}
