/* SPDX-License-Identifier: MIT */
/*
 * The whole library under a process that is stopped after every instruction, with stacks: whenever a
 * byte of the trace has changed, the file is judged as if the process had been killed right there. All
 * calls that returned are in it, the totals are those of the calls that it has, every definition that
 * is referred to exists, and the newest block's stack is as deep as its call was.
 *
 *   step NAME VICTIM ROUNDS	environment: of the victim; STEP_PRELOAD, GPUTRACE_DIR, VICTIM_BOOK
 *
 * The victim's mode "deep": round i allocates 512 * (i % 100 + 1) and 512 bytes, i % 20 calls deep, and
 * frees the first. Only x86-64: the place of the instruction is asked for.
 */
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>
#include "../recorder/check.h"

#define FILE_MAX  (4u << 20)
#define NODES_MAX 65536u
#define RANGES	  8

static struct {
	const char *name;
	pid_t pid;
	const uint8_t *file;  /* mapped */
	const uint64_t *book; /* used, then pid, allocs, frees */
	uint8_t before[FILE_MAX];
	struct {
		uint64_t from, to;
	} code[RANGES]; /* that may store into the file */
	unsigned code_count;
	uint64_t parents[NODES_MAX]; /* node -> parent + 1; 0 = not defined */
	uint32_t base;		     /* frames around a call of depth 0 */
	uint64_t steps, states, deepest;
} t;

static void fail(const char *why)
{
	printf("not ok %s: step %lu: %s\n", t.name, t.steps, why);
	if (t.pid)
		kill(t.pid, SIGKILL);
	exit(1);
}

/* ---- judging -------------------------------------------------------------------------------- */

static void read_nodes(const struct ck_file *f, const struct gt_extent *e)
{
	const uint8_t *at = f->base + e->offset + sizeof(*e), *end = f->base + e->offset + e->used;

	while (at < end) {
		const struct gt_rec *rec = (const void *)at;
		const struct gt_rec_node *node = (const void *)at;

		if (rec->length < sizeof(*rec) || rec->length > (size_t)(end - at))
			fail("a definition's length");
		if (rec->kind == GT_REC_NODE) {
			if (!node->id || node->id >= NODES_MAX || node->parent >= NODES_MAX ||
			    (node->parent && !t.parents[node->parent]))
				fail("a node without its caller");
			t.parents[node->id] = node->parent + 1ul;
		}
		at += rec->length;
	}
}

static uint32_t depth_of(uint32_t node)
{
	uint32_t depth = 0;

	for (; node; node = (uint32_t)(t.parents[node] - 1), depth++)
		if (node >= NODES_MAX || !t.parents[node])
			fail("a site with an undefined stack");
	return depth;
}

/* Bytes in use after so many calls of each kind. */
static uint64_t bytes_after(uint64_t allocs, uint64_t frees)
{
	uint64_t bytes = 0;

	for (uint64_t i = 0; i < allocs; i++)
		bytes += i % 2 ? 512 : 512 * (i / 2 % 100 + 1);
	for (uint64_t i = 0; i < frees; i++)
		bytes -= 512 * (i % 100 + 1);
	return bytes;
}

static void judge_totals(const struct ck_lane *l)
{
	uint64_t allocs = l->ctr.allocs, frees = l->ctr.frees, sum = 0;
	uint64_t want = bytes_after(allocs, frees);

	if (allocs < t.book[2] || frees < t.book[3])
		fail("a call that had returned is lost");
	if (allocs > t.book[2] + 1 || frees > t.book[3] + 1)
		fail("a call came early");
	for (size_t i = 0; i < l->block_count; i++)
		sum += l->blocks[i].size;
	if (sum != want || l->ctr.cur[0] != want || l->block_count != allocs - frees)
		fail("totals are not those of the calls");
}

static void judge_stacks(const struct ck_lane *l)
{
	const struct ck_event *last = l->event_count ? &l->events[l->event_count - 1] : NULL;
	uint64_t round = l->ctr.allocs ? (l->ctr.allocs - 1) / 2 : 0;
	uint32_t depth;

	for (size_t i = 0; i < l->site_count; i++)
		depth_of(l->sites[i].def.native);
	if (!last || last->op != GT_OP_ALLOC)
		return;
	depth = depth_of(l->sites[last->site].def.native);
	if (!t.base)
		t.base = depth - (uint32_t)(round % 20);
	if (depth != t.base + round % 20)
		fail("a stack of another depth than the call's");
	if (depth > t.deepest)
		t.deepest = depth;
}

static void judge(uint64_t end)
{
	static struct ck_file f;
	struct ck_lane l = {0};
	const char *why = ck_open(&f, t.file, end);

	if (why)
		fail(why);
	memset(t.parents, 0, sizeof(t.parents));
	for (size_t i = 0; i < f.extent_count; i++)
		if (f.extents[i].kind == GT_EXTENT_DEFS)
			read_nodes(&f, &f.extents[i]);
	why = ck_lane(&f, 0, true, &l);
	if (why)
		fail(why);
	judge_totals(&l);
	judge_stacks(&l);
	ck_lane_free(&l);
	t.states++;
}

/* ---- stepping ------------------------------------------------------------------------------- */

static const void *map_file(const char *path, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	void *p = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);

	if (fd < 0 || p == MAP_FAILED)
		fail("a file cannot be mapped");
	close(fd);
	return p;
}

static void find_code(void)
{
	char path[64], line[4400];
	FILE *maps;

	snprintf(path, sizeof(path), "/proc/%d/maps", t.pid);
	maps = fopen(path, "re");
	while (maps && fgets(line, sizeof(line), maps)) {
		uint64_t from, to;
		char rights[5];

		if (sscanf(line, "%lx-%lx %4s", &from, &to, rights) != 3 || rights[2] != 'x' ||
		    (!strstr(line, "libgputrace") && !strstr(line, "libc.so")))
			continue;
		if (t.code_count == RANGES)
			fail("too many ranges");
		t.code[t.code_count].from = from;
		t.code[t.code_count++].to = to;
	}
	if (!maps || t.code_count < 2)
		fail("the library is not there");
	fclose(maps);
}

static bool may_store(uint64_t pc)
{
	for (unsigned i = 0; i < t.code_count; i++)
		if (pc >= t.code[i].from && pc < t.code[i].to)
			return true;
	return false;
}

static void look(void)
{
	uint64_t end = ((const struct gt_header *)t.file)->end;

	if (end > FILE_MAX)
		fail("the file is too large");
	if (!memcmp(t.file, t.before, end))
		return;
	memcpy(t.before, t.file, end);
	judge(end);
}

/* One instruction; true while there is a next one. */
static bool step(void)
{
	uint64_t pc = (uint64_t)ptrace(PTRACE_PEEKUSER, t.pid,
				       offsetof(struct user_regs_struct, rip), NULL);
	int status;

	ptrace(PTRACE_SINGLESTEP, t.pid, NULL, NULL);
	if (waitpid(t.pid, &status, 0) != t.pid)
		fail("the process is gone");
	if (!WIFSTOPPED(status)) {
		if (status)
			fail("the process failed");
		return false;
	}
	if (WSTOPSIG(status) != SIGTRAP)
		fail(strsignal(WSTOPSIG(status)));
	t.steps++;
	if (may_store(pc))
		look();
	return true;
}

static void start(char **words)
{
	int status;

	t.pid = fork();
	if (!t.pid) {
		setenv("LD_PRELOAD", getenv("STEP_PRELOAD") ?: "", 1);
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		execl(words[2], words[2], "deep", words[3], NULL);
		_exit(127);
	}
	do {
		if (waitpid(t.pid, &status, 0) != t.pid || !WIFSTOPPED(status))
			fail("it did not start");
		if (WSTOPSIG(status) != SIGSTOP)
			ptrace(PTRACE_CONT, t.pid, NULL, NULL);
	} while (WSTOPSIG(status) != SIGSTOP);
}

int main(int argc, char **argv)
{
	char path[4200];
	uint64_t rounds = argc == 4 ? strtoull(argv[3], NULL, 10) : 0;

	t.name = argv[1];
	if (!rounds)
		fail("usage: step NAME VICTIM ROUNDS");
	start(argv);
	snprintf(path, sizeof(path), "%s/gputrace.victim.%d.gtrace", getenv("GPUTRACE_DIR"), t.pid);
	t.file = map_file(path, FILE_MAX);
	t.book = map_file(getenv("VICTIM_BOOK"), 4096);
	find_code();
	look();
	while (step())
		;
	judge(((const struct gt_header *)t.file)->end);
	if (t.book[2] != 2 * (rounds + 1) || t.states < 40 * rounds || t.deepest < t.base + 10)
		fail("too little was seen");
	printf("ok %s # %lu tries, 0 lost: states of the file in %lu instructions, %lu events\n",
	       t.name, t.states, t.steps, 3 * rounds);
	return 0;
}
