/* SPDX-License-Identifier: MIT */
/*
 * See loop.h. Two allocations that follow each other are compared frame by frame: a line that goes
 * back in one frame is an iteration of a loop there. The frame with most of them is the loop; a jump
 * to an earlier line of it is the loop around it, which begins a step too. What lies inside a module
 * is not looked at: modules loop over their layers. Called from boundary.c.
 */
#include "model/loop.h"

#include <stdlib.h>
#include <string.h>
#include "model/xalloc.h"

#define LEAST_JUMPS 3

int gt_chain_compare(const struct gt_features *a, uint32_t a_count, const struct gt_features *b,
		     uint32_t b_count, uint32_t *ret_level)
{
	for (uint32_t i = 0; i < a_count && i < b_count; i++) {
		const struct gt_frame *x = a->frames[i], *y = b->frames[i];

		/* Texts of symbols are equal when their pointers are. */
		if (x->file != y->file || x->function != y->function)
			return 0;
		*ret_level = i;
		if (x->line != y->line)
			return x->line < y->line ? -1 : 1;
	}
	return 0;
}

struct jump {
	uint32_t position, level;
	const struct gt_features *to;
};

static bool same_loop(const struct jump *a, const struct jump *b)
{
	uint32_t level = 0;

	if (a->level != b->level || a->to->frame_count <= a->level ||
	    b->to->frame_count <= b->level)
		return false;
	if (a->to->frames[a->level]->function != b->to->frames[b->level]->function ||
	    a->to->frames[a->level]->file != b->to->frames[b->level]->file)
		return false;
	return gt_chain_compare(a->to, a->level, b->to, b->level, &level) == 0;
}

/* Where the main thread's allocations go back. */
static struct jump *find_jumps(const struct gt_story *story, size_t *ret_count)
{
	const struct gt_features *before = NULL;
	struct jump *jumps = NULL;
	size_t count = 0;

	for (uint32_t p = 1; p < story->exit; p++) {
		const struct gt_features *now = gt_story_at(story, p);
		uint32_t level = 0;

		if (gt_story_is_death(story, p) || !story->caller[gt_story_thread(story, p)] ||
		    !(now->bits & GT_HAS_PYTHON))
			continue;
		if (before &&
		    gt_chain_compare(now, now->to_call, before, before->to_call, &level) < 0)
			*GT_PUSH(jumps, count) = (struct jump){p, level, now};
		before = now;
	}
	*ret_count = count;
	return jumps;
}

/* Index of a jump of the loop that jumps most often; count = none does often enough. */
static size_t busiest(const struct jump *jumps, size_t count)
{
	size_t best = count, most = LEAST_JUMPS - 1;
	bool *seen = gt_xcalloc(count, sizeof(*seen));

	for (size_t i = 0; i < count; i++) {
		size_t times = 0;

		for (size_t j = i; !seen[i] && j < count; j++) {
			if (seen[j] || !same_loop(&jumps[i], &jumps[j]))
				continue;
			seen[j] = j > i;
			times++;
		}
		if (times > most) {
			most = times;
			best = i;
		}
	}
	free(seen);
	return best;
}

/* The first iteration has no jump before it: it begins at a place that opens a later one. */
static uint32_t first_start(const struct gt_story *story, const struct gt_boundaries *steps)
{
	for (uint32_t p = 1; p < steps->starts[0]; p++) {
		uint32_t place = gt_story_at(story, p)->place;

		for (size_t s = 0; !gt_story_is_death(story, p) && s < steps->count; s++)
			if (gt_story_at(story, steps->starts[s])->place == place)
				return p;
	}
	return 0;
}

void gt_loop_steps(const struct gt_story *story, struct gt_boundaries *ret)
{
	size_t count, best;
	struct jump *jumps = find_jumps(story, &count);
	uint32_t first;

	best = busiest(jumps, count);
	for (size_t i = 0; best < count && i < count; i++)
		if (same_loop(&jumps[best], &jumps[i]))
			*GT_PUSH(ret->starts, ret->count) = jumps[i].position;
	free(jumps);
	if (!ret->count)
		return;
	first = first_start(story, ret);
	if (first) {
		GT_PUSH(ret->starts, ret->count);
		memmove(ret->starts + 1, ret->starts, (ret->count - 1) * sizeof(*ret->starts));
		ret->starts[0] = first;
	}
	ret->source = GT_STEPS_LOOP;
}
