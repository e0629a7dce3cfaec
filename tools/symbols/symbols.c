/* SPDX-License-Identifier: MIT */
/*
 * See symbols.h. Three caches, each filled on demand: objects by module, frames by (module, pc),
 * stacks by (native node, Python node). A trace has millions of events, thousands of stacks,
 * hundreds of addresses worth a look into an object file. Ids come from a file: each is checked
 * where it is followed, and parents are smaller than their children, so that every walk ends.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/library.h"
#include "symbols/object.h"
#include "symbols/symbols.h"
#include "symbols/text.h"

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

struct known { /* a frame and what is needed to judge it */
	struct gt_frame frame;
	enum gt_library library;
	bool named; /* the function's name is known */
};

struct place_key {
	uint64_t pc;
	uint64_t module;
};

struct place { /* an address, named: the function there and what is inlined */
	struct place_key key;
	UT_hash_handle hh;
	size_t count;
	struct known known[];
};

struct stack_key {
	uint32_t native, python;
};

struct stack {
	struct stack_key key;
	UT_hash_handle hh;
	size_t count, user; /* user = count: no frame stands for it */
	struct gt_frame frames[];
};

struct module {
	bool tried;
	struct gt_object *object;
	const char *path; /* printable */
};

struct list { /* a stack in the making */
	struct known *items;
	size_t count, room;
};

struct gt_symbols {
	const struct gt_trace *trace;
	struct gt_text *text;
	struct module *modules; /* like trace->modules */
	struct place *places;
	struct stack *stacks;
	struct gt_missing *missing;
	size_t missing_count;
};

struct gt_symbols *gt_symbols_new(const struct gt_trace *trace)
{
	struct gt_symbols *symbols = calloc(1, sizeof(*symbols));

	if (!symbols)
		return NULL;
	symbols->trace = trace;
	symbols->text = gt_text_new();
	symbols->modules = calloc(trace->module_count + 1, sizeof(*symbols->modules));
	symbols->missing = calloc(trace->module_count + 1, sizeof(*symbols->missing));
	if (!symbols->text || !symbols->modules || !symbols->missing)
		return gt_symbols_free(symbols);
	return symbols;
}

static void free_places(struct gt_symbols *symbols)
{
	struct place *place, *next;

	HASH_ITER(hh, symbols->places, place, next) {
		HASH_DEL(symbols->places, place);
		free(place);
	}
}

static void free_stacks(struct gt_symbols *symbols)
{
	struct stack *stack, *next;

	HASH_ITER(hh, symbols->stacks, stack, next) {
		HASH_DEL(symbols->stacks, stack);
		free(stack);
	}
}

struct gt_symbols *gt_symbols_free(struct gt_symbols *symbols)
{
	size_t i;

	if (!symbols)
		return NULL;
	free_places(symbols);
	free_stacks(symbols);
	for (i = 0; symbols->modules && i < symbols->trace->module_count; i++)
		gt_object_free(symbols->modules[i].object);
	free(symbols->modules);
	free(symbols->missing);
	gt_text_free(symbols->text);
	free(symbols);
	return NULL;
}

/* ---- modules ------------------------------------------------------------------------------- */

/* Names that are no path ("[vdso]") have no file to miss. */
static void open_object(struct gt_symbols *symbols, uint32_t id)
{
	const struct gt_module *def = &symbols->trace->modules[id];
	struct module *module = &symbols->modules[id];
	int rc;

	module->tried = true;
	module->path = gt_text_clean(symbols->text, def->path.text, def->path.length);
	if (!def->path.length || def->path.text[0] != '/')
		return;
	rc = gt_object_open(def->path.text, def->build_id, def->build_id_length, &module->object);
	if (rc)
		symbols->missing[symbols->missing_count++] =
			(struct gt_missing){module->path, rc == -ESTALE};
}

/* NULL: the address lies in no module. */
static struct module *module_of(struct gt_symbols *symbols, uint32_t id)
{
	if (!id || id >= symbols->trace->module_count)
		return NULL;
	if (!symbols->modules[id].tried)
		open_object(symbols, id);
	return &symbols->modules[id];
}

const struct gt_missing *gt_symbols_missing(const struct gt_symbols *symbols, size_t *ret_count)
{
	*ret_count = symbols->missing_count;
	return symbols->missing;
}

/* ---- native frames ------------------------------------------------------------------------- */

static const char *offset_name(struct gt_symbols *symbols, const char *path, uint64_t offset)
{
	char text[512];
	int length = snprintf(text, sizeof(text), "%.480s+0x%llx", gt_base_name(path),
			      (unsigned long long)offset);

	return gt_text_clean(symbols->text, text, (size_t)length);
}

static struct known name_line(struct gt_symbols *symbols, const struct module *module,
			      const struct gt_line *line, uint64_t offset)
{
	struct known known = {.named = !!line->symbol};
	struct gt_frame *frame = &known.frame;

	frame->module = module->path;
	frame->kind = line->inlined ? GT_FRAME_INLINE : GT_FRAME_NATIVE;
	frame->line = line->line;
	frame->file =
		line->file ? gt_text_clean(symbols->text, line->file, strlen(line->file)) : "";
	frame->function = line->symbol ? gt_text_function(symbols->text, line->symbol)
				       : offset_name(symbols, module->path, offset);
	known.library = gt_library_of_object(module->path);
	if (!known.library)
		known.library = gt_library_of_frame(frame->function, frame->file);
	return known;
}

static struct known marker(uint64_t pc)
{
	return (struct known){
		.frame = {pc == GT_PC_TRUNCATED ? "[truncated]" : "[incomplete]", "", "", 0,
			  GT_FRAME_MARKER},
		.library = GT_LIBRARY_SYSTEM,
	};
}

/* A frame outside every module: generated code, or code whose module was not seen. */
static struct known anonymous(void)
{
	return (struct known){
		.frame = {"[anon]", "", "", 0, GT_FRAME_NATIVE},
		.library = GT_LIBRARY_SYSTEM,
	};
}

/* The frames at the pc of a key, innermost first; at least one. */
static size_t name_place(struct gt_symbols *symbols, struct place_key key,
			 struct known known[GT_LINES_MAX])
{
	struct gt_line lines[GT_LINES_MAX] = {{0}};
	struct module *module = module_of(symbols, (uint32_t)key.module);
	uint64_t offset;
	size_t i, count = 1;

	if (!module) {
		known[0] = anonymous();
		return 1;
	}
	offset = key.pc - symbols->trace->modules[key.module].bias;
	/* a return address belongs to the call before it */
	if (module->object)
		count = gt_object_lines(module->object, offset - 1, lines);
	for (i = 0; i < count; i++)
		known[i] = name_line(symbols, module, &lines[i], offset);
	return count;
}

static const struct place *place_of(struct gt_symbols *symbols, const struct gt_node *node)
{
	struct place_key key = {node->pc, node->module};
	struct known known[GT_LINES_MAX];
	struct place *place;
	size_t count;

	HASH_FIND(hh, symbols->places, &key, sizeof(key), place);
	if (place)
		return place;
	count = name_place(symbols, key, known);
	place = malloc(sizeof(*place) + count * sizeof(known[0]));
	if (!place)
		return NULL;
	place->key = key;
	place->count = count;
	memcpy(place->known, known, count * sizeof(known[0]));
	HASH_ADD(hh, symbols->places, key, sizeof(key), place);
	return place;
}

/* ---- stacks -------------------------------------------------------------------------------- */

static void add(struct list *list, const struct known *known, size_t count)
{
	if (list->count + count > list->room) {
		size_t room = 2 * list->room + count + 64;
		struct known *grown = reallocarray(list->items, room, sizeof(*grown));

		if (!grown)
			return;
		list->items = grown;
		list->room = room;
	}
	memcpy(list->items + list->count, known, count * sizeof(*known));
	list->count += count;
}

static const char *string_of(struct gt_symbols *symbols, uint32_t id)
{
	const struct gt_trace *trace = symbols->trace;

	return id && id < trace->string_count
		       ? gt_text_clean(symbols->text, trace->strings[id].text,
				       trace->strings[id].length)
		       : "";
}

static struct known python_frame(struct gt_symbols *symbols, const struct gt_pynode *node)
{
	const struct gt_trace *trace = symbols->trace;
	struct gt_pycode code = {0};
	struct known known = {.named = true};

	if (!node->code)
		return marker(GT_PC_TRUNCATED);
	if (node->code < trace->pycode_count)
		code = trace->pycodes[node->code];
	known.frame = (struct gt_frame){
		.function = string_of(symbols, code.qualname ? code.qualname : code.name),
		.file = string_of(symbols, code.file),
		.module = "",
		.line = node->line,
		.kind = GT_FRAME_PYTHON,
	};
	known.library = gt_library_of_python(known.frame.file);
	return known;
}

static void add_python(struct gt_symbols *symbols, struct list *list, uint32_t id)
{
	const struct gt_trace *trace = symbols->trace;

	while (id && id < trace->pynode_count) {
		const struct gt_pynode *node = &trace->pynodes[id];
		struct known known = python_frame(symbols, node);

		add(list, &known, 1);
		id = node->parent < id ? node->parent : 0;
	}
}

/* The recorder's own frames, where a call went through it, say nothing to anyone. */
static bool is_recorder(const struct place *place)
{
	return !strncmp(gt_base_name(place->known[0].frame.module), "libgputrace", 11);
}

/* The Python frames, where there are some, take the place of the interpreter, once. */
static void add_place(struct gt_symbols *symbols, struct list *list, const struct place *place,
		      uint32_t python, bool *inserted)
{
	if (python && place->known[0].library == GT_LIBRARY_PYTHON) {
		if (!*inserted)
			add_python(symbols, list, python);
		*inserted = true;
	} else if (!is_recorder(place)) {
		add(list, place->known, place->count);
	}
}

static void add_frames(struct gt_symbols *symbols, struct list *list, struct stack_key key)
{
	const struct gt_trace *trace = symbols->trace;
	uint32_t id = key.native;
	bool inserted = false;

	while (id && id < trace->node_count) {
		const struct gt_node *node = &trace->nodes[id];
		const struct place *place;

		if (node->pc == GT_PC_TRUNCATED || node->pc == GT_PC_INCOMPLETE) {
			struct known mark = marker(node->pc);

			add(list, &mark, 1);
		} else if ((place = place_of(symbols, node))) {
			add_place(symbols, list, place, key.python, &inserted);
		}
		id = node->parent < id ? node->parent : 0;
	}
	if (!inserted)
		add_python(symbols, list, key.python);
}

/* The frame that stands for the stack: index in the list, or its length. */
static size_t choose(const struct list *list)
{
	size_t i, named = list->count;

	for (i = list->count; i > 0; i--)
		if (list->items[i - 1].named)
			named = i - 1;
	for (i = 0; i < list->count; i++)
		if (list->items[i].library == GT_LIBRARY_USER)
			return i;
	return named < list->count || !list->count ? named : 0;
}

static struct stack *make_stack(struct gt_symbols *symbols, struct stack_key key)
{
	struct list list = {0};
	struct stack *stack;
	size_t i;

	add_frames(symbols, &list, key);
	stack = malloc(sizeof(*stack) + list.count * sizeof(stack->frames[0]));
	if (stack) {
		stack->key = key;
		stack->count = list.count;
		stack->user = choose(&list);
		for (i = 0; i < list.count; i++)
			stack->frames[i] = list.items[i].frame;
		HASH_ADD(hh, symbols->stacks, key, sizeof(key), stack);
	}
	free(list.items);
	return stack;
}

static const struct stack *stack_of(struct gt_symbols *symbols, uint32_t native, uint32_t python)
{
	struct stack_key key = {native, python};
	struct stack *stack;

	HASH_FIND(hh, symbols->stacks, &key, sizeof(key), stack);
	return stack ? stack : make_stack(symbols, key);
}

struct gt_stack gt_symbols_stack(struct gt_symbols *symbols, uint32_t native, uint32_t python)
{
	const struct stack *stack = stack_of(symbols, native, python);

	return stack ? (struct gt_stack){stack->frames, stack->count} : (struct gt_stack){0};
}

const struct gt_frame *gt_symbols_user_frame(struct gt_symbols *symbols, uint32_t native,
					     uint32_t python)
{
	const struct stack *stack = stack_of(symbols, native, python);

	return stack && stack->user < stack->count ? &stack->frames[stack->user] : NULL;
}

/* ---- owner --------------------------------------------------------------------------------- */

static bool may_own(const char *path)
{
	enum gt_library library = gt_library_of_object(path);

	return library != GT_LIBRARY_CUDA && library != GT_LIBRARY_CXX &&
	       library != GT_LIBRARY_SYSTEM;
}

/* Needs no look into an object file, only the modules' names. */
const char *gt_symbols_owner(struct gt_symbols *symbols, uint32_t native)
{
	const struct gt_trace *trace = symbols->trace;
	uint32_t id = native;

	while (id && id < trace->node_count) {
		const struct gt_node *node = &trace->nodes[id];
		const struct gt_module *module =
			&trace->modules[node->module < trace->module_count ? node->module : 0];

		if (module->path.length && may_own(module->path.text)) {
			const char *base = gt_base_name(module->path.text);

			return gt_text_clean(symbols->text, base, strlen(base));
		}
		id = node->parent < id ? node->parent : 0;
	}
	return "";
}
