/* SPDX-License-Identifier: MIT */
/*
 * See shape.h. Values are a graph in which a dict may stand in a thousand places; torch writes each
 * segment, block and event once, and so they are read once: a second meeting is damage. That keeps
 * the work linear in the file's size. Addresses and sizes are held to what a trace can say. Called
 * by open.c.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "torch/frames.h"
#include "torch/memory.h"
#include "torch/shape.h"
#include "torch/value.h"

#define ADDRESSES ((uint64_t)1 << 57) /* as many as a block's key has room for */
#define SIZES	  ((uint64_t)1 << 48)

struct reading {
	const char *path;
	struct gt_values *values;
	struct gt_build *build;
	struct gt_torch *torch;
	struct gt_torch_frames *frames;
	struct gt_error *err;
	size_t segment_capacity, block_capacity;
	char place[64]; /* of what is read, for messages */
};

static int fail(struct reading *r, const char *format, ...) __attribute__((format(printf, 2, 3)));

static int fail(struct reading *r, const char *format, ...)
{
	char what[256];
	va_list args;

	va_start(args, format);
	vsnprintf(what, sizeof(what), format, args);
	va_end(args);
	r->err->status = 3;
	snprintf(r->err->text, sizeof(r->err->text), "%s: %s%s", r->path, r->place, what);
	return -1;
}

static int no_memory(struct reading *r)
{
	r->place[0] = 0;
	return fail(r, "not enough memory to read it");
}

static bool below(const struct gt_values *values, const struct gt_value *dict, enum gt_word key,
		  uint64_t limit, uint64_t *ret)
{
	return gt_number_at(values, dict, key, ret) && *ret < limit;
}

static bool meet(struct gt_value *value)
{
	bool first = !value->met;

	value->met = true;
	return first;
}

static uint32_t pool_at(struct reading *r, const struct gt_value *dict, enum gt_word key)
{
	const struct gt_value *pair = gt_at(r->values, dict, key);
	uint64_t first, second;

	if (!gt_is_list(pair) || pair->count != 2 ||
	    !gt_number(gt_item(r->values, pair, 0), &first) ||
	    !gt_number(gt_item(r->values, pair, 1), &second))
		return 0;
	return gt_build_pool(r->build, first, second);
}

/* ---- blocks -------------------------------------------------------------------------------- */

/* torch 1.13 and 2.0: what lived at the place of the block, the youngest first. */
static void read_history(struct reading *r, const struct gt_value *dict,
			 struct gt_torch_block *block)
{
	const struct gt_value *list = gt_at(r->values, dict, GT_WORD_history);
	const struct gt_value *youngest;

	if (!gt_is_list(list) || !list->count)
		return;
	youngest = gt_item(r->values, list, 0);
	below(r->values, youngest, GT_WORD_real_size, SIZES, &block->requested);
	block->stack = gt_torch_stack_of(r->frames, gt_at(r->values, youngest, GT_WORD_frames));
}

static int add_block(struct reading *r, const struct gt_torch_block *block)
{
	struct gt_torch *torch = r->torch;

	if (gt_torch_grow(&torch->blocks, &r->block_capacity, torch->block_count, sizeof(*block)))
		return no_memory(r);
	torch->blocks[torch->block_count++] = *block;
	return 0;
}

static int read_block(struct reading *r, struct gt_value *dict, uint64_t addr, uint64_t *ret_size)
{
	struct gt_torch_block block = {.addr = addr};
	enum gt_word state = gt_word_at(r->values, dict, GT_WORD_state);

	if (!gt_is(dict, GT_VALUE_DICT) || !meet(dict))
		return fail(r, "a block is none, or stands in two places");
	if (!state)
		return fail(r, "a block has no \"state\"");
	if (!below(r->values, dict, GT_WORD_size, SIZES, ret_size))
		return fail(r, "a block has no \"size\" that can be");
	block.size = *ret_size;
	block.pending =
		state == GT_WORD_active_pending_free || state == GT_WORD_active_awaiting_free;
	if ((!block.pending && state != GT_WORD_active_allocated) || !block.size)
		return 0;
	if (!below(r->values, dict, GT_WORD_requested_size, SIZES, &block.requested))
		block.requested = 0;
	block.stack = gt_torch_stack_of(r->frames, gt_at(r->values, dict, GT_WORD_frames));
	if (!gt_at(r->values, dict, GT_WORD_frames))
		read_history(r, dict, &block);
	return add_block(r, &block);
}

static int read_blocks(struct reading *r, const struct gt_value *dict,
		       struct gt_torch_segment *segment)
{
	struct gt_value *list = gt_at(r->values, dict, GT_WORD_blocks);
	uint64_t at = 0, size;

	segment->first = r->torch->block_count;
	if (!gt_is_list(list) || (list->count && !meet(list)))
		return fail(r, "it has no list of \"blocks\" of its own");
	for (size_t i = 0; i < list->count; i++) {
		if (read_block(r, gt_item(r->values, list, i), segment->addr + at, &size))
			return -1;
		at += size;
		if (at > segment->size)
			return fail(r, "its blocks do not fit into it");
	}
	segment->count = r->torch->block_count - segment->first;
	return 0;
}

/* ---- segments ------------------------------------------------------------------------------ */

static int read_segment(struct reading *r, struct gt_value *dict)
{
	struct gt_torch *torch = r->torch;
	struct gt_torch_segment segment = {0};
	uint64_t device = 0;

	if (!gt_is(dict, GT_VALUE_DICT) || !meet(dict))
		return fail(r, "is none, or stands in two places");
	if (gt_at(r->values, dict, GT_WORD_device) &&
	    !below(r->values, dict, GT_WORD_device, GT_TORCH_DEVICES, &device))
		return fail(r, "its \"device\" is no number below %d", GT_TORCH_DEVICES);
	if (!below(r->values, dict, GT_WORD_address, ADDRESSES, &segment.addr) ||
	    !below(r->values, dict, GT_WORD_total_size, SIZES, &segment.size) || !segment.size)
		return fail(r, "it has no \"address\" and \"total_size\" that can be");
	segment.device = (int)device;
	gt_number_at(r->values, dict, GT_WORD_stream, &segment.stream);
	segment.pool = pool_at(r, dict, GT_WORD_segment_pool_id);
	segment.small = gt_word_at(r->values, dict, GT_WORD_segment_type) == GT_WORD_small;
	segment.expandable = gt_true_at(r->values, dict, GT_WORD_is_expandable);
	segment.stack = gt_torch_stack_of(r->frames, gt_at(r->values, dict, GT_WORD_frames));
	if (read_blocks(r, dict, &segment))
		return -1;
	if (gt_torch_grow(&torch->segments, &r->segment_capacity, torch->segment_count,
			  sizeof(segment)))
		return no_memory(r);
	torch->segments[torch->segment_count++] = segment;
	return 0;
}

static int read_segments(struct reading *r, const struct gt_value *list)
{
	for (size_t i = 0; i < list->count; i++) {
		snprintf(r->place, sizeof(r->place), "damaged: segment %zu: ", i);
		if (read_segment(r, gt_item(r->values, list, i)))
			return -1;
	}
	return 0;
}

/* ---- events -------------------------------------------------------------------------------- */

static enum gt_torch_action action_of(enum gt_word word)
{
	switch (word) {
	case GT_WORD_alloc:
		return GT_TORCH_ALLOC;
	case GT_WORD_free_requested:
		return GT_TORCH_FREE_REQUESTED;
	case GT_WORD_free_completed:
		return GT_TORCH_FREE_COMPLETED;
	case GT_WORD_segment_alloc:
		return GT_TORCH_SEGMENT_ALLOC;
	case GT_WORD_segment_free:
		return GT_TORCH_SEGMENT_FREE;
	case GT_WORD_segment_map:
		return GT_TORCH_SEGMENT_MAP;
	case GT_WORD_segment_unmap:
		return GT_TORCH_SEGMENT_UNMAP;
	case GT_WORD_snapshot:
		return GT_TORCH_SNAPSHOT;
	case GT_WORD_oom:
		return GT_TORCH_OOM;
	default:
		return GT_TORCH_OTHER;
	}
}

static void note_event(struct gt_torch *torch, const struct gt_torch_event *event, bool timed)
{
	torch->timed |= timed;
	if (timed && (!torch->start_us || event->us < torch->start_us))
		torch->start_us = event->us;
	torch->free_stacks |= event->action == GT_TORCH_FREE_REQUESTED && event->stack.python;
}

static int read_event(struct reading *r, struct gt_value *dict, struct gt_torch_event *event)
{
	enum gt_word action = gt_word_at(r->values, dict, GT_WORD_action);
	bool timed;

	if (!gt_is(dict, GT_VALUE_DICT) || !meet(dict))
		return fail(r, "is none, or stands in two places");
	if (!action)
		return fail(r, "it has no \"action\"");
	event->action = (uint8_t)action_of(action);
	timed = below(r->values, dict, GT_WORD_time_us, (uint64_t)1 << 62, &event->us);
	if (event->action == GT_TORCH_OTHER)
		return 0;
	if (!below(r->values, dict, GT_WORD_size, SIZES, &event->size))
		return fail(r, "it has no \"size\" that can be");
	if (event->action == GT_TORCH_OOM)
		gt_number_at(r->values, dict, GT_WORD_device_free, &event->addr);
	else if (event->action != GT_TORCH_SNAPSHOT &&
		 !below(r->values, dict, GT_WORD_addr, ADDRESSES, &event->addr))
		return fail(r, "it has no \"addr\" that can be");
	gt_number_at(r->values, dict, GT_WORD_stream, &event->stream);
	event->pool = pool_at(r, dict, GT_WORD_pool_id);
	event->stack = gt_torch_stack_of(r->frames, gt_at(r->values, dict, GT_WORD_frames));
	note_event(r->torch, event, timed);
	return 0;
}

static int read_trace(struct reading *r, struct gt_value *list, size_t device)
{
	struct gt_torch_trace *trace = &r->torch->traces[device];
	size_t capacity = 0;

	snprintf(r->place, sizeof(r->place), "damaged: device %zu: ", device);
	if (!gt_is_list(list) || (list->count && !meet(list)))
		return fail(r, "its \"device_traces\" are no list of their own");
	for (size_t i = 0; i < list->count; i++) {
		if (gt_torch_grow(&trace->events, &capacity, trace->count, sizeof(*trace->events)))
			return no_memory(r);
		trace->events[trace->count] = (struct gt_torch_event){0};
		snprintf(r->place, sizeof(r->place), "damaged: device %zu, event %zu: ", device, i);
		if (read_event(r, gt_item(r->values, list, i), &trace->events[trace->count]))
			return -1;
		trace->count += trace->events[trace->count].action != GT_TORCH_OTHER;
	}
	return 0;
}

static int read_traces(struct reading *r, const struct gt_value *list)
{
	if (!list)
		return 0;
	snprintf(r->place, sizeof(r->place), "damaged: ");
	if (!gt_is_list(list) || list->count > GT_TORCH_DEVICES)
		return fail(r, "\"device_traces\" is no list of at most %d devices",
			    GT_TORCH_DEVICES);
	for (size_t i = 0; i < list->count; i++)
		if (read_trace(r, gt_item(r->values, list, i), i))
			return -1;
	return 0;
}

/* ---- settings ------------------------------------------------------------------------------ */

/* Keys are "1", "2", "4" ... in MiB. */
static void read_divisions(struct reading *r, const struct gt_value *dict)
{
	if (!gt_is(dict, GT_VALUE_DICT))
		return;
	for (size_t i = 0; i + 1 < dict->count && i < 64; i += 2) {
		const struct gt_value *key = gt_item(r->values, dict, i);
		char text[16] = "";
		unsigned long mib;

		if (!gt_is(key, GT_VALUE_TEXT) || key->count >= sizeof(text))
			continue;
		memcpy(text, key->text, key->count);
		mib = strtoul(text, NULL, 10);
		if (mib && mib < 65536)
			gt_number(gt_item(r->values, dict, i + 1),
				  &r->torch->settings.divisions[31 - __builtin_clz((unsigned)mib)]);
	}
}

static void read_settings(struct reading *r, const struct gt_value *dict)
{
	struct gt_torch_settings *settings = &r->torch->settings;

	settings->max_split = UINT64_MAX;
	if (!gt_is(dict, GT_VALUE_DICT))
		return;
	settings->known = true;
	settings->expandable = gt_true_at(r->values, dict, GT_WORD_expandable_segments);
	if (!gt_number_at(r->values, dict, GT_WORD_max_split_size, &settings->max_split))
		settings->max_split = UINT64_MAX; /* -1 = none */
	read_divisions(r, gt_at(r->values, dict, GT_WORD_roundup_power2_divisions));
	for (size_t i = 0; i + 1 < dict->count && i < 512; i += 2) {
		const struct gt_value *key = gt_item(r->values, dict, i);
		const struct gt_value *text = gt_item(r->values, dict, i + 1);

		if (gt_is(key, GT_VALUE_TEXT) && key->count == 23 && gt_is(text, GT_VALUE_TEXT) &&
		    !memcmp(key->text, "PYTORCH_CUDA_ALLOC_CONF", 23))
			gt_build_info(r->build, "env.PYTORCH_CUDA_ALLOC_CONF", text->text,
				      text->count);
	}
}

/* ---- the whole ----------------------------------------------------------------------------- */

static int not_one(struct reading *r, const char *why)
{
	r->place[0] = 0;
	return fail(r,
		    "a pickle, but not a torch memory snapshot (%s): those are written by "
		    "torch.cuda.memory._dump_snapshot",
		    why);
}

static int read_root(struct reading *r)
{
	struct gt_value *root = &r->values->at[r->values->root];
	struct gt_value *segments = root;

	if (gt_is(root, GT_VALUE_DICT))
		segments = gt_at(r->values, root, GT_WORD_segments);
	else if (!gt_is(root, GT_VALUE_LIST))
		return not_one(r, "neither a dict nor a list");
	if (!gt_is_list(segments))
		return not_one(r, "it has no list of \"segments\"");
	if (gt_is(root, GT_VALUE_LIST) && root->count &&
	    !gt_at(r->values, gt_item(r->values, root, 0), GT_WORD_blocks))
		return not_one(r, "its items have no \"blocks\"");
	read_settings(r, gt_at(r->values, root, GT_WORD_allocator_settings));
	if (read_segments(r, segments) ||
	    read_traces(r, gt_at(r->values, root, GT_WORD_device_traces)))
		return -1;
	r->torch->native = gt_torch_frames_native(r->frames);
	return 0;
}

int gt_torch_read(const char *path, struct gt_values *values, struct gt_build *build,
		  struct gt_torch *ret, struct gt_error *err)
{
	struct reading r = {
		.path = path, .values = values, .build = build, .torch = ret, .err = err};
	int rc;

	r.frames = gt_torch_frames_new(values, build);
	rc = r.frames ? read_root(&r) : no_memory(&r);
	gt_torch_frames_free(r.frames);
	if (rc)
		gt_torch_clear(ret);
	return rc;
}

void gt_torch_clear(struct gt_torch *torch)
{
	for (size_t i = 0; i < GT_TORCH_DEVICES; i++)
		free(torch->traces[i].events);
	free(torch->segments);
	free(torch->blocks);
	*torch = (struct gt_torch){0};
}
