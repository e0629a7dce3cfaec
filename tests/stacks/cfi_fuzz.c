/* SPDX-License-Identifier: MIT */
/*
 * The reader of unwind tables against random damage: this program's own tables, copied between two
 * pages that cannot be read, changed in one to six bytes, asked for the rule of many addresses. A
 * read outside the segment ends the test. Undamaged, every function must have a rule.
 *
 * usage: cfi_fuzz ROUNDS
 */
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "../../preload/unwind.h"

enum { PAGE = 4096, ASKED = 8 };

static struct gt_module module; /* as modules.c would describe the copy */
static uint64_t tables;		/* first byte that damage may hit */
static uint64_t size;

static int find_tables(struct dl_phdr_info *info, size_t bytes, void *arg)
{
	const ElfW(Phdr) *p = info->dlpi_phdr, *end = p + info->dlpi_phnum;

	for (; p < end; p++)
		if (p->p_type == PT_GNU_EH_FRAME)
			module.frames = info->dlpi_addr + p->p_vaddr;
	for (p = info->dlpi_phdr; p < end; p++) {
		uint64_t start = info->dlpi_addr + p->p_vaddr;

		if (p->p_type == PT_LOAD && module.frames - start < p->p_memsz) {
			module.readable = start;
			module.readable_end = start + p->p_memsz;
		}
	}
	return 1; /* the program is the first */
}

/* Ends at a page's end, give or take the bytes that keep its alignment. */
static void copy_tables(void)
{
	uint64_t length = (module.readable_end - module.readable) & ~UINT64_C(15);
	uint64_t pages = (length + PAGE - 1) & ~(uint64_t)(PAGE - 1);
	char *area = mmap(NULL, pages + 2 * PAGE, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t copy = (uint64_t)area + PAGE + pages - length;

	mprotect(area, PAGE, PROT_NONE);
	mprotect(area + PAGE + pages, PAGE, PROT_NONE);
	memcpy((void *)copy, (void *)module.readable, length);
	module.frames += copy - module.readable;
	module.readable = copy;
	module.readable_end = copy + length;
	tables = module.frames;
	size = module.readable_end - tables;
}

static uint64_t next(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005ull + 1442695040888963407ull;
	return *seed >> 33;
}

/* An address in a function of the search table, which stands behind four bytes and two words. */
static uint64_t some_pc(const int32_t *table, uint32_t count, uint64_t *seed)
{
	return module.frames + (uint64_t)(int64_t)table[next(seed) % count * 2] + next(seed) % 64;
}

int main(int argc, char **argv)
{
	unsigned rounds = argc == 2 ? (unsigned)atoi(argv[1]) : 0, whole = 0, kinds[8] = {0};
	const int32_t *table;
	int32_t *pristine;
	uint64_t seed = 1;
	uint32_t count;
	struct gt_rule rule;

	dl_iterate_phdr(find_tables, NULL);
	if (!rounds || !module.readable)
		return 2;
	copy_tables();
	count = *(uint32_t *)(tables + 8);
	pristine = malloc(size);
	memcpy(pristine, (void *)tables, size);
	table = pristine + 3;
	for (uint32_t i = 0; i < count; i++) {
		gt_cfi_rule(&module, module.frames + (uint64_t)(int64_t)table[i * 2], &rule);
		whole += rule.kind == GT_RULE_SP || rule.kind == GT_RULE_END;
	}
	printf("   undamaged: %u of %u functions begin with a rule\n", whole, count);
	for (unsigned r = 0; r < rounds; r++) {
		for (uint64_t n = 1 + next(&seed) % 6; n > 0; n--) {
			uint64_t limit = next(&seed) % 16 ? size : 64;

			*(char *)(tables + next(&seed) % limit) ^= (char)(1 + next(&seed) % 255);
		}
		for (unsigned i = 0; i < ASKED; i++) {
			gt_cfi_rule(&module, some_pc(table, count, &seed), &rule);
			kinds[rule.kind]++;
		}
		if (r % 8 == 7)
			memcpy((void *)tables, pristine, size);
	}
	printf("   damaged: %u rules, %u other, %u stop\n",
	       kinds[GT_RULE_SP] + kinds[GT_RULE_FP] + kinds[GT_RULE_REALIGNED] +
		       kinds[GT_RULE_END],
	       kinds[GT_RULE_OTHER], kinds[GT_RULE_STOP]);
	if (whole + 2 < count || !kinds[GT_RULE_STOP] || !kinds[GT_RULE_OTHER])
		printf("not ok unwind tables with random damage: rules missing\n");
	else
		printf("ok unwind tables with random damage\n");
	return whole + 2 < count;
}
