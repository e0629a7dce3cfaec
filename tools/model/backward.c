/* SPDX-License-Identifier: MIT */
/*
 * See backward.h. A pass is a maximal run of events of the engine's threads or below backward() on
 * the thread that called it. Other threads may work meanwhile (loaders, replicas); an event of a
 * calling thread ends the run. A second root gradient after engine events begins the next pass,
 * when two backward() follow each other with nothing between them. Called from answers.c.
 */
#include "model/backward.h"

#include <stdlib.h>
#include <string.h>
#include "model/xalloc.h"

struct finding {
	const struct gt_story *story;
	struct gt_passes passes;
	struct gt_pass open; /* first = 0: none */
	bool engine;	     /* the open one has events of the engine */
};

static const struct gt_features no_chain;

/* Without events of the engine nothing was computed: backward() of a loss on another device. */
static void close_pass(struct finding *finding)
{
	if (finding->open.first && finding->engine)
		*GT_PUSH(finding->passes.passes, finding->passes.count) = finding->open;
	finding->open = (struct gt_pass){0};
	finding->engine = false;
}

static const struct gt_site_def *site_at(const struct gt_story *story, uint32_t position)
{
	const struct gt_life *life = gt_story_life(story, position);
	uint32_t site = gt_story_is_death(story, position) ? life->free_site : life->site;

	return &story->trace->lanes[life->lane].site_defs[site];
}

static void look_at(struct finding *finding, uint32_t position)
{
	const struct gt_story *story = finding->story;
	const struct gt_features *features = gt_story_at(story, position);
	uint16_t thread = gt_story_thread(story, position);
	bool engine = features->bits & GT_HAS_ENGINE || story->engine[thread];
	bool call = features->bits & (GT_IN_BACKWARD | GT_IN_ROOT);

	if (!engine && !call) {
		if (story->caller[thread])
			close_pass(finding);
		return;
	}
	if (!engine && features->bits & GT_IN_ROOT && finding->engine)
		close_pass(finding);
	if (!finding->open.first)
		finding->open = (struct gt_pass){.first = position, .chain = &no_chain};
	if (!engine && finding->open.chain == &no_chain) {
		finding->open.chain = features;
		finding->open.call = site_at(story, position);
	}
	finding->engine |= engine;
	finding->open.last = position;
}

/* Not the workspace that the first pass makes: of a small model it is larger than all gradients. */
static bool is_kept(const struct gt_story *story, uint32_t position, const struct gt_pass *pass)
{
	return !gt_story_is_death(story, position) &&
	       !(gt_story_at(story, position)->bits & GT_HAS_WORKSPACE) &&
	       gt_story_life(story, position)->died > pass->last;
}

static void count_kept(const struct gt_story *story, const struct gt_passes *passes)
{
	for (size_t i = 0; i < passes->count; i++)
		for (uint32_t p = passes->passes[i].first; p <= passes->passes[i].last; p++)
			if (is_kept(story, p, &passes->passes[i]))
				passes->passes[i].kept_bytes += gt_story_life(story, p)->size;
}

struct gt_passes gt_passes_of(const struct gt_story *story)
{
	struct finding finding = {.story = story};

	for (uint32_t i = 1; i < story->exit; i++)
		look_at(&finding, i);
	close_pass(&finding);
	count_kept(story, &finding.passes);
	return finding.passes;
}

void gt_passes_clear(struct gt_passes *passes)
{
	free(passes->passes);
	*passes = (struct gt_passes){0};
}

size_t gt_pass_after(const struct gt_passes *passes, uint32_t position)
{
	size_t low = 0, high = passes->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (passes->passes[middle].first > position)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

size_t gt_pass_after_near(const struct gt_passes *passes, uint32_t position, size_t guess)
{
	for (size_t i = guess; i <= passes->count && i < guess + 3; i++)
		if ((!i || passes->passes[i - 1].first <= position) &&
		    (i == passes->count || passes->passes[i].first > position))
			return i;
	return gt_pass_after(passes, position);
}

size_t gt_pass_at(const struct gt_passes *passes, uint32_t position)
{
	return gt_pass_before(passes, position, gt_pass_after(passes, position));
}
