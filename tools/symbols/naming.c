/* SPDX-License-Identifier: MIT */
/*
 * See naming.h. Two caches, filled on demand: objects by module, frames by (module, pc). A trace
 * has millions of events, thousands of stacks, hundreds of addresses worth a look into an object
 * file.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "read/progress.h"
#include "symbols/cache.h"
#include "symbols/naming.h"

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

struct place_key {
	uint64_t pc;
	uint64_t module;
};

struct place { /* an address, named */
	struct place_key key;
	UT_hash_handle hh;
	size_t count;
	struct gt_known known[];
};

struct module {
	bool met, tried;
	struct gt_object *object;
	struct gt_cache *cache;
	const char *path; /* printable */
};

struct gt_naming {
	const struct gt_trace *trace;
	struct gt_text *text;
	struct module *modules; /* like trace->modules */
	struct place *places;
	const struct gt_name_def **packed; /* first of each address, by module and address */
	size_t packed_count;
	struct gt_missing *missing;
	size_t missing_count;
};

/* ---- names in a packed trace --------------------------------------------------------------- */

static int compare(uint32_t module, uint64_t pc, const struct gt_name_def *name)
{
	if (module != name->module)
		return module < name->module ? -1 : 1;
	return pc < name->pc ? -1 : pc > name->pc;
}

static int by_place(const void *a, const void *b)
{
	const struct gt_name_def *const *x = a, *const *y = b;
	int order = compare((*x)->module, (*x)->pc, *y);

	return order ? order : *x < *y ? -1 : *x > *y;
}

static int sort_packed(struct gt_naming *naming)
{
	const struct gt_trace *trace = naming->trace;

	naming->packed = calloc(trace->name_count + 1, sizeof(*naming->packed));
	if (!naming->packed)
		return -1;
	for (size_t i = 0; i < trace->name_count; i++) {
		const struct gt_name_def *name = &trace->names[i];

		if (!i || compare(name->module, name->pc, name - 1))
			naming->packed[naming->packed_count++] = name;
	}
	if (naming->packed_count)
		qsort(naming->packed, naming->packed_count, sizeof(*naming->packed), by_place);
	return 0;
}

static const struct gt_name_def *find_packed(const struct gt_naming *naming, struct place_key key)
{
	size_t low = 0, high = naming->packed_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct gt_name_def *name = naming->packed[middle];
		int order = compare((uint32_t)key.module, key.pc, name);

		if (!order)
			return name;
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return NULL;
}

static const char *string_of(const struct gt_naming *naming, uint32_t id)
{
	return id ? naming->trace->strings[id].text : NULL;
}

/* Those at one address, or 0. */
static size_t packed_lines(const struct gt_naming *naming, struct place_key key,
			   struct gt_line lines[GT_LINES_MAX])
{
	const struct gt_name_def *name = find_packed(naming, key);
	const struct gt_name_def *end = naming->trace->names + naming->trace->name_count;
	size_t count = 0;

	for (; name && name < end && !compare((uint32_t)key.module, key.pc, name) &&
	       count < GT_LINES_MAX;
	     name++)
		lines[count++] = (struct gt_line){
			.symbol = string_of(naming, name->function),
			.file = string_of(naming, name->file),
			.line = name->line,
			.inlined = name->inlined,
		};
	return count;
}

struct gt_naming *gt_naming_new(const struct gt_trace *trace, struct gt_text *text)
{
	struct gt_naming *naming = calloc(1, sizeof(*naming));

	if (!naming)
		return NULL;
	naming->trace = trace;
	naming->text = text;
	naming->modules = calloc(trace->module_count + 1, sizeof(*naming->modules));
	naming->missing = calloc(trace->module_count + 1, sizeof(*naming->missing));
	if (!naming->modules || !naming->missing || sort_packed(naming))
		return gt_naming_free(naming);
	return naming;
}

struct gt_naming *gt_naming_free(struct gt_naming *naming)
{
	struct place *place, *next;
	size_t i;

	if (!naming)
		return NULL;
	HASH_ITER(hh, naming->places, place, next) {
		HASH_DEL(naming->places, place);
		free(place);
	}
	for (i = 0; naming->modules && i < naming->trace->module_count; i++) {
		gt_cache_close(naming->modules[i].cache);
		gt_object_free(naming->modules[i].object);
	}
	free(naming->modules);
	free(naming->packed);
	free(naming->missing);
	free(naming);
	return NULL;
}

/* ---- modules ------------------------------------------------------------------------------- */

/* NULL: the address lies in no module. */
static struct module *module_of(struct gt_naming *naming, uint32_t id)
{
	const struct gt_module *def;
	struct module *module;

	if (!id || id >= naming->trace->module_count)
		return NULL;
	def = &naming->trace->modules[id];
	module = &naming->modules[id];
	if (!module->met) {
		module->met = true;
		module->path = gt_text_clean(naming->text, def->path.text, def->path.length);
		module->cache = gt_cache_open(
			def->build_id, def->build_id_length,
			gt_object_stamp(def->path.text, def->build_id, def->build_id_length));
	}
	return module;
}

/* Names that are no path ("[vdso]") have no file to miss. */
static struct gt_object *object_of(struct gt_naming *naming, uint32_t id)
{
	const struct gt_module *def = &naming->trace->modules[id];
	struct module *module = &naming->modules[id];
	int rc;

	if (module->tried)
		return module->object;
	module->tried = true;
	if (!def->path.length || def->path.text[0] != '/')
		return NULL;
	gt_progress_names(module->path);
	rc = gt_object_open(def->path.text, def->build_id, def->build_id_length, &module->object);
	if (rc)
		naming->missing[naming->missing_count++] =
			(struct gt_missing){module->path, rc == -ESTALE};
	return module->object;
}

bool gt_naming_readable(struct gt_naming *naming, uint32_t module)
{
	return module_of(naming, module) && object_of(naming, module);
}

const struct gt_missing *gt_naming_missing(const struct gt_naming *naming, size_t *ret_count)
{
	*ret_count = naming->missing_count;
	return naming->missing;
}

/* ---- native frames ------------------------------------------------------------------------- */

static const char *offset_name(struct gt_naming *naming, const char *path, uint64_t offset)
{
	char text[512];
	int length = snprintf(text, sizeof(text), "%.480s+0x%llx", gt_base_name(path),
			      (unsigned long long)offset);

	return gt_text_clean(naming->text, text, (size_t)length);
}

static struct gt_known name_line(struct gt_naming *naming, const struct module *module,
				 const struct gt_line *line, uint64_t offset)
{
	struct gt_known known = {.named = !!line->symbol};
	struct gt_frame *frame = &known.frame;

	frame->module = module->path;
	frame->kind = line->inlined ? GT_FRAME_INLINE : GT_FRAME_NATIVE;
	frame->line = line->line;
	frame->file = line->file ? gt_text_clean(naming->text, line->file, strlen(line->file)) : "";
	frame->function = line->symbol ? gt_text_function(naming->text, line->symbol)
				       : offset_name(naming, module->path, offset);
	known.library = gt_library_of_object(module->path);
	if (!known.library)
		known.library = gt_library_of_frame(frame->function, frame->file);
	return known;
}

/* A frame outside every module: generated code, or code whose module was not seen. */
static struct gt_known anonymous(void)
{
	return (struct gt_known){
		.frame = {"[anon]", "", "", 0, GT_FRAME_NATIVE, false},
		.library = GT_LIBRARY_SYSTEM,
	};
}

/* A return address belongs to the call before it. */
static size_t object_lines(struct gt_naming *naming, uint32_t id, uint64_t address,
			   struct gt_line lines[GT_LINES_MAX])
{
	struct module *module = &naming->modules[id];
	size_t count = module->cache ? gt_cache_find(module->cache, address, lines) : 0;

	if (count || !object_of(naming, id))
		return count;
	count = gt_object_lines(module->object, address, lines);
	if (module->cache)
		gt_cache_add(module->cache, address, lines, count);
	return count;
}

/* The frames at the pc of a key, innermost first; at least one. */
static size_t name_place(struct gt_naming *naming, struct place_key key,
			 struct gt_known known[GT_LINES_MAX])
{
	struct gt_line lines[GT_LINES_MAX] = {{0}};
	struct module *module = module_of(naming, (uint32_t)key.module);
	uint64_t offset;
	size_t i, count;

	if (!module) {
		known[0] = anonymous();
		return 1;
	}
	offset = key.pc - naming->trace->modules[key.module].bias;
	count = packed_lines(naming, key, lines);
	if (!count)
		count = object_lines(naming, (uint32_t)key.module, offset - 1, lines);
	if (!count)
		count = 1;
	for (i = 0; i < count; i++)
		known[i] = name_line(naming, module, &lines[i], offset);
	return count;
}

struct gt_named_pc gt_naming_at(struct gt_naming *naming, uint32_t module, uint64_t pc)
{
	struct place_key key = {pc, module};
	struct gt_known known[GT_LINES_MAX];
	struct place *place;
	size_t count;

	HASH_FIND(hh, naming->places, &key, sizeof(key), place);
	if (place)
		return (struct gt_named_pc){place->known, place->count};
	count = name_place(naming, key, known);
	place = malloc(sizeof(*place) + count * sizeof(known[0]));
	if (!place)
		return (struct gt_named_pc){0};
	place->key = key;
	place->count = count;
	memcpy(place->known, known, count * sizeof(known[0]));
	HASH_ADD(hh, naming->places, key, sizeof(key), place);
	return (struct gt_named_pc){place->known, place->count};
}
