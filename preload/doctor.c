/* SPDX-License-Identifier: MIT */
/*
 * For gputrace doctor -- CMD only: which functions were looked up by whom, and which objects were
 * there. GPUTRACE_DOCTOR names a file; each record is one line appended by one write, so that
 * the lines of several processes do not mix. Without the variable a look-up, which happens once per
 * function and library, costs one test more. Fields are separated by tabs:
 *
 *	R PID VIA NAME ENTRY MODULE	NAME was asked for; ENTRY: the hook handed out, - another
 *					function, ! nothing
 *	O PID PATH			an object, in load order
 *	N PID COUNT			mappings with code of libcuda, those of other namespaces too
 *	P PID VERSION STATE WHY		Python's stacks: found, read, or refused and why
 */
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "preload.h"

#define MAX_LINES 20000u

static char path[4096];
static uint32_t asked; /* 1: nobody wants to know, 2: path does */
static uint32_t lines;

static bool wanted(void)
{
	static const char name[] = "GPUTRACE_DOCTOR=";

	if (gt_likely(gt_load(&asked)))
		return asked == 2;
	for (char **e = environ; e && *e; e++) {
		size_t n = strlen(*e);

		if (strncmp(*e, name, sizeof(name) - 1) || n >= sizeof(path))
			continue;
		memcpy(path, *e + sizeof(name) - 1, n - sizeof(name) + 2);
		gt_store(&asked, 2);
		return true;
	}
	gt_store(&asked, 1);
	return false;
}

static void begin(struct gt_text *t, char kind)
{
	char text[3] = {kind, '\t', 0};

	gt_text_str(t, text);
	gt_text_u64(t, (uint64_t)gt_pid());
}

/* Text of the program: a tab or line feed in it would be another field. */
static void field(struct gt_text *t, const char *s)
{
	gt_text_str(t, "\t");
	for (; *s; s++) {
		char c = (unsigned char)*s < ' ' ? '?' : *s;

		gt_text_bytes(t, &c, 1);
	}
}

static void end(struct gt_text *t)
{
	int fd;

	gt_text_str(t, "\n");
	if (__atomic_add_fetch(&lines, 1, __ATOMIC_RELAXED) > MAX_LINES)
		return;
	fd = gt_open(path, O_WRONLY | O_APPEND, 0);
	if (fd >= 0)
		syscall(SYS_write, fd, t->buf, t->length);
	gt_close(fd);
}

/* ---- objects --------------------------------------------------------------------------------- */

static void program(char *name, size_t size)
{
	ssize_t n = readlink("/proc/self/exe", name, size - 1);

	name[n > 0 ? n : 0] = 0;
}

struct at {
	uint64_t pc;
	char name[4096];
};

static int object_at(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct at *at = arg;
	struct gt_text t = {.buf = at->name, .size = sizeof(at->name)};

	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		uint64_t start = info->dlpi_addr + p->p_vaddr;

		if (p->p_type != PT_LOAD || at->pc < start || at->pc >= start + p->p_memsz)
			continue;
		if (*info->dlpi_name)
			gt_text_str(&t, info->dlpi_name);
		else
			program(at->name, sizeof(at->name));
		return 1;
	}
	return 0;
}

static int list_object(struct dl_phdr_info *info, size_t size, void *arg)
{
	char line[8192], name[4096];
	struct gt_text t = {.buf = line, .size = sizeof(line)};

	program(name, sizeof(name));
	begin(&t, 'O');
	field(&t, *info->dlpi_name ? info->dlpi_name : name);
	end(&t);
	return 0;
}

/* Counts what the loader tells only inside another namespace. */
static uint64_t driver_mappings(void)
{
	static char maps[1u << 20];
	uint64_t count = 0;
	int n = gt_read_file("/proc/self/maps", maps, sizeof(maps));

	for (char *s = maps; n > 0 && (s = strstr(s, "/libcuda.so")); s++) {
		char *line = s;

		while (line > maps && line[-1] != '\n')
			line--;
		line = strchr(line, ' ');
		count += line && line < s && line[3] == 'x';
	}
	return count;
}

void gt_doctor_objects(void)
{
	char line[64];
	struct gt_text t = {.buf = line, .size = sizeof(line)};
	int err = errno;

	if (!wanted())
		return;
	dl_iterate_phdr(list_object, NULL);
	begin(&t, 'N');
	gt_text_str(&t, "\t");
	gt_text_u64(&t, driver_mappings());
	end(&t);
	errno = err;
}

static __attribute__((destructor)) void leave(void)
{
	gt_doctor_objects();
}

void gt_doctor_python(const char *version, const char *state, const char *why)
{
	char line[1024];
	struct gt_text t = {.buf = line, .size = sizeof(line)};
	int err = errno;

	if (gt_likely(!wanted()))
		return;
	begin(&t, 'P');
	field(&t, version);
	field(&t, state);
	field(&t, why);
	end(&t);
	errno = err;
}

/* ---- look-ups -------------------------------------------------------------------------------- */

void gt_doctor_resolved(const char *via, const char *name, const char *entry, uint64_t pc)
{
	char line[8192];
	struct gt_text t = {.buf = line, .size = sizeof(line)};
	struct at at = {.pc = pc};
	int err = errno;

	if (gt_likely(!wanted()))
		return;
	dl_iterate_phdr(object_at, &at);
	begin(&t, 'R');
	field(&t, via);
	field(&t, name);
	field(&t, entry);
	field(&t, at.name);
	end(&t);
	errno = err;
}
