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

#include "symbols/naming.h"
#include "symbols/object.h"

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
	bool tried;
	struct gt_object *object;
	const char *path; /* printable */
};

struct gt_naming {
	const struct gt_trace *trace;
	struct gt_text *text;
	struct module *modules; /* like trace->modules */
	struct place *places;
	struct gt_missing *missing;
	size_t missing_count;
};

struct gt_naming *gt_naming_new(const struct gt_trace *trace, struct gt_text *text)
{
	struct gt_naming *naming = calloc(1, sizeof(*naming));

	if (!naming)
		return NULL;
	naming->trace = trace;
	naming->text = text;
	naming->modules = calloc(trace->module_count + 1, sizeof(*naming->modules));
	naming->missing = calloc(trace->module_count + 1, sizeof(*naming->missing));
	if (!naming->modules || !naming->missing)
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
	for (i = 0; naming->modules && i < naming->trace->module_count; i++)
		gt_object_free(naming->modules[i].object);
	free(naming->modules);
	free(naming->missing);
	free(naming);
	return NULL;
}

/* ---- modules ------------------------------------------------------------------------------- */

/* Names that are no path ("[vdso]") have no file to miss. */
static void open_object(struct gt_naming *naming, uint32_t id)
{
	const struct gt_module *def = &naming->trace->modules[id];
	struct module *module = &naming->modules[id];
	int rc;

	module->tried = true;
	module->path = gt_text_clean(naming->text, def->path.text, def->path.length);
	if (!def->path.length || def->path.text[0] != '/')
		return;
	rc = gt_object_open(def->path.text, def->build_id, def->build_id_length, &module->object);
	if (rc)
		naming->missing[naming->missing_count++] =
			(struct gt_missing){module->path, rc == -ESTALE};
}

/* NULL: the address lies in no module. */
static struct module *module_of(struct gt_naming *naming, uint32_t id)
{
	if (!id || id >= naming->trace->module_count)
		return NULL;
	if (!naming->modules[id].tried)
		open_object(naming, id);
	return &naming->modules[id];
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
		.frame = {"[anon]", "", "", 0, GT_FRAME_NATIVE},
		.library = GT_LIBRARY_SYSTEM,
	};
}

/* The frames at the pc of a key, innermost first; at least one. */
static size_t name_place(struct gt_naming *naming, struct place_key key,
			 struct gt_known known[GT_LINES_MAX])
{
	struct gt_line lines[GT_LINES_MAX] = {{0}};
	struct module *module = module_of(naming, (uint32_t)key.module);
	uint64_t offset;
	size_t i, count = 1;

	if (!module) {
		known[0] = anonymous();
		return 1;
	}
	offset = key.pc - naming->trace->modules[key.module].bias;
	/* a return address belongs to the call before it */
	if (module->object)
		count = gt_object_lines(module->object, offset - 1, lines);
	for (i = 0; i < count; i++)
		known[i] = name_line(naming, module, &lines[i], offset);
	return count;
}

struct gt_named gt_naming_at(struct gt_naming *naming, uint32_t module, uint64_t pc)
{
	struct place_key key = {pc, module};
	struct gt_known known[GT_LINES_MAX];
	struct place *place;
	size_t count;

	HASH_FIND(hh, naming->places, &key, sizeof(key), place);
	if (place)
		return (struct gt_named){place->known, place->count};
	count = name_place(naming, key, known);
	place = malloc(sizeof(*place) + count * sizeof(known[0]));
	if (!place)
		return (struct gt_named){0};
	place->key = key;
	place->count = count;
	memcpy(place->known, known, count * sizeof(known[0]));
	HASH_ADD(hh, naming->places, key, sizeof(key), place);
	return (struct gt_named){place->known, place->count};
}
