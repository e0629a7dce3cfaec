/* SPDX-License-Identifier: MIT */
/* See program.h. Called by run, before it starts the program; opens files, starts nothing. */
#include "cmd/program.h"

#include <fcntl.h>
#include <gelf.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>
#include "model/xalloc.h"

static bool is_program(const char *path)
{
	struct stat info;

	return stat(path, &info) == 0 && S_ISREG(info.st_mode) && access(path, X_OK) == 0;
}

static char *program_path(const char *name)
{
	const char *path = getenv("PATH"), *at;

	if (strchr(name, '/'))
		return is_program(name) ? gt_xstrdup(name) : NULL;
	if (!path)
		path = "/usr/local/bin:/usr/bin:/bin";
	for (at = path;; at += strcspn(at, ":") + 1) {
		int length = (int)strcspn(at, ":");
		char *try = gt_xasprintf("%.*s/%s", length ? length : 1, length ? at : ".", name);

		if (is_program(try))
			return try;
		free(try);
		if (!at[length])
			return NULL;
	}
}

/* The loader of a process that gained rights ignores LD_PRELOAD with a path in it. */
static bool gains_rights(int fd)
{
	struct stat info;

	if (fstat(fd, &info))
		return false;
	if ((info.st_mode & S_ISUID && info.st_uid != getuid()) ||
	    (info.st_mode & S_ISGID && info.st_gid != getgid()))
		return true;
	return getuid() != 0 && fgetxattr(fd, "security.capability", NULL, 0) > 0;
}

static bool has_loader(Elf *elf)
{
	size_t count;
	GElf_Phdr phdr;

	if (elf_getphdrnum(elf, &count))
		return true;
	for (size_t i = 0; i < count; i++)
		if (gelf_getphdr(elf, (int)i, &phdr) && phdr.p_type == PT_INTERP)
			return true;
	return false;
}

static enum gt_program_kind kind_of_elf(int fd)
{
	enum gt_program_kind kind = GT_PROGRAM_OTHER;
	Elf *elf;

	if (gains_rights(fd))
		return GT_PROGRAM_SETUID;
	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	if (elf && elf_kind(elf) == ELF_K_ELF)
		kind = has_loader(elf) ? GT_PROGRAM_DYNAMIC : GT_PROGRAM_STATIC;
	elf_end(elf);
	return kind;
}

/* "#!/usr/bin/env python3" -> "python3"; NULL when the file is no script. */
static char *interpreter(int fd)
{
	char line[256], *word, *rest;
	ssize_t length = pread(fd, line, sizeof(line) - 1, 0);

	if (length < 3 || line[0] != '#' || line[1] != '!')
		return NULL;
	line[length] = '\0';
	line[strcspn(line, "\n")] = '\0';
	word = strtok_r(line + 2, " \t", &rest);
	if (word && strlen(word) > 4 && strcmp(word + strlen(word) - 4, "/env") == 0)
		word = strtok_r(NULL, " \t", &rest);
	return word ? gt_xstrdup(word) : NULL;
}

static enum gt_program_kind kind_of_path(const char *path, int depth)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	enum gt_program_kind kind;
	char *script, *next;

	if (fd < 0)
		return GT_PROGRAM_OTHER;
	script = interpreter(fd);
	kind = script ? GT_PROGRAM_OTHER : kind_of_elf(fd);
	close(fd);
	next = script && depth < 4 ? program_path(script) : NULL;
	if (next)
		kind = kind_of_path(next, depth + 1);
	free(next);
	free(script);
	return kind;
}

enum gt_program_kind gt_program_kind(const char *name)
{
	char *path = program_path(name);
	enum gt_program_kind kind = path ? kind_of_path(path, 0) : GT_PROGRAM_OTHER;

	free(path);
	return kind;
}
