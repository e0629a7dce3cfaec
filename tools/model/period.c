/* SPDX-License-Identifier: MIT */
/*
 * Steps where no stack tells: each event is a number, 0 for an allocation, for a free how many
 * events ago its block was made. Sizes do not enter, so inputs of any length look the same. The
 * period is the shortest distance at which the numbers repeat about as well as at any. It says how
 * long a step is, not where it begins: that is put where least is in use. Called from boundary.c.
 */
#include "model/loop.h"

#include <stdlib.h>
#include <string.h>
#include "model/xalloc.h"

#define CANDIDATES 64
#define SHORTEST   4	/* events of a step */
#define GOOD	   0.9	/* what does not repeat so well is no period: chance reaches 0.3 */
#define AS_GOOD	   0.03 /* a shorter period may be worse by this */

struct numbers {
	uint32_t *numbers; /* of positions from 1 */
	uint32_t from, to; /* the last two thirds: warm-up and teardown left out */
};

static struct numbers number_events(const struct gt_story *story)
{
	struct numbers n = {gt_xcalloc(story->position_count + 1, sizeof(*n.numbers)), 1, 1};

	for (uint32_t p = 1; p < story->exit; p++) {
		const struct gt_life *life = gt_story_life(story, p);

		if (gt_story_is_death(story, p))
			n.numbers[p] = p - life->born;
		else
			n.to = p;
	}
	n.from = 1 + (n.to - 1) / 3;
	return n;
}

static double match(const struct numbers *n, uint32_t from, uint32_t to, uint32_t period)
{
	uint32_t same = 0;

	for (uint32_t p = from; p + period < to; p++)
		same += n->numbers[p] == n->numbers[p + period];
	return to > from + period ? (double)same / (to - from - period) : 0;
}

/* The distances at which numbers most often come again. Returns how many. */
static size_t find_candidates(const struct numbers *n, uint32_t ret[CANDIDATES])
{
	uint32_t *last = gt_xcalloc(n->to + 1, sizeof(*last));
	uint32_t *times = gt_xcalloc(n->to + 1, sizeof(*times));
	size_t count = 0;

	for (uint32_t p = n->from; p < n->to; p++) {
		uint32_t number = n->numbers[p];

		if (number && last[number])
			times[p - last[number]]++;
		last[number] = p;
	}
	for (; count < CANDIDATES; count++) {
		uint32_t best = 0;

		for (uint32_t d = SHORTEST; d <= (n->to - n->from) / 3; d++)
			if (times[d] > times[best])
				best = d;
		if (!times[best] || !best)
			break;
		ret[count] = best;
		times[best] = 0;
	}
	free(times);
	free(last);
	return count;
}

static uint32_t find_period(const struct numbers *n)
{
	uint32_t candidates[CANDIDATES], period = 0;
	double rates[CANDIDATES], best = 0;
	size_t count = find_candidates(n, candidates);

	for (size_t i = 0; i < count; i++) {
		rates[i] = match(n, n->from, n->to, candidates[i]);
		best = rates[i] > best ? rates[i] : best;
	}
	for (size_t i = 0; best >= GOOD && i < count; i++)
		if (rates[i] >= best - AS_GOOD && (!period || candidates[i] < period))
			period = candidates[i];
	return period;
}

/* Of the places in a period, that at which least is in use, added up over all periods. */
static uint32_t find_offset(const struct gt_story *story, const struct numbers *n, uint32_t period)
{
	uint64_t *sums = gt_xcalloc(period, sizeof(*sums)), live = 0;
	uint32_t best = 0, whole = n->from + (n->to - n->from) / period * period;

	for (uint32_t p = 1; p < whole; p++) {
		const struct gt_life *life = gt_story_life(story, p);

		if (p >= n->from)
			sums[(p - n->from) % period] += live;
		if (!gt_story_is_death(story, p))
			live += life->size;
		else if (life->born)
			live -= life->size;
	}
	for (uint32_t i = 1; i < period; i++)
		if (sums[i] < sums[best])
			best = i;
	free(sums);
	return n->from + best;
}

void gt_period_steps(const struct gt_story *story, struct gt_boundaries *ret)
{
	struct numbers n = number_events(story);
	uint32_t period = find_period(&n), start;

	if (period) {
		start = find_offset(story, &n, period);
		while (start > period && match(&n, start - period, start + period, period) >= GOOD)
			start -= period;
		for (; start < n.to; start += period)
			*GT_PUSH(ret->starts, ret->count) = start;
		ret->source = GT_STEPS_PERIOD;
	}
	free(n.numbers);
}
