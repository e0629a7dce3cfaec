/* SPDX-License-Identifier: MIT */
/*
 * See calls.h. A program that fills the device with what it needs calls the same line over and over,
 * too; what tells a leak from it is that work goes on in between: other blocks come and go, and the
 * request that failed was made before. Called from verdict.c and cmd/growth.c.
 */
#include "model/calls.h"

#include <stdlib.h>
#include "model/failure.h"
#include "model/xalloc.h"

#define FEWEST 8 /* calls from which on a rule can be seen */

struct tally { /* of one site */
	uint64_t births, deaths, bytes;
	uint64_t first, last;		  /* events of births */
	uint64_t frees_first, frees_last; /* frees of anything before those */
};

static void count(struct tally *tally, const struct gt_event *event, uint64_t frees)
{
	int effect = gt_op_effect(event->op);

	if (effect < 0) {
		tally->deaths++;
		tally->bytes -= event->size < tally->bytes ? event->size : tally->bytes;
	}
	if (effect <= 0)
		return;
	if (!tally->births++) {
		tally->first = event->seq;
		tally->frees_first = frees;
	}
	tally->last = event->seq;
	tally->frees_last = frees;
	tally->bytes += event->size;
}

static struct tally *tallies_of(const struct gt_trace *trace, size_t lane_index, uint64_t from,
				uint64_t to)
{
	const struct gt_trace_lane *lane = &trace->lanes[lane_index];
	struct tally *tallies = gt_xcalloc(lane->site_count + 1, sizeof(*tallies));
	struct gt_cursor *cursor = gt_cursor_new(trace, lane_index);
	const struct gt_event *event;
	uint64_t frees = 0;

	while ((event = gt_cursor_next(cursor, NULL)) && event->seq <= to) {
		if (event->seq <= from || !(gt_site_mask(lane, event->site) & GT_MASK_IN_USE))
			continue;
		count(&tallies[event->site], event, frees);
		frees += gt_op_effect(event->op) < 0;
	}
	gt_cursor_free(cursor);
	return tallies;
}

/* Nearly nothing given back, work in between, and still going on. */
static bool grows(const struct tally *tally, uint64_t to)
{
	uint64_t span = tally->last - tally->first;

	return tally->births >= FEWEST && tally->deaths * 10 <= tally->births &&
	       (tally->frees_last - tally->frees_first) * 2 >= tally->births &&
	       to - tally->last <= 4 * span / tally->births + FEWEST;
}

/* What a model is made of is kept on purpose, block after block. */
static bool *static_sites(const struct gt_trace_lane *lane, const struct gt_answers *answers,
			  size_t lane_index)
{
	bool *kept = gt_xcalloc(lane->site_count + 1, sizeof(*kept));

	for (size_t i = 0; answers && i < answers->story->life_count; i++) {
		const struct gt_life *life = &answers->story->lives[i];

		if (life->lane == lane_index && life->site < lane->site_count &&
		    (life->category == GT_CATEGORY_WEIGHTS ||
		     life->category == GT_CATEGORY_GRADIENTS ||
		     life->category == GT_CATEGORY_OPTIMIZER))
			kept[life->site] = true;
	}
	return kept;
}

/* The same line, whichever way it came to the driver. */
static bool same_line(const struct gt_site_def *a, const struct gt_site_def *b)
{
	return a->python || b->python ? a->python == b->python : a->native == b->native;
}

/*
 * What autograd's thread asks for has no line of its own, and no second request of it the same native
 * stack as one that was refused: there have been as many backward passes.
 */
static bool is_in_passes(const struct gt_answers *answers, size_t lane_index, uint32_t site)
{
	const struct gt_story *story = answers ? answers->story : NULL;

	return story && answers->passes.count >= FEWEST - 1 &&
	       gt_story_features(story, lane_index, site)->bits & GT_HAS_ENGINE;
}

static bool was_called(const struct gt_trace_lane *lane, const struct tally *tallies,
		       const struct gt_site_def *asked)
{
	for (size_t s = 1; s < lane->site_count; s++)
		if (tallies[s].births >= FEWEST - 1 && same_line(&lane->site_defs[s], asked))
			return true;
	return false;
}

static void add_up(struct gt_calls *calls, const struct tally *tallies,
		   const struct gt_trace_lane *lane)
{
	uint64_t births = tallies[calls->site].births;

	for (size_t s = 1; s < lane->site_count; s++) {
		uint64_t other = tallies[s].births;

		calls->sites[s] &= other * 5 >= births * 4 && other * 4 <= births * 5;
		if (!calls->sites[s])
			continue;
		calls->bytes += tallies[s].bytes;
		calls->freed += tallies[s].deaths;
	}
	calls->count = births;
	calls->per_call = calls->bytes / births;
}

struct gt_calls gt_calls_of(const struct gt_trace *trace, const struct gt_answers *answers,
			    size_t lane_index, uint64_t from, const struct gt_report *report)
{
	const struct gt_trace_lane *lane = &trace->lanes[lane_index];
	const uint64_t to = report ? report->seq : lane->seq;
	struct tally *tallies = tallies_of(trace, lane_index, from, to);
	bool *kept = static_sites(lane, answers, lane_index);
	struct gt_calls calls = {.sites = gt_xcalloc(lane->site_count + 1, sizeof(bool))};
	bool called = !report || was_called(lane, tallies, gt_report_site(trace, report)) ||
		      is_in_passes(answers, lane_index, report->site);

	for (uint32_t s = 1; called && s < lane->site_count; s++) {
		calls.sites[s] = !kept[s] && grows(&tallies[s], to);
		if (calls.sites[s] && (!calls.site || tallies[s].bytes > tallies[calls.site].bytes))
			calls.site = s;
	}
	if (calls.site)
		add_up(&calls, tallies, lane);
	free(kept);
	free(tallies);
	return calls;
}

void gt_calls_clear(struct gt_calls *calls)
{
	free(calls->sites);
	*calls = (struct gt_calls){0};
}
