/* SPDX-License-Identifier: MIT */
/*
 * See evidence.h. Each fact is found in one sweep over the story, so that judging a block is a few
 * look-ups.
 */
#include "model/evidence.h"

#include <stdlib.h>
#include <string.h>
#include "model/xalloc.h"

bool gt_same_size(uint64_t a, uint64_t b)
{
	uint64_t apart = a > b ? a - b : b - a;

	return !apart || (a > GT_SIZE_SLACK && b > GT_SIZE_SLACK && apart < GT_SIZE_SLACK);
}

bool gt_sizes_have(const struct gt_sizes *sizes, uint64_t size)
{
	size_t low = 0, high = sizes->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (sizes->sizes[middle] >= size)
			high = middle;
		else
			low = middle + 1;
	}
	return (low < sizes->count && gt_same_size(sizes->sizes[low], size)) ||
	       (low && gt_same_size(sizes->sizes[low - 1], size));
}

bool gt_in_pass(const struct gt_evidence *ev, const struct gt_subject *s)
{
	return s->pass < ev->passes->count;
}

bool gt_in_setup(const struct gt_evidence *ev, const struct gt_subject *s)
{
	return s->life->born < ev->boundaries->setup;
}

bool gt_outlives_pass(const struct gt_evidence *ev, const struct gt_subject *s)
{
	return s->life->died > ev->passes->passes[s->pass].last;
}

bool gt_is_candidate(const struct gt_evidence *ev, const struct gt_subject *s)
{
	return gt_in_pass(ev, s) && gt_outlives_pass(ev, s);
}

bool gt_is_kept(const struct gt_evidence *ev, const struct gt_subject *s)
{
	const struct gt_passes *passes = ev->passes;

	if (s->life->died == GT_NEVER)
		return true;
	if (gt_in_setup(ev, s) && passes->count)
		return s->life->died > passes->passes[passes->count - 1].last;
	return gt_boundary_step(ev->boundaries, s->life->died) >=
	       gt_boundary_step(ev->boundaries, s->life->born) + 3;
}

struct gt_subject gt_subject_of(struct gt_evidence *ev, const struct gt_life *life)
{
	const size_t next = gt_pass_after_near(ev->passes, life->born, ev->near);
	struct gt_subject s = {
		.life = life,
		.birth = gt_story_birth(ev->story, life),
		.death = gt_story_death(ev->story, life),
		.pass = ev->passes->count,
		.death_pass = ev->passes->count,
		.next_pass = next,
		.facts = ev->facts[life - ev->story->lives],
	};

	ev->near = next;
	s.bits = s.birth->bits;
	if (life->born)
		s.pass = gt_pass_before(ev->passes, life->born, next);
	if (life->died != GT_NEVER) {
		s.death_pass = gt_pass_before(ev->passes, life->died,
					      gt_pass_after_near(ev->passes, life->died, next));
		s.dies_on_engine = s.death->bits & GT_HAS_ENGINE ||
				   ev->story->engine[gt_story_thread(ev->story, life->died)];
	}
	return s;
}

/* ---- facts found in a sweep ------------------------------------------------------------------ */

static void list_positions(struct gt_evidence *ev)
{
	for (uint32_t p = 1; p < ev->story->exit; p++) {
		uint32_t bits = gt_story_at(ev->story, p)->bits;

		if (gt_story_is_death(ev->story, p))
			continue;
		if (bits & GT_IN_CALL)
			*GT_PUSH(ev->calls, ev->call_count) = p;
		if (bits & GT_IN_OPTIMIZER)
			*GT_PUSH(ev->optimizer, ev->optimizer_count) = p;
	}
}

struct run_end { /* of each thread, going backwards: where what it is doing now ends */
	uint32_t optimizer, recomputed;
};

/* The pass ends every recomputation in it. */
static uint32_t recomputation_end(const struct gt_evidence *ev, uint32_t position, uint32_t next)
{
	size_t pass = gt_pass_at(ev->passes, position);

	return pass < ev->passes->count && ev->passes->passes[pass].last < next
		       ? ev->passes->passes[pass].last
		       : next;
}

/*
 * A death without a stack may be the run's own doing, so it ends a run only if deaths have stacks.
 */
static void sweep(struct gt_evidence *ev)
{
	struct gt_story *story = ev->story;
	struct run_end *ends = gt_xcalloc(story->thread_count, sizeof(*ends));

	for (size_t i = 0; i < story->thread_count; i++)
		ends[i] = (struct run_end){GT_NEVER, GT_NEVER};
	for (uint32_t p = story->exit; p-- > 1;) {
		struct gt_life *life = gt_story_life(story, p);
		uint8_t *facts = &ev->facts[life - story->lives];
		uint32_t bits = gt_story_at(story, p)->bits, end;
		struct run_end *mine = &ends[gt_story_thread(story, p)];

		if (gt_story_is_death(story, p) && !story->free_stacks)
			continue;
		if (!(bits & GT_IN_OPTIMIZER))
			mine->optimizer = p;
		if (!gt_recomputed(bits) && !gt_story_is_death(story, p))
			mine->recomputed = p;
		if (gt_story_is_death(story, p))
			continue;
		if (bits & GT_IN_OPTIMIZER)
			end = mine->optimizer;
		else if (gt_recomputed(bits))
			end = recomputation_end(ev, p, mine->recomputed);
		else
			continue;
		*facts |= end == GT_NEVER ? GT_NO_RUN_END : life->died > end ? GT_OUTLIVES_RUN : 0;
	}
	free(ends);
}

/*
 * The last step of an optimizer has no event after it. Blocks of the same stack and size in steps
 * before tell; in the first step those that outlive the step's last birth stay.
 */
static void settle_last_run(struct gt_evidence *ev)
{
	struct gt_story *story = ev->story;
	uint32_t last = ev->optimizer_count ? ev->optimizer[ev->optimizer_count - 1] : 0;

	for (size_t i = 0; i < story->life_count; i++) {
		struct gt_life *life = &story->lives[i];
		uint32_t id = gt_story_birth(story, life)->id;
		bool outlives = life->died > last;

		if (!(ev->facts[i] & GT_NO_RUN_END))
			continue;
		for (size_t j = i; j-- > 0;) {
			const struct gt_life *before = &story->lives[j];

			if (ev->facts[j] & GT_NO_RUN_END || before->size != life->size ||
			    gt_story_birth(story, before)->id != id)
				continue;
			outlives = ev->facts[j] & GT_OUTLIVES_RUN;
			break;
		}
		ev->facts[i] |= outlives ? GT_OUTLIVES_RUN : 0;
	}
}

/* ---- sizes ----------------------------------------------------------------------------------- */

static int by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

struct tally { /* blocks of one size */
	uint64_t size;
	size_t gradients, weights;
};

/*
 * What backward passes leave behind: gradients, most likely, before sizes are known. In one go over all
 * lives, which do not fit into a cache.
 */
struct leavings {
	int64_t *change; /* of their sum, by pass */
	struct tally *tallies;
	size_t count;
	size_t *now, room; /* of each tally in the pass */
	size_t pass;
};

static struct tally *tally_of(struct tally *tallies, size_t count, uint64_t size)
{
	for (size_t i = 0; i < count; i++)
		if (gt_same_size(tallies[i].size, size))
			return &tallies[i];
	return NULL;
}

static void add_sum(const struct gt_evidence *ev, struct leavings *left, const struct gt_subject *s)
{
	size_t end = s->death_pass;

	if (end >= ev->passes->count)
		end = gt_pass_after(ev->passes, s->life->died);
	left->change[s->pass] += (int64_t)s->life->size;
	left->change[end] -= (int64_t)s->life->size;
}

/* Gradients of each size, of the pass that left most of that size. */
static void add_tally(struct leavings *left, const struct gt_subject *s)
{
	struct tally *tally;

	if (s->pass != left->pass && left->now)
		memset(left->now, 0, left->room * sizeof(*left->now));
	left->pass = s->pass;
	tally = tally_of(left->tallies, left->count, s->life->size);
	if (!tally) {
		tally = GT_PUSH(left->tallies, left->count);
		tally->size = s->life->size;
		*GT_PUSH(left->now, left->room) = 0;
	}
	if (++left->now[tally - left->tallies] > tally->gradients)
		tally->gradients = left->now[tally - left->tallies];
}

static struct leavings find_leavings(struct gt_evidence *ev)
{
	struct leavings left = {.pass = ev->passes->count};

	left.change = gt_xcalloc(ev->passes->count + 1, sizeof(*left.change));
	for (size_t i = 0; i < ev->story->life_count; i++) {
		const struct gt_life *life = &ev->story->lives[i];
		struct gt_subject s;

		if (life->category && life->category != GT_CATEGORY_GRADIENTS)
			continue;
		s = gt_subject_of(ev, life);
		if (!gt_is_candidate(ev, &s))
			continue;
		add_sum(ev, &left, &s);
		add_tally(&left, &s);
	}
	free(left.now);
	return left;
}

static void sum_gradients(struct gt_evidence *ev, const int64_t *change)
{
	int64_t sum = 0;

	ev->gradient_sums = gt_xcalloc(ev->passes->count, sizeof(*ev->gradient_sums));
	for (size_t i = 0; i < ev->passes->count; i++) {
		sum += change[i];
		ev->gradient_sums[i] = (uint64_t)sum;
		if ((uint64_t)sum > ev->most_gradients)
			ev->most_gradients = (uint64_t)sum;
	}
}

/* A training without modules: its parameters are what its gradients look like. */
static void claim(struct gt_evidence *ev, struct tally *tallies, size_t count)
{
	for (size_t i = 0; i < ev->story->life_count; i++) {
		const struct gt_life *life = &ev->story->lives[i];
		struct tally *tally = NULL;

		if (life->category == GT_CATEGORY_WEIGHTS)
			tally = tally_of(tallies, count, life->size);
		if (tally)
			tally->weights++;
	}
	for (size_t i = 0; i < ev->story->life_count; i++) {
		const struct gt_life *life = &ev->story->lives[i];
		struct gt_subject s;
		struct tally *tally;

		if (life->born >= ev->boundaries->setup)
			break;
		if (life->category)
			continue;
		s = gt_subject_of(ev, life);
		if (!gt_is_user(&s) || !gt_is_kept(ev, &s))
			continue;
		tally = tally_of(tallies, count, life->size);
		if (tally && tally->weights < tally->gradients) {
			tally->weights++;
			ev->facts[i] |= GT_CLAIMED;
		}
	}
}

void gt_evidence_claim(struct gt_evidence *ev)
{
	struct leavings left = find_leavings(ev);

	sum_gradients(ev, left.change);
	claim(ev, left.tallies, left.count);
	free(left.tallies);
	free(left.change);
}

void gt_sizes_sort(struct gt_sizes *sizes)
{
	if (sizes->count)
		qsort(sizes->sizes, sizes->count, sizeof(*sizes->sizes), by_size);
}

void gt_evidence_make(struct gt_evidence *ev, struct gt_story *story,
		      const struct gt_passes *passes, const struct gt_boundaries *boundaries)
{
	*ev = (struct gt_evidence){.story = story, .passes = passes, .boundaries = boundaries};
	ev->facts = gt_xcalloc(story->life_count, sizeof(*ev->facts));
	list_positions(ev);
	sweep(ev);
	settle_last_run(ev);
}

void gt_evidence_clear(struct gt_evidence *ev)
{
	free(ev->weights.sizes);
	free(ev->zeroed.sizes);
	free(ev->gradient_sums);
	free(ev->calls);
	free(ev->optimizer);
	free(ev->facts);
}
