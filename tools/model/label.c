/* SPDX-License-Identifier: MIT */
/*
 * See label.h. The default row is the chain of the user's own frames, outermost first: the
 * innermost frame alone would blame a helper that everybody calls.
 */
#include "model/label.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "model/state.h"
#include "model/xalloc.h"
#include "symbols/library.h"

const char *gt_by_name(enum gt_by by)
{
	static const char *const names[] = {
		[GT_BY_LINE] = "line",	 [GT_BY_FUNCTION] = "function", [GT_BY_STACK] = "stack",
		[GT_BY_SITE] = "site",	 [GT_BY_OWNER] = "owner",	[GT_BY_STREAM] = "stream",
		[GT_BY_LEVEL] = "level", [GT_BY_CATEGORY] = "category", [GT_BY_INSIDE] = "inside",
		[GT_BY_STEP] = "step",	 [GT_BY_PHASE] = "phase",
	};

	return names[by];
}

enum form {
	FORM_SHORT, /* for a screen: base names, long chains without their middle */
	FORM_FULL,  /* for a pipe: whole paths, every function */
	FORM_KEY,   /* to compare: like full without folders, so that checkouts may differ */
	FORM_LOOSE, /* like key without line numbers and offsets, so that versions may differ */
};

static const char *path_in(const char *path, enum form form)
{
	return form == FORM_FULL ? path : gt_base_name(path);
}

/* Where a C++ function's parameters begin: "f" of "f(int)", all of "operator()" and "(anonymous".
 */
static int name_length(const char *function)
{
	int depth = 0;

	for (const char *at = function; *at; at++) {
		if (*at == '<')
			depth++;
		else if (*at == '>' && depth)
			depth--;
		if (*at != '(' || depth || strncmp(at, "(anonymous", 10) == 0)
			continue;
		if (at == function || (at - function >= 8 && !strncmp(at - 8, "operator", 8)))
			continue;
		return (int)(at - function);
	}
	return (int)strlen(function);
}

/* Without parameters; loose: "libx.so" of "libx.so.1+0x12f", whose address is the build's. */
static void put_name(FILE *text, const char *function, enum form form)
{
	const char *offset = form == FORM_LOOSE ? strstr(function, "+0x") : NULL;
	const char *version = offset ? strstr(function, ".so.") : NULL;
	int length = name_length(function);

	if (version && version < offset)
		length = (int)(version - function) + 3;
	else if (offset)
		length = (int)(offset - function);
	fprintf(text, "%.*s", length, function);
}

static bool is_top_level(const struct gt_frame *frame)
{
	return strcmp(frame->function, "<module>") == 0;
}

/* A line of Python says what it does; a native line needs its function. */
static bool shows_function(const struct gt_frame *frame, bool innermost, enum form form)
{
	if (is_top_level(frame))
		return false;
	return form != FORM_SHORT || innermost || frame->kind != GT_FRAME_PYTHON;
}

/* "file.c:12 f", ":12 f" in the same file as before, "libx.so f" without debug information. */
static void put_frame(FILE *text, const struct gt_frame *frame, const char *file_before,
		      bool function, enum form form)
{
	const char *where = *frame->file ? frame->file : frame->module;

	if (*where && !(file_before && strcmp(file_before, where) == 0))
		fputs(path_in(where, form), text);
	if (frame->line && form != FORM_LOOSE)
		fprintf(text, ":%d", frame->line);
	if (!function)
		return;
	fputs(*where ? " " : "", text);
	put_name(text, frame->function, form);
}

/* Frames of the user, innermost first: indexes into the stack. Returns how many. */
static size_t user_frames(struct gt_stack stack, size_t *ret)
{
	size_t count = 0;

	for (size_t i = 0; i < stack.count; i++)
		if (stack.frames[i].user)
			ret[count++] = i;
	/* That a script was started is no news if anything follows. */
	while (count > 1 && is_top_level(&stack.frames[ret[count - 1]]))
		count--;
	return count;
}

/* A comprehension is a function of its own in the line that holds it. */
static bool same_line(const struct gt_frame *a, const struct gt_frame *b)
{
	return a->kind == GT_FRAME_PYTHON && a->line == b->line && strcmp(a->file, b->file) == 0;
}

#define CHAIN 5 /* frames of a chain that fit a screen: the outermost, the innermost four */

/* Outermost first. Returns false when the stack has no frame of the user. */
static bool put_chain(FILE *text, struct gt_stack stack, enum form form)
{
	size_t *frames = gt_xcalloc(stack.count, sizeof(*frames));
	size_t count = user_frames(stack, frames);
	const struct gt_frame *before = NULL;

	for (size_t i = count; i-- > 0;) {
		const struct gt_frame *frame = &stack.frames[frames[i]];

		if (form == FORM_SHORT && before && count > CHAIN && i >= CHAIN - 1) {
			fputs(i == CHAIN - 1 ? " > .." : "", text);
			continue;
		}
		if (i && same_line(frame, &stack.frames[frames[i - 1]]))
			continue;
		fputs(before ? " > " : "", text);
		put_frame(text, frame, before ? before->file : NULL,
			  shows_function(frame, i == 0, form), form);
		before = frame;
	}
	free(frames);
	return count > 0;
}

/* What the engine itself asks for, after a node has returned. */
static const struct {
	const char *prefix, *name;
} engine_steps[] = {
	{"torch::autograd::InputBuffer::", "a sum of gradients"},
	{"torch::autograd::validate_outputs", "a broadcast"},
};

/* The operation that a frame of autograd stands for: "Addmm" of AddmmBackward0::apply. Or NULL. */
static const char *operation_in(const char *function, int *ret_length)
{
	static const char prefix[] = "torch::autograd::generated::";
	const char *end = strstr(function, "Backward");

	if (strncmp(function, prefix, sizeof(prefix) - 1) == 0 && end) {
		function += sizeof(prefix) - 1;
		*ret_length = (int)(end - function);
		return function;
	}
	for (size_t i = 0; i < sizeof(engine_steps) / sizeof(engine_steps[0]); i++) {
		const char *name = engine_steps[i].name;

		if (strncmp(function, engine_steps[i].prefix, strlen(engine_steps[i].prefix)))
			continue;
		*ret_length = (int)strlen(name);
		return name;
	}
	return NULL;
}

/*
 * Backward runs on a thread of its own. The operation whose gradient it computes; where nothing
 * better is known, "" for a stack that is backward at all. NULL: it is not.
 */
static const char *operation(struct gt_stack stack, int *ret_length)
{
	const char *found = NULL;

	*ret_length = 0;
	for (size_t i = 0; i < stack.count; i++) {
		const char *function = stack.frames[i].function;
		const char *name = operation_in(function, ret_length);

		if (name)
			return name;
		if (strcmp(function, "torch::autograd::Engine::thread_main") == 0)
			found = "";
	}
	return found;
}

static void put_operation(FILE *text, const char *operation, int length)
{
	fputs("backward", text);
	if (length)
		fprintf(text, " of %.*s", length, operation);
}

static void put_line(FILE *text, struct gt_stack stack, const struct gt_frame *fallback,
		     enum form form)
{
	int length;
	const char *backward = operation(stack, &length);
	bool chain = put_chain(text, stack, form);

	if (chain && backward)
		fputs(", ", text);
	if (backward)
		put_operation(text, backward, length);
	if (backward && !chain)
		fputs(" (autograd, no line)", text);
	if (chain || backward)
		return;
	if (fallback)
		put_frame(text, fallback, NULL, true, form);
	else
		fputs("(no stack)", text);
}

char *gt_backward_text(struct gt_stack stack)
{
	char *text = NULL;
	size_t size;
	int length;
	const char *backward = operation(stack, &length);
	FILE *file = backward ? open_memstream(&text, &size) : NULL;

	if (!file)
		return NULL;
	put_operation(file, backward, length);
	fclose(file);
	return text;
}

char *gt_label_frame(const struct gt_frame *frame, bool short_names)
{
	char *text = NULL;
	size_t size;
	FILE *file = open_memstream(&text, &size);

	put_frame(file, frame, NULL, true, short_names ? FORM_SHORT : FORM_FULL);
	fclose(file);
	return text;
}

static void put_stack(FILE *text, struct gt_stack stack)
{
	for (size_t i = stack.count; i-- > 0;) {
		const struct gt_frame *frame = &stack.frames[i];

		fprintf(text, "%s:%d %s;", gt_base_name(frame->file), frame->line, frame->function);
	}
}

/* Functions alone, outermost first; native frames of libraries differ between their versions. */
static void put_functions(FILE *text, struct gt_stack stack, bool libraries)
{
	for (size_t i = stack.count; i-- > 0;) {
		const struct gt_frame *frame = &stack.frames[i];

		if (!libraries && frame->kind != GT_FRAME_PYTHON && !frame->user)
			continue;
		fprintf(text, "%s ", gt_base_name(frame->file));
		put_name(text, frame->function, FORM_LOOSE);
		fputc(';', text);
	}
}

struct parts { /* what labels are made from */
	const struct gt_trace *trace;
	const struct gt_site_def *site;
	struct gt_stack stack;
	const struct gt_frame *user;
	const char *owner;
	int32_t stream;
};

static void put_stream(FILE *text, const struct parts *parts)
{
	if (parts->stream == GT_STREAM_MIXED)
		fputs("several streams", text);
	else if (parts->stream < 0)
		fputs("(stream unknown)", text);
	else if (parts->stream == 0)
		fputs("default stream", text);
	else
		fprintf(text, "stream %d", parts->stream);
}

static void put_function(FILE *text, const struct gt_frame *user, enum form form)
{
	if (!user) {
		fputs("(no stack)", text);
		return;
	}
	if (*user->file)
		fprintf(text, "%s ", path_in(user->file, form));
	put_name(text, user->function, form);
}

/* The innermost frame that has a name people know: of Python, else the one that stands for all. */
static const struct gt_frame *inside_frame(const struct parts *parts)
{
	for (size_t i = 0; i < parts->stack.count; i++)
		if (parts->stack.frames[i].kind == GT_FRAME_PYTHON)
			return &parts->stack.frames[i];
	return parts->user;
}

static void put_inside(FILE *text, const struct parts *parts, enum form form)
{
	int length;
	const char *backward = operation(parts->stack, &length);

	if (backward)
		put_operation(text, backward, length);
	else
		put_function(text, inside_frame(parts), form);
}

static const char *level_name(const struct gt_site_def *site)
{
	return site->space == GT_SPACE_TORCH ? "torch" : "driver";
}

static void put_text(FILE *text, const struct parts *parts, enum gt_by by, enum form form)
{
	if (by == GT_BY_OWNER)
		fputs(*parts->owner ? parts->owner : "(unknown)", text);
	else if (by == GT_BY_STREAM)
		put_stream(text, parts);
	else if (by == GT_BY_LEVEL)
		fputs(level_name(parts->site), text);
	else if (by == GT_BY_FUNCTION)
		put_function(text, parts->user, form);
	else if (by == GT_BY_INSIDE)
		put_inside(text, parts, form);
	else
		put_line(text, parts->stack, parts->user, form);
}

/*
 * Keys must mean the same in two traces: no ids, no folders (a run is compared with the same
 * program in another checkout).
 */
static void put_key(FILE *text, const struct parts *parts, enum gt_by by)
{
	if (by == GT_BY_STACK || by == GT_BY_SITE)
		put_stack(text, parts->stack);
	else
		put_text(text, parts, by, FORM_KEY);
	if (by == GT_BY_SITE)
		fprintf(text, " %u %u %u", parts->site->api, parts->site->space, parts->site->mask);
}

static char *text_of(const struct parts *parts, enum gt_by by, enum form form)
{
	char *text;
	size_t length;
	FILE *file = open_memstream(&text, &length);

	put_text(file, parts, by, form);
	fclose(file);
	return text;
}

static char *key_of(const struct parts *parts, enum gt_by by)
{
	char *text;
	size_t length;
	FILE *file = open_memstream(&text, &length);

	put_key(file, parts, by);
	fclose(file);
	return text;
}

static struct parts parts_of(struct gt_symbols *symbols, const struct gt_trace *trace,
			     const struct gt_site_def *site, int32_t stream)
{
	return (struct parts){
		.trace = trace,
		.site = site,
		.stack = gt_symbols_stack(symbols, site->native, site->python),
		.user = gt_symbols_user_frame(symbols, site->native, site->python),
		.owner = gt_symbols_owner(symbols, site->native),
		.stream = stream,
	};
}

void gt_label_make(struct gt_symbols *symbols, const struct gt_trace *trace,
		   const struct gt_site_def *site, int32_t stream, enum gt_by by,
		   struct gt_label *ret)
{
	struct parts parts = parts_of(symbols, trace, site, stream);
	const struct gt_frame *frame = by == GT_BY_INSIDE ? inside_frame(&parts) : parts.user;

	*ret = (struct gt_label){
		.key = key_of(&parts, by),
		.text = text_of(&parts, by, FORM_SHORT),
		.full = text_of(&parts, by, FORM_FULL),
		.file = frame ? frame->file : "",
		.function = frame ? frame->function : "",
		.line = frame ? frame->line : 0,
		.owner = parts.owner,
	};
}

static void put_loose(FILE *text, const struct parts *parts, enum gt_by by, int level)
{
	bool stack = by == GT_BY_STACK || by == GT_BY_SITE;
	const struct gt_frame *frame = by == GT_BY_INSIDE ? inside_frame(parts) : parts->user;
	const char *dot = !stack && frame ? strrchr(frame->function, '.') : NULL;

	if (!stack && level == 2)
		put_name(text, dot ? dot + 1 : frame ? frame->function : "", FORM_LOOSE);
	else if (!stack)
		put_text(text, parts, by, FORM_LOOSE);
	else if (level <= 2)
		put_functions(text, parts->stack, level == 1);
	else
		put_line(text, parts->stack, parts->user, FORM_LOOSE);
	if (stack && level == 3)
		put_inside(text, parts, FORM_LOOSE);
}

char *gt_label_loose(struct gt_symbols *symbols, const struct gt_trace *trace,
		     const struct gt_site_def *site, enum gt_by by, int level)
{
	bool stack = by == GT_BY_STACK || by == GT_BY_SITE;
	struct parts parts;
	char *text;
	size_t length;
	FILE *file;

	if (!gt_by_code(by) || level > (stack ? GT_LOOSEST : by == GT_BY_LINE ? 1 : 2))
		return NULL;
	parts = parts_of(symbols, trace, site, GT_STREAM_UNKNOWN);
	file = open_memstream(&text, &length);
	put_loose(file, &parts, by, level);
	fclose(file);
	return text;
}

void gt_label_clear(struct gt_label *label)
{
	free(label->key);
	free(label->text);
	free(label->full);
	*label = (struct gt_label){0};
}
