/* SPDX-License-Identifier: MIT */
/*
 * Who holds memory at a moment: for one lane and one of its totals, the bytes of each site. At the
 * lifetime peak this needs no history; elsewhere the walk backwards gives it with all its blocks.
 */
#ifndef GT_STATE_H
#define GT_STATE_H

#include "model/walk.h"

enum gt_when_kind {
	GT_WHEN_PEAK,
	GT_WHEN_OOM,
	GT_WHEN_END, /* before teardown, if the process reached exit() */
	GT_WHEN_TIME,
	GT_WHEN_STEP,  /* its end, or that of a phase of it: to be resolved, see answers.h */
	GT_WHEN_EVENT, /* after an event of the lane */
	GT_WHEN_NAME,  /* of a mark or range: to be resolved, see part.h */
};

struct gt_when {
	enum gt_when_kind kind;
	uint64_t us;	    /* GT_WHEN_TIME */
	uint64_t seq;	    /* GT_WHEN_EVENT */
	unsigned int step;  /* GT_WHEN_STEP, from 1 */
	unsigned int phase; /* enum gt_phase; 0 = the whole step */
	const char *name;   /* GT_WHEN_NAME */
};

#define GT_STREAM_MIXED	  (-1)
#define GT_STREAM_UNKNOWN (-2)
#define GT_POOL_MIXED	  UINT32_MAX
#define GT_POOL_UNKNOWN	  (UINT32_MAX - 1)

struct gt_hold { /* what one site holds */
	uint64_t bytes;
	uint64_t count, largest, oldest_us; /* only with gt_state.blocks_known */
	uint32_t site;
	int32_t stream; /* stream id or GT_STREAM_* */
	/* Of torch blocks, where a torch snapshot tells; bytes of those whose request it tells. */
	uint64_t requested, requested_of;
	uint32_t pool; /* of the trace's pools, or GT_POOL_* */
	/* Of gt_answers_split, else 0 and NULL. */
	uint8_t category;		/* enum gt_category: a site may have several */
	const struct gt_site_def *call; /* who called backward(), for blocks of autograd's thread */
	/* Of gt_answers_births, else 0. */
	uint32_t step; /* in which they were made, from 1; 0 = before the first */
	uint8_t phase; /* enum gt_phase */
	bool timed;    /* both are known */
};

/* Counts one block of the site into its hold. */
void gt_hold_add(struct gt_hold *hold, const struct gt_block *block);

struct gt_state {
	const struct gt_trace *trace;
	size_t lane_index;
	enum gt_total total;
	uint64_t seq, us;
	uint64_t bytes;		 /* of the total; the holds add up to it */
	uint64_t cur[GT_TOTALS]; /* all totals at the moment, only with blocks_known */
	bool blocks_known;	 /* counts, streams, single blocks: the history reaches */
	bool teardown;		 /* the end, but the history does not reach back before exit() */
	struct gt_hold *holds;	 /* largest first */
	size_t hold_count;
	struct gt_block *blocks; /* those in the total; only with blocks_known */
	size_t block_count;
	size_t all_count; /* of blocks: behind those in the total are the others of the moment */
};

/* 0, or -1 with err: no such moment, history gone, damage. */
int gt_state_get(const struct gt_trace *trace, size_t lane_index, enum gt_total total,
		 struct gt_when when, struct gt_state *ret, struct gt_error *err);
void gt_state_clear(struct gt_state *state);

#endif
