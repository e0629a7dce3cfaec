/* SPDX-License-Identifier: MIT */
/*
 * The memory of one device as segments and the blocks inside them: what the driver handed out, and
 * what torch's caching allocator made of it. Events change it; each change is told in the
 * allocator's own terms, so that whoever writes changes down and then lists the segments has two
 * things that agree.
 *
 * A driver allocation that no allocator subdivides is a segment with one block. Mappings that touch
 * form one segment (torch's expandable segments). A torch block for which no segment is known (it
 * was made by calls that are not recorded) counts as a segment of its own.
 */
#ifndef GT_SEGMENTS_H
#define GT_SEGMENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "read/trace.h"

enum gt_change_kind {
	GT_SEGMENT_ALLOC,
	GT_SEGMENT_FREE,
	GT_SEGMENT_MAP,
	GT_SEGMENT_UNMAP,
	GT_BLOCK_ALLOC,
	GT_BLOCK_FREE,
	GT_BLOCK_PENDING, /* right behind its free: a stream still uses it */
	GT_BLOCK_SETTLED, /* and now none does */
};

struct gt_change {
	uint64_t us;
	enum gt_change_kind kind;
	uint16_t stream;    /* id; of a new segment 0 until its first block is there */
	uint32_t site;	    /* of the segment or block */
	uint32_t free_site; /* of the event that ended it, 0 = unknown */
	uint32_t pool;	    /* of a segment that begins: of the gt_trace's pools */
	uint64_t addr, size;
	uint64_t requested; /* of a block; 0 = not known */
	uint64_t later;	    /* of a block's free: see GT_FREE_EARLIER */
	bool earlier;
};

typedef void (*gt_watch)(void *data, const struct gt_change *change);

struct gt_piece { /* a block, or the room between blocks */
	uint64_t addr, size;
	uint64_t requested; /* 0 = not known */
	uint32_t site;
	uint16_t stream;
	bool used;
	bool pending; /* freed, but streams still use it */
};

struct gt_segment {
	uint64_t addr, size, used, pending;
	uint64_t requested; /* of used and pending blocks; those of unknown request count whole */
	uint32_t site, pool_id;
	uint16_t stream;
	bool pool;  /* subdivided by an allocator */
	bool small; /* of torch's pool for small blocks */
	bool expandable;
	bool touched;		       /* the next is known: see gt_segments_touch */
	uint64_t touched_us;	       /* when memory in it was last taken or given back */
	const struct gt_piece *pieces; /* by address, without gaps */
	size_t piece_count;
};

struct gt_segment_list {
	struct gt_segment *segments; /* by address */
	size_t count;
	struct gt_piece *pieces; /* of all segments */
};

/* Empty. */
struct gt_segments *gt_segments_new(const struct gt_trace_lane *lane);
struct gt_segments *gt_segments_free(struct gt_segments *segments);

/* What torch calls inactive split: free pieces of segments that are cut, but not by mappings. */
struct gt_inactive {
	uint64_t bytes, count;
};
struct gt_inactive gt_segments_inactive(const struct gt_segments *segments, bool small);

/* Is there a segment with blocks of an allocator at the address, and is it of small ones? */
bool gt_segments_pool(const struct gt_segments *segments, uint64_t addr, bool *ret_small,
		      bool *ret_expandable);

/* Put in blocks that live, a gt_moment's for instance: in order of birth, as they were made. */
void gt_segments_load(struct gt_segments *segments, const struct gt_block *blocks, size_t count,
		      gt_watch watch, void *data);

/* Apply the lane's next event; watch (may be NULL) hears of each change, in order. */
void gt_segments_apply(struct gt_segments *segments, const struct gt_event *event, gt_watch watch,
		       void *data);

void gt_segments_list(const struct gt_segments *segments, struct gt_segment_list *ret);

/*
 * Since when each segment of a list, which is by address and of the moment after event seq, has been
 * left alone, as far as the history knows. 0, or -1 with err.
 */
int gt_segments_touch(struct gt_segment_list *list, const struct gt_trace *trace, size_t lane_index,
		      uint64_t seq, struct gt_error *err);
void gt_segments_list_clear(struct gt_segment_list *list);

#endif
