/* SPDX-License-Identifier: MIT */
/*
 * See boundary.h. Inference: a backward pass whose call is not later in its loop than the one
 * before it belongs to a new step. Only levels of the call's own chain are compared, so nothing
 * depends on which frames are the user's, and a trainer deep inside a library works. Called from
 * answers.c.
 */
#include "model/boundary.h"

#include <stdlib.h>
#include <string.h>
#include "model/loop.h"
#include "model/nvtx.h"
#include "model/xalloc.h"

#define LONGEST_PERIOD 32 /* steps that one super-step may have */
#define LEAST	       3
#define CONFIDENT      0.5
#define RHYTHM	       4 /* steps that may take turns */

const char *gt_step_source_name(enum gt_step_source source)
{
	static const char *const names[] = {
		[GT_STEPS_NONE] = "none", [GT_STEPS_MARKS] = "marks",
		[GT_STEPS_NVTX] = "nvtx", [GT_STEPS_INFERRED] = "inferred",
		[GT_STEPS_LOOP] = "loop", [GT_STEPS_PERIOD] = "period",
	};

	return names[source];
}

/* ---- chains -------------------------------------------------------------------------------- */

static bool same_place(const struct gt_frame *a, const struct gt_frame *b)
{
	return a->file == b->file && a->function == b->function;
}

static int compare(const struct gt_features *a, uint32_t a_count, const struct gt_features *b,
		   uint32_t b_count)
{
	uint32_t level;

	return gt_chain_compare(a, a_count, b, b_count, &level);
}

static int compare_passes(const struct gt_pass *a, const struct gt_pass *b)
{
	return compare(a->chain, a->chain->to_backward, b->chain, b->chain->to_backward);
}

static bool same_chain(const struct gt_pass *a, const struct gt_pass *b)
{
	const struct gt_features *x = a->chain, *y = b->chain;

	if (x->to_backward != y->to_backward)
		return false;
	for (uint32_t i = 0; i < x->to_backward; i++)
		if (!same_place(x->frames[i], y->frames[i]) ||
		    x->frames[i]->line != y->frames[i]->line)
			return false;
	return true;
}

/* ---- which passes open a step --------------------------------------------------------------- */

struct opening {
	const struct gt_story *story;
	const struct gt_passes *passes;
	uint32_t *chains; /* of each pass: number of the first pass with the same chain */
	bool *evidence;	  /* of each pass: an optimizer ran between the one before and it */
	bool *opens;
	bool zeroes_first; /* frees have no stack, and those before a step's start are its own */
};

static void number_chains(struct opening *opening)
{
	for (size_t i = 0; i < opening->passes->count; i++) {
		size_t first = 0;

		while (!same_chain(&opening->passes->passes[first], &opening->passes->passes[i]))
			first++;
		opening->chains[i] = (uint32_t)first;
	}
}

static bool gap_has_optimizer(const struct opening *opening, size_t pass)
{
	const struct gt_pass *passes = opening->passes->passes;

	for (uint32_t p = passes[pass - 1].last + 1; p < passes[pass].first; p++) {
		uint32_t bits = gt_story_at(opening->story, p)->bits;

		if (bits & GT_IN_OPTIMIZER ||
		    (bits & GT_IN_ZERO_GRAD && gt_story_is_death(opening->story, p)))
			return true;
	}
	return false;
}

/* Bytes of gradients that went between the pass and the one before. */
static uint64_t let_go(const struct opening *opening, size_t pass)
{
	const struct gt_passes *all = opening->passes;
	const struct gt_pass *passes = all->passes;
	uint64_t bytes = 0;

	for (uint32_t p = passes[pass - 1].last + 1; p < passes[pass].first; p++) {
		const struct gt_life *life = gt_story_life(opening->story, p);

		if (gt_story_is_death(opening->story, p) &&
		    gt_pass_at(all, life->born) < all->count)
			bytes += life->size;
	}
	return bytes;
}

/*
 * Gradients made anew were let go before; gradients that are added to were not. The last pass may have
 * been cut short before it had made its own.
 */
static void find_evidence(struct opening *opening)
{
	const struct gt_passes *passes = opening->passes;
	uint64_t most = 0;
	bool any = false;

	for (size_t i = 0; i < passes->count; i++)
		if (passes->passes[i].kept_bytes > most)
			most = passes->passes[i].kept_bytes;
	for (size_t i = 1; i < passes->count; i++) {
		opening->evidence[i] =
			passes->passes[i].kept_bytes > most / 2 || gap_has_optimizer(opening, i);
		any |= opening->evidence[i];
	}
	for (size_t i = 1; !any && i < passes->count; i++)
		opening->evidence[i] = true;
	if (passes->count > 1 && let_go(opening, passes->count - 1) > most / 2)
		opening->evidence[passes->count - 1] = true;
}

/* The loop of pass k is over and another one has begun: its chain is gone, the next one new. */
static bool changes_loop(const struct opening *opening, size_t pass)
{
	const uint32_t *chains = opening->chains;

	if (opening->passes->count <= 4 || chains[pass] != pass)
		return false;
	for (size_t i = pass; i < opening->passes->count; i++)
		if (chains[i] == chains[pass - 1])
			return false;
	return true;
}

static void find_openings(struct opening *opening)
{
	const struct gt_pass *passes = opening->passes->passes;

	opening->opens[0] = true;
	for (size_t i = 1; i < opening->passes->count; i++) {
		bool later = compare_passes(&passes[i], &passes[i - 1]) > 0;

		opening->opens[i] = (!later && opening->evidence[i]) || changes_loop(opening, i);
	}
}

/* ---- super-steps: three updates of one network, then one of another -------------------------- */

struct signature { /* passes first to last of a step */
	size_t first, count;
};

static bool same_signature(const struct opening *opening, const struct signature *a,
			   const struct signature *b)
{
	if (a->count != b->count)
		return false;
	return memcmp(opening->chains + a->first, opening->chains + b->first,
		      a->count * sizeof(*opening->chains)) == 0;
}

static size_t list_signatures(const struct opening *opening, struct signature *ret)
{
	size_t count = 0;

	for (size_t i = 0; i < opening->passes->count; i++) {
		if (opening->opens[i])
			ret[count++].first = i;
		ret[count - 1].count++;
	}
	return count;
}

static size_t find_period(const struct opening *opening, const struct signature *steps,
			  size_t count)
{
	for (size_t p = 1; p <= LONGEST_PERIOD && 2 * p <= count; p++) {
		size_t i = p;

		while (i < count && same_signature(opening, &steps[i], &steps[i - p]))
			i++;
		if (i == count)
			return p;
	}
	return 1;
}

/* A period ends with the step that has most passes. */
static void merge_steps(struct opening *opening)
{
	struct signature *steps = gt_xcalloc(opening->passes->count, sizeof(*steps));
	size_t count = list_signatures(opening, steps);
	size_t period = find_period(opening, steps, count), longest = 0;

	for (size_t i = 1; i < period; i++)
		if (steps[i].count >= steps[longest].count)
			longest = i;
	for (size_t i = 1; period > 1 && i < count; i++)
		if ((i + period - longest - 1) % period)
			opening->opens[steps[i].first] = false;
	free(steps);
}

/* ---- where in the gap the step begins -------------------------------------------------------- */

/* The last event that a backward pass or an optimizer made: what follows is no training. */
static uint32_t training_end(const struct gt_story *story, const struct gt_passes *passes)
{
	uint32_t last = passes->count ? passes->passes[passes->count - 1].last : 0;

	for (uint32_t p = last + 1; p < story->exit; p++)
		if (!gt_story_is_death(story, p) && gt_story_at(story, p)->bits & GT_IN_OPTIMIZER)
			last = p;
	return last + 1;
}

static bool is_birth_in(const struct opening *opening, uint32_t position)
{
	return !gt_story_is_death(opening->story, position) &&
	       !opening->story->engine[gt_story_thread(opening->story, position)];
}

/* The first event whose chain is earlier than that of the call before. */
static uint32_t earlier_event(const struct opening *opening, uint32_t from, uint32_t to,
			      const struct gt_features *chain)
{
	for (uint32_t p = from; p < to; p++) {
		const struct gt_features *at = gt_story_at(opening->story, p);

		if (compare(at, at->frame_count, chain, chain->to_backward) < 0)
			return p;
	}
	return 0;
}

static uint32_t tied_event(const struct opening *opening, uint32_t from, uint32_t to,
			   const struct gt_features *chain)
{
	for (uint32_t p = from; p < to; p++) {
		const struct gt_features *at = gt_story_at(opening->story, p);

		if (is_birth_in(opening, p) && at->bits & GT_HAS_PYTHON &&
		    !(at->bits & (GT_IN_OPTIMIZER | GT_IN_ZERO_GRAD)) &&
		    compare(at, at->frame_count, chain, chain->to_backward) == 0)
			return p;
	}
	return 0;
}

static uint32_t birth_at(const struct opening *opening, uint32_t from, uint32_t to, uint32_t place)
{
	for (uint32_t p = from; p < to; p++)
		if (is_birth_in(opening, p) && gt_story_at(opening->story, p)->place == place)
			return p;
	return 0;
}

/* Where no call chain is known: what this pass needs, and the one after does not, is made first. */
static uint32_t needed_birth(const struct opening *opening, uint32_t from, size_t pass)
{
	const struct gt_passes *passes = opening->passes;
	uint32_t begin = passes->passes[pass].first;
	uint32_t after = pass + 1 < passes->count ? passes->passes[pass + 1].last : GT_NEVER;

	for (uint32_t p = from; p < begin; p++) {
		uint32_t died = gt_story_life(opening->story, p)->died;

		if (is_birth_in(opening, p) && died > begin && died <= after)
			return p;
	}
	return begin;
}

/*
 * A free without a stack, of a block that the optimizer did not make: an old batch or zero_grad().
 * Whether it is the last of a step or the first of the next shows only where the trace ends. What
 * the backward pass itself frees is of its own step.
 */
static uint32_t before_frees(const struct opening *opening, uint32_t start, uint32_t after)
{
	while (start > after + 1 && gt_story_is_death(opening->story, start - 1) &&
	       gt_story_life(opening->story, start - 1)->born <= after)
		start--;
	return start;
}

static uint32_t begin_of(const struct opening *opening, size_t pass)
{
	const struct gt_pass *before = &opening->passes->passes[pass - 1];
	uint32_t to = opening->passes->passes[pass].first;
	uint32_t at = earlier_event(opening, before->last + 1, to, before->chain);

	if (!opening->story->python)
		return needed_birth(opening, before->last + 1, pass);
	if (!at)
		at = tied_event(opening, before->last + 1, to, before->chain);
	if (at && opening->zeroes_first)
		at = before_frees(opening, at, before->last);
	return at ? at : to;
}

/*
 * zero_grad() at the end of a step frees gradients after the last step, too; at its beginning it
 * does not, and what is freed next is whatever the program lets go first.
 */
static bool zeroes_first(const struct gt_story *story, const struct gt_passes *passes)
{
	const uint32_t passing = GT_IN_OPTIMIZER | GT_IN_ROOT | GT_IN_BACKWARD;
	uint32_t last = passes->passes[passes->count - 1].first;

	for (uint32_t p = training_end(story, passes); p < story->exit; p++) {
		const struct gt_life *life = gt_story_life(story, p);

		if (gt_story_is_death(story, p) && !(gt_story_birth(story, life)->bits & passing))
			return life->born < last;
	}
	return true;
}

/* Place of the first birth of the step that begins there; 0 = not known. */
static uint32_t opener(const struct opening *opening, uint32_t start)
{
	for (uint32_t p = start; p < opening->story->exit; p++)
		if (is_birth_in(opening, p))
			return gt_story_at(opening->story, p)->place;
	return 0;
}

static uint32_t first_module_call(const struct gt_story *story, uint32_t before)
{
	for (uint32_t p = 1; p < before; p++)
		if (!gt_story_is_death(story, p) && gt_story_at(story, p)->bits & GT_IN_CALL)
			return p;
	return before;
}

static uint32_t first_start(const struct opening *opening, uint32_t second)
{
	uint32_t anchor = opening->passes->passes[0].first, at = 0;
	uint32_t place = second ? opener(opening, second) : 0;

	if (!opening->story->python)
		return needed_birth(opening, 1, 0);
	if (place)
		at = birth_at(opening, 1, anchor, place);
	return at ? at : first_module_call(opening->story, anchor);
}

static void find_starts(const struct opening *opening, struct gt_boundaries *ret)
{
	const struct gt_passes *passes = opening->passes;
	size_t *firsts = gt_xcalloc(passes->count, sizeof(*firsts));

	ret->starts = gt_xcalloc(passes->count, sizeof(*ret->starts));
	for (size_t i = 0; i < passes->count; i++) {
		if (!opening->opens[i])
			continue;
		firsts[ret->count] = i;
		ret->starts[ret->count++] = i ? begin_of(opening, i) : 0;
	}
	/* In a new loop the line numbers of the old one mean nothing. */
	for (size_t s = 1; s + 1 < ret->count; s++) {
		uint32_t place = opener(opening, ret->starts[s + 1]), at;

		if (!place || !changes_loop(opening, firsts[s]))
			continue;
		at = birth_at(opening, passes->passes[firsts[s] - 1].last + 1,
			      passes->passes[firsts[s]].first, place);
		ret->starts[s] = at ? at : ret->starts[s];
	}
	ret->starts[0] = first_start(opening, ret->count > 1 ? ret->starts[1] : 0);
	free(firsts);
}

/* ---- confidence: how alike the steps are ----------------------------------------------------- */

struct histogram { /* births per place of one step */
	uint32_t *counts;
	uint64_t sum;
};

static void fill(const struct gt_story *story, uint32_t from, uint32_t to, struct histogram *ret,
		 size_t places)
{
	memset(ret->counts, 0, places * sizeof(*ret->counts));
	ret->sum = 0;
	for (uint32_t p = from; p < to; p++) {
		if (gt_story_is_death(story, p))
			continue;
		ret->counts[gt_story_at(story, p)->place]++;
		ret->sum++;
	}
}

static double alike(const struct histogram *a, const struct histogram *b, size_t places)
{
	uint64_t both = 0;

	for (size_t i = 0; i < places; i++)
		both += a->counts[i] < b->counts[i] ? a->counts[i] : b->counts[i];
	return a->sum + b->sum ? (double)both / (double)(a->sum + b->sum - both) : 1;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static size_t count_places(const struct gt_story *story)
{
	size_t most = 0;

	for (uint32_t p = 1; p < story->position_count; p++)
		if (gt_story_at(story, p)->place > most)
			most = gt_story_at(story, p)->place;
	return most + 1;
}

/* Median over the steps of the share that each has in common with the one some steps before. */
static double likeness(const struct gt_story *story, const struct gt_boundaries *steps,
		       size_t apart)
{
	size_t places = count_places(story), pairs = 0;
	struct histogram all[RHYTHM + 1];
	double *shares = gt_xcalloc(steps->count, sizeof(*shares)), result;

	for (size_t i = 0; i <= apart; i++)
		all[i] = (struct histogram){gt_xcalloc(places, sizeof(*all[i].counts)), 0};
	for (size_t s = 1; s < steps->count; s++) { /* the first step differs */
		uint32_t to = s + 1 < steps->count ? steps->starts[s + 1] : steps->end;
		struct histogram *now = &all[s % (apart + 1)];

		fill(story, steps->starts[s], to, now, places);
		if (s > apart)
			shares[pairs++] = alike(&all[(s + 1) % (apart + 1)], now, places);
	}
	qsort(shares, pairs, sizeof(*shares), by_value);
	result = pairs ? (shares[(pairs - 1) / 2] + shares[pairs / 2]) / 2 : apart == 1;
	free(shares);
	for (size_t i = 0; i <= apart; i++)
		free(all[i].counts);
	return result * (steps->count < 5 * apart ? (double)steps->count / (double)(5 * apart) : 1);
}

/* Consecutive steps are alike, or those of a rhythm: every third one collects data, for example. */
static double confidence(const struct gt_story *story, const struct gt_boundaries *steps)
{
	double best = likeness(story, steps, 1);

	for (size_t apart = 2; best < CONFIDENT && apart <= RHYTHM; apart++) {
		double other = likeness(story, steps, apart);

		best = other > best ? other : best;
	}
	return best;
}

/* ---- training without marks ------------------------------------------------------------------ */

static void infer(const struct gt_story *story, const struct gt_passes *passes,
		  struct gt_boundaries *ret)
{
	struct opening opening = {.story = story, .passes = passes};

	opening.chains = gt_xcalloc(passes->count, sizeof(*opening.chains));
	opening.evidence = gt_xcalloc(passes->count, sizeof(*opening.evidence));
	opening.opens = gt_xcalloc(passes->count, sizeof(*opening.opens));
	number_chains(&opening);
	find_evidence(&opening);
	find_openings(&opening);
	merge_steps(&opening);
	opening.zeroes_first = !story->free_stacks && zeroes_first(story, passes);
	find_starts(&opening, ret);
	ret->end = training_end(story, passes);
	ret->confidence = confidence(story, ret);
	ret->setup = ret->starts[0];
	if (passes->count >= LEAST && ret->confidence >= CONFIDENT)
		ret->source = GT_STEPS_INFERRED;
	free(opening.chains);
	free(opening.evidence);
	free(opening.opens);
}

/* The program's own steps. A note stands on each lane; the first copy counts. */
static void from_marks(const struct gt_story *story, struct gt_boundaries *ret)
{
	uint32_t last = 0;

	for (size_t i = 0; i < story->tick_count; i++) {
		const struct gt_tick *tick = &story->ticks[i];

		if (tick->op != GT_OP_STEP || (ret->count && tick->text <= last))
			continue;
		last = tick->text;
		*GT_PUSH(ret->starts, ret->count) = tick->position + 1;
	}
	if (ret->count)
		ret->source = GT_STEPS_MARKS;
}

/* Neither marks nor backward passes: loops, and what repeats. */
static void from_loops(const struct gt_story *story, struct gt_boundaries *ret)
{
	void (*ways[])(const struct gt_story *, struct gt_boundaries *) = {gt_loop_steps,
									   gt_period_steps};

	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]) && !ret->source; i++) {
		ways[i](story, ret);
		if (ret->source)
			ret->confidence = confidence(story, ret);
		if (ret->source && ret->count >= LEAST && ret->confidence >= CONFIDENT)
			return;
		free(ret->starts);
		*ret = (struct gt_boundaries){.end = ret->end};
	}
}

struct gt_boundaries gt_boundaries_of(const struct gt_story *story, const struct gt_passes *passes)
{
	struct gt_boundaries ret = {.end = story->exit};

	from_marks(story, &ret);
	if (!ret.source)
		gt_nvtx_steps(story, passes, &ret);
	if (ret.source) {
		ret.confidence = 1;
	} else if (passes->count) {
		infer(story, passes, &ret);
		return ret;
	} else {
		from_loops(story, &ret);
	}
	ret.setup = ret.count ? ret.starts[0] : first_module_call(story, story->exit);
	return ret;
}

void gt_boundaries_clear(struct gt_boundaries *boundaries)
{
	free(boundaries->starts);
	*boundaries = (struct gt_boundaries){0};
}

size_t gt_boundary_step(const struct gt_boundaries *boundaries, uint32_t position)
{
	return gt_first_after(boundaries->starts, boundaries->count, position);
}
