/* SPDX-License-Identifier: MIT */
/*
 * Is the process that writes a trace still there? A pid alone is reused; pid + start time + boot is
 * not. Only decides how carefully to read and what to print: never whether the file is readable.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "read/reader.h"

/* First line of a small file of /proc. */
static bool read_line(const char *path, char *buf, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return false;
	n = read(fd, buf, size - 1);
	close(fd);
	if (n <= 0)
		return false;
	buf[n] = 0;
	buf[strcspn(buf, "\n")] = 0;
	return true;
}

/* Field 22 of /proc/PID/stat, counted from behind the name, which may hold spaces and brackets. */
static bool started_at(uint32_t pid, uint64_t ticks)
{
	char path[40], line[1024], *p;

	snprintf(path, sizeof(path), "/proc/%u/stat", pid);
	if (!read_line(path, line, sizeof(line)) || !(p = strrchr(line, ')')) || !p[1] || !p[2])
		return false;
	if (p[2] == 'Z' || p[2] == 'X')
		return false;
	for (int field = 2; field < 22; field++) {
		p = strchr(p + 1, ' ');
		if (!p)
			return false;
	}
	return strtoull(p + 1, NULL, 10) == ticks;
}

/* A pid of another namespace says nothing here: then the file is treated as if it were written. */
enum gt_alive gt_alive(const struct gt_header *header)
{
	char boot[64];
	struct stat ns;

	if (!read_line("/proc/sys/kernel/random/boot_id", boot, sizeof(boot)) ||
	    strncmp(boot, header->boot_id, sizeof(header->boot_id)))
		return GT_ALIVE_NO;
	if (stat("/proc/self/ns/pid", &ns) || ns.st_ino != header->pid_ns)
		return GT_ALIVE_MAYBE;
	return started_at(header->pid, header->start_ticks) ? GT_ALIVE_YES : GT_ALIVE_NO;
}
