/* SPDX-License-Identifier: MIT */
/* See probe.h. The lines that the recorder writes for us are described in preload/doctor.c. */
#define _GNU_SOURCE
#include "cmd/probe.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "cmd/library.h"
#include "model/xalloc.h"
#include "symbols/library.h"

/* ---- names ----------------------------------------------------------------------------------- */

static bool has_name(const struct gt_names *names, const char *name)
{
	for (size_t i = 0; i < names->count; i++)
		if (strcmp(names->names[i], name) == 0)
			return true;
	return false;
}

static void add_name(struct gt_names *names, const char *name)
{
	if (!has_name(names, name))
		*GT_PUSH(names->names, names->count) = gt_xstrdup(name);
}

void gt_free_names(struct gt_names *names)
{
	for (size_t i = 0; i < names->count; i++)
		free(names->names[i]);
	free(names->names);
	*names = (struct gt_names){0};
}

/* ---- object files ---------------------------------------------------------------------------- */

static void add_symbols(Elf *elf, Elf_Scn *section, bool defined, struct gt_names *names)
{
	GElf_Shdr header;
	Elf_Data *data = elf_getdata(section, NULL);
	GElf_Sym symbol;

	if (!data || !gelf_getshdr(section, &header) || !header.sh_entsize)
		return;
	for (size_t i = 1; i < header.sh_size / header.sh_entsize; i++) {
		const char *name;

		if (!gelf_getsym(data, (int)i, &symbol) ||
		    (symbol.st_shndx != SHN_UNDEF) != defined)
			continue;
		name = elf_strptr(elf, header.sh_link, symbol.st_name);
		if (name && (!defined || GELF_ST_TYPE(symbol.st_info) != STT_OBJECT))
			*GT_PUSH(names->names, names->count) = gt_xstrdup(name);
	}
}

static struct gt_names symbols_of(const char *path, bool defined)
{
	struct gt_names names = {0};
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	Elf_Scn *section = NULL;
	GElf_Shdr header;
	Elf *elf;

	if (fd < 0)
		return names;
	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	while (elf && (section = elf_nextscn(elf, section)))
		if (gelf_getshdr(section, &header) && header.sh_type == SHT_DYNSYM)
			add_symbols(elf, section, defined, &names);
	elf_end(elf);
	close(fd);
	return names;
}

struct gt_names gt_exports_of(const char *path)
{
	return symbols_of(path, true);
}

static struct gt_names wants_of(const char *path)
{
	return symbols_of(path, false);
}

bool gt_is_memory_call(const char *name)
{
	static const char *const patterns[] = {
		"cuMemAlloc*",
		"cuMemCreate",
		"cuMemHostAlloc*",
		"cuMemHostRegister*",
		"cuArray*Create*",
		"cuMipmappedArrayCreate",
		"cuMemMap",
		"cuIpcOpenMemHandle*",
		"cuMemFree*",
		"cuMemRelease",
		"cuCtxCreate*",
		"cuDevicePrimaryCtxRetain",
		"cuImportExternalMemory",
		"cuGraphAddMemAllocNode",
		"cuMemPoolCreate",
		"cuGreenCtxCreate",
	};

	for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++)
		if (fnmatch(patterns[i], name, 0) == 0)
			return true;
	return false;
}

/* ---- entry points ---------------------------------------------------------------------------- */

static struct gt_entry_point *point_of(struct gt_probe *probe, const char *name)
{
	struct gt_entry_point *point;

	for (size_t i = 0; i < probe->point_count; i++)
		if (strcmp(probe->points[i].name, name) == 0)
			return &probe->points[i];
	point = GT_PUSH(probe->points, probe->point_count);
	point->name = gt_xstrdup(name);
	return point;
}

static int by_name(const void *a, const void *b)
{
	const struct gt_entry_point *x = a, *y = b;

	return strcmp(x->name, y->name);
}

static bool is_driver_name(const char *name)
{
	return name[0] == 'c' && name[1] == 'u' && name[2] >= 'A' && name[2] <= 'Z';
}

void gt_probe_static(const struct gt_names *hooks, const char *driver, struct gt_probe *probe)
{
	struct gt_names exports = driver ? gt_exports_of(driver) : (struct gt_names){0};

	for (size_t i = 0; i < exports.count; i++)
		if (gt_is_memory_call(exports.names[i]))
			point_of(probe, exports.names[i]);
	for (size_t i = 0; i < hooks->count; i++)
		if (is_driver_name(hooks->names[i]) || !strncmp(hooks->names[i], "cuda", 4))
			point_of(probe, hooks->names[i])->hooked = true;
	gt_free_names(&exports);
	qsort(probe->points, probe->point_count, sizeof(*probe->points), by_name);
}

static void clear_python(struct gt_probe *probe)
{
	free(probe->python.version);
	free(probe->python.state);
	free(probe->python.why);
	memset(&probe->python, 0, sizeof(probe->python));
}

/* ---- what the recorder wrote ----------------------------------------------------------------- */

static void take_look_up(struct gt_probe *probe, char **fields)
{
	const char *via = fields[0], *name = fields[1], *entry = fields[2], *module = fields[3];
	struct gt_entry_point *point;

	if (!strncmp(name, "cuGetProcAddress", 16) && strcmp(entry, "!"))
		add_name(&probe->runtimes, module);
	if (!strcmp(entry, "!") || (!strcmp(entry, "-") && !gt_is_memory_call(name)))
		return;
	point = point_of(probe, strcmp(entry, "-") ? entry : name);
	point->hooked |= strcmp(entry, "-") != 0;
	point->resolved = true;
	add_name(&point->seen, via);
	add_name(&point->modules, module);
}

/* The last word counts: what was found is read or refused later. */
static void take_python(struct gt_probe *probe, char **fields)
{
	clear_python(probe);
	probe->python.version = gt_xstrdup(fields[0]);
	probe->python.version[strcspn(fields[0], " ")] = 0;
	probe->python.state = gt_xstrdup(fields[1]);
	probe->python.why = gt_xstrdup(fields[2]);
}

static void take_line(struct gt_probe *probe, char *line, struct gt_names *pids)
{
	char *fields[8] = {NULL}, *rest = line;
	size_t count = 0;

	while (count < 8 && (fields[count] = strsep(&rest, "\t")))
		count++;
	if (count < 3)
		return;
	add_name(pids, fields[1]);
	if (*fields[0] == 'R' && count >= 6)
		take_look_up(probe, fields + 2);
	else if (*fields[0] == 'O')
		add_name(&probe->objects, fields[2]);
	else if (*fields[0] == 'P' && count >= 5)
		take_python(probe, fields + 2);
	else if (*fields[0] == 'N' && strtoul(fields[2], NULL, 10) > probe->other_drivers)
		probe->other_drivers = strtoul(fields[2], NULL, 10);
}

static void read_log(struct gt_probe *probe, const char *path)
{
	FILE *file = fopen(path, "re");
	struct gt_names pids = {0};
	char *line = NULL;
	size_t size = 0;
	ssize_t length;

	while (file && (length = getline(&line, &size, file)) > 0) {
		line[length - (line[length - 1] == '\n')] = 0;
		take_line(probe, line, &pids);
	}
	probe->processes = pids.count;
	gt_free_names(&pids);
	free(line);
	if (file)
		fclose(file);
}

/* ---- what the objects are -------------------------------------------------------------------- */

static bool is_system(const char *base)
{
	return !strncmp(base, "libc.so", 7) || !strncmp(base, "libdl", 5) ||
	       !strncmp(base, "ld-linux", 8);
}

/* behind: the recorder stands before it in load order. */
static void judge_object(struct gt_probe *probe, const char *path, const char *library, bool behind)
{
	static const char *const sanitizers[] = {"libasan", "libtsan", "liblsan", "libubsan",
						 "libclang_rt"};
	const char *base = gt_base_name(path);
	struct gt_names names;

	for (size_t i = 0; i < sizeof(sanitizers) / sizeof(sanitizers[0]); i++)
		if (!strncmp(base, sanitizers[i], strlen(sanitizers[i])))
			add_name(&probe->sanitizers, path);
	if (!strcmp(base, gt_base_name(library)) || is_system(base))
		return;
	if (!strncmp(base, "libcuda.so", 10)) {
		probe->driver = probe->driver ? probe->driver : gt_xstrdup(path);
		return;
	}
	names = gt_exports_of(path);
	if (has_name(&names, "dlsym") || has_name(&names, "cuMemAlloc_v2"))
		add_name(&probe->interposers, path);
	if (has_name(&names, "dlsym") && !behind)
		add_name(&probe->before, path);
	if (has_name(&names, "cudaMalloc"))
		add_name(&probe->runtimes, path);
	gt_free_names(&names);
	names = wants_of(path);
	for (size_t i = 0; i < names.count; i++)
		if (is_driver_name(names.names[i]) && gt_is_memory_call(names.names[i])) {
			struct gt_entry_point *point = point_of(probe, names.names[i]);

			point->resolved = true;
			add_name(&point->seen, "elf");
			add_name(&point->modules, path);
		}
	gt_free_names(&names);
}

/* ---- running --------------------------------------------------------------------------------- */

static int start(char **command, const char *library, const char *folder, const char *log)
{
	pid_t pid = fork();
	int status = -1;

	if (pid < 0)
		return -1;
	if (pid == 0) {
		gt_set_preload(library);
		setenv("GPUTRACE_DIR", folder, 1);
		setenv("GPUTRACE_DOCTOR", log, 1);
		setenv("GPUTRACE_QUIET", "1", 1);
		dup2(STDERR_FILENO, STDOUT_FILENO); /* ours is for the answer */
		execvp(command[0], command);
		fprintf(stderr, "gputrace: doctor: %s: %s\n", command[0], strerror(errno));
		_exit(127);
	}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		continue;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void remove_folder(const char *folder)
{
	DIR *dir = opendir(folder);
	struct dirent *entry;

	while (dir && (entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			unlinkat(dirfd(dir), entry->d_name, 0);
	if (dir)
		closedir(dir);
	rmdir(folder);
}

int gt_probe_run(char **command, const char *library, struct gt_probe *ret)
{
	const char *temporary = getenv("TMPDIR");
	char *folder = gt_xasprintf("%s/gputrace-doctor-XXXXXX",
				    temporary && *temporary ? temporary : "/tmp");
	bool behind = false;
	char *log;
	int fd;

	if (!mkdtemp(folder)) {
		free(folder);
		return -1;
	}
	log = gt_xasprintf("%s/log", folder);
	fd = open(log, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	ret->status = start(command, library, folder, log);
	read_log(ret, log);
	for (size_t i = 0; i < ret->objects.count; i++) {
		behind |= !strcmp(gt_base_name(ret->objects.names[i]), gt_base_name(library));
		judge_object(ret, ret->objects.names[i], library, behind);
	}
	if (fd >= 0)
		close(fd);
	remove_folder(folder);
	free(log);
	free(folder);
	return fd < 0 ? -1 : 0;
}

void gt_probe_clear(struct gt_probe *probe)
{
	for (size_t i = 0; i < probe->point_count; i++) {
		free(probe->points[i].name);
		gt_free_names(&probe->points[i].seen);
		gt_free_names(&probe->points[i].modules);
	}
	free(probe->points);
	gt_free_names(&probe->objects);
	gt_free_names(&probe->runtimes);
	gt_free_names(&probe->interposers);
	gt_free_names(&probe->before);
	clear_python(probe);
	gt_free_names(&probe->sanitizers);
	free(probe->driver);
	*probe = (struct gt_probe){0};
}
