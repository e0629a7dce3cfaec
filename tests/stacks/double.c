/* SPDX-License-Identifier: MIT */
/* The recorder as far as stack capture needs it: definitions go into arrays, pages are counted. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "../../preload/preload.h"
#include "check.h"

enum { MAX_NODES = 1 << 20, MAX_MODULES = 8192 };

static struct {
	uint32_t parent;
	uint64_t pc;
} node[MAX_NODES + 1];
static struct {
	uint64_t start, end;
	uint32_t id;
	bool gone;
	char path[256];
} module[MAX_MODULES];
static unsigned nodes, modules, unloads;
static long mapped;
static uint64_t lost[GT_LOST_REASONS];
static pthread_mutex_t append_lock = PTHREAD_MUTEX_INITIALIZER;

struct gt_options gt_options;
bool double_any_pc;

void gt_lock_wait(struct gt_lock *l)
{
	while (__atomic_exchange_n(&l->held, 1, __ATOMIC_ACQUIRE))
		syscall(SYS_sched_yield);
}

void *gt_map(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	__atomic_add_fetch(&mapped, (long)bytes, __ATOMIC_RELAXED);
	madvise(p, bytes, MADV_DONTFORK);
	return p;
}

void gt_unmap(void *p, size_t bytes)
{
	if (!p)
		return;
	munmap(p, bytes);
	__atomic_sub_fetch(&mapped, (long)bytes, __ATOMIC_RELAXED);
}

int gt_pid(void)
{
	return (int)syscall(SYS_getpid);
}

uint64_t gt_now_us(void)
{
	return 0;
}

void gt_count_lost(enum gt_lost why)
{
	__atomic_add_fetch(&lost[why], 1, __ATOMIC_RELAXED);
}

uint32_t gt_python_capture(void)
{
	return 0;
}

void gt_python_start(void)
{
}

void gt_python_fork_child(void)
{
}

/* ---- definitions ----------------------------------------------------------------------------- */

static bool module_mapped(uint64_t pc)
{
	for (unsigned i = 0; i < modules; i++)
		if (!module[i].gone && pc >= module[i].start && pc < module[i].end)
			return true;
	return false;
}

/* What a reader relies on: ids in order, a parent before its child, a module before its nodes. */
static void add_node(const struct gt_rec_node *r)
{
	Dl_info object;

	if (r->id != nodes + 1 || r->parent >= r->id || nodes == MAX_NODES)
		abort();
	if (!double_any_pc && r->pc > GT_PC_INCOMPLETE && !module_mapped(r->pc - 1) &&
	    dladdr((void *)(r->pc - 1), &object))
		abort();
	nodes = r->id;
	node[r->id].parent = r->parent;
	node[r->id].pc = r->pc;
}

static void add_module(const struct gt_rec_module *r, const char *folder, size_t folder_length,
		       const char *path, size_t path_length)
{
	if (r->id != modules + 1 || module_mapped(r->start) || modules == MAX_MODULES)
		abort();
	module[modules].start = r->start;
	module[modules].end = r->end;
	module[modules].id = r->id;
	snprintf(module[modules].path, sizeof(module[modules].path), "%.*s%.*s", (int)folder_length,
		 folder ? folder : "", (int)path_length, path ? path : "");
	modules++;
}

static void add_unload(const struct gt_rec_unload *r)
{
	if (!r->module || r->module > modules || module[r->module - 1].gone)
		abort();
	module[r->module - 1].gone = true;
	unloads++;
}

bool gt_def_append(struct gt_rec *rec, size_t size, const void *text, size_t text_length,
		   const void *text2, size_t text2_length)
{
	pthread_mutex_lock(&append_lock);
	if (rec->kind == GT_REC_NODE)
		add_node((const void *)rec);
	else if (rec->kind == GT_REC_MODULE)
		add_module((const void *)rec, text, text_length, text2, text2_length);
	else if (rec->kind == GT_REC_UNLOAD)
		add_unload((const void *)rec);
	pthread_mutex_unlock(&append_lock);
	return true;
}

/* ---- questions of the tests ------------------------------------------------------------------ */

void double_start(unsigned depth, unsigned unwinder)
{
	gt_options.stacks = GT_STACKS_NATIVE;
	gt_options.depth = depth;
	gt_options.unwinder = unwinder;
	gt_stacks_start();
	gt_stacks_open();
}

void double_forget(void)
{
	memset(module, 0, sizeof(module));
	nodes = modules = unloads = 0;
}

void double_path(uint32_t id, struct path *ret)
{
	ret->n = 0;
	ret->marker = 0;
	for (; id; id = node[id].parent) {
		if (node[id].pc <= GT_PC_INCOMPLETE)
			ret->marker = node[id].pc;
		else if (ret->n < MAX_FRAMES)
			ret->pc[ret->n++] = node[id].pc;
	}
}

unsigned double_nodes(void)
{
	return nodes;
}

unsigned double_modules(void)
{
	return modules;
}

unsigned double_unloads(void)
{
	return unloads;
}

static int by_path(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	if (node[x].parent != node[y].parent)
		return node[x].parent < node[y].parent ? -1 : 1;
	return (node[x].pc > node[y].pc) - (node[x].pc < node[y].pc);
}

unsigned double_duplicates(void)
{
	uint32_t *ids = calloc(nodes, sizeof(*ids)), i;
	unsigned n = 0;

	for (i = 0; i < nodes; i++)
		ids[i] = i + 1;
	qsort(ids, nodes, sizeof(*ids), by_path);
	for (i = 1; i < nodes; i++)
		n += !by_path(&ids[i - 1], &ids[i]);
	free(ids);
	return n;
}

long double_mapped(void)
{
	return gt_load(&mapped);
}

uint64_t double_lost(unsigned why)
{
	return gt_load(&lost[why]);
}

const char *double_module_path(uint64_t pc)
{
	for (unsigned i = 0; i < modules; i++)
		if (!module[i].gone && pc >= module[i].start && pc < module[i].end)
			return module[i].path;
	return NULL;
}
