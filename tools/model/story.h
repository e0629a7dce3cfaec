/* SPDX-License-Identifier: MIT */
/*
 * The history of a process as blocks with a birth and a death, all devices in one order: what
 * categories, steps and growth are made from. Only memory in use: torch's blocks, and driver
 * allocations that no pool subdivides.
 *
 * Positions number the births and deaths, from 1; 0 is everything before the history begins.
 */
#ifndef GT_STORY_H
#define GT_STORY_H

#include "model/walk.h"
#include "symbols/features.h"

#define GT_NEVER UINT32_MAX

struct gt_life { /* one block */
	uint64_t addr, size;
	uint64_t born_seq, died_seq; /* events of its lane; 0 = before the history, UINT64_MAX */
	uint64_t born_us, died_us;   /* UINT64_MAX: it lives */
	uint32_t born, died;	     /* positions; GT_NEVER: until exit() or the end */
	uint32_t site, free_site;    /* in its lane; 0 = not known */
	uint16_t thread, free_thread, stream;
	uint8_t lane; /* index into trace->lanes */
	uint8_t space;
	uint8_t category, rule; /* categories.c */
};

struct gt_tick {	     /* a step, mark or range of the program's own */
	uint64_t us, source; /* source: of ranges, GT_SOURCE_* */
	uint32_t position;   /* of the last birth or death before it */
	uint32_t text;	     /* string id, or the step's number */
	uint16_t thread;
	uint8_t op; /* enum gt_op */
};

struct gt_story {
	const struct gt_trace *trace;
	struct gt_feature_table *table;
	const struct gt_features **features; /* by site, lane after lane: gt_story_features */
	size_t *first_site;		     /* of each lane in features */
	struct gt_life *lives;		     /* by birth */
	size_t life_count;
	uint32_t *order;	 /* by position: life * 2, + 1 = its death; [0] unused */
	uint32_t position_count; /* last position + 1 */
	struct gt_tick *ticks;
	size_t tick_count;
	uint32_t exit; /* first position after exit() began; position_count = none */
	bool *engine;  /* by thread id: runs autograd's engine */
	bool *caller;  /* calls backward(), or is the process's first thread */
	size_t thread_count;
	bool whole;	     /* the history has its beginning */
	bool free_stacks;    /* deaths have stacks */
	bool python, native; /* some birth has such a stack */
};

/* 0, or -1 with err: damage, or more events than this can hold. */
int gt_story_make(const struct gt_trace *trace, struct gt_symbols *symbols, struct gt_story **ret,
		  struct gt_error *err);
struct gt_story *gt_story_free(struct gt_story *story); /* accepts NULL, returns NULL */

/* Of a site of the lane, or of what is not known when there is none of that number. Never NULL. */
const struct gt_features *gt_story_features(const struct gt_story *story, size_t lane,
					    uint32_t site);

/* Of the birth of a life. Never NULL. */
const struct gt_features *gt_story_birth(const struct gt_story *story, const struct gt_life *life);
const struct gt_features *gt_story_death(const struct gt_story *story, const struct gt_life *life);

/* Of whatever happened at the position; a death without stack has no bits. */
const struct gt_features *gt_story_at(const struct gt_story *story, uint32_t position);

static inline struct gt_life *gt_story_life(const struct gt_story *story, uint32_t position)
{
	return &story->lives[story->order[position] >> 1];
}

static inline bool gt_story_is_death(const struct gt_story *story, uint32_t position)
{
	return story->order[position] & 1;
}

/* Who asked for the block. */
static inline const struct gt_site_def *gt_story_site(const struct gt_story *story,
						      const struct gt_life *life)
{
	return &story->trace->lanes[life->lane].site_defs[life->site];
}

/* The event of its lane. */
static inline uint64_t gt_story_seq(const struct gt_story *story, uint32_t position)
{
	const struct gt_life *life = gt_story_life(story, position);

	return gt_story_is_death(story, position) ? life->died_seq : life->born_seq;
}

uint64_t gt_story_us(const struct gt_story *story, uint32_t position);
uint16_t gt_story_thread(const struct gt_story *story, uint32_t position);

/* Last position whose event, in that lane, is not after seq; other lanes by time. */
uint32_t gt_story_position(const struct gt_story *story, size_t lane, uint64_t seq);

/* In a sorted list: index of the first position after the given one, or that position; GT_NEVER: none. */
size_t gt_first_after(const uint32_t *positions, size_t count, uint32_t position);
uint32_t gt_next_of(const uint32_t *positions, size_t count, uint32_t position);

#endif
