/* SPDX-License-Identifier: MIT */
/*
 * gputrace doctor: does recording work here? Whatever could disturb this process (loading the
 * recorder, the driver) happens in a child.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "cmd/cmd.h"
#include "cmd/library.h"
#include "model/xalloc.h"

struct symbols {
	char **names;
	size_t count;
};

/* ---- exported functions of an object
 * -------------------------------------------------------------- */

static void add_exports(Elf *elf, Elf_Scn *section, struct symbols *symbols)
{
	GElf_Shdr header;
	Elf_Data *data = elf_getdata(section, NULL);
	GElf_Sym symbol;

	if (!data || !gelf_getshdr(section, &header) || !header.sh_entsize)
		return;
	for (size_t i = 0; i < header.sh_size / header.sh_entsize; i++) {
		const char *name;

		if (!gelf_getsym(data, (int)i, &symbol) || symbol.st_shndx == SHN_UNDEF)
			continue;
		name = elf_strptr(elf, header.sh_link, symbol.st_name);
		if (name && GELF_ST_TYPE(symbol.st_info) != STT_OBJECT)
			*GT_PUSH(symbols->names, symbols->count) = gt_xstrdup(name);
	}
}

static struct symbols exports_of(const char *path)
{
	struct symbols symbols = {0};
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	Elf_Scn *section = NULL;
	GElf_Shdr header;
	Elf *elf;

	if (fd < 0)
		return symbols;
	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	while (elf && (section = elf_nextscn(elf, section)))
		if (gelf_getshdr(section, &header) && header.sh_type == SHT_DYNSYM)
			add_exports(elf, section, &symbols);
	elf_end(elf);
	close(fd);
	return symbols;
}

static bool has_name(const struct symbols *symbols, const char *name)
{
	for (size_t i = 0; i < symbols->count; i++)
		if (strcmp(symbols->names[i], name) == 0)
			return true;
	return false;
}

static void free_symbols(struct symbols *symbols)
{
	for (size_t i = 0; i < symbols->count; i++)
		free(symbols->names[i]);
	free(symbols->names);
}

/* ---- the checks
 * ------------------------------------------------------------------------------------ */

static void say(struct gt_out *out, bool fine, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static void say(struct gt_out *out, bool fine, const char *format, ...)
{
	va_list arguments;
	char *text;

	va_start(arguments, format);
	text = gt_xvasprintf(format, arguments);
	va_end(arguments);
	gt_line(out, fine ? GT_PLAIN : GT_RED, "%-5s %s", fine ? "ok" : "warn", text);
	free(text);
}

/* In a child: a library that cannot be loaded must not end the doctor. */
static bool loads(const char *path)
{
	pid_t pid = fork();
	int status = -1;

	if (pid == 0)
		_exit(dlopen(path, RTLD_NOW | RTLD_LOCAL) ? 0 : 1);
	return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

static size_t count_matching(const struct symbols *symbols, const char *pattern)
{
	size_t count = 0;

	for (size_t i = 0; i < symbols->count; i++)
		count += fnmatch(pattern, symbols->names[i], 0) == 0;
	return count;
}

/* Calls of the driver that hand out memory, by their names. */
static bool allocates(const char *name)
{
	static const char *const patterns[] = {
		"cuMemAlloc*",	      "cuMemCreate",	     "cuMemHostAlloc*",
		"cuMemHostRegister*", "cuArray*Create*",     "cuMipmappedArrayCreate",
		"cuMemMap",	      "cuIpcOpenMemHandle*", "cuMemFree*",
		"cuMemRelease",	      "cuCtxCreate*",	     "cuDevicePrimaryCtxRetain",
	};

	for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++)
		if (fnmatch(patterns[i], name, 0) == 0)
			return true;
	return false;
}

static void check_driver(struct gt_out *out, const struct symbols *hooks)
{
	void *handle = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
	void *symbol = handle ? dlsym(handle, "cuInit") : NULL;
	struct symbols driver;
	Dl_info info;
	size_t all = 0, missing = 0;

	if (!symbol || !dladdr(symbol, &info)) {
		say(out, false, "no libcuda.so.1 on this machine: nothing to record here");
		return;
	}
	driver = exports_of(info.dli_fname);
	for (size_t i = 0; i < driver.count; i++) {
		if (!allocates(driver.names[i]))
			continue;
		all++;
		if (has_name(hooks, driver.names[i]))
			continue;
		missing++;
		say(out, false, "%s is not hooked: memory from it will not be seen",
		    driver.names[i]);
	}
	say(out, true, "driver %s: %zu of its %zu allocation calls are hooked", info.dli_fname,
	    all - missing, all);
	free_symbols(&driver);
}

static void check_environment(struct gt_out *out, const char *library)
{
	const char *preload = getenv("LD_PRELOAD"), *off = getenv("GPUTRACE");
	const char *directory = getenv("GPUTRACE_DIR");

	if (off && strcmp(off, "0") == 0)
		say(out, false, "GPUTRACE=0 is set: recording is off");
	if (preload && *preload)
		say(out, true, "LD_PRELOAD holds %s already; run appends %s", preload, library);
	if (!directory || !*directory)
		directory = ".";
	if (!strchr(directory, ':'))
		say(out, access(directory, W_OK | X_OK) == 0, "traces go to %s", directory);
	else
		say(out, true, "traces go to the first of %s that can be written", directory);
}

static void check_torch(struct gt_out *out, const struct symbols *hooks)
{
	bool blocks = count_matching(hooks, "*reportMemoryUsageToProfiler*") > 0;

	say(out, blocks, "torch blocks: %s", blocks ? "hooked" : "not hooked");
}

int gt_cmd_doctor(struct gt_args *args)
{
	char *library = gt_find_library();
	struct symbols hooks;
	struct gt_out out;
	bool loaded = false;

	gt_out_open(&out, NULL, GT_FORMAT_TEXT, true);
	if (!library) {
		say(&out, false, "libgputrace.so is not beside this tool: recording cannot work");
		return gt_args_done(args, &out, GT_EXIT_CHECK);
	}
	loaded = loads(library);
	hooks = exports_of(library);
	say(&out, loaded, "%s %s", library, loaded ? "loads" : "does not load");
	say(&out, hooks.count > 0, "%zu functions are hooked: %zu of the driver", hooks.count,
	    count_matching(&hooks, "cu[A-Z]*"));
	check_torch(&out, &hooks);
	check_driver(&out, &hooks);
	check_environment(&out, library);
	free_symbols(&hooks);
	free(library);
	return gt_args_done(args, &out, loaded ? GT_EXIT_FINE : GT_EXIT_CHECK);
}
