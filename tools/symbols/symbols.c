/* SPDX-License-Identifier: MIT */
/*
 * See symbols.h. Stacks by (native node, Python node), put together once: naming.c names their
 * addresses, merge.c joins the two. Ids come from a file: each is checked where it is followed, and
 * parents are smaller than their children, so that every walk ends.
 */
#include <stdlib.h>
#include <string.h>

#include "symbols/inside.h"
#include "symbols/object.h"

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

struct stack_key {
	uint32_t native, python;
	uint32_t which; /* enum gt_frames */
};

struct gt_symbols_stack {
	struct stack_key key;
	UT_hash_handle hh;
	size_t count, user; /* user = count: no frame stands for it */
	struct gt_frame frames[];
};

struct gt_symbols *gt_symbols_new(const struct gt_trace *trace)
{
	struct gt_symbols *symbols = calloc(1, sizeof(*symbols));

	if (!symbols)
		return NULL;
	symbols->trace = trace;
	symbols->text = gt_text_new();
	if (!symbols->text)
		return gt_symbols_free(symbols);
	symbols->naming = gt_naming_new(trace, symbols->text);
	symbols->sources = gt_sources_new(trace, symbols->text);
	symbols->owners = calloc(trace->module_count + 1, sizeof(*symbols->owners));
	if (!symbols->naming || !symbols->sources || !symbols->owners)
		return gt_symbols_free(symbols);
	return symbols;
}

static void free_stacks(struct gt_symbols *symbols)
{
	struct gt_symbols_stack *stack, *next;

	HASH_ITER(hh, symbols->stacks, stack, next) {
		HASH_DEL(symbols->stacks, stack);
		free(stack);
	}
}

struct gt_symbols *gt_symbols_free(struct gt_symbols *symbols)
{
	if (!symbols)
		return NULL;
	free_stacks(symbols);
	free(symbols->links);
	free(symbols->owners);
	gt_naming_free(symbols->naming);
	gt_sources_free(symbols->sources);
	gt_text_free(symbols->text);
	free(symbols);
	return NULL;
}

const struct gt_missing *gt_symbols_missing(const struct gt_symbols *symbols, size_t *ret_count)
{
	return gt_naming_missing(symbols->naming, ret_count);
}

const char *gt_frame_kind_name(enum gt_frame_kind kind)
{
	static const char *const names[] = {
		[GT_FRAME_NATIVE] = "native",
		[GT_FRAME_INLINE] = "inline",
		[GT_FRAME_PYTHON] = "python",
		[GT_FRAME_MARKER] = "marker",
	};

	return names[kind];
}

void gt_symbols_use_servers(void)
{
	gt_object_use_servers();
}

const char *gt_symbols_source(struct gt_symbols *symbols, const char *file, int line)
{
	return gt_sources_line(symbols->sources, file, line);
}

/* ---- stacks -------------------------------------------------------------------------------- */

/* The frame that stands for the stack: index in the list, or its length. */
static size_t choose(const struct gt_known_list *list)
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

static bool is_user(const struct gt_known *known)
{
	const struct gt_frame *frame = &known->frame;

	if (known->library != GT_LIBRARY_USER || frame->kind == GT_FRAME_MARKER)
		return false;
	/* a file but no module: torch named it, and did not say whose it is */
	return frame->kind == GT_FRAME_PYTHON ||
	       (*frame->file && *frame->module &&
		gt_library_of_frame(frame->function, frame->file) == GT_LIBRARY_USER);
}

/* The Python stack for which another thread's stack works, 0 = none. */
static uint32_t link_of(const struct gt_symbols *symbols, struct stack_key key)
{
	const size_t place = gt_symbols_place(symbols->trace, key.native, key.python);

	return symbols->links && place < gt_symbols_places(symbols->trace) ? symbols->links[place]
									   : 0;
}

static void collect(struct gt_symbols *symbols, struct stack_key key, struct gt_known_list *list)
{
	uint32_t native = key.which == GT_FRAMES_PYTHON ? 0 : key.native;
	uint32_t python = key.which == GT_FRAMES_NATIVE ? 0 : key.python;
	bool linked = key.which == GT_FRAMES_MERGED || key.which == GT_FRAMES_PYTHON;
	uint32_t link = linked ? link_of(symbols, key) : 0;

	gt_merge_frames(symbols->trace, symbols->naming, symbols->text, native, python, list);
	if (!link)
		return;
	gt_known_marker(list, "[called by]");
	gt_merge_frames(symbols->trace, symbols->naming, symbols->text, 0, link, list);
}

static struct gt_symbols_stack *make_stack(struct gt_symbols *symbols, struct stack_key key)
{
	struct gt_known_list list = {0};
	struct gt_symbols_stack *stack;
	size_t i;

	collect(symbols, key, &list);
	stack = malloc(sizeof(*stack) + list.count * sizeof(stack->frames[0]));
	if (stack) {
		stack->key = key;
		stack->count = list.count;
		stack->user = choose(&list);
		for (i = 0; i < list.count; i++) {
			stack->frames[i] = list.items[i].frame;
			stack->frames[i].user = is_user(&list.items[i]);
		}
		HASH_ADD(hh, symbols->stacks, key, sizeof(key), stack);
	}
	free(list.items);
	return stack;
}

static const struct gt_symbols_stack *stack_of(struct gt_symbols *symbols, struct stack_key key)
{
	struct gt_symbols_stack *stack;

	HASH_FIND(hh, symbols->stacks, &key, sizeof(key), stack);
	return stack ? stack : make_stack(symbols, key);
}

struct gt_stack gt_symbols_frames(struct gt_symbols *symbols, uint32_t native, uint32_t python,
				  enum gt_frames which)
{
	const struct gt_symbols_stack *stack =
		stack_of(symbols, (struct stack_key){native, python, which});

	return stack ? (struct gt_stack){stack->frames, stack->count} : (struct gt_stack){0};
}

struct gt_stack gt_symbols_stack(struct gt_symbols *symbols, uint32_t native, uint32_t python)
{
	return gt_symbols_frames(symbols, native, python, GT_FRAMES_MERGED);
}

const struct gt_frame *gt_symbols_user_frame(struct gt_symbols *symbols, uint32_t native,
					     uint32_t python)
{
	const struct gt_symbols_stack *stack =
		stack_of(symbols, (struct stack_key){native, python, GT_FRAMES_MERGED});

	return stack && stack->user < stack->count ? &stack->frames[stack->user] : NULL;
}

void gt_symbols_link(struct gt_symbols *symbols, const struct gt_site_def *worker, uint32_t python)
{
	const struct gt_trace *trace = symbols->trace;
	const size_t place = gt_symbols_place(trace, worker->native, worker->python);

	if (!symbols->links)
		symbols->links = calloc(gt_symbols_places(trace), sizeof(*symbols->links));
	if (symbols->links && place < gt_symbols_places(trace) && python < trace->pynode_count)
		symbols->links[place] = python;
}

/* ---- owner --------------------------------------------------------------------------------- */

static bool may_own(const char *path)
{
	enum gt_library library = gt_library_of_object(path);

	return library != GT_LIBRARY_CUDA && library != GT_LIBRARY_CXX &&
	       library != GT_LIBRARY_SYSTEM;
}

/* "" = it is not the one that asked. */
static const char *owner_name(struct gt_symbols *symbols, const struct gt_bytes *path)
{
	const char *base;

	if (!path->length || !may_own(path->text))
		return "";
	base = gt_base_name(path->text);
	return gt_text_clean(symbols->text, base, strlen(base));
}

/* Needs no look into an object file, only the modules' names. */
const char *gt_symbols_owner(struct gt_symbols *symbols, uint32_t native)
{
	const struct gt_trace *trace = symbols->trace;
	uint32_t id = native;

	while (id && id < trace->node_count) {
		const struct gt_node *node = &trace->nodes[id];
		size_t module = node->module < trace->module_count ? node->module : 0;

		if (!symbols->owners[module])
			symbols->owners[module] = owner_name(symbols, &trace->modules[module].path);
		if (*symbols->owners[module])
			return symbols->owners[module];
		id = node->parent < id ? node->parent : 0;
	}
	return "";
}
