/* SPDX-License-Identifier: MIT */
/*
 * See piles.h. Each slice shows one real instant, its highest: layers of means, or of the maximum of
 * each category by itself, would add up to what never was. Called from cmd/chart.c.
 */
#include "model/piles.h"

#include <stdlib.h>
#include "model/xalloc.h"

struct filling {
	struct gt_pile now, *piles;
	uint64_t from_us, to_us;
	size_t slices, at; /* the slice that time has come to */
};

static void keep_highest(struct filling *filling)
{
	struct gt_pile *pile = &filling->piles[filling->at];

	if (filling->now.sum >= pile->sum)
		*pile = filling->now;
}

/* What was in use goes on until something happens. */
static void go_to(struct filling *filling, uint64_t us)
{
	unsigned __int128 span = filling->to_us - filling->from_us + 1;
	uint64_t until = us < filling->to_us ? us : filling->to_us;
	size_t slice = 0;

	if (until > filling->from_us)
		slice = (size_t)((until - filling->from_us) * (unsigned __int128)filling->slices /
				 span);
	while (us >= filling->from_us && filling->at < slice) {
		filling->at++;
		keep_highest(filling);
	}
}

static void add(struct filling *filling, const struct gt_life *life, int sign)
{
	filling->now.bytes[life->category] += (uint64_t)(sign * (int64_t)life->size);
	filling->now.sum += (uint64_t)(sign * (int64_t)life->size);
}

/* A free that the driver refused is none; those of exit handlers are, though lives end before. */
static bool happens(const struct gt_story *story, uint32_t position)
{
	return !gt_story_is_death(story, position) || position >= story->exit ||
	       gt_story_life(story, position)->died == position;
}

static void fill(struct filling *filling, const struct gt_story *story, size_t lane_index)
{
	for (size_t i = 0; i < story->life_count && !story->lives[i].born; i++)
		if (story->lives[i].lane == lane_index)
			add(filling, &story->lives[i], 1);
	for (uint32_t p = 1; p < story->position_count; p++) {
		const struct gt_life *life = gt_story_life(story, p);
		uint64_t us = gt_story_us(story, p);

		if (life->lane != lane_index || !happens(story, p))
			continue;
		if (us > filling->to_us)
			break;
		if (us >= filling->from_us)
			keep_highest(filling);
		go_to(filling, us);
		add(filling, life, gt_story_is_death(story, p) ? -1 : 1);
		if (us >= filling->from_us)
			keep_highest(filling);
	}
	keep_highest(filling);
	go_to(filling, filling->to_us);
}

struct gt_pile *gt_piles_get(const struct gt_answers *answers, size_t lane_index, uint64_t from_us,
			     uint64_t to_us, size_t slices)
{
	struct filling filling = {.from_us = from_us, .to_us = to_us, .slices = slices};

	filling.piles = gt_xcalloc(slices, sizeof(*filling.piles));
	fill(&filling, answers->story, lane_index);
	return filling.piles;
}
