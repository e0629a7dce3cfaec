/* SPDX-License-Identifier: MIT */
/*
 * See tree.h. Without --full a path is the user's own frames and, at its end, what they called: the
 * innermost line of a Python library, the operation of a backward pass, or the library that asked
 * for the memory. Called from cmd/tree.c.
 */
#define _GNU_SOURCE
#include "model/tree.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "model/label.h"
#include "model/xalloc.h"
#include "symbols/library.h"

struct growing {
	const struct gt_state *state;
	struct gt_symbols *symbols;
	struct gt_tree_style style;
};

static struct gt_tree *child(struct gt_tree *tree, const char *text, const struct gt_frame *frame)
{
	for (size_t i = 0; i < tree->inside_count; i++)
		if (strcmp(tree->inside[i].text, text) == 0)
			return &tree->inside[i];
	*GT_PUSH(tree->inside, tree->inside_count) =
		(struct gt_tree){.text = gt_xstrdup(text), .frame = frame};
	return &tree->inside[tree->inside_count - 1];
}

static struct gt_tree *descend(struct gt_tree *tree, const char *text, const struct gt_frame *frame,
			       const struct gt_hold *hold)
{
	tree = child(tree, text, frame);
	tree->bytes += hold->bytes;
	tree->count += hold->count;
	return tree;
}

/* The user's line with its text, if that is known. */
static char *user_text(const struct growing *growing, const struct gt_frame *frame)
{
	const char *source = gt_symbols_source(growing->symbols, frame->file, frame->line);
	char *where = gt_label_frame(frame, growing->style.short_names), *text;

	text = gt_xasprintf("%s%s%s", where, *source ? "  " : "", source);
	free(where);
	return text;
}

/* "nn/functional.py:2159 softmax": where it is installed does not matter, its package does. */
static char *library_text(const struct gt_frame *frame)
{
	struct gt_frame near = *frame;
	const char *slash = memrchr(near.file, '/', strlen(near.file));

	if (slash)
		slash = memrchr(near.file, '/', (size_t)(slash - near.file));
	if (slash)
		near.file = slash + 1;
	if (!*near.file)
		near.module = gt_base_name(near.module);
	return gt_label_frame(&near, false);
}

static struct gt_tree *add_frame(const struct growing *growing, struct gt_tree *tree,
				 const struct gt_frame *frame, const struct gt_hold *hold)
{
	char *text = frame->user ? user_text(growing, frame) : library_text(frame);

	tree = descend(tree, text, frame, hold);
	free(text);
	return tree;
}

const struct gt_frame *gt_tree_library_line(struct gt_stack stack)
{
	for (size_t i = 0; i < stack.count && !stack.frames[i].user; i++)
		if (stack.frames[i].kind == GT_FRAME_PYTHON)
			return &stack.frames[i];
		else if (stack.frames[i].kind == GT_FRAME_MARKER)
			return NULL;
	return NULL;
}

static void add_end(const struct growing *growing, struct gt_tree *tree, struct gt_stack stack,
		    const struct gt_site_def *site, const struct gt_hold *hold)
{
	const struct gt_frame *line = gt_tree_library_line(stack);
	char *operation = gt_backward_text(stack);
	const char *owner = gt_symbols_owner(growing->symbols, site->native);

	if (operation)
		descend(tree, operation, NULL, hold);
	else if (line)
		add_frame(growing, tree, line, hold);
	else if (*owner && gt_library_of_object(owner))
		descend(tree, owner, NULL, hold);
	else if (!stack.count)
		descend(tree, "(no stack)", NULL, hold);
	free(operation);
}

bool gt_tree_is_news(struct gt_stack stack, size_t index)
{
	if (!stack.frames[index].user)
		return false;
	if (strcmp(stack.frames[index].function, "<module>") != 0)
		return true;
	while (index-- > 0)
		if (stack.frames[index].user)
			return false;
	return true;
}

static void add_hold(const struct growing *growing, struct gt_tree *tree,
		     const struct gt_hold *hold)
{
	const struct gt_trace_lane *lane =
		&growing->state->trace->lanes[growing->state->lane_index];
	const struct gt_site_def *site = &lane->site_defs[hold->site];
	struct gt_stack stack = gt_symbols_frames(growing->symbols, site->native, site->python,
						  growing->style.frames);

	tree->bytes += hold->bytes;
	tree->count += hold->count;
	for (size_t i = stack.count; i-- > 0;)
		if (growing->style.full || gt_tree_is_news(stack, i))
			tree = add_frame(growing, tree, &stack.frames[i], hold);
	if (!growing->style.full || !stack.count)
		add_end(growing, tree, stack, site, hold);
}

static int by_bytes(const void *a, const void *b)
{
	const struct gt_tree *x = a, *y = b;

	if (x->bytes != y->bytes)
		return x->bytes < y->bytes ? 1 : -1;
	return strcmp(x->text, y->text);
}

static void sort(struct gt_tree *tree)
{
	if (tree->inside_count)
		qsort(tree->inside, tree->inside_count, sizeof(*tree->inside), by_bytes);
	for (size_t i = 0; i < tree->inside_count; i++)
		sort(&tree->inside[i]);
}

struct gt_tree gt_tree_of(const struct gt_state *state, struct gt_symbols *symbols,
			  struct gt_tree_style style)
{
	struct growing growing = {state, symbols, style};
	struct gt_tree tree = {0};

	for (size_t i = 0; i < state->hold_count; i++)
		add_hold(&growing, &tree, &state->holds[i]);
	sort(&tree);
	return tree;
}

void gt_tree_clear(struct gt_tree *tree)
{
	for (size_t i = 0; i < tree->inside_count; i++)
		gt_tree_clear(&tree->inside[i]);
	free(tree->inside);
	free(tree->text);
	*tree = (struct gt_tree){0};
}
