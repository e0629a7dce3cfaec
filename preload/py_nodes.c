/* SPDX-License-Identifier: MIT */
/*
 * Python frames become node ids: a tree of (parent, code, line), shared by all threads, each node
 * written to the file before its id is used.
 *
 * In front of the exact tables is a cache from (parent, code address, instruction) to the node. It
 * is the only place where an address counts, so an entry holds the code object's identity beside
 * it. The same cache, under an instruction that does not occur, knows the id of a code object: its
 * names are read the first time it is seen, and again only when its entry has been pushed out.
 */
#include "intern.h"
#include "py.h"

#define CACHE_SETS 8192u /* of two entries, 64 bytes: 512 KiB of address space */
#define NODES_MAX  (1u << 20)
#define CODES_MAX  (1u << 18)
#define THE_CODE   INT32_MIN /* instead of an instruction: the code object itself */

/* seq is odd while a thread writes; a reader that sees it odd or changed has missed. */
struct entry {
	uint64_t code, identity;
	int32_t addr;
	uint32_t parent, id;
	uint32_t seq;
};
_Static_assert(sizeof(struct entry) == 32, "two entries to a cache line");

static struct entry *cache;	  /* NULL until the first capture */
static struct gt_lock cache_lock; /* while it is mapped */
static struct gt_intern nodes = {.limit = NODES_MAX};
static struct gt_intern codes = {.limit = CODES_MAX};

/* ---- the cache ----------------------------------------------------------------------------- */

static struct entry *cache_set(uint32_t parent, const struct gt_py_frame *f, int32_t addr)
{
	uint64_t h = ((uint64_t)f->code >> 4) ^ (uint64_t)(uint32_t)addr << 32 ^
		     (uint64_t)parent * 0xd6e8feb86659fd93ull;

	h = (h ^ f->identity) * 0x9e3779b97f4a7c15ull;
	return &gt_load(&cache)[(h >> 40) % CACHE_SETS * 2];
}

static bool entry_matches(const struct entry *e, uint32_t parent, const struct gt_py_frame *f,
			  int32_t addr)
{
	return gt_load_relaxed(&e->code) == (uint64_t)f->code &&
	       gt_load_relaxed(&e->identity) == f->identity && gt_load_relaxed(&e->addr) == addr &&
	       gt_load_relaxed(&e->parent) == parent;
}

static uint32_t cache_find(uint32_t parent, const struct gt_py_frame *f, int32_t addr)
{
	struct entry *e = cache_set(parent, f, addr);
	uint32_t seq, id;
	int way;

	for (way = 0; way < 2; way++, e++) {
		seq = gt_load(&e->seq);
		if (!entry_matches(e, parent, f, addr))
			continue;
		id = gt_load_relaxed(&e->id);
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		if (!(seq & 1) && gt_load_relaxed(&e->seq) == seq)
			return id;
	}
	return 0;
}

/* The way that was written less often gives way. Two writers at once: one of them does not. */
static void cache_put(uint32_t parent, const struct gt_py_frame *f, int32_t addr, uint32_t id)
{
	struct entry *e = cache_set(parent, f, addr);
	uint32_t seq;

	e += gt_load_relaxed(&e[1].seq) < gt_load_relaxed(&e[0].seq);
	seq = gt_load_relaxed(&e->seq);
	if (seq & 1 || !__atomic_compare_exchange_n(&e->seq, &seq, seq + 1, false, __ATOMIC_ACQUIRE,
						    __ATOMIC_RELAXED))
		return;
	gt_store_barrier();
	gt_store_relaxed(&e->code, (uint64_t)f->code);
	gt_store_relaxed(&e->identity, f->identity);
	gt_store_relaxed(&e->addr, addr);
	gt_store_relaxed(&e->parent, parent);
	gt_store_relaxed(&e->id, id);
	gt_store(&e->seq, seq + 2);
}

static bool cache_ready(void)
{
	if (gt_likely(gt_load(&cache)))
		return true;
	gt_lock(&cache_lock);
	if (!cache)
		gt_store(&cache, (struct entry *)gt_map(CACHE_SETS * 2 * sizeof(*cache)));
	gt_unlock(&cache_lock);
	return cache;
}

/* ---- code objects -------------------------------------------------------------------------- */

static bool define_code(uint32_t id, struct gt_intern_key key, const void *arg)
{
	struct gt_rec_pycode rec = {
		.rec = {.kind = GT_REC_PYCODE, .length = sizeof(rec)},
		.id = id,
		.file = (uint32_t)(key.a >> 32),
		.name = (uint32_t)key.a,
		.qualname = (uint32_t)(key.b >> 32),
		.first_line = (int32_t)(uint32_t)key.b,
	};

	return gt_def_append(&rec.rec, sizeof(rec), NULL, 0, NULL, 0);
}

static uint32_t text_id(const struct gt_py_layout *l, const char *code, uint16_t offset)
{
	char text[GT_PY_TEXT_MAX];
	size_t length;

	if (!offset)
		return 0;
	length = gt_py_text(l, gt_py_ptr(code, offset), text, sizeof(text));
	if (offset == l->code_filename)
		length = gt_redact_path(text, length);
	return gt_def_string(text, length);
}

/* By content: a function that is made again and again is one code object in the file. */
static uint32_t resolve_code(const struct gt_py_layout *l, const char *code)
{
	uint64_t file = text_id(l, code, l->code_filename);
	uint64_t qualname = text_id(l, code, l->code_qualname);
	struct gt_intern_key key = {
		.a = file << 32 | text_id(l, code, l->code_name),
		.b = qualname << 32 | (uint32_t)gt_py_i32(code, l->code_first_line),
	};

	return gt_intern_add(&codes, key, define_code, NULL);
}

static uint32_t code_id(const struct gt_py_layout *l, const struct gt_py_frame *f)
{
	uint32_t id = cache_find(0, f, THE_CODE);

	if (id)
		return id;
	id = resolve_code(l, f->code);
	if (id)
		cache_put(0, f, THE_CODE, id);
	return id;
}

/* ---- nodes --------------------------------------------------------------------------------- */

/* A parent and the calls from C on the way to it count as one number, below here called parent. */
#define CALLS_SHIFT 24
_Static_assert(NODES_MAX <= 1u << CALLS_SHIFT, "a node id and the calls fit into 32 bits");

static uint32_t edge(uint32_t parent, uint32_t calls)
{
	return parent | (calls < GT_PY_CALLS_MAX ? calls : GT_PY_CALLS_MAX) << CALLS_SHIFT;
}

static bool define_node(uint32_t id, struct gt_intern_key key, const void *arg)
{
	uint32_t parent = (uint32_t)(key.a >> 32);
	struct gt_rec_pynode rec = {
		.rec = {.kind = GT_REC_PYNODE,
			.more = (uint16_t)(1 + (parent >> CALLS_SHIFT)),
			.length = sizeof(rec)},
		.id = id,
		.parent = parent & ((1u << CALLS_SHIFT) - 1),
		.code = (uint32_t)key.a,
		.line = (int32_t)(uint32_t)key.b,
	};

	return gt_def_append(&rec.rec, sizeof(rec), NULL, 0, NULL, 0);
}

static uint32_t node_id(uint32_t parent, uint32_t code, int32_t line)
{
	struct gt_intern_key key = {
		.a = (uint64_t)parent << 32 | code,
		.b = (uint32_t)line,
	};

	return gt_intern_add(&nodes, key, define_node, NULL);
}

/* Names and line are read if neither the node nor the code object has been seen. */
static uint32_t resolve_node(const struct gt_py_layout *l, uint32_t parent,
			     const struct gt_py_frame *f)
{
	uint32_t code = code_id(l, f), id;

	if (!code)
		return 0;
	id = node_id(parent, code, gt_py_code_line(l, f->code, f->addr));
	if (id)
		cache_put(parent, f, f->addr, id);
	return id;
}

/* Known by its content perhaps, if not by the number of the moment. */
static uint32_t find_lasting(const struct gt_py_layout *l, uint32_t parent,
			     const struct gt_py_frame *f)
{
	struct gt_py_frame lasting = *f;
	uint32_t id;

	lasting.identity = gt_py_fingerprint(l, f->code);
	id = cache_find(parent, &lasting, f->addr);
	if (!id)
		id = resolve_node(l, parent, &lasting);
	if (id)
		cache_put(parent, f, f->addr, id);
	return id;
}

uint32_t gt_py_node(const struct gt_py_layout *l, uint32_t parent, const struct gt_py_frame *f)
{
	uint32_t id;

	if (gt_unlikely(!cache_ready()))
		return 0;
	parent = edge(parent, f->calls);
	id = cache_find(parent, f, f->addr);
	if (gt_likely(id))
		return id;
	if (f->identity & GT_PY_MOMENT)
		return find_lasting(l, parent, f);
	return resolve_node(l, parent, f);
}

uint32_t gt_py_node_truncated(void)
{
	return node_id(0, 0, 0);
}

uint32_t gt_py_node_calls(uint32_t parent, uint32_t calls)
{
	return node_id(edge(parent, calls), 0, 0);
}

/* The pages are not in the child, and its file knows none of the ids. */
void gt_py_nodes_fork_child(void)
{
	cache = NULL;
	cache_lock = (struct gt_lock){0};
	nodes = (struct gt_intern){.limit = NODES_MAX};
	codes = (struct gt_intern){.limit = CODES_MAX};
}
