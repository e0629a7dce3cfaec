/* SPDX-License-Identifier: MIT */
/*
 * See object.h. The symbol table is built at the first look-up: once read, an address costs a
 * binary search; libtorch_cpu with 600,000 symbols takes a fraction of a second. Compilation units
 * are found through .debug_aranges, and where a compiler wrote none, through their own address
 * ranges, collected once. May not print or exit. The file may be anything, also a device or a pipe:
 * only regular files are read.
 */
#define _GNU_SOURCE
#include <dwarf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>
#include <elfutils/libdwfl.h>

#include "symbols/cold.h"
#include "symbols/object.h"

struct symbol {
	uint64_t address, size;
	const char *name;
	int rank;   /* of several at one address the lowest speaks */
	bool sized; /* else: written in assembly, goes on to the next symbol in its section */
};

struct range { /* of a compilation unit */
	uint64_t start, end;
	Dwarf_Die *unit;
};

struct gt_object {
	Dwfl *dwfl;
	Dwfl_Module *module;
	uint64_t bias;		/* libdwfl's address - the file's own */
	struct symbol *symbols; /* by address, one each */
	size_t symbol_count;
	struct range *ranges; /* by start; made when .debug_aranges is silent */
	size_t range_count;
	struct gt_code_range
		cold; /* rest of the interpreter's evaluation function; libdwfl's addresses */
	bool have_symbols, have_ranges;
};

static char *debug_path;

/* Of a relocatable object: no process has one mapped, but a trace may name anything, and libdwfl asks. */
static int nowhere(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base,
		   const char *section, GElf_Word index, const GElf_Shdr *head, Dwarf_Addr *ret)
{
	return -1;
}

/* Only by build-id and only on this machine: asking a server is not done unasked. */
static Dwfl_Callbacks callbacks = {
	.find_elf = dwfl_build_id_find_elf,
	.find_debuginfo = dwfl_build_id_find_debuginfo,
	.section_address = nowhere,
	.debuginfo_path = &debug_path,
};

static bool servers;

void gt_object_use_servers(void)
{
	servers = true;
	callbacks.find_debuginfo = dwfl_standard_find_debuginfo;
}

static uint64_t hash_file(const char *path, uint64_t before)
{
	struct {
		uint64_t before, size, seconds, nanoseconds;
	} facts = {.before = before};
	struct stat st;

	if (!stat(path, &st)) {
		facts.size = (uint64_t)st.st_size;
		facts.seconds = (uint64_t)st.st_mtim.tv_sec;
		facts.nanoseconds = (uint64_t)st.st_mtim.tv_nsec;
	}
	return XXH64(&facts, sizeof(facts), servers);
}

static uint64_t hash_debug_file(const char *folder, int length, const char *name, uint64_t before)
{
	char *path;

	if (asprintf(&path, "%.*s/.build-id/%s", length, folder, name) < 0)
		return before;
	before = hash_file(path, before);
	free(path);
	return before;
}

uint64_t gt_object_stamp(const char *path, const uint8_t *id, size_t id_length)
{
	const char *wish = getenv("GPUTRACE_DEBUG_PATH"), *at = wish ? wish : "/usr/lib/debug";
	uint64_t stamp = hash_file(path, XXH64(at, strlen(at), 0));
	char name[2 * 32 + sizeof("/.debug")];
	size_t used = 0;

	for (size_t i = 0; i < id_length && i < 32; i++)
		used += (size_t)sprintf(name + used, i ? "%02x" : "%02x/", id[i]);
	strcpy(name + used, ".debug");
	for (; *at; at += *at == ':') {
		int length = (int)strcspn(at, ":");

		stamp = hash_debug_file(at, length, name, stamp);
		at += length;
	}
	return stamp;
}

static int open_regular(const char *path)
{
	struct stat st;
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);

	if (fd < 0)
		return -ENOENT;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode))
		return fd;
	close(fd);
	return -ENOENT;
}

static int open_module(struct gt_object *object, const char *path)
{
	int fd = open_regular(path);

	if (fd < 0)
		return fd;
	debug_path = getenv("GPUTRACE_DEBUG_PATH"); /* NULL: libdwfl's own, /usr/lib/debug */
	object->dwfl = dwfl_begin(&callbacks);
	if (object->dwfl)
		object->module = dwfl_report_elf(object->dwfl, path, path, fd, 0, true);
	if (!object->module) {
		close(fd);
		return -ENOENT;
	}
	dwfl_report_end(object->dwfl, NULL, NULL);
	return dwfl_module_getelf(object->module, &object->bias) ? 0 : -ENOENT;
}

static bool same_build(struct gt_object *object, const uint8_t *id, size_t id_length)
{
	const unsigned char *own;
	GElf_Addr where;
	int length = dwfl_module_build_id(object->module, &own, &where);

	return !id_length ||
	       (length > 0 && (size_t)length == id_length && !memcmp(own, id, id_length));
}

int gt_object_open(const char *path, const uint8_t *id, size_t id_length, struct gt_object **ret)
{
	struct gt_object *object = calloc(1, sizeof(*object));
	int rc;

	if (!object)
		return -ENOMEM;
	rc = open_module(object, path);
	if (!rc && !same_build(object, id, id_length))
		rc = -ESTALE;
	if (rc)
		gt_object_free(object);
	else
		*ret = object;
	return rc;
}

struct gt_object *gt_object_free(struct gt_object *object)
{
	if (!object)
		return NULL;
	if (object->dwfl)
		dwfl_end(object->dwfl);
	free(object->symbols);
	free(object->ranges);
	free(object);
	return NULL;
}

/* ---- symbols ------------------------------------------------------------------------------- */

static bool names_code(const GElf_Sym *sym, const char *name)
{
	unsigned int type = GELF_ST_TYPE(sym->st_info);

	return name && name[0] && sym->st_shndx != SHN_UNDEF &&
	       (type == STT_FUNC || type == STT_GNU_IFUNC || (type == STT_NOTYPE && sym->st_size));
}

static int rank_of(const GElf_Sym *sym)
{
	unsigned int bind = GELF_ST_BIND(sym->st_info);

	return (sym->st_size ? 0 : 3) + (bind == STB_GLOBAL ? 0 : bind == STB_WEAK ? 1 : 2);
}

/* Bytes from the address to the end of the symbol's section. */
static uint64_t rest_of_section(Elf *elf, GElf_Word index, uint64_t address)
{
	Elf_Scn *section = elf ? elf_getscn(elf, index) : NULL;
	GElf_Shdr head;

	if (!section || !gelf_getshdr(section, &head))
		return 0;
	return address - head.sh_addr < head.sh_size ? head.sh_size - (address - head.sh_addr) : 0;
}

static int by_address(const void *a, const void *b)
{
	const struct symbol *x = a, *y = b;

	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	return x->rank != y->rank ? x->rank - y->rank : strcmp(x->name, y->name);
}

static size_t one_per_address(struct symbol *symbols, size_t count)
{
	size_t i, kept = 0;

	for (i = 0; i < count; i++)
		if (!kept || symbols[kept - 1].address != symbols[i].address)
			symbols[kept++] = symbols[i];
	return kept;
}

static void read_symbol(struct gt_object *object, int index)
{
	struct symbol *symbol = &object->symbols[object->symbol_count];
	GElf_Addr bias;
	GElf_Sym sym;
	GElf_Word section;
	Elf *elf;

	symbol->name = dwfl_module_getsym_info(object->module, index, &sym, &symbol->address,
					       &section, &elf, &bias);
	if (!names_code(&sym, symbol->name))
		return;
	symbol->rank = rank_of(&sym);
	symbol->sized = sym.st_size;
	symbol->size =
		symbol->sized ? sym.st_size : rest_of_section(elf, section, symbol->address - bias);
	object->symbol_count++;
}

static void find_cold(struct gt_object *object)
{
	GElf_Addr bias;
	Elf *elf = dwfl_module_getelf(object->module, &bias);

	for (size_t i = 0; elf && i < object->symbol_count; i++) {
		const struct symbol *symbol = &object->symbols[i];
		struct gt_code_range function = {symbol->address - bias,
						 symbol->address - bias + symbol->size};

		if (strcmp(symbol->name, GT_EVALUATION) == 0 &&
		    gt_cold_part(elf, function, &object->cold)) {
			object->cold.start += bias;
			object->cold.end += bias;
			return;
		}
	}
}

static void read_symbols(struct gt_object *object)
{
	int i, count = dwfl_module_getsymtab(object->module);

	object->have_symbols = true;
	object->symbols = count > 0 ? calloc((size_t)count, sizeof(*object->symbols)) : NULL;
	if (!object->symbols)
		return;
	for (i = 0; i < count; i++)
		read_symbol(object, i);
	qsort(object->symbols, object->symbol_count, sizeof(*object->symbols), by_address);
	object->symbol_count = one_per_address(object->symbols, object->symbol_count);
	find_cold(object);
}

/* How many symbols start at or before the address. */
static size_t symbols_up_to(const struct gt_object *object, uint64_t address)
{
	size_t low = 0, high = object->symbol_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (object->symbols[middle].address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/*
 * The symbol whose bytes hold the address. One that merely stands before it is not good enough: in
 * a stripped library that would blame whatever is exported next to a hidden function. Symbols may
 * nest (aliases into the middle), hence the few steps back.
 */
static const char *symbol_at(struct gt_object *object, uint64_t address)
{
	size_t i, above;

	if (!object->have_symbols)
		read_symbols(object);
	above = object->symbols ? symbols_up_to(object, address) : 0;
	for (i = above; i > 0 && above - i < 8; i--) {
		const struct symbol *symbol = &object->symbols[i - 1];

		if (address - symbol->address < symbol->size && (symbol->sized || i == above))
			return symbol->name;
	}
	if (address - object->cold.start < object->cold.end - object->cold.start)
		return GT_EVALUATION ".cold";
	return NULL;
}

/* ---- lines --------------------------------------------------------------------------------- */

static int by_start(const void *a, const void *b)
{
	const struct range *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

/* *capacity counts the room in object->ranges. */
static int add_range(struct gt_object *object, size_t *capacity, struct range range)
{
	if (object->range_count == *capacity) {
		size_t more = *capacity ? 2 * *capacity : 256;
		struct range *grown = reallocarray(object->ranges, more, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		object->ranges = grown;
		*capacity = more;
	}
	object->ranges[object->range_count++] = range;
	return 0;
}

static void read_ranges(struct gt_object *object)
{
	Dwarf_Die *unit = NULL;
	Dwarf_Addr bias;
	size_t capacity = 0;

	object->have_ranges = true;
	while ((unit = dwfl_module_nextcu(object->module, unit, &bias))) {
		Dwarf_Addr base, start, end;
		ptrdiff_t at = 0;

		while ((at = dwarf_ranges(unit, at, &base, &start, &end)) > 0)
			if (add_range(object, &capacity,
				      (struct range){start + bias, end + bias, unit}))
				return;
	}
	if (object->range_count)
		qsort(object->ranges, object->range_count, sizeof(*object->ranges), by_start);
}

static Dwarf_Die *unit_by_range(struct gt_object *object, uint64_t address)
{
	size_t low = 0, high;

	if (!object->have_ranges)
		read_ranges(object);
	high = object->range_count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (object->ranges[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low && address < object->ranges[low - 1].end ? object->ranges[low - 1].unit : NULL;
}

/* The compilation unit at libdwfl's address, and in *ret_bias what to take off the address. */
static Dwarf_Die *unit_at(struct gt_object *object, uint64_t address, Dwarf_Addr *ret_bias)
{
	Dwarf_Die *unit = dwfl_module_addrdie(object->module, address, ret_bias);

	if (unit || !dwfl_module_getdwarf(object->module, ret_bias))
		return unit;
	return unit_by_range(object, address);
}

static const char *name_of(Dwarf_Die *die)
{
	Dwarf_Attribute attr;

	if (dwarf_attr_integrate(die, DW_AT_linkage_name, &attr) ||
	    dwarf_attr_integrate(die, DW_AT_MIPS_linkage_name, &attr))
		return dwarf_formstring(&attr);
	return dwarf_attr_integrate(die, DW_AT_name, &attr) ? dwarf_formstring(&attr) : NULL;
}

static uint64_t number_of(Dwarf_Die *die, unsigned int name)
{
	Dwarf_Attribute attr;
	Dwarf_Word value;

	return dwarf_attr(die, name, &attr) && !dwarf_formudata(&attr, &value) ? value : 0;
}

/* Where an inlined function was called: that is the place of the function around it. */
static void call_site(Dwarf_Die *unit, Dwarf_Die *inlined, struct gt_line *ret)
{
	uint64_t file = number_of(inlined, DW_AT_call_file);
	Dwarf_Files *files;
	size_t count;

	ret->line = (int)number_of(inlined, DW_AT_call_line);
	ret->file = NULL;
	if (!dwarf_getsrcfiles(unit, &files, &count) && file < count)
		ret->file = dwarf_filesrc(files, file, NULL, NULL);
}

/* The functions around a scope, innermost first; where holds the line of the address. */
static size_t walk_scopes(Dwarf_Die *unit, Dwarf_Die *scopes, int count, struct gt_line where,
			  struct gt_line lines[GT_LINES_MAX])
{
	size_t used = 0;
	int i;

	for (i = 0; i < count && used < GT_LINES_MAX; i++) {
		int tag = dwarf_tag(&scopes[i]);

		if (tag != DW_TAG_inlined_subroutine && tag != DW_TAG_subprogram)
			continue;
		where.symbol = name_of(&scopes[i]);
		where.inlined = tag == DW_TAG_inlined_subroutine;
		lines[used++] = where;
		if (!where.inlined)
			break;
		call_site(unit, &scopes[i], &where);
	}
	return used;
}

/*
 * dwarf_getscopes follows an inlined function into its definition; the chain of calls is the one of
 * the instance, which dwarf_getscopes_die gives.
 */
static size_t inline_chain(Dwarf_Die *unit, uint64_t address, struct gt_line where,
			   struct gt_line lines[GT_LINES_MAX])
{
	Dwarf_Die *scopes = NULL, *chain = NULL;
	int count = dwarf_getscopes(unit, address, &scopes);
	size_t used = 0;

	if (count > 0) {
		count = dwarf_getscopes_die(&scopes[0], &chain);
		if (count > 0)
			used = walk_scopes(unit, chain, count, where, lines);
	}
	free(scopes);
	free(chain);
	return used;
}

static struct gt_line line_at(Dwarf_Die *unit, uint64_t address)
{
	Dwarf_Line *line = dwarf_getsrc_die(unit, address);
	struct gt_line where = {0};

	if (line) {
		where.file = dwarf_linesrc(line, NULL, NULL);
		dwarf_lineno(line, &where.line);
	}
	return where;
}

static bool mangled(const char *name)
{
	return name && name[0] == '_' && (name[1] == 'Z' || name[1] == 'R');
}

/*
 * Debug information has the plain name (no ".constprop.0"), but for lambdas and the like only a
 * part of it; then the linker's name says more.
 */
static const char *better_name(const char *debug, const char *linker)
{
	return !debug || (!mangled(debug) && mangled(linker)) ? linker : debug;
}

size_t gt_object_lines(struct gt_object *object, uint64_t address,
		       struct gt_line lines[GT_LINES_MAX])
{
	uint64_t loaded = address + object->bias;
	Dwarf_Addr bias = 0;
	Dwarf_Die *unit = unit_at(object, loaded, &bias);
	struct gt_line *outer;
	size_t count = 0;

	lines[0] = (struct gt_line){0};
	if (unit) {
		lines[0] = line_at(unit, loaded - bias);
		count = inline_chain(unit, loaded - bias, lines[0], lines);
	}
	outer = &lines[count ? count - 1 : 0];
	if (!outer->inlined)
		outer->symbol = better_name(outer->symbol, symbol_at(object, loaded));
	return count ? count : 1;
}
