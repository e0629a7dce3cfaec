/* SPDX-License-Identifier: MIT */
/*
 * See memory_viz.h. Strings, frames and stacks are written once and referred to, which is what
 * keeps an event below 100 bytes; event and block dicts are never shared, because the viewer writes
 * into them. Stacks are symbolised when their first event goes out. A new segment is held back
 * until the next change: torch's first block in it tells its stream, which the driver was not told.
 */
#include <stdlib.h>
#include <string.h>

#include "model/xalloc.h"
#include "out/memory_viz.h"
#include "out/pickle.h"
#include "symbols/text.h"

#include <uthash.h>

#define WORDS(X)               \
	X(action)              \
	X(addr)                \
	X(size)                \
	X(stream)              \
	X(time_us)             \
	X(frames)              \
	X(user_metadata)       \
	X(device_free)         \
	X(alloc)               \
	X(free_requested)      \
	X(free_completed)      \
	X(segment_alloc)       \
	X(segment_free)        \
	X(segment_map)         \
	X(segment_unmap)       \
	X(snapshot)            \
	X(oom)                 \
	X(device)              \
	X(address)             \
	X(total_size)          \
	X(allocated_size)      \
	X(active_size)         \
	X(requested_size)      \
	X(segment_type)        \
	X(small)               \
	X(large)               \
	X(segment_pool_id)     \
	X(is_expandable)       \
	X(blocks)              \
	X(state)               \
	X(active_allocated)    \
	X(active_pending_free) \
	X(inactive)            \
	X(filename)            \
	X(line)                \
	X(name)

enum word {
#define X(word) WORD_##word,
	WORDS(X)
#undef X
		WORD_COUNT
};

static const char *const word_texts[] = {
#define X(word) #word,
	WORDS(X)
#undef X
};

struct frame_key { /* texts of symbols: equal texts have equal pointers */
	const char *function, *file;
	uint64_t line;
};

struct frame_memo {
	struct frame_key key;
	uint32_t memo;
	UT_hash_handle hh;
};

struct stack_memo {
	const struct gt_frame *frames;
	uint32_t memo;
	UT_hash_handle hh;
};

enum part { START, TRACES, SEGMENTS, SETTINGS }; /* of the dict, as they follow */

struct gt_viz {
	const struct gt_trace *trace;
	struct gt_symbols *symbols;
	struct gt_pickle *pickle;
	struct gt_text *text;
	uint32_t words[WORD_COUNT];
	struct frame_memo *frames;
	struct stack_memo *stacks;
	uint32_t no_frames;
	const struct gt_trace_lane *lane; /* of the device being written */
	uint32_t *site_memos;		  /* its sites' stacks */
	struct gt_change *held;		  /* segments whose stream is not known yet, or unmaps */
	size_t held_count;
	struct gt_change owed; /* a free whose second half is not told yet; size 0 = none */
	const char *remark;
	uint64_t last_us, events;
	enum part part;
	bool in_device; /* its list is open */
};

static void word(struct gt_viz *viz, enum word which)
{
	gt_pickle_word(viz->pickle, &viz->words[which], word_texts[which]);
}

static void pair_int(struct gt_viz *viz, enum word key, uint64_t value)
{
	word(viz, key);
	gt_pickle_int(viz->pickle, (int64_t)value);
}

static void pair_word(struct gt_viz *viz, enum word key, enum word value)
{
	word(viz, key);
	word(viz, value);
}

/* ---- stacks -------------------------------------------------------------------------------- */

static void write_frame(struct gt_viz *viz, const struct frame_key *key)
{
	gt_pickle_dict(viz->pickle);
	word(viz, WORD_filename);
	gt_pickle_text(viz->pickle, key->file);
	pair_int(viz, WORD_line, key->line);
	word(viz, WORD_name);
	gt_pickle_text(viz->pickle, key->function);
	gt_pickle_close(viz->pickle);
}

static void frame(struct gt_viz *viz, const struct gt_frame *from)
{
	struct frame_key key;
	struct frame_memo *known;

	memset(&key, 0, sizeof(key));
	key.function = from->function;
	key.file = from->file[0] ? from->file : from->module;
	key.line = (uint64_t)(from->line > 0 ? from->line : 0);
	HASH_FIND(hh, viz->frames, &key, sizeof(key), known);
	if (known) {
		gt_pickle_again(viz->pickle, known->memo);
		return;
	}
	write_frame(viz, &key);
	known = gt_xcalloc(1, sizeof(*known));
	known->key = key;
	known->memo = gt_pickle_keep(viz->pickle);
	HASH_ADD(hh, viz->frames, key, sizeof(key), known);
}

static void no_frames(struct gt_viz *viz)
{
	if (viz->no_frames) {
		gt_pickle_again(viz->pickle, viz->no_frames);
		return;
	}
	gt_pickle_list(viz->pickle);
	gt_pickle_close(viz->pickle);
	viz->no_frames = gt_pickle_keep(viz->pickle);
}

static uint32_t write_stack(struct gt_viz *viz, const struct gt_stack *stack)
{
	struct stack_memo *memo;
	size_t i;

	gt_pickle_list(viz->pickle);
	for (i = 0; i < stack->count; i++)
		frame(viz, &stack->frames[i]);
	gt_pickle_close(viz->pickle);
	memo = gt_xcalloc(1, sizeof(*memo));
	memo->frames = stack->frames;
	memo->memo = gt_pickle_keep(viz->pickle);
	HASH_ADD_PTR(viz->stacks, frames, memo);
	return memo->memo;
}

/* Returns the number of the stack of a site, now written. */
static uint32_t stack_of(struct gt_viz *viz, uint32_t site)
{
	const struct gt_site_def *def = &viz->lane->site_defs[site];
	const enum gt_frames which = viz->trace->snapshot ? GT_FRAMES_THREAD : GT_FRAMES_MERGED;
	struct gt_stack stack = gt_symbols_frames(viz->symbols, def->native, def->python, which);
	struct stack_memo *memo;

	if (!stack.count) {
		no_frames(viz);
		return viz->no_frames;
	}
	HASH_FIND_PTR(viz->stacks, &stack.frames, memo);
	if (!memo)
		return write_stack(viz, &stack);
	gt_pickle_again(viz->pickle, memo->memo);
	return memo->memo;
}

static void pair_frames(struct gt_viz *viz, uint32_t site)
{
	word(viz, WORD_frames);
	if (!site || site >= viz->lane->site_count)
		no_frames(viz);
	else if (viz->site_memos[site])
		gt_pickle_again(viz->pickle, viz->site_memos[site]);
	else
		viz->site_memos[site] = stack_of(viz, site);
}

static void use_lane(struct gt_viz *viz, const struct gt_trace_lane *lane)
{
	free(viz->site_memos);
	viz->lane = lane;
	viz->site_memos = lane ? gt_xcalloc(lane->site_count, sizeof(*viz->site_memos)) : NULL;
}

/* ---- events -------------------------------------------------------------------------------- */

static uint64_t stream_handle(const struct gt_viz *viz, uint16_t id)
{
	return id < viz->trace->stream_count ? viz->trace->streams[id].handle : 0;
}

/*
 * Times never go back, whatever a trace says: the viewer takes the order of the list. Snapshots of
 * old versions of torch have no times, and none are made up.
 */
static void begin_event(struct gt_viz *viz, enum word action, uint64_t us)
{
	if (us > viz->last_us)
		viz->last_us = us;
	viz->events++;
	gt_pickle_dict(viz->pickle);
	pair_word(viz, WORD_action, action);
	if (viz->trace->header.real_us || !viz->trace->snapshot)
		pair_int(viz, WORD_time_us, viz->trace->header.real_us + viz->last_us);
}

static void pair_pool(struct gt_viz *viz, enum word key, uint32_t id)
{
	static const struct gt_pool_def none;
	const struct gt_pool_def *pool =
		id < viz->trace->pool_count ? &viz->trace->pools[id] : &none;

	word(viz, key);
	gt_pickle_pair(viz->pickle, (int64_t)pool->first, (int64_t)pool->second);
}

/* torch says of a block what was requested, where that is known. */
static void put_event(struct gt_viz *viz, enum word action, const struct gt_change *change,
		      uint32_t site)
{
	begin_event(viz, action, change->us);
	pair_int(viz, WORD_addr, change->addr);
	pair_int(viz, WORD_size, change->requested ? change->requested : change->size);
	pair_int(viz, WORD_stream, stream_handle(viz, change->stream));
	pair_frames(viz, site);
	if (viz->remark) {
		word(viz, WORD_user_metadata);
		gt_pickle_text(viz->pickle, viz->remark);
	}
	gt_pickle_close(viz->pickle);
}

/* The second half of a free: at once, or when its streams are done. */
static void put_completed(struct gt_viz *viz)
{
	if (viz->owed.size)
		put_event(viz, WORD_free_completed, &viz->owed, viz->owed.free_site);
	viz->owed.size = 0;
}

static void put_free(struct gt_viz *viz, const struct gt_change *change)
{
	if (change->earlier)
		return;
	put_event(viz, WORD_free_requested, change, change->free_site);
	viz->owed = *change;
	viz->owed.us += change->later;
}

static void put_change(struct gt_viz *viz, const struct gt_change *change)
{
	switch (change->kind) {
	case GT_SEGMENT_ALLOC:
		put_event(viz, WORD_segment_alloc, change, change->site);
		break;
	case GT_SEGMENT_MAP:
		put_event(viz, WORD_segment_map, change, change->site);
		break;
	case GT_BLOCK_ALLOC:
		put_event(viz, WORD_alloc, change, change->site);
		break;
	case GT_BLOCK_FREE:
		put_free(viz, change);
		break;
	case GT_BLOCK_PENDING:
		break;
	case GT_BLOCK_SETTLED:
		put_event(viz, WORD_free_completed, change, change->free_site);
		break;
	case GT_SEGMENT_FREE:
		put_event(viz, WORD_segment_free, change, change->free_site);
		break;
	case GT_SEGMENT_UNMAP:
		put_event(viz, WORD_segment_unmap, change, change->free_site);
		break;
	}
}

/* Pieces that were mapped, or unmapped, by one call are one event, as torch has it. */
static bool joins(const struct gt_change *run, const struct gt_change *next)
{
	return run->kind == next->kind && run->us == next->us && run->site == next->site &&
	       run->free_site == next->free_site && run->stream == next->stream &&
	       run->addr + run->size == next->addr;
}

static void put_held(struct gt_viz *viz)
{
	size_t i, k;

	put_completed(viz);
	for (i = 0; i < viz->held_count; i = k) {
		struct gt_change *run = &viz->held[i];

		for (k = i + 1; k < viz->held_count && run->kind != GT_SEGMENT_ALLOC &&
				joins(run, &viz->held[k]);
		     k++)
			run->size += viz->held[k].size;
		put_change(viz, run);
	}
	viz->held_count = 0;
}

/* The first block in a new segment is on the segment's stream; mappings come in runs. */
static void learn_stream(struct gt_viz *viz, const struct gt_change *block)
{
	size_t i;

	for (i = 0; i < viz->held_count; i++) {
		struct gt_change *held = &viz->held[i];

		if (held->kind == GT_SEGMENT_UNMAP)
			continue;
		if (held->kind == GT_SEGMENT_MAP || block->addr - held->addr < held->size)
			held->stream = block->stream;
	}
}

void gt_viz_change(void *data, const struct gt_change *change)
{
	struct gt_viz *viz = data;
	const bool hold = change->kind == GT_SEGMENT_ALLOC || change->kind == GT_SEGMENT_MAP ||
			  change->kind == GT_SEGMENT_UNMAP;

	if (change->kind == GT_BLOCK_PENDING && viz->owed.addr == change->addr)
		viz->owed.size = 0;
	put_completed(viz);
	if (hold && viz->held_count && viz->held[0].kind != change->kind)
		put_held(viz);
	if (hold) {
		*GT_PUSH(viz->held, viz->held_count) = *change;
		return;
	}
	if (change->kind == GT_BLOCK_ALLOC)
		learn_stream(viz, change);
	put_held(viz);
	put_change(viz, change);
}

void gt_viz_oom(struct gt_viz *viz, const struct gt_event *event, uint64_t device_free)
{
	put_held(viz);
	begin_event(viz, WORD_oom, event->us);
	pair_int(viz, WORD_device_free, device_free);
	pair_int(viz, WORD_size, event->size);
	pair_int(viz, WORD_stream, stream_handle(viz, event->stream));
	pair_frames(viz, event->site);
	gt_pickle_close(viz->pickle);
}

void gt_viz_taken(struct gt_viz *viz, uint64_t us, uint64_t in_use)
{
	put_held(viz);
	begin_event(viz, WORD_snapshot, us);
	pair_int(viz, WORD_addr, 0);
	pair_int(viz, WORD_size, in_use);
	pair_int(viz, WORD_stream, 0);
	word(viz, WORD_frames);
	no_frames(viz);
	gt_pickle_close(viz->pickle);
}

void gt_viz_remark(struct gt_viz *viz, const char *remark)
{
	put_held(viz);
	viz->remark = remark;
}

/* ---- segments ------------------------------------------------------------------------------ */

static uint64_t requested_of(const struct gt_piece *piece)
{
	if (!piece->used && !piece->pending)
		return 0;
	return piece->requested ? piece->requested : piece->size;
}

static void put_piece(struct gt_viz *viz, const struct gt_piece *piece)
{
	gt_pickle_dict(viz->pickle);
	pair_int(viz, WORD_address, piece->addr);
	pair_int(viz, WORD_size, piece->size);
	pair_int(viz, WORD_requested_size, requested_of(piece));
	pair_word(viz, WORD_state,
		  piece->used	   ? WORD_active_allocated
		  : piece->pending ? WORD_active_pending_free
				   : WORD_inactive);
	pair_frames(viz, piece->used || piece->pending ? piece->site : 0);
	gt_pickle_close(viz->pickle);
}

static void put_sizes(struct gt_viz *viz, const struct gt_segment *segment)
{
	pair_int(viz, WORD_total_size, segment->size);
	pair_int(viz, WORD_allocated_size, segment->used);
	pair_int(viz, WORD_active_size, segment->used + segment->pending);
	pair_int(viz, WORD_requested_size, segment->requested);
}

static void put_segment(struct gt_viz *viz, const struct gt_segment *segment)
{
	size_t i;

	gt_pickle_dict(viz->pickle);
	pair_int(viz, WORD_device, (uint64_t)viz->lane->device);
	pair_int(viz, WORD_address, segment->addr);
	put_sizes(viz, segment);
	pair_int(viz, WORD_stream, stream_handle(viz, segment->stream));
	pair_word(viz, WORD_segment_type, segment->small ? WORD_small : WORD_large);
	pair_pool(viz, WORD_segment_pool_id, segment->pool_id);
	word(viz, WORD_is_expandable);
	gt_pickle_bool(viz->pickle, segment->expandable);
	pair_frames(viz, segment->site);
	word(viz, WORD_blocks);
	gt_pickle_list(viz->pickle);
	for (i = 0; i < segment->piece_count; i++)
		put_piece(viz, &segment->pieces[i]);
	gt_pickle_close(viz->pickle);
	gt_pickle_close(viz->pickle);
}

/* ---- the whole ----------------------------------------------------------------------------- */

struct gt_viz *gt_viz_new(FILE *file, const struct gt_trace *trace, struct gt_symbols *symbols)
{
	struct gt_viz *viz = gt_xcalloc(1, sizeof(*viz));

	viz->trace = trace;
	viz->symbols = symbols;
	viz->pickle = gt_pickle_new(file);
	viz->text = gt_text_new();
	gt_pickle_dict(viz->pickle);
	return viz;
}

static void begin_list(struct gt_viz *viz, const char *key)
{
	gt_pickle_text(viz->pickle, key);
	gt_pickle_list(viz->pickle);
}

static void close_device(struct gt_viz *viz)
{
	put_held(viz);
	if (viz->in_device)
		gt_pickle_close(viz->pickle);
	viz->in_device = false;
}

static void next_part(struct gt_viz *viz)
{
	switch (viz->part++) {
	case START:
		begin_list(viz, "device_traces");
		break;
	case TRACES:
		close_device(viz);
		gt_pickle_close(viz->pickle);
		begin_list(viz, "segments");
		break;
	default:
		gt_pickle_close(viz->pickle);
		gt_pickle_text(viz->pickle, "allocator_settings");
		gt_pickle_dict(viz->pickle);
	}
}

static void go_to(struct gt_viz *viz, enum part part)
{
	while (viz->part < part)
		next_part(viz);
}

void gt_viz_device(struct gt_viz *viz, const struct gt_trace_lane *lane)
{
	go_to(viz, TRACES);
	close_device(viz);
	gt_pickle_list(viz->pickle);
	viz->in_device = true;
	viz->last_us = 0;
	use_lane(viz, lane);
}

void gt_viz_segments(struct gt_viz *viz, const struct gt_trace_lane *lane,
		     const struct gt_segment_list *list)
{
	size_t i;

	go_to(viz, SEGMENTS);
	use_lane(viz, lane);
	for (i = 0; i < list->count; i++)
		put_segment(viz, &list->segments[i]);
}

void gt_viz_setting(struct gt_viz *viz, const char *key, const char *text, size_t length)
{
	go_to(viz, SETTINGS);
	gt_pickle_text(viz->pickle, key);
	gt_pickle_text(viz->pickle, gt_text_clean(viz->text, text, length));
}

uint64_t gt_viz_events(const struct gt_viz *viz)
{
	return viz->events;
}

static void free_memos(struct gt_viz *viz)
{
	struct frame_memo *frame_memo, *next_frame;
	struct stack_memo *stack_memo, *next_stack;

	HASH_ITER(hh, viz->frames, frame_memo, next_frame) {
		HASH_DEL(viz->frames, frame_memo);
		free(frame_memo);
	}
	HASH_ITER(hh, viz->stacks, stack_memo, next_stack) {
		HASH_DEL(viz->stacks, stack_memo);
		free(stack_memo);
	}
}

int gt_viz_end(struct gt_viz *viz)
{
	int rc;

	go_to(viz, SETTINGS);
	gt_pickle_close(viz->pickle);
	begin_list(viz, "external_annotations");
	gt_pickle_close(viz->pickle);
	gt_pickle_close(viz->pickle);
	rc = gt_pickle_end(viz->pickle);
	free_memos(viz);
	free(viz->site_memos);
	free(viz->held);
	gt_text_free(viz->text);
	free(viz);
	return rc;
}
