/* SPDX-License-Identifier: MIT */
/*
 * See growth.h. For each site, O(k) = bytes alive at the end of step k that were made before step
 * k. What matters is the pattern of its rises: regular, recent, hardly ever taken back. The
 * thresholds were set on trainings with planted leaks of 0.1 to 1 % of a step's traffic and on
 * healthy ones (caches that fill, queues, growing batches, evaluation). Called from cmd/.
 */
#include "model/growth.h"

#include <stdlib.h>
#include <string.h>
#include <uthash.h>
#include "model/xalloc.h"
#include "symbols/library.h"

#define SKIP	    2 /* first steps: state, caches, searches */
#define LEAST	    8 /* steps behind them */
#define LEAST_ALIKE 3 /* likewise, where each adds as much as the others: grows_alike() */
#define LEAST_UPS   4
#define HIGH_UPS    10
#define BUFFER_PART 4 /* a buffer rises in one of so many steps at least */

struct series { /* of a site, by step from 0; each one longer than the number of steps */
	uint32_t key;
	const struct gt_site_def *site;
	const struct gt_features *features;
	int64_t *old_bytes, *bytes, *counts;
	int64_t *made; /* allocated in the step */
	uint64_t categories[GT_CATEGORIES];
	uint64_t now, now_count;
	uint32_t first_step, last_born;
	uint64_t *old_sizes;
	size_t old_count;
	UT_hash_handle hh;
};

struct growing {
	const struct gt_answers *answers;
	size_t lane_index, steps;
	struct series *series;
	struct series **of_site; /* of the lane; NULL = not asked yet */
	int64_t *made;		 /* allocated in the step, by all */
	size_t step;		 /* that was asked for last */
};

static struct series *make_series(struct growing *growing, const struct gt_life *life)
{
	const struct gt_story *story = growing->answers->story;
	const struct gt_features *features = gt_story_birth(story, life);
	uint32_t key = features->place;
	struct series *series;

	HASH_FIND(hh, growing->series, &key, sizeof(key), series);
	if (series)
		return series;
	series = gt_xcalloc(1, sizeof(*series));
	series->key = key;
	series->site = gt_story_site(story, life);
	series->features = features;
	series->old_bytes = gt_xcalloc(growing->steps + 2, sizeof(int64_t));
	series->bytes = gt_xcalloc(growing->steps + 2, sizeof(int64_t));
	series->counts = gt_xcalloc(growing->steps + 2, sizeof(int64_t));
	series->made = gt_xcalloc(growing->steps + 2, sizeof(int64_t));
	series->first_step = UINT32_MAX;
	HASH_ADD(hh, growing->series, key, sizeof(key), series);
	return series;
}

static struct series *series_for(struct growing *growing, const struct gt_life *life)
{
	struct series **known = &growing->of_site[life->site];

	if (!*known)
		*known = make_series(growing, life);
	return *known;
}

/* Lives come by birth and most end in their step or the next: no search for these. */
static size_t step_of(struct growing *growing, uint32_t position)
{
	const struct gt_boundaries *steps = &growing->answers->steps;

	for (size_t step = growing->step; step && step <= growing->step + 1; step++)
		if (step < steps->count && position >= steps->starts[step - 1] &&
		    position < steps->starts[step])
			return growing->step = step;
	return growing->step = gt_boundary_step(steps, position);
}

/* Alive at the end of step k: born in k or before, dying later. Differences first, sums later. */
static void add_life(struct growing *growing, const struct gt_life *life)
{
	const struct gt_boundaries *steps = &growing->answers->steps;
	size_t born = step_of(growing, life->born), died = growing->steps + 1;
	struct series *series = series_for(growing, life);
	int64_t size = (int64_t)life->size;

	if (life->born >= steps->end)
		return;
	if (life->died < steps->end)
		died = step_of(growing, life->died);
	if (born) {
		series->made[born] += size;
		growing->made[born] += size;
	}
	if (died == born)
		return;
	series->bytes[born] += size;
	series->bytes[died] -= size;
	series->counts[born]++;
	series->counts[died]--;
	if (died <= born + 1)
		return;
	series->old_bytes[born + 1] += size;
	series->old_bytes[died] -= size;
	/* cuBLAS's workspace has the stack of the first product and stays, too; nobody keeps it. */
	if (life->category == GT_CATEGORY_WORKSPACES)
		return;
	series->categories[life->category] += life->size;
	if (died <= growing->steps)
		return;
	series->now += life->size;
	series->now_count++;
	*GT_PUSH(series->old_sizes, series->old_count) = life->size;
	if (born < series->first_step)
		series->first_step = (uint32_t)born;
	if (life->born > series->last_born)
		series->last_born = life->born;
}

static void sum_up(int64_t *values, size_t count)
{
	for (size_t i = 1; i < count; i++)
		values[i] += values[i - 1];
}

/* ---- the first test: more and more blocks ---------------------------------------------------- */

static int by_number(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x < y ? -1 : x > y;
}

static double median(int64_t *values, size_t count)
{
	const size_t below = (count - 1) / 2, above = count / 2;

	qsort(values, count, sizeof(*values), by_number);
	return ((double)values[below] + (double)values[above]) / 2;
}

struct rises { /* of a series, after the steps left out */
	size_t ups, last;
	int64_t *gaps;
	size_t gap_count;
	int64_t added, freed, first_half, second_half, least, most; /* those of a single rise */
	double median_gap;
	int64_t largest_gap;
	bool equal_gaps;
};

static struct rises rises_of(const int64_t *values, size_t steps)
{
	struct rises rises = {.equal_gaps = true};
	size_t middle = SKIP + (steps - SKIP) / 2;

	for (size_t k = SKIP + 1; k <= steps; k++) {
		int64_t change = values[k] - values[k - 1];

		*(k <= middle ? &rises.first_half : &rises.second_half) += change;
		if (change < 0)
			rises.freed -= change;
		if (change <= 0)
			continue;
		rises.added += change;
		rises.most = change > rises.most ? change : rises.most;
		rises.least = !rises.ups || change < rises.least ? change : rises.least;
		if (rises.ups++)
			*GT_PUSH(rises.gaps, rises.gap_count) = (int64_t)(k - rises.last);
		rises.last = k;
	}
	for (size_t i = 0; i < rises.gap_count; i++) {
		rises.equal_gaps &= rises.gaps[i] == rises.gaps[0];
		if (rises.gaps[i] > rises.largest_gap)
			rises.largest_gap = rises.gaps[i];
	}
	if (rises.gap_count)
		rises.median_gap = median(rises.gaps, rises.gap_count);
	free(rises.gaps);
	rises.gaps = NULL;
	return rises;
}

static bool is_recent(const struct rises *rises, size_t steps)
{
	return (double)(steps - rises->last) <= 2 * rises->median_gap;
}

/* No two of the blocks that are kept are equal. */
static bool all_distinct(struct series *series)
{
	int64_t *sizes = (int64_t *)series->old_sizes;

	qsort(sizes, series->old_count, sizeof(*sizes), by_number);
	for (size_t i = 1; i < series->old_count; i++)
		if (sizes[i] == sizes[i - 1])
			return false;
	return true;
}

/*
 * A run that dies of its growth may have few steps. What warms up slows down, fills in sizes of its own or
 * skips steps: the same rise in every step, never taken back, is none of these.
 */
static bool grows_alike(const struct rises *rises, struct series *series, size_t steps)
{
	return rises->ups >= LEAST_ALIKE && rises->ups == steps - SKIP && !rises->freed &&
	       rises->most <= 2 * rises->least && !all_distinct(series);
}

static bool grows(const struct rises *rises, struct series *series, size_t steps)
{
	if (steps < SKIP + LEAST)
		return grows_alike(rises, series, steps);
	return rises->ups >= LEAST_UPS && (double)rises->largest_gap <= 3 * rises->median_gap &&
	       is_recent(rises, steps) && rises->freed * 10 <= rises->added &&
	       2 * rises->second_half >= rises->first_half;
}

/* ---- the second test: one buffer, ever larger ------------------------------------------------ */

/* Slope of a line through the values, as the median of all slopes between two of them. */
static double theil_sen(const int64_t *values, size_t from, size_t to)
{
	size_t count = to - from + 1, stride = 1 + count / 256, pairs = 0;
	int64_t *slopes = NULL;
	double result;

	for (size_t i = from; i <= to; i += stride)
		for (size_t j = i + stride; j <= to; j += stride)
			*GT_PUSH(slopes, pairs) = (values[j] - values[i]) / (int64_t)(j - i);
	result = pairs ? median(slopes, pairs) : 0;
	free(slopes);
	return result;
}

static bool is_buffer(const struct growing *growing, const struct series *series,
		      const struct rises *rises)
{
	size_t steps = growing->steps, n = steps - SKIP;
	int64_t *others = gt_xcalloc(steps + 1, sizeof(*others)), *sorted;
	double slope, middle;

	for (size_t k = SKIP + 1; k <= steps; k++)
		if (series->counts[k] != series->counts[SKIP] ||
		    series->bytes[k] < series->bytes[k - 1])
			rises = NULL;
		else
			others[k] = growing->made[k] - series->made[k];
	if (!rises || rises->ups * BUFFER_PART < n || rises->ups < LEAST_UPS ||
	    !is_recent(rises, steps)) {
		free(others);
		return false;
	}
	slope = theil_sen(others, SKIP + 1, steps);
	sorted = gt_xcalloc(n, sizeof(*sorted));
	memcpy(sorted, others + SKIP + 1, n * sizeof(*sorted));
	middle = median(sorted, n);
	free(sorted);
	free(others);
	return slope * (double)n < 0.05 * middle;
}

/* ---- the result ------------------------------------------------------------------------------ */

static enum gt_category most_of(const struct series *series)
{
	enum gt_category best = GT_CATEGORY_UNKNOWN;

	for (int c = 1; c < GT_CATEGORIES; c++)
		if (series->categories[c] > series->categories[best])
			best = (enum gt_category)c;
	return best;
}

static void judge(struct growing *growing, struct series *series, struct gt_growth *ret)
{
	size_t n = growing->steps - SKIP;
	const int64_t *values = series->old_bytes;
	struct rises rises = rises_of(values, growing->steps);
	struct gt_grower grower = {
		.site = series->site,
		.features = series->features,
		.kind = GT_GROWTH_KEPT,
		.category = most_of(series),
		.bytes = series->now,
		.count = series->now_count,
		.first_step = series->first_step,
		.last_born = series->last_born,
		.steps = (uint32_t)n,
	};

	if (!grows(&rises, series, growing->steps)) {
		if (n < LEAST)
			return;
		values = series->bytes;
		rises = rises_of(values, growing->steps);
		grower.kind = GT_GROWTH_BUFFER;
		if (!is_buffer(growing, series, &rises))
			return;
		grower.bytes = (uint64_t)values[growing->steps];
	} else if (!rises.equal_gaps && all_distinct(series)) {
		grower.kind = GT_GROWTH_CACHE;
	}
	grower.ups = (uint32_t)rises.ups;
	grower.high = rises.ups >= HIGH_UPS;
	grower.slope = (double)(values[growing->steps] - values[SKIP]) / (double)n;
	*GT_PUSH(ret->growers, ret->count) = grower;
}

static int by_slope(const void *a, const void *b)
{
	const struct gt_grower *x = a, *y = b;
	bool p = x->kind == GT_GROWTH_CACHE, q = y->kind == GT_GROWTH_CACHE;

	if (p != q)
		return p ? 1 : -1;
	return x->slope < y->slope ? 1 : x->slope > y->slope ? -1 : 0;
}

/* Sites that rose equally often in equally many steps, behind one line: one graph. */
static void find_patterns(struct gt_growth *growth)
{
	for (size_t i = 0; i < growth->count; i++) {
		size_t j = 0;

		while (growth->growers[j].ups != growth->growers[i].ups ||
		       growth->growers[j].kind != growth->growers[i].kind)
			j++;
		growth->growers[i].pattern = j;
	}
}

static void finish(struct growing *growing, struct gt_growth *ret)
{
	if (ret->count)
		qsort(ret->growers, ret->count, sizeof(*ret->growers), by_slope);
	find_patterns(ret);
	for (size_t i = 0; i < ret->count; i++) {
		if (ret->growers[i].kind == GT_GROWTH_CACHE)
			continue;
		ret->slope += ret->growers[i].slope;
		ret->bytes += ret->growers[i].bytes;
	}
	ret->steps = (uint32_t)growing->steps;
	ret->ups = ret->count ? ret->growers[0].ups : 0;
}

static void clear(struct growing *growing)
{
	struct series *series, *next;

	HASH_ITER(hh, growing->series, series, next) {
		HASH_DEL(growing->series, series);
		free(series->old_bytes);
		free(series->bytes);
		free(series->counts);
		free(series->made);
		free(series->old_sizes);
		free(series);
	}
	free(growing->of_site);
	free(growing->made);
}

/* In use at the ends of the steps that count; teardown follows the last. */
static void find_ends(const struct growing *growing, struct gt_growth *ret)
{
	ret->end_low = UINT64_MAX;
	for (size_t k = 2; k < growing->steps; k++) {
		uint64_t sum = 0;

		for (const struct series *s = growing->series; s; s = s->hh.next)
			sum += (uint64_t)s->bytes[k];
		ret->end_low = sum < ret->end_low ? sum : ret->end_low;
		ret->end_high = sum > ret->end_high ? sum : ret->end_high;
	}
}

struct gt_growth gt_growth_of(const struct gt_answers *answers, size_t lane_index)
{
	struct growing growing = {.answers = answers, .lane_index = lane_index};
	struct gt_growth ret = {0};

	growing.steps = answers->steps.source == GT_STEPS_NONE ? 0 : answers->steps.count;
	growing.made = gt_xcalloc(growing.steps + 2, sizeof(*growing.made));
	growing.of_site = gt_xcalloc(answers->story->trace->lanes[lane_index].site_count,
				     sizeof(*growing.of_site));
	for (size_t i = 0; growing.steps && i < answers->story->life_count; i++)
		if (answers->story->lives[i].lane == lane_index)
			add_life(&growing, &answers->story->lives[i]);
	for (struct series *s = growing.series; s; s = s->hh.next) {
		sum_up(s->old_bytes, growing.steps + 2);
		sum_up(s->bytes, growing.steps + 2);
		sum_up(s->counts, growing.steps + 2);
	}
	find_ends(&growing, &ret);
	ret.enough = growing.steps >= SKIP + LEAST;
	for (struct series *s = growing.series; s && growing.steps >= SKIP + LEAST_ALIKE;
	     s = s->hh.next)
		judge(&growing, s, &ret);
	finish(&growing, &ret);
	clear(&growing);
	return ret;
}

void gt_growth_clear(struct gt_growth *growth)
{
	free(growth->growers);
	*growth = (struct gt_growth){0};
}

/* ---- which frame ----------------------------------------------------------------------------- */

static bool is_users(const struct gt_frame *frame)
{
	return gt_library_of_python(frame->file) == GT_LIBRARY_USER;
}

static bool same_line(const struct gt_frame *a, const struct gt_frame *b)
{
	return a->file == b->file && a->line == b->line;
}

/* Whether a stack comes to the line of a frame of another stack by other calls. */
static bool comes_otherwise(const struct gt_features *features, const struct gt_features *to,
			    uint32_t index)
{
	uint32_t alike = 0;

	while (alike <= index && alike < features->frame_count &&
	       same_line(features->frames[alike], to->frames[alike]))
		alike++;
	for (uint32_t i = alike; alike <= index && i < features->frame_count; i++)
		if (same_line(features->frames[i], to->frames[index]))
			return true;
	return false;
}

static bool is_grower(const struct gt_growth *growth, const struct gt_features *features)
{
	for (size_t i = 0; i < growth->count; i++)
		if (growth->growers[i].kind != GT_GROWTH_CACHE &&
		    growth->growers[i].features->place == features->place)
			return true;
	return false;
}

/*
 * Whether some site that does not grow goes through the line too, called from elsewhere: then the
 * line is not to blame, but the one that called it for what grows.
 */
static bool is_shared(const struct gt_answers *answers, const struct gt_growth *growth,
		      const struct gt_features *grower, uint32_t index)
{
	const struct gt_story *story = answers->story;
	uint32_t before = 0;

	for (size_t i = 0; i < story->life_count; i++) {
		const struct gt_life *life = &story->lives[i];
		const struct gt_features *features = gt_story_birth(story, life);

		if (features->place == before || life->died >= answers->steps.end)
			continue;
		before = features->place;
		if (comes_otherwise(features, grower, index) && !is_grower(growth, features))
			return true;
	}
	return false;
}

const struct gt_frame *gt_growth_frame(const struct gt_answers *answers,
				       const struct gt_growth *growth,
				       const struct gt_grower *grower)
{
	const struct gt_frame *innermost = NULL;

	for (uint32_t i = grower->features->frame_count; i-- > 0;) {
		const struct gt_frame *frame = grower->features->frames[i];

		if (!is_users(frame))
			continue;
		if (!innermost)
			innermost = frame;
		if (!is_shared(answers, growth, grower->features, i))
			return frame;
	}
	if (innermost || !grower->features->frame_count)
		return innermost;
	return grower->features->frames[grower->features->frame_count - 1];
}

const struct gt_frame *gt_growth_result(const struct gt_answers *answers,
					const struct gt_growth *growth)
{
	const struct gt_grower *first = growth->growers, *last = first;
	const struct gt_frame *frame, *result;

	for (size_t i = 1; i < growth->count; i++)
		if (growth->growers[i].pattern == first->pattern &&
		    growth->growers[i].last_born > last->last_born)
			last = &growth->growers[i];
	if (!growth->count || last == first)
		return NULL;
	frame = gt_growth_frame(answers, growth, first);
	result = gt_growth_frame(answers, growth, last);
	return frame && result && same_line(frame, result) ? NULL : result;
}
