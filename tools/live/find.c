/* SPDX-License-Identifier: MIT */
/*
 * Which traces to look at. A process keeps the descriptor of its trace open, so the names in
 * /proc/PID/fd say where it is, wherever that may be; reading names takes no lock of the process.
 * What was found once is not opened again, except a file that was still at its beginning.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <dirent.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "live/live.h"
#include "model/xalloc.h"

/* Between two searches: of all processes, tens of milliseconds long; of operands while one runs. */
#define ALL_SECONDS	2
#define OPERAND_SECONDS 1

static bool was_seen(const struct gt_live *live, const char *path)
{
	for (size_t i = 0; i < live->seen_count; i++)
		if (strcmp(live->seen[i], path) == 0)
			return true;
	return false;
}

/* A file that cannot be read may be one that has just begun: it is tried again. */
static void meet(struct gt_live *live, const char *path)
{
	struct gt_error err;

	if (was_seen(live, path) || gt_live_add(live, path, live->all, &err))
		return;
	*GT_PUSH(live->seen, live->seen_count) = gt_xstrdup(path);
}

static int is_trace(const struct dirent *entry)
{
	return fnmatch("*" GT_SUFFIX, entry->d_name, 0) == 0;
}

static void find_in_folder(struct gt_live *live, const char *folder)
{
	struct dirent **entries;
	int count = scandir(folder, &entries, is_trace, versionsort);

	for (int i = 0; i < count; i++) {
		char *path = gt_xasprintf("%s/%s", folder, entries[i]->d_name);

		meet(live, path);
		free(path);
		free(entries[i]);
	}
	if (count >= 0)
		free(entries);
}

/* One process's open files; those of other users cannot be listed, which is no error. */
static void find_of_process(struct gt_live *live, const char *pid)
{
	char folder[64], path[4096];
	struct dirent *entry;
	DIR *fds;

	snprintf(folder, sizeof(folder), "/proc/%.20s/fd", pid);
	fds = opendir(folder);
	while (fds && (entry = readdir(fds))) {
		ssize_t length = readlinkat(dirfd(fds), entry->d_name, path, sizeof(path) - 1);

		path[length > 0 ? length : 0] = 0;
		if (*path == '/' && fnmatch("*" GT_SUFFIX, path, 0) == 0)
			meet(live, path);
	}
	if (fds)
		closedir(fds);
}

static void find_everywhere(struct gt_live *live)
{
	DIR *processes = opendir("/proc");
	struct dirent *entry;

	while (processes && (entry = readdir(processes)))
		if (isdigit((unsigned char)*entry->d_name))
			find_of_process(live, entry->d_name);
	if (processes)
		closedir(processes);
}

bool gt_live_due(struct gt_live *live, bool everywhere)
{
	const double pause = gt_live_running(live) ? OPERAND_SECONDS : 0;
	const double now = gt_live_now();

	if (live->searched > 0 && now - live->searched < (everywhere ? ALL_SECONDS : pause))
		return false;
	live->searched = now;
	return true;
}

void gt_live_find(struct gt_live *live, const char *operand)
{
	struct stat info;

	if (!operand)
		find_everywhere(live);
	else if (stat(operand, &info))
		find_of_process(live, operand);
	else if (S_ISDIR(info.st_mode))
		find_in_folder(live, operand);
	else
		meet(live, operand);
}

/* By the header alone, which is all that a name could be wrong about. */
char *gt_live_trace_of(const char *folder, uint32_t pid)
{
	struct dirent **entries;
	int count = scandir(folder, &entries, is_trace, versionsort);
	char *found = NULL;

	for (int i = 0; i < count; i++) {
		char *path = gt_xasprintf("%s/%s", folder, entries[i]->d_name);
		struct gt_trace *trace;

		if (!found && !gt_trace_open(path, GT_OPEN_TOTALS, &trace, NULL)) {
			if (trace->header.pid == pid)
				found = gt_xstrdup(path);
			gt_trace_close(trace);
		}
		free(path);
		free(entries[i]);
	}
	if (count >= 0)
		free(entries);
	return found;
}
