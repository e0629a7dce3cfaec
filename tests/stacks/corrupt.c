/* SPDX-License-Identifier: MIT */
/*
 * Objects with broken unwind tables: random bytes of .eh_frame_hdr, .eh_frame and their program
 * header are changed in copies of a module, which then calls back into the hook. Nothing may crash;
 * what frames come out is not looked at, and libgcc, which aborts on such tables, is not asked.
 *
 * usage: corrupt MODULE FOLDER ROUNDS
 */
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "../../preload/preload.h"
#include "check.h"

enum { CHILD = 50 }; /* rounds per process */

static char *image;
static size_t size;
static ElfW(Phdr) * header;	      /* PT_GNU_EH_FRAME */
static size_t table, table_end;	      /* .eh_frame_hdr and .eh_frame in the file */
static uint64_t captures, whole, cut; /* stacks by how they ended */

static bool load(const char *path)
{
	FILE *f = fopen(path, "rbe");
	struct stat st;
	bool good;

	if (!f || fstat(fileno(f), &st))
		return false;
	size = (size_t)st.st_size;
	image = malloc(size);
	good = image && fread(image, 1, size, f) == size;
	fclose(f);
	return good;
}

static void find_tables(void)
{
	ElfW(Ehdr) *e = (void *)image;
	ElfW(Phdr) *p = (void *)(image + e->e_phoff);
	ElfW(Shdr) *s = (void *)(image + e->e_shoff);
	const char *names = image + s[e->e_shstrndx].sh_offset;

	for (int i = 0; i < e->e_phnum; i++)
		if (p[i].p_type == PT_GNU_EH_FRAME)
			header = &p[i];
	table = header->p_offset;
	for (int i = 0; i < e->e_shnum; i++)
		if (!strcmp(names + s[i].sh_name, ".eh_frame"))
			table_end = s[i].sh_offset + s[i].sh_size;
}

static unsigned next(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005ull + 1442695040888963407ull;
	return (unsigned)(*seed >> 33);
}

/* One to four changes; every eighth one in the program header. */
static void damage(char *copy, uint64_t seed)
{
	unsigned changes = 1 + next(&seed) % 4;

	while (changes-- > 0) {
		size_t at = table + next(&seed) % (table_end - table);

		if (next(&seed) % 8 == 0)
			at = (size_t)((char *)header - image) + 8 +
			     next(&seed) % (sizeof(*header) - 8);
		copy[at] ^= (char)(next(&seed) % 3 ? next(&seed) : 1u << next(&seed) % 8);
	}
}

static void capture(void *arg)
{
	static struct path path;
	struct gt_regs regs = GT_REGS_HERE();

	double_path(gt_where_capture(&regs).native, &path);
	captures++;
	whole += !path.marker;
	cut += path.marker != 0;
}

static bool try_one(const char *path, uint64_t seed)
{
	void (*enter)(void (*)(void *), void *);
	char *copy = malloc(size);
	FILE *f = fopen(path, "wbe");
	void *handle;

	memcpy(copy, image, size);
	damage(copy, seed);
	fwrite(copy, 1, size, f);
	fclose(f);
	free(copy);
	handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	unlink(path);
	if (!handle)
		return false;
	*(void **)&enter = dlsym(handle, "enter");
	enter(capture, NULL);
	enter(capture, NULL);
	gt_modules_closing();
	dlclose(handle);
	gt_modules_closed();
	return true;
}

static int run_child(const char *folder, unsigned first, unsigned last)
{
	char path[1024];
	unsigned opened = 0;

	double_any_pc = true;
	double_start(256, GT_UNWIND_OWN);
	for (unsigned i = first; i < last; i++) {
		snprintf(path, sizeof(path), "%s/corrupt_%u.so", folder, i);
		opened += try_one(path, i + 1);
	}
	printf("   seeds %u to %u: %u opened, %lu stacks: %lu whole, %lu marked incomplete\n",
	       first, last - 1, opened, captures, whole, cut);
	return captures < (last - first) || !cut;
}

int main(int argc, char **argv)
{
	unsigned rounds = argc == 4 ? (unsigned)atoi(argv[3]) : 0, bad = 0;

	if (!rounds || !load(argv[1]))
		return 2;
	find_tables();
	for (unsigned i = 0; i < rounds; i += CHILD) {
		pid_t pid;
		int status;

		fflush(stdout);
		pid = fork();
		if (!pid) {
			int rc = run_child(argv[2], i, i + CHILD);

			fflush(stdout);
			_exit(rc);
		}
		waitpid(pid, &status, 0);
		if (status) {
			printf("   seeds %u to %u: wait status %#x\n", i, i + CHILD - 1, status);
			bad++;
		}
	}
	if (bad)
		printf("not ok corrupt unwind tables: %u of %u processes failed\n", bad,
		       rounds / CHILD);
	else
		printf("ok corrupt unwind tables\n");
	return bad != 0;
}
