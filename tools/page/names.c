/* SPDX-License-Identifier: MIT */
/* See names.h. Called from build.c between the two passes over the history. */
#include "page/names.h"

#include <stdlib.h>
#include <string.h>
#include <uthash.h>
#include "model/label.h"
#include "model/tree.h"
#include "model/xalloc.h"
#include "page/text.h"
#include "symbols/library.h"

struct name { /* a text, or anything that can be written as one, and its number */
	char *key;
	uint32_t number;
	UT_hash_handle hh;
};

struct table { /* texts in the order met */
	struct name *names;
	json_t *rows;
};

struct spot_names {
	uint32_t line, owner, stream, leaf, near;
};

struct naming {
	struct gt_page_history *history;
	struct gt_symbols *symbols;
	struct gt_paths *paths;
	struct table lines, owners, streams, frames, nodes;
	struct spot_names *names; /* by spot */
};

static void clear(struct table *table)
{
	struct name *name, *next;

	HASH_ITER(hh, table->names, name, next) {
		HASH_DEL(table->names, name);
		free(name->key);
		free(name);
	}
}

/* The number of a key, which it takes; *ret_new: the caller must append its row. */
static uint32_t number_of(struct table *table, char *key, bool *ret_new)
{
	struct name *name;

	HASH_FIND_STR(table->names, key, name);
	*ret_new = !name;
	if (name) {
		free(key);
		return name->number;
	}
	name = gt_xcalloc(1, sizeof(*name));
	name->key = key;
	name->number = HASH_COUNT(table->names);
	HASH_ADD_KEYPTR(hh, table->names, name->key, strlen(name->key), name);
	return name->number;
}

static uint32_t number_text(struct table *table, const char *text)
{
	bool new;
	uint32_t number = number_of(table, gt_xstrdup(text), &new);

	if (new)
		json_array_append_new(table->rows, gt_page_string(text));
	return number;
}

/* ---- lines --------------------------------------------------------------------------------------- */

static uint32_t number_line(struct naming *naming, const struct gt_spot *spot)
{
	const struct gt_page_history *history = naming->history;
	const struct gt_site_def *site = &history->lane->site_defs[spot->site];
	bool torch = site->space == GT_SPACE_TORCH, new;
	struct gt_label label;
	uint32_t number;

	gt_label_make(naming->symbols, history->trace, spot->call ? spot->call : site, spot->stream,
		      GT_BY_LINE, &label);
	number = number_of(&naming->lines, gt_xasprintf("%d %s", torch, label.key), &new);
	if (new) {
		const char *source = gt_symbols_source(naming->symbols, label.file, label.line);

		json_array_append_new(naming->lines.rows,
				      json_pack("[o, i, o]", gt_page_string(label.text), torch,
						gt_page_string(source)));
	}
	gt_label_clear(&label);
	return number;
}

static uint32_t number_label(struct naming *naming, struct table *table, const struct gt_spot *spot,
			     enum gt_by by)
{
	struct gt_label label;
	uint32_t number;

	gt_label_make(naming->symbols, naming->history->trace,
		      &naming->history->lane->site_defs[spot->site], spot->stream, by, &label);
	number = number_text(table, label.text);
	gt_label_clear(&label);
	return number;
}

/* ---- stacks -------------------------------------------------------------------------------------- */

#define NO_NODE UINT32_MAX

static uint32_t descend(struct naming *naming, uint32_t parent, uint32_t frame)
{
	bool new;
	uint32_t number = number_of(&naming->nodes, gt_xasprintf("%u %u", parent, frame), &new);

	if (new)
		json_array_append_new(
			naming->nodes.rows,
			json_pack("[i, i]", parent == NO_NODE ? -1 : (int)parent, (int)frame));
	return number;
}

static uint32_t add_text(struct naming *naming, uint32_t parent, const char *file, int line,
			 const char *function, bool mine)
{
	bool new;
	uint32_t frame = number_of(&naming->frames,
				   gt_xasprintf("%d %d %s\n%s", line, mine, file, function), &new);

	if (new)
		json_array_append_new(naming->frames.rows,
				      json_pack("[o, i, o, i]", gt_page_string(file), line,
						gt_page_string(function), mine));
	return descend(naming, parent, frame);
}

static uint32_t add_frame(struct naming *naming, uint32_t parent, const struct gt_frame *frame)
{
	const char *file = *frame->file ? frame->file : frame->module;

	if (frame->kind == GT_FRAME_MARKER)
		return parent;
	return add_text(naming, parent, gt_paths_shown(naming->paths, file), frame->line,
			frame->function, frame->user);
}

/* What the user's innermost line called: an operation, a library's line or the library. */
static uint32_t add_end(struct naming *naming, uint32_t node, struct gt_stack stack,
			const struct gt_site_def *site)
{
	const struct gt_frame *line = gt_tree_library_line(stack);
	char *operation = gt_backward_text(stack);
	const char *owner = gt_symbols_owner(naming->symbols, site->native);

	if (operation)
		node = add_text(naming, node, "", 0, operation, false);
	else if (line)
		node = add_frame(naming, node, line);
	else if (*owner && gt_library_of_object(owner))
		node = add_text(naming, node, "", 0, gt_base_name(owner), false);
	free(operation);
	return node == NO_NODE ? add_text(naming, node, "", 0, "(no stack)", false) : node;
}

/* Whose stack it is that stands around an autograd thread's. */
static uint32_t add_caller(struct naming *naming, const struct gt_site_def *call, bool all)
{
	struct gt_stack stack =
		gt_symbols_frames(naming->symbols, call->native, call->python, GT_FRAMES_PYTHON);
	uint32_t node = NO_NODE;

	for (size_t i = stack.count; i-- > 0;)
		if (all || gt_tree_is_news(stack, i))
			node = add_frame(naming, node, &stack.frames[i]);
	return node;
}

static void add_stack(struct naming *naming, const struct gt_spot *spot, struct spot_names *ret)
{
	const struct gt_site_def *site = &naming->history->lane->site_defs[spot->site];
	bool called = spot->call && spot->call != site;
	struct gt_stack stack = gt_symbols_frames(naming->symbols, site->native, site->python,
						  called ? GT_FRAMES_THREAD : GT_FRAMES_MERGED);

	ret->leaf = called ? add_caller(naming, spot->call, true) : NO_NODE;
	ret->near = called ? add_caller(naming, spot->call, false) : NO_NODE;
	for (size_t i = stack.count; i-- > 0;) {
		ret->leaf = add_frame(naming, ret->leaf, &stack.frames[i]);
		if (gt_tree_is_news(stack, i))
			ret->near = add_frame(naming, ret->near, &stack.frames[i]);
	}
	ret->near = add_end(naming, ret->near, stack, site);
	if (ret->leaf == NO_NODE)
		ret->leaf = ret->near;
}

/* ---- which spots are shown ------------------------------------------------------------------------ */

struct ranked {
	uint64_t most;
	uint32_t spot;
};

static int by_most(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;

	if (x->most != y->most)
		return x->most < y->most ? 1 : -1;
	return x->spot < y->spot ? -1 : 1;
}

/* Returns the first spot of each shown number, which stands for those merged with it. */
static uint32_t *choose(struct naming *naming, size_t most, size_t *ret_merged)
{
	struct gt_page_history *history = naming->history;
	struct ranked *ranks = gt_xcalloc(history->spot_count, sizeof(*ranks));
	uint32_t *first = gt_xcalloc(history->spot_count, sizeof(*first));
	struct table merged = {0};
	size_t own = history->spot_count > most ? most : history->spot_count;

	for (size_t i = 0; i < history->spot_count; i++)
		ranks[i] = (struct ranked){history->spots[i].most, (uint32_t)i};
	if (own < history->spot_count)
		qsort(ranks, history->spot_count, sizeof(*ranks), by_most);
	for (size_t i = 0; i < history->spot_count; i++) {
		struct gt_spot *spot = &history->spots[ranks[i].spot];
		const struct spot_names *names = &naming->names[ranks[i].spot];
		bool new;

		spot->shown = (uint32_t)i;
		if (i >= own)
			spot->shown =
				(uint32_t)own +
				number_of(&merged,
					  gt_xasprintf("%u %u %u %u", names->line, spot->category,
						       names->owner, names->stream),
					  &new);
		if (i < own || new)
			first[spot->shown] = ranks[i].spot;
	}
	history->shown_count = own + HASH_COUNT(merged.names);
	*ret_merged = history->spot_count - own;
	clear(&merged);
	free(ranks);
	return first;
}

/* ---- the tables ------------------------------------------------------------------------------------ */

static json_t *category_names(void)
{
	json_t *names = json_array();

	for (int c = 0; c < GT_CATEGORIES; c++)
		json_array_append_new(names,
				      json_string(c ? gt_category_name(c) : "(not of torch)"));
	return names;
}

static void name_spots(struct naming *naming)
{
	const struct gt_page_history *history = naming->history;

	for (size_t i = 0; i < history->spot_count; i++) {
		const struct gt_spot *spot = &history->spots[i];
		struct spot_names *names = &naming->names[i];

		names->line = number_line(naming, spot);
		names->owner = number_label(naming, &naming->owners, spot, GT_BY_OWNER);
		names->stream = number_label(naming, &naming->streams, spot, GT_BY_STREAM);
	}
}

static json_t *pack(struct naming *naming, const uint32_t *first, size_t own)
{
	const struct gt_page_history *history = naming->history;
	json_t *leaf = json_array(), *near = json_array(), *line = json_array();
	json_t *category = json_array(), *owner = json_array(), *stream = json_array();

	for (size_t i = 0; i < history->shown_count; i++) {
		struct spot_names *names = &naming->names[first[i]];

		add_stack(naming, &history->spots[first[i]], names);
		json_array_append_new(leaf, json_integer(i < own ? (json_int_t)names->leaf : -1));
		json_array_append_new(near, json_integer(i < own ? (json_int_t)names->near : -1));
		json_array_append_new(line, json_integer(names->line));
		json_array_append_new(category, json_integer(history->spots[first[i]].category));
		json_array_append_new(owner, json_integer(names->owner));
		json_array_append_new(stream, json_integer(names->stream));
	}
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "cats",
			 category_names(), "lines", naming->lines.rows, "owners",
			 naming->owners.rows, "streams", naming->streams.rows, "frames",
			 naming->frames.rows, "nodes", naming->nodes.rows, "leaf", leaf, "near",
			 near, "sline", line, "scat", category, "sowner", owner, "sstream", stream);
}

json_t *gt_page_names(struct gt_page_history *history, struct gt_symbols *symbols,
		      struct gt_paths *paths, size_t most, size_t *ret_merged)
{
	struct naming naming = {.history = history, .symbols = symbols, .paths = paths};
	struct table *tables[] = {&naming.lines, &naming.owners, &naming.streams, &naming.frames,
				  &naming.nodes};
	uint32_t *first;
	json_t *header;

	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		tables[i]->rows = json_array();
	naming.names = gt_xcalloc(history->spot_count, sizeof(*naming.names));
	name_spots(&naming);
	first = choose(&naming, most, ret_merged);
	header = pack(&naming, first,
		      history->shown_count - (*ret_merged ? history->shown_count - most : 0));
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		clear(tables[i]);
	free(naming.names);
	free(first);
	return header;
}
