/* SPDX-License-Identifier: MIT */
/*
 * See frames.h. torch writes each stack and each frame once and refers to it, so what was found is
 * kept by the number of the value: a million events cost a million look-ups in an array. C++ frames
 * stand between Python's where torch put them, so both become nodes of one path. Called by shape.c.
 */
#include <stdlib.h>
#include <string.h>

#include "torch/frames.h"
#include "torch/memory.h"
#include "torch/value.h"

struct frame {
	uint32_t function, file;
	int32_t line;
	bool native, engine;
};

struct gt_torch_frames {
	const struct gt_values *values;
	struct gt_build *build;
	uint32_t *known; /* by value: of a list its stack's, of a dict its frame's index, plus 1 */
	struct gt_torch_stack *stacks;
	struct frame *frames;
	size_t stack_count, frame_count, stack_capacity, frame_capacity;
	bool native;
};

struct gt_torch_frames *gt_torch_frames_new(const struct gt_values *values, struct gt_build *build)
{
	struct gt_torch_frames *frames = calloc(1, sizeof(*frames));

	if (!frames)
		return NULL;
	frames->values = values;
	frames->build = build;
	frames->known = calloc(values->count, sizeof(*frames->known));
	return frames->known ? frames : gt_torch_frames_free(frames);
}

struct gt_torch_frames *gt_torch_frames_free(struct gt_torch_frames *frames)
{
	if (!frames)
		return NULL;
	free(frames->known);
	free(frames->stacks);
	free(frames->frames);
	free(frames);
	return NULL;
}

bool gt_torch_frames_native(const struct gt_torch_frames *frames)
{
	return frames->native;
}

static bool starts(const struct gt_value *text, const char *with)
{
	return text->count >= strlen(with) && !memcmp(text->text, with, strlen(with));
}

static bool ends(const struct gt_value *text, const char *with)
{
	const size_t length = strlen(with);

	return text->count >= length && !memcmp(text->text + text->count - length, with, length);
}

/* Files of Python, and what it makes up for code that has none: "<string>", "<frozen os>". */
static bool is_python(const struct gt_value *file)
{
	return ends(file, ".py") || starts(file, "<");
}

static struct frame describe(struct gt_torch_frames *frames, const struct gt_value *dict)
{
	static const struct gt_value none = {.kind = GT_VALUE_TEXT, .text = ""};
	const struct gt_value *file = gt_at(frames->values, dict, GT_WORD_filename);
	const struct gt_value *name = gt_at(frames->values, dict, GT_WORD_name);
	uint64_t line = 0;

	file = gt_is(file, GT_VALUE_TEXT) ? file : &none;
	name = gt_is(name, GT_VALUE_TEXT) ? name : &none;
	gt_number_at(frames->values, dict, GT_WORD_line, &line);
	return (struct frame){
		.function = gt_build_string(frames->build, name->text, name->count),
		.file = gt_build_string(frames->build, file->text, file->count),
		.line = line < INT32_MAX ? (int32_t)line : 0,
		.native = !is_python(file),
		.engine = starts(name, "torch::autograd::Engine::thread_main") ||
			  starts(name, "torch::autograd::Engine::thread_init"),
	};
}

static const struct frame *frame_at(struct gt_torch_frames *frames, uint32_t number)
{
	static const struct frame nothing;

	if (!frames->known[number]) {
		if (gt_torch_grow(&frames->frames, &frames->frame_capacity, frames->frame_count,
				  sizeof(*frames->frames)))
			return &nothing;
		frames->frames[frames->frame_count++] =
			describe(frames, &frames->values->at[number]);
		frames->known[number] = (uint32_t)frames->frame_count;
	}
	return &frames->frames[frames->known[number] - 1];
}

static struct gt_torch_stack make(struct gt_torch_frames *frames, const struct gt_value *list)
{
	struct gt_torch_stack stack = {0};

	for (size_t i = list->count; i-- > 0;) {
		const struct frame *frame;

		if (!gt_is(gt_item(frames->values, list, i), GT_VALUE_DICT))
			continue;
		frame = frame_at(frames, list->items[i]);
		stack.engine |= frame->engine;
		frames->native |= frame->native;
		stack.python = gt_build_frame(frames->build,
					      &(struct gt_build_frame){.parent = stack.python,
								       .function = frame->function,
								       .file = frame->file,
								       .line = frame->line,
								       .native = frame->native});
	}
	return stack;
}

struct gt_torch_stack gt_torch_stack_of(struct gt_torch_frames *frames, const struct gt_value *list)
{
	struct gt_torch_stack stack = {0};
	size_t number;

	if (!gt_is_list(list) || !list->count)
		return stack;
	number = (size_t)(list - frames->values->at);
	if (frames->known[number])
		return frames->stacks[frames->known[number] - 1];
	stack = make(frames, list);
	if (!gt_torch_grow(&frames->stacks, &frames->stack_capacity, frames->stack_count,
			   sizeof(*frames->stacks))) {
		frames->stacks[frames->stack_count++] = stack;
		frames->known[number] = (uint32_t)frames->stack_count;
	}
	return stack;
}
