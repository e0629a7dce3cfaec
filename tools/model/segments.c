/* SPDX-License-Identifier: MIT */
/*
 * See segments.h. Two trees of address ranges, segments and torch blocks, in which nothing
 * overlaps: a comparison that calls overlapping ranges equal makes "which one holds this address" a
 * plain look-up. What would overlap (a free that was never seen) is ended first and told as freed,
 * so that the trees and what was told can not disagree, whatever is in a trace. Called by the
 * snapshot and by whoever shows segments.
 */
#define _GNU_SOURCE
#include <search.h>
#include <stdlib.h>

#include "model/segments.h"
#include "model/walk.h"
#include "model/xalloc.h"

#define SMALL_SEGMENT (UINT64_C(2) << 20) /* torch's cudaMalloc, or mapping, for small blocks */
#define SMALL_BLOCK   (UINT64_C(1) << 20) /* where torch draws the line */

struct range {
	uint64_t addr, size;
};

struct block {
	struct range range;
	uint64_t requested;
	uint32_t site;
	uint16_t stream;
	bool pending; /* its free has been told: streams still use it */
};

struct extent { /* a segment */
	struct range range;
	uint64_t granule; /* size of its mappings; 0 = not made of mappings */
	uint64_t used;	  /* bytes of its blocks */
	size_t count, gaps;
	uint32_t site, pool_id;
	uint16_t stream;
	bool pool;   /* else it holds one block, itself */
	bool orphan; /* made for a torch block that lies in no segment */
};

struct gt_segments {
	const struct gt_trace_lane *lane;
	void *extents, *blocks;
	size_t extent_count, block_count;
	gt_watch watch;
	void *data;
	uint64_t us; /* of the event being applied */
	uint32_t free_site;
	bool earlier; /* see GT_FREE_EARLIER; so is the next */
	uint64_t later;
	struct gt_inactive inactive[2]; /* of segments of small blocks, and of others */
	struct block ended;		/* the torch block that ended last */
};

/* ---- trees --------------------------------------------------------------------------------- */

static int by_range(const void *a, const void *b)
{
	const struct range *x = a, *y = b;

	if (x->addr + x->size <= y->addr)
		return -1;
	return y->addr + y->size <= x->addr;
}

/* One that overlaps the range, or NULL. */
static void *find(void *const *tree, uint64_t addr, uint64_t size)
{
	struct range range = {addr, size};
	void *node = tfind(&range, tree, by_range);

	return node ? *(void **)node : NULL;
}

static void insert(void **tree, const void *range)
{
	gt_xchecked(tsearch(range, tree, by_range));
}

/* The extent that holds all of the range, or NULL. */
static struct extent *holder(const struct gt_segments *segments, uint64_t addr, uint64_t size)
{
	struct extent *extent = find(&segments->extents, addr, 1);

	return extent && addr + size <= extent->range.addr + extent->range.size ? extent : NULL;
}

static bool is_small(const struct extent *extent)
{
	const uint64_t limit = extent->granule ? extent->granule : extent->range.size;

	return extent->pool && !extent->orphan ? limit == SMALL_SEGMENT : limit <= SMALL_BLOCK;
}

/* ---- what is inactive ---------------------------------------------------------------------- */

/* What a segment adds to the sums: nothing when it is free as a whole, for then it can be given back. */
static void weigh(struct gt_segments *segments, const struct extent *extent, bool add)
{
	struct gt_inactive *sum = &segments->inactive[is_small(extent)];
	const uint64_t bytes = extent->range.size - extent->used;

	if (!extent->count || extent->granule || !extent->pool)
		return;
	sum->bytes += add ? bytes : 0 - bytes;
	sum->count += add ? extent->gaps : 0 - extent->gaps;
}

/* A block begins or ends: it takes from a gap, or joins those beside it. */
static void count_block(struct gt_segments *segments, const struct block *block, bool begins)
{
	struct extent *extent = find(&segments->extents, block->range.addr, 1);
	const uint64_t from = block->range.addr, to = from + block->range.size;
	size_t beside;

	if (!extent)
		return;
	beside = (from > extent->range.addr && !find(&segments->blocks, from - 1, 1)) +
		 (to < extent->range.addr + extent->range.size && !find(&segments->blocks, to, 1));
	weigh(segments, extent, false);
	if (begins) {
		extent->used += block->range.size;
		extent->count++;
		extent->gaps += beside - 1;
	} else {
		extent->used -= block->range.size;
		extent->count--;
		extent->gaps -= beside - 1;
	}
	weigh(segments, extent, true);
}

struct gt_inactive gt_segments_inactive(const struct gt_segments *segments, bool small)
{
	return segments->inactive[small];
}

bool gt_segments_pool(const struct gt_segments *segments, uint64_t addr, bool *ret_small,
		      bool *ret_expandable)
{
	const struct extent *extent = find(&segments->extents, addr, 1);

	if (!extent || !extent->pool)
		return false;
	*ret_small = is_small(extent);
	*ret_expandable = extent->granule != 0;
	return true;
}

/* ---- telling ------------------------------------------------------------------------------- */

static void tell(struct gt_segments *segments, struct gt_change *change, enum gt_change_kind kind,
		 const struct range *range)
{
	change->us = segments->us;
	change->kind = kind;
	change->free_site = segments->free_site;
	change->addr = range->addr;
	change->size = range->size;
	if (segments->watch)
		segments->watch(segments->data, change);
}

static void tell_extent(struct gt_segments *segments, enum gt_change_kind kind,
			const struct extent *extent)
{
	struct gt_change change = {
		.stream = extent->stream, .site = extent->site, .pool = extent->pool_id};

	tell(segments, &change, kind, &extent->range);
}

static void tell_block(struct gt_segments *segments, enum gt_change_kind kind,
		       const struct block *block)
{
	struct gt_change change = {.stream = block->stream,
				   .site = block->site,
				   .requested = block->requested,
				   .later = segments->later,
				   .earlier = segments->earlier};

	tell(segments, &change, kind, &block->range);
}

/* ---- ends ---------------------------------------------------------------------------------- */

static void end_block(struct gt_segments *segments, struct block *block)
{
	tell_block(segments, block->pending ? GT_BLOCK_SETTLED : GT_BLOCK_FREE, block);
	count_block(segments, block, false);
	tdelete(block, &segments->blocks, by_range);
	segments->block_count--;
	free(block);
}

static void put_block(struct gt_segments *segments, struct block *block)
{
	count_block(segments, block, true);
	insert(&segments->blocks, block);
	segments->block_count++;
}

static void end_blocks_in(struct gt_segments *segments, uint64_t addr, uint64_t size)
{
	struct block *block;

	while ((block = find(&segments->blocks, addr, size)))
		end_block(segments, block);
}

static void end_extent(struct gt_segments *segments, struct extent *extent)
{
	end_blocks_in(segments, extent->range.addr, extent->range.size);
	if (!extent->pool)
		tell_extent(segments, GT_BLOCK_FREE, extent);
	tell_extent(segments, extent->granule ? GT_SEGMENT_UNMAP : GT_SEGMENT_FREE, extent);
	tdelete(extent, &segments->extents, by_range);
	segments->extent_count--;
	free(extent);
}

static void end_extents_in(struct gt_segments *segments, uint64_t addr, uint64_t size)
{
	struct extent *extent;

	while ((extent = find(&segments->extents, addr, size)))
		end_extent(segments, extent);
}

/* ---- segments ------------------------------------------------------------------------------ */

static struct extent *add_extent(struct gt_segments *segments, const struct extent *value)
{
	struct extent *extent = gt_xcalloc(1, sizeof(*extent));

	*extent = *value;
	extent->gaps = 1;
	insert(&segments->extents, extent);
	segments->extent_count++;
	return extent;
}

static void begin_driver(struct gt_segments *segments, const struct gt_block *block)
{
	unsigned int mask = gt_site_mask(segments->lane, block->site);
	struct extent value = {
		.range = {block->addr, block->size},
		.site = block->site,
		.stream = block->stream,
		.pool_id = block->pool,
		.pool = !(mask & GT_MASK_IN_USE),
	};
	struct extent *extent;

	end_extents_in(segments, block->addr, block->size);
	extent = add_extent(segments, &value);
	tell_extent(segments, GT_SEGMENT_ALLOC, extent);
	if (!extent->pool)
		tell_extent(segments, GT_BLOCK_ALLOC, extent);
}

/* The run of mappings of this granule that holds the address, if there is one. */
static struct extent *run_at(const struct gt_segments *segments, uint64_t addr, uint64_t granule)
{
	struct extent *extent = find(&segments->extents, addr, 1);

	return extent && extent->granule == granule ? extent : NULL;
}

/* Take a run's node out so that its range may change. */
static void take_out(struct gt_segments *segments, struct extent *extent)
{
	tdelete(extent, &segments->extents, by_range);
	segments->extent_count--;
}

static void begin_mapping(struct gt_segments *segments, const struct gt_block *block)
{
	struct extent value = {
		.range = {block->addr, block->size},
		.granule = block->size,
		.site = block->site,
		.stream = block->stream,
		.pool_id = block->pool,
		.pool = true,
	};
	struct extent *left, *right;

	end_extents_in(segments, block->addr, block->size);
	left = run_at(segments, block->addr - 1, block->size);
	right = run_at(segments, block->addr + block->size, block->size);
	if (left || right)
		value.stream = left ? left->stream : right->stream;
	if (!value.pool_id && (left || right))
		value.pool_id = left ? left->pool_id : right->pool_id;
	tell_extent(segments, GT_SEGMENT_MAP, &value);
	if (left) {
		value.range.addr = left->range.addr;
		value.range.size += left->range.size;
		value.site = left->site;
		take_out(segments, left);
	}
	if (right) {
		value.range.size += right->range.size;
		take_out(segments, right);
	}
	add_extent(segments, &value);
	free(left);
	free(right);
}

/* What is left of a run beside a hole. */
static void keep_part(struct gt_segments *segments, const struct extent *run, uint64_t from,
		      uint64_t to)
{
	struct extent part = *run;

	part.range.addr = from;
	part.range.size = to - from;
	if (to > from)
		add_extent(segments, &part);
}

static void end_mapping(struct gt_segments *segments, uint64_t addr, uint64_t size)
{
	struct extent *extent = holder(segments, addr, size);
	struct extent run, hole;

	if (!extent || !extent->granule)
		return;
	end_blocks_in(segments, addr, size);
	run = hole = *extent;
	take_out(segments, extent);
	free(extent);
	hole.range = (struct range){addr, size};
	tell_extent(segments, GT_SEGMENT_UNMAP, &hole);
	keep_part(segments, &run, run.range.addr, addr);
	keep_part(segments, &run, addr + size, run.range.addr + run.range.size);
}

/* ---- torch blocks -------------------------------------------------------------------------- */

static struct extent *adopt(struct gt_segments *segments, const struct gt_block *block)
{
	struct extent value = {
		.range = {block->addr, block->size},
		.site = block->site,
		.stream = block->stream,
		.pool = true,
		.orphan = true,
	};

	end_extents_in(segments, block->addr, block->size);
	tell_extent(segments, GT_SEGMENT_ALLOC, &value);
	return add_extent(segments, &value);
}

static void begin_torch(struct gt_segments *segments, const struct gt_block *from)
{
	struct extent *extent = holder(segments, from->addr, from->size);
	struct block *block;

	end_blocks_in(segments, from->addr, from->size);
	/* the end of an orphan's block is the end of its segment */
	if (!extent || extent->orphan)
		extent = adopt(segments, from);
	if (!extent->pool)
		tell_extent(segments, GT_BLOCK_FREE, extent);
	extent->pool = true;
	extent->stream = from->stream;
	block = gt_xcalloc(1, sizeof(*block));
	*block = (struct block){
		.range = {from->addr, from->size},
		.requested = from->requested,
		.site = from->site,
		.stream = from->stream,
	};
	put_block(segments, block);
	tell_block(segments, GT_BLOCK_ALLOC, block);
}

static void end_torch(struct gt_segments *segments, uint64_t addr)
{
	struct block *block = find(&segments->blocks, addr, 1);
	struct extent *extent = find(&segments->extents, addr, 1);

	if (!block || block->range.addr != addr)
		return;
	segments->ended = *block;
	end_block(segments, block);
	if (extent && extent->orphan)
		end_extent(segments, extent);
}

/* The block that has just been freed stays in its segment until its streams are done with it. */
static void begin_pending(struct gt_segments *segments, uint64_t addr)
{
	struct block *block;

	if (segments->ended.range.addr != addr || segments->ended.pending ||
	    find(&segments->blocks, addr, segments->ended.range.size) ||
	    !holder(segments, addr, segments->ended.range.size))
		return;
	block = gt_xcalloc(1, sizeof(*block));
	*block = segments->ended;
	block->pending = true;
	put_block(segments, block);
	tell_block(segments, GT_BLOCK_PENDING, block);
}

static void end_pending(struct gt_segments *segments, uint64_t addr)
{
	struct block *block = find(&segments->blocks, addr, 1);

	if (block && block->range.addr == addr && block->pending)
		end_block(segments, block);
}

static void end_driver(struct gt_segments *segments, uint64_t addr)
{
	struct extent *extent = find(&segments->extents, addr, 1);

	if (extent && extent->range.addr == addr && !extent->granule && !extent->orphan)
		end_extent(segments, extent);
}

/* ---- events -------------------------------------------------------------------------------- */

static void begin(struct gt_segments *segments, const struct gt_block *block)
{
	/* sizes and addresses come from a file: nothing may wrap around */
	if (!block->size || block->addr + block->size < block->addr)
		return;
	if (block->space == GT_SPACE_DRIVER)
		begin_driver(segments, block);
	else if (block->space == GT_SPACE_MAPPING)
		begin_mapping(segments, block);
	else if (block->space == GT_SPACE_TORCH)
		begin_torch(segments, block);
}

static void end(struct gt_segments *segments, const struct gt_event *event)
{
	if (event->space == GT_SPACE_DRIVER)
		end_driver(segments, event->addr);
	else if (event->space == GT_SPACE_MAPPING)
		end_mapping(segments, event->addr, event->size);
	else if (event->space == GT_SPACE_TORCH)
		end_torch(segments, event->addr);
}

void gt_segments_apply(struct gt_segments *segments, const struct gt_event *event, gt_watch watch,
		       void *data)
{
	struct gt_block block = gt_block_of(event);

	segments->watch = watch;
	segments->data = data;
	segments->us = event->us;
	segments->free_site = event->free_site;
	segments->earlier = event->op == GT_OP_FREE && event->aux == GT_FREE_EARLIER;
	segments->later = event->op == GT_OP_FREE ? event->extra : 0;
	if (event->op == GT_OP_ALLOC || event->op == GT_OP_UNFREE)
		begin(segments, &block);
	else if (event->op == GT_OP_FREE || event->op == GT_OP_IMPLICIT_FREE)
		end(segments, event);
	else if (event->op == GT_OP_PENDING)
		begin_pending(segments, event->addr);
	else if (event->op == GT_OP_SETTLED)
		end_pending(segments, event->addr);
}

/* A segment comes before the blocks in it, also when both are of the same microsecond. */
static int by_birth(const void *a, const void *b)
{
	const struct gt_block *x = *(const void *const *)a, *y = *(const void *const *)b;

	if (x->birth_us != y->birth_us)
		return x->birth_us < y->birth_us ? -1 : 1;
	if ((x->space == GT_SPACE_TORCH) != (y->space == GT_SPACE_TORCH))
		return x->space == GT_SPACE_TORCH ? 1 : -1;
	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

void gt_segments_load(struct gt_segments *segments, const struct gt_block *blocks, size_t count,
		      gt_watch watch, void *data)
{
	const struct gt_block **order = gt_xcalloc(count, sizeof(*order));
	size_t i;

	segments->watch = watch;
	segments->data = data;
	segments->free_site = 0;
	segments->earlier = false;
	segments->later = 0;
	for (i = 0; i < count; i++)
		order[i] = &blocks[i];
	qsort(order, count, sizeof(*order), by_birth);
	for (i = 0; i < count; i++) {
		segments->us = order[i]->birth_us;
		begin(segments, order[i]);
	}
	free(order);
}

struct gt_segments *gt_segments_new(const struct gt_trace_lane *lane)
{
	struct gt_segments *segments = gt_xcalloc(1, sizeof(*segments));

	segments->lane = lane;
	return segments;
}

struct gt_segments *gt_segments_free(struct gt_segments *segments)
{
	if (!segments)
		return NULL;
	tdestroy(segments->extents, free);
	tdestroy(segments->blocks, free);
	free(segments);
	return NULL;
}

/* ---- listing ------------------------------------------------------------------------------- */

struct flat { /* a tree in address order */
	const void **ranges;
	size_t count;
};

static __thread struct flat *flattened; /* twalk_r is glibc 2.30, the tool runs on 2.28 */

static void collect(const void *node, VISIT visit, int depth)
{
	if (visit == postorder || visit == leaf)
		flattened->ranges[flattened->count++] = *(const void *const *)node;
}

static struct flat flatten(const void *tree, size_t count)
{
	struct flat flat = {.ranges = gt_xcalloc(count + 1, sizeof(*flat.ranges))};

	flattened = &flat;
	twalk(tree, collect);
	flattened = NULL;
	return flat;
}

static struct gt_segment describe(const struct extent *extent)
{
	return (struct gt_segment){
		.addr = extent->range.addr,
		.size = extent->range.size,
		.site = extent->site,
		.pool_id = extent->pool_id,
		.stream = extent->stream,
		.pool = extent->pool,
		.expandable = extent->granule != 0,
		.small = is_small(extent),
	};
}

static void add_piece(struct gt_segment_list *list, struct gt_segment *segment,
		      const struct gt_piece *piece)
{
	if (!piece->size)
		return;
	list->pieces[(size_t)(segment->pieces - list->pieces) + segment->piece_count++] = *piece;
	segment->used += piece->used ? piece->size : 0;
	segment->pending += piece->pending ? piece->size : 0;
	if (piece->used || piece->pending)
		segment->requested += piece->requested ? piece->requested : piece->size;
}

static struct gt_piece room(uint64_t from, uint64_t to)
{
	return (struct gt_piece){.addr = from, .size = to - from};
}

/* Fill a segment with the blocks from *next on that lie in it. */
static void fill(struct gt_segment_list *list, struct gt_segment *segment,
		 const struct flat *blocks, size_t *next)
{
	uint64_t at = segment->addr, stop = segment->addr + segment->size;
	struct gt_piece piece;

	for (; *next < blocks->count; ++*next) {
		const struct block *block = blocks->ranges[*next];

		if (block->range.addr >= stop)
			break;
		piece = room(at, block->range.addr);
		add_piece(list, segment, &piece);
		at = block->range.addr + block->range.size;
		piece = (struct gt_piece){
			.addr = block->range.addr,
			.size = block->range.size,
			.requested = block->requested,
			.site = block->site,
			.stream = block->stream,
			.used = !block->pending,
			.pending = block->pending,
		};
		add_piece(list, segment, &piece);
	}
	piece = room(at, stop);
	if (!segment->pool)
		piece = (struct gt_piece){
			.addr = segment->addr,
			.size = segment->size,
			.site = segment->site,
			.stream = segment->stream,
			.used = true,
		};
	add_piece(list, segment, &piece);
}

void gt_segments_list(const struct gt_segments *segments, struct gt_segment_list *ret)
{
	struct flat extents = flatten(segments->extents, segments->extent_count);
	struct flat blocks = flatten(segments->blocks, segments->block_count);
	struct gt_segment_list list = {.count = extents.count};
	struct gt_piece *at;
	size_t i, next = 0;

	list.segments = gt_xcalloc(extents.count + 1, sizeof(*list.segments));
	/* each block has at most one gap before it, each segment one at its end */
	list.pieces = gt_xcalloc(2 * blocks.count + extents.count + 1, sizeof(*list.pieces));
	at = list.pieces;
	for (i = 0; i < extents.count; i++) {
		struct gt_segment *segment = &list.segments[i];

		*segment = describe(extents.ranges[i]);
		segment->pieces = at;
		fill(&list, segment, &blocks, &next);
		at += segment->piece_count;
	}
	free(extents.ranges);
	free(blocks.ranges);
	*ret = list;
}

/* ---- since when ---------------------------------------------------------------------------- */

static struct gt_segment *segment_at(struct gt_segment_list *list, uint64_t addr)
{
	size_t low = 0, high = list->count;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (list->segments[middle].addr <= addr)
			low = middle + 1;
		else
			high = middle;
	}
	return low && addr - list->segments[low - 1].addr < list->segments[low - 1].size
		       ? &list->segments[low - 1]
		       : NULL;
}

static bool touches(const struct gt_event *event)
{
	const bool waits = event->op == GT_OP_PENDING || event->op == GT_OP_SETTLED;

	return (waits || gt_op_effect(event->op)) &&
	       (event->space == GT_SPACE_TORCH || event->space == GT_SPACE_DRIVER ||
		event->space == GT_SPACE_MAPPING);
}

int gt_segments_touch(struct gt_segment_list *list, const struct gt_trace *trace, size_t lane_index,
		      uint64_t seq, struct gt_error *err)
{
	struct gt_cursor *cursor = gt_xchecked(gt_cursor_new(trace, lane_index));
	const struct gt_event *event;
	size_t open = list->count;

	err->status = 0;
	while (open && (event = gt_cursor_prev(cursor, err))) {
		struct gt_segment *segment = NULL;

		if (event->seq <= seq && touches(event))
			segment = segment_at(list, event->addr);
		if (!segment || segment->touched)
			continue;
		segment->touched = true;
		segment->touched_us = event->us;
		open--;
	}
	gt_cursor_free(cursor);
	return err->status ? -1 : 0;
}

void gt_segments_list_clear(struct gt_segment_list *list)
{
	free(list->segments);
	free(list->pieces);
	*list = (struct gt_segment_list){0};
}
