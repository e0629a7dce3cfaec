/* SPDX-License-Identifier: MIT */
/*
 * Definitions -> tables indexed by id, and reports. Records are read in the order in which they
 * were written; ids must come in order and may only refer back, so that every index in the tables
 * is valid when it is stored and nobody behind us has to check one again.
 */
#include <stdlib.h>
#include <string.h>
#include "read/reader.h"

struct defs {
	struct gt_trace *trace;
	struct gt_reader *reader;
	size_t *mapped; /* modules mapped now, in the order of their records */
	size_t mapped_count, mapped_capacity;
	size_t last_module; /* index + 1 of the last look-up's; 0 = none */
};

/* What a record says about itself is wrong, or memory is short. */
static const char *const no_memory = "not enough memory";
static const char *const bad_order = "a definition is not in order";
static const char *const bad_length = "a definition's text is longer than its record";
static const char *const bad_reference = "a definition names something that is not defined";

static struct gt_block_of_text *new_text_block(struct gt_reader *reader, size_t size)
{
	struct gt_block_of_text *block = malloc(sizeof(*block) + size);

	if (!block)
		return NULL;
	block->next = reader->text;
	block->used = 0;
	block->size = size;
	reader->text = block;
	return block;
}

/* One terminator more, because consumers print it. */
int gt_text_keep(struct gt_reader *reader, const void *text, uint32_t length, struct gt_bytes *ret)
{
	struct gt_block_of_text *block = reader->text;
	const size_t need = (size_t)length + 1;

	if (!block || block->size - block->used < need)
		block = new_text_block(reader, need > 65536 ? need : 65536);
	if (!block)
		return -1;
	ret->text = block->text + block->used;
	ret->length = length;
	memcpy(block->text + block->used, text, length);
	block->text[block->used + length] = 0;
	block->used += need;
	return 0;
}

static const char *keep_text(struct defs *d, const uint8_t *text, uint32_t length,
			     struct gt_bytes *ret)
{
	return gt_text_keep(d->reader, text, length, ret) ? no_memory : NULL;
}

#define ADD(d, table, which) GT_ADD((d)->trace, table, which)

/* ---- one function per kind of record: NULL, or what is wrong with it ------------------------- */

static const char *add_info(struct defs *d, const void *rec, const uint8_t *text, size_t room)
{
	const struct gt_rec_info *r = rec;
	struct gt_info *info;
	const char *bad;

	if (r->key_length > room || r->value_length > room - r->key_length)
		return bad_length;
	info = ADD(d, info, INFOS);
	if (!info)
		return no_memory;
	bad = keep_text(d, text, r->key_length, &info->key);
	return bad ? bad : keep_text(d, text + r->key_length, r->value_length, &info->value);
}

static const char *add_string(struct defs *d, const void *rec, const uint8_t *text, size_t room)
{
	const struct gt_rec_string *r = rec;
	struct gt_bytes *string;

	if (r->id != d->trace->string_count)
		return bad_order;
	if (r->text_length > room)
		return bad_length;
	string = ADD(d, string, STRINGS);
	return string ? keep_text(d, text, r->text_length, string) : no_memory;
}

static const char *add_module(struct defs *d, const void *rec, const uint8_t *text, size_t room)
{
	const struct gt_rec_module *r = rec;
	struct gt_module *module;

	if (r->id != d->trace->module_count)
		return bad_order;
	if (r->path_length > room || r->build_id_length > sizeof(r->build_id))
		return bad_length;
	module = ADD(d, module, MODULES);
	if (!module || gt_grow(&d->mapped, &d->mapped_capacity, d->mapped_count, sizeof(size_t)))
		return no_memory;
	module->start = r->start;
	module->end = r->end;
	module->bias = r->bias;
	module->build_id_length = r->build_id_length;
	memcpy(module->build_id, r->build_id, sizeof(r->build_id));
	d->mapped[d->mapped_count++] = r->id;
	d->last_module = 0;
	return keep_text(d, text, r->path_length, &module->path);
}

/* Nodes that were defined before keep the module; only those that follow cannot lie in it. */
static const char *add_unload(struct defs *d, const void *rec, const uint8_t *text, size_t room)
{
	const struct gt_rec_unload *r = rec;
	size_t i;

	if (r->module == 0 || r->module >= d->trace->module_count)
		return bad_reference;
	d->trace->modules[r->module].unloaded_us = r->us ? r->us : 1;
	d->last_module = 0;
	for (i = 0; i < d->mapped_count && d->mapped[i] != r->module; i++)
		;
	if (i == d->mapped_count)
		return NULL;
	d->mapped_count--;
	memmove(&d->mapped[i], &d->mapped[i + 1], (d->mapped_count - i) * sizeof(size_t));
	return NULL;
}

static bool module_holds(const struct defs *d, size_t module, uint64_t pc)
{
	return d->trace->modules[module].start <= pc && pc < d->trace->modules[module].end;
}

/* The module mapped at a return address now; the youngest when ranges overlap. */
static uint32_t module_at(struct defs *d, uint64_t pc)
{
	if (pc <= GT_PC_INCOMPLETE)
		return 0;
	pc--;
	if (d->last_module && module_holds(d, d->last_module, pc))
		return (uint32_t)d->last_module;
	for (size_t i = d->mapped_count; i > 0; i--) {
		if (module_holds(d, d->mapped[i - 1], pc)) {
			d->last_module = d->mapped[i - 1];
			return (uint32_t)d->last_module;
		}
	}
	return 0;
}

/* parent < id makes every chain end: nobody who follows one needs to count its steps. */
static const char *add_node(struct defs *d, const void *rec, const uint8_t *text, size_t room)
{
	const struct gt_rec_node *r = rec;
	struct gt_node *node;

	if (r->id != d->trace->node_count)
		return bad_order;
	if (r->parent >= r->id)
		return bad_reference;
	node = ADD(d, node, NODES);
	if (!node)
		return no_memory;
	node->pc = r->pc;
	node->parent = r->parent;
	node->module = module_at(d, r->pc);
	return NULL;
}

static const char *add_pycode(struct defs *d, const void *rec, const uint8_t *text, size_t room)
{
	const struct gt_rec_pycode *r = rec;
	const size_t strings = d->trace->string_count;
	struct gt_pycode *code;

	if (r->id != d->trace->pycode_count)
		return bad_order;
	if (r->file >= strings || r->name >= strings || r->qualname >= strings)
		return bad_reference;
	code = ADD(d, pycode, PYCODES);
	if (!code)
		return no_memory;
	*code = (struct gt_pycode){r->file, r->name, r->qualname, r->first_line, false};
	return NULL;
}

static const char *add_pynode(struct defs *d, const void *rec, const uint8_t *text, size_t room)
{
	const struct gt_rec_pynode *r = rec;
	struct gt_pynode *node;

	if (r->id != d->trace->pynode_count)
		return bad_order;
	if (r->parent >= r->id || r->code >= d->trace->pycode_count)
		return bad_reference;
	node = ADD(d, pynode, PYNODES);
	if (!node)
		return no_memory;
	*node = (struct gt_pynode){r->parent, r->code, r->line, r->rec.more};
	return NULL;
}

int gt_sites_grow(struct gt_lane_sites *sites)
{
	if (gt_grow(&sites->defs, &sites->capacity, sites->count, sizeof(*sites->defs)))
		return -1;
	memset(&sites->defs[sites->count++], 0, sizeof(*sites->defs));
	return 0;
}

static const char *add_site(struct defs *d, const void *rec, const uint8_t *text, size_t room)
{
	const struct gt_rec_site *r = rec;
	struct gt_lane_sites *sites;

	if (r->lane >= GT_MAX_LANES)
		return bad_reference;
	sites = &d->reader->sites[r->lane];
	if (r->index != sites->count)
		return bad_order;
	if (r->native >= d->trace->node_count || r->python >= d->trace->pynode_count)
		return bad_reference;
	if (gt_sites_grow(sites))
		return no_memory;
	sites->defs[r->index] = (struct gt_site_def){r->native, r->python, r->api, r->space,
						     r->mask & ((1u << GT_TOTALS) - 1)};
	return NULL;
}

static const char *add_thread(struct defs *d, const void *rec, const uint8_t *text, size_t room)
{
	const struct gt_rec_thread *r = rec;
	struct gt_thread_def *thread;

	if (r->id != d->trace->thread_count)
		return bad_order;
	if (r->name_length > room)
		return bad_length;
	thread = ADD(d, thread, THREADS);
	if (!thread)
		return no_memory;
	thread->tid = r->tid;
	thread->us = r->us;
	return keep_text(d, text, r->name_length, &thread->name);
}

static const char *add_stream(struct defs *d, const void *rec, const uint8_t *text, size_t room)
{
	const struct gt_rec_stream *r = rec;
	struct gt_stream_def *stream;

	if (r->id != d->trace->stream_count)
		return bad_order;
	stream = ADD(d, stream, STREAMS);
	if (!stream)
		return no_memory;
	*stream = (struct gt_stream_def){r->handle, r->device};
	return NULL;
}

static const char *add_device(struct defs *d, const void *rec, const uint8_t *text, size_t room)
{
	const struct gt_rec_device *r = rec;
	struct gt_device_def *device;

	if (r->name_length > room)
		return bad_length;
	device = ADD(d, device, DEVICES);
	if (!device)
		return no_memory;
	device->ordinal = r->ordinal;
	device->total = r->total;
	memcpy(device->uuid, r->uuid, sizeof(r->uuid));
	return keep_text(d, text, r->name_length, &device->name);
}

static const char *add_context(struct defs *d, const void *rec, const uint8_t *text, size_t room)
{
	const struct gt_rec_context *r = rec;
	struct gt_context_def *context;

	if (r->native >= d->trace->node_count || r->python >= d->trace->pynode_count ||
	    r->thread >= d->trace->thread_count)
		return bad_reference;
	context = ADD(d, context, CONTEXTS);
	if (!context)
		return no_memory;
	*context = (struct gt_context_def){r->handle, r->us,	 r->bytes,  r->device,
					   r->flags,  r->native, r->python, r->thread};
	return NULL;
}

static const char *add_name(struct defs *d, const void *rec, const uint8_t *text, size_t room)
{
	const struct gt_rec_name *r = rec;
	const size_t strings = d->trace->string_count;
	struct gt_name_def *name;

	if (r->module >= d->trace->module_count || r->function >= strings || r->file >= strings)
		return bad_reference;
	name = ADD(d, name, NAMES);
	if (!name)
		return no_memory;
	*name = (struct gt_name_def){r->pc,   r->module, r->function,
				     r->file, r->line,	 r->inlined & 1};
	return NULL;
}

static const char *add_source(struct defs *d, const void *rec, const uint8_t *text, size_t room)
{
	const struct gt_rec_source *r = rec;
	struct gt_source_def *source;

	if (r->file >= d->trace->string_count || r->text >= d->trace->string_count)
		return bad_reference;
	source = ADD(d, source, SOURCES);
	if (!source)
		return no_memory;
	*source = (struct gt_source_def){r->file, r->text, r->line};
	return NULL;
}

static const char *add_pool(struct defs *d, const void *rec, const uint8_t *text, size_t room)
{
	const struct gt_rec_pool *r = rec;
	struct gt_pool_def *pool;

	if (r->id != d->trace->pool_count)
		return bad_order;
	pool = ADD(d, pool, POOLS);
	if (!pool)
		return no_memory;
	*pool = (struct gt_pool_def){r->first, r->second};
	return NULL;
}

static const char *add_added(struct defs *d, const void *rec, const uint8_t *text, size_t room)
{
	const struct gt_rec_added *r = rec;
	struct gt_lane_added *lane;

	if (r->lane >= GT_MAX_LANES)
		return bad_reference;
	if (r->count > room / sizeof(struct gt_added))
		return bad_length;
	lane = r->rec.kind == GT_REC_EVENTS ? &d->reader->added[r->lane]
					    : &d->reader->alive[r->lane];
	d->trace->merged = true;
	for (uint32_t i = 0; i < r->count; i++, text += sizeof(struct gt_added)) {
		struct gt_added added;

		memcpy(&added, text, sizeof(added));
		if (GT_HIGH16(added.requested_pool) >= d->trace->pool_count)
			return bad_reference;
		if (lane->count && added.which <= lane->at[lane->count - 1].which)
			return bad_order;
		if (gt_grow(&lane->at, &lane->capacity, lane->count, sizeof(*lane->at)))
			return no_memory;
		lane->at[lane->count++] = added;
	}
	return NULL;
}

/* text: what stands behind the fixed part, room bytes of it. NULL, or what is wrong. */
static const struct {
	size_t size;
	const char *(*add)(struct defs *d, const void *rec, const uint8_t *text, size_t room);
} records[] = {
	[GT_REC_INFO] = {sizeof(struct gt_rec_info), add_info},
	[GT_REC_STRING] = {sizeof(struct gt_rec_string), add_string},
	[GT_REC_MODULE] = {sizeof(struct gt_rec_module), add_module},
	[GT_REC_UNLOAD] = {sizeof(struct gt_rec_unload), add_unload},
	[GT_REC_NODE] = {sizeof(struct gt_rec_node), add_node},
	[GT_REC_PYCODE] = {sizeof(struct gt_rec_pycode), add_pycode},
	[GT_REC_PYNODE] = {sizeof(struct gt_rec_pynode), add_pynode},
	[GT_REC_SITE] = {sizeof(struct gt_rec_site), add_site},
	[GT_REC_THREAD] = {sizeof(struct gt_rec_thread), add_thread},
	[GT_REC_STREAM] = {sizeof(struct gt_rec_stream), add_stream},
	[GT_REC_DEVICE] = {sizeof(struct gt_rec_device), add_device},
	[GT_REC_CONTEXT] = {sizeof(struct gt_rec_context), add_context},
	[GT_REC_NAME] = {sizeof(struct gt_rec_name), add_name},
	[GT_REC_SOURCE] = {sizeof(struct gt_rec_source), add_source},
	[GT_REC_POOL] = {sizeof(struct gt_rec_pool), add_pool},
	[GT_REC_EVENTS] = {sizeof(struct gt_rec_added), add_added},
	[GT_REC_BLOCKS] = {sizeof(struct gt_rec_added), add_added},
};

#define KINDS (sizeof(records) / sizeof(records[0]))

/* Kinds of later versions are skipped, by their length. */
static const char *add_record(struct defs *d, const uint8_t *at, const struct gt_rec *rec)
{
	const size_t size = rec->kind < KINDS ? records[rec->kind].size : 0;

	if (!size)
		return NULL;
	if (rec->length < size)
		return "a definition is too short";
	return records[rec->kind].add(d, at, at + size, rec->length - size);
}

static const char *read_records(struct defs *d, const uint8_t *bytes, size_t length, size_t *ret_at)
{
	struct gt_rec rec;
	const char *bad;
	size_t at;

	for (at = 0; at < length; at += rec.length) {
		*ret_at = at;
		if (length - at < sizeof(rec))
			return "a definition is cut";
		memcpy(&rec, bytes + at, sizeof(rec));
		if (rec.length < sizeof(rec) || rec.length % 8 || rec.length > length - at)
			return "a definition's length is not sane";
		bad = add_record(d, bytes + at, &rec);
		if (bad)
			return bad;
	}
	return NULL;
}

/* In a partial trace what stands before the first bad record counts; what follows cannot be found.
 */
static int read_extent(struct defs *d, const struct gt_extent *e, struct gt_error *err)
{
	const struct gt_source *source = &d->reader->source;
	const size_t length = e->used - sizeof(*e);
	uint8_t *bytes = malloc(length + 1);
	const char *bad = NULL;
	size_t at = 0;
	int rc = 0;

	if (!bytes)
		return gt_fail_memory(err, source->path);
	if (gt_source_copy(source, e->offset + sizeof(*e), bytes, length))
		rc = gt_fail(err, source->path, "was cut while it was read");
	else
		bad = read_records(d, bytes, length, &at);
	if (bad && !d->trace->partial)
		rc = gt_damaged(err, source->path, e->offset + sizeof(*e) + at, "%s", bad);
	free(bytes);
	return rc;
}

int gt_defs_begin(struct gt_trace *trace)
{
	struct gt_reader *reader = trace->reader;
	bool whole = GT_ADD(trace, string, STRINGS) && GT_ADD(trace, module, MODULES) &&
		     GT_ADD(trace, node, NODES) && GT_ADD(trace, pycode, PYCODES) &&
		     GT_ADD(trace, pynode, PYNODES) && GT_ADD(trace, thread, THREADS) &&
		     GT_ADD(trace, stream, STREAMS) && GT_ADD(trace, pool, POOLS) &&
		     !gt_text_keep(reader, "", 0, &trace->strings[0]) &&
		     !gt_text_keep(reader, "", 0, &trace->threads[0].name) &&
		     !gt_text_keep(reader, "", 0, &trace->modules[0].path);

	for (size_t i = 0; whole && i < GT_MAX_LANES; i++)
		whole = !gt_sites_grow(&reader->sites[i]);
	return whole ? 0 : -1;
}

static int by_index(const void *a, const void *b)
{
	const struct gt_extent *const *x = a, *const *y = b;

	return (*x)->first_index < (*y)->first_index ? -1 : (*x)->first_index > (*y)->first_index;
}

int gt_defs_read(struct gt_trace *trace, const struct gt_extents *extents, struct gt_error *err)
{
	struct defs d = {.trace = trace, .reader = trace->reader};
	const struct gt_extent **sorted = calloc(extents->count + 1, sizeof(*sorted));
	size_t count = 0;
	int rc = 0;

	if (!sorted || gt_defs_begin(trace)) {
		free(sorted);
		return gt_fail_memory(err, trace->path);
	}
	for (size_t i = 0; i < extents->count; i++) {
		if (extents->at[i].kind == GT_EXTENT_DEFS)
			sorted[count++] = &extents->at[i];
	}
	if (count)
		qsort(sorted, count, sizeof(*sorted), by_index);
	for (size_t i = 0; !rc && i < count; i++)
		rc = read_extent(&d, sorted[i], err);
	free(sorted);
	free(d.mapped);
	return rc;
}

void gt_defs_free(struct gt_trace *trace)
{
	struct gt_block_of_text *block, *next;

	for (block = trace->reader->text; block; block = next) {
		next = block->next;
		free(block);
	}
	for (size_t i = 0; i < GT_MAX_LANES; i++) {
		free(trace->reader->sites[i].defs);
		free(trace->reader->added[i].at);
		free(trace->reader->alive[i].at);
	}
	free(trace->infos);
	free(trace->strings);
	free(trace->modules);
	free(trace->nodes);
	free(trace->pycodes);
	free(trace->pynodes);
	free(trace->threads);
	free(trace->streams);
	free(trace->devices);
	free(trace->contexts);
	free(trace->names);
	free(trace->sources);
	free(trace->reports);
	free(trace->pools);
}
