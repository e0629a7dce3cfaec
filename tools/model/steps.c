/* SPDX-License-Identifier: MIT */
/*
 * See steps.h. One more pass over the lane's own history, all of its events, because what the
 * driver was asked for is not in the story. Called from cmd/.
 */
#include "model/steps.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "model/xalloc.h"

uint64_t gt_seq_before(const struct gt_answers *answers, size_t lane_index, uint32_t position)
{
	const struct gt_story *story = answers->story;

	while (position-- > 1)
		if (gt_story_life(story, position)->lane == lane_index)
			return gt_story_seq(story, position);
	return 0;
}

uint32_t gt_step_moment(const struct gt_answers *answers, size_t number, enum gt_phase phase)
{
	const struct gt_boundaries *steps = &answers->steps;
	uint32_t first, end;
	size_t pass = answers->passes.count;

	if (!number || number > steps->count)
		return 0;
	first = steps->starts[number - 1];
	end = number < steps->count ? steps->starts[number] : steps->end;
	if (phase == GT_PHASE_NONE)
		return end;
	for (size_t i = gt_pass_after(&answers->passes, first ? first - 1 : 0);
	     i < answers->passes.count && answers->passes.passes[i].first < end; i++)
		pass = i;
	if (pass == answers->passes.count)
		return 0;
	if (phase == GT_PHASE_FORWARD)
		return answers->passes.passes[pass].first;
	return phase == GT_PHASE_BACKWARD ? answers->passes.passes[pass].last + 1 : 0;
}

int gt_step_times(const struct gt_answers *answers, size_t number, uint64_t *ret_from_us,
		  uint64_t *ret_to_us)
{
	const struct gt_boundaries *steps = &answers->steps;
	const uint32_t last = steps->end ? steps->end - 1 : 0;

	if (steps->source == GT_STEPS_NONE || !number || number > steps->count)
		return -1;
	*ret_from_us = gt_story_us(answers->story, steps->starts[number - 1]);
	*ret_to_us =
		gt_story_us(answers->story, number < steps->count ? steps->starts[number] : last);
	return 0;
}

int gt_steps_resolve(const struct gt_answers *answers, size_t lane_index, struct gt_when *when,
		     struct gt_error *err)
{
	uint32_t position = answers ? gt_step_moment(answers, when->step, when->phase) : 0;

	if (when->kind != GT_WHEN_STEP)
		return 0;
	if (position) {
		when->kind = GT_WHEN_EVENT;
		when->seq = gt_seq_before(answers, lane_index, position);
		return 0;
	}
	err->status = 2;
	if (!answers || !answers->steps.count)
		snprintf(err->text, sizeof(err->text), "no steps found: ask for a time");
	else
		snprintf(err->text, sizeof(err->text), "step:%u: there are steps 1 to %zu%s",
			 when->step, answers->steps.count,
			 when->step <= answers->steps.count && when->step
				 ? ", and it has no such phase"
				 : "");
	return -1;
}

/* ---- steps from the story -------------------------------------------------------------------- */

static void lay_out(const struct gt_answers *answers, size_t lane_index, struct gt_steps *ret)
{
	const struct gt_boundaries *from = &answers->steps;

	ret->source = from->source;
	ret->confidence = from->confidence;
	if (from->source == GT_STEPS_NONE)
		return;
	ret->count = from->count;
	ret->steps = gt_xcalloc(from->count, sizeof(*ret->steps));
	for (size_t i = 0; i < from->count; i++) {
		struct gt_step *step = &ret->steps[i];

		step->first = from->starts[i];
		step->end = i + 1 < from->count ? from->starts[i + 1] : from->end;
		step->cut = i + 1 == from->count;
		gt_step_times(answers, i + 1, &step->from_us, &step->to_us);
		step->seq_end = gt_seq_before(answers, lane_index, step->end);
	}
}

/* A death that was taken back, or is an exit handler's, is none. */
static bool happens(const struct gt_story *story, uint32_t position)
{
	return !gt_story_is_death(story, position) ||
	       gt_story_life(story, position)->died == position;
}

static void count_death(struct gt_steps *steps, size_t index, const struct gt_life *life)
{
	struct gt_step *step = &steps->steps[index];

	step->frees++;
	if (index && life->born >= step[-1].first && life->born < step->first)
		step->carried_in += life->size;
}

static void count_birth(struct gt_step *step, const struct gt_life *life)
{
	step->allocs++;
	step->alloc_bytes += life->size;
	if (life->category == GT_CATEGORY_INPUTS)
		step->inputs += life->size;
}

/* In order of position, so that steps and lives go by once and nothing has to be searched. */
static void count_lives(const struct gt_answers *answers, size_t lane_index, struct gt_steps *steps)
{
	const struct gt_story *story = answers->story;
	size_t s = 0;

	for (uint32_t p = steps->steps[0].first; p < story->position_count; p++) {
		const struct gt_life *life = p ? gt_story_life(story, p) : NULL;

		while (s < steps->count && p >= steps->steps[s].end)
			s++;
		if (s == steps->count)
			return;
		if (!life || life->lane != lane_index || !happens(story, p))
			continue;
		if (gt_story_is_death(story, p))
			count_death(steps, s, life);
		else
			count_birth(&steps->steps[s], life);
	}
}

/* ---- categories at the ends of phases -------------------------------------------------------- */

typedef uint64_t by_category[GT_CATEGORIES];

/* What lives from before the history on. */
static void add_older(const struct gt_story *story, size_t lane_index, by_category sums)
{
	for (size_t i = 0; i < story->life_count && !story->lives[i].born; i++)
		if (story->lives[i].lane == lane_index)
			sums[story->lives[i].category] += story->lives[i].size;
}

static void add_position(const struct gt_story *story, size_t lane_index, uint32_t position,
			 by_category sums)
{
	const struct gt_life *life = gt_story_life(story, position);

	if (life->lane != lane_index || !happens(story, position))
		return;
	if (gt_story_is_death(story, position))
		sums[life->category] -= life->size;
	else
		sums[life->category] += life->size;
}

/* What is alive at moments, which are in order: before what happens at their positions. */
static void count_categories(const struct gt_answers *answers, size_t lane_index,
			     const uint32_t *moments, size_t count, by_category *ret)
{
	const struct gt_story *story = answers->story;
	by_category sums = {0};
	uint32_t p = 0;

	for (size_t m = 0; m < count; m++) {
		for (; p < moments[m] && p < story->position_count; p++) {
			if (p)
				add_position(story, lane_index, p, sums);
			else
				add_older(story, lane_index, sums);
		}
		memcpy(ret[m], sums, sizeof(sums));
	}
}

/* Ends of phases come in order, a step without backward has three equal ones; peaks lie between. */
static void fill_categories(const struct gt_answers *answers, size_t lane_index,
			    struct gt_steps *steps)
{
	size_t ends = GT_STEP_END + 1, count = steps->count * ends;
	uint32_t *moments = gt_xcalloc(count, sizeof(*moments));
	by_category *bytes = gt_xcalloc(count, sizeof(*bytes));

	for (size_t i = 0; i < steps->count; i++) {
		uint32_t *mine = moments + i * ends;

		mine[GT_STEP_END] = steps->steps[i].end;
		mine[GT_STEP_FORWARD] = gt_step_moment(answers, i + 1, GT_PHASE_FORWARD);
		mine[GT_STEP_BACKWARD] = gt_step_moment(answers, i + 1, GT_PHASE_BACKWARD);
		if (!mine[GT_STEP_FORWARD])
			mine[GT_STEP_FORWARD] = mine[GT_STEP_BACKWARD] = mine[GT_STEP_END];
	}
	count_categories(answers, lane_index, moments, count, bytes);
	for (size_t m = 0; m < count; m++)
		memcpy(steps->steps[m / ends].categories[m % ends], bytes[m], sizeof(*bytes));
	for (size_t i = 0; i < steps->count; i++)
		moments[i] = steps->steps[i].peak_at + 1;
	count_categories(answers, lane_index, moments, steps->count, bytes);
	for (size_t i = 0; i < steps->count; i++)
		memcpy(steps->steps[i].categories[GT_STEP_PEAK], bytes[i], sizeof(*bytes));
	free(bytes);
	free(moments);
}

/* ---- peaks from the lane --------------------------------------------------------------------- */

struct tracking {
	const struct gt_answers *answers;
	const struct gt_trace_lane *lane;
	size_t lane_index;
	enum gt_total total;
	struct gt_steps *steps;
	size_t step; /* index of the one that events belong to; count = behind the last */
	uint32_t position;
	size_t phase_pass, phase_step; /* of gt_answers_phase_next */
	int64_t cur[GT_TOTALS];
};

/* Where totals stood when the history began: what they are now less what it adds. */
static int start_totals(struct tracking *t, struct gt_error *err)
{
	struct gt_cursor *cursor;
	const struct gt_event *event;

	err->status = 0;
	if (t->lane->history_first <= 1) /* of a whole history: at nothing */
		return 0;
	cursor = gt_xchecked(gt_cursor_new(t->answers->story->trace, t->lane_index));
	for (int k = 0; k < GT_TOTALS; k++)
		t->cur[k] = (int64_t)t->lane->ctr.cur[k];
	while ((event = gt_cursor_next(cursor, err)))
		gt_totals_add(t->cur, t->lane, event, -1);
	gt_cursor_free(cursor);
	return err->status ? -1 : 0;
}

static void raise_slice(struct gt_step *step, uint32_t position, uint64_t now, enum gt_phase phase)
{
	uint64_t done = position > step->first ? position - step->first : 0;
	uint64_t slice =
		done * GT_STEP_SLICES / (step->end > step->first ? step->end - step->first : 1);

	slice = slice < GT_STEP_SLICES ? slice : GT_STEP_SLICES - 1;
	if (now > step->slice_peaks[slice]) {
		step->slice_peaks[slice] = now;
		step->slice_phases[slice] = (uint8_t)phase;
	}
}

static void raise_peaks(struct tracking *t, struct gt_step *step, uint64_t seq)
{
	uint64_t now = (uint64_t)t->cur[t->total];
	enum gt_phase phase =
		gt_answers_phase_next(t->answers, t->position, &t->phase_pass, &t->phase_step);

	if (now > step->peak) {
		step->peak = now;
		step->peak_seq = seq;
		step->peak_at = t->position;
		step->peak_phase = phase;
	}
	raise_slice(step, t->position, now, phase);
	if (now > step->phase_peaks[phase])
		step->phase_peaks[phase] = now;
	if ((uint64_t)t->cur[GT_TOTAL_RESERVED] > step->peak_reserved)
		step->peak_reserved = (uint64_t)t->cur[GT_TOTAL_RESERVED];
}

/* The position of the last birth or death of this lane up to the event. */
static void follow(struct tracking *t, uint64_t seq)
{
	const struct gt_story *story = t->answers->story;

	for (uint32_t p = t->position + 1; p < story->position_count; p++) {
		if (gt_story_life(story, p)->lane != t->lane_index)
			continue;
		if (gt_story_seq(story, p) > seq)
			return;
		t->position = p;
	}
}

static void add_event(struct tracking *t, const struct gt_event *event)
{
	struct gt_step *step;

	if (!gt_op_effect(event->op))
		return;
	gt_totals_add(t->cur, t->lane, event, 1);
	follow(t, event->seq);
	while (t->step < t->steps->count && event->seq > t->steps->steps[t->step].seq_end)
		t->step++;
	if (t->step == t->steps->count || t->position < t->steps->steps[0].first)
		return;
	step = &t->steps->steps[t->step];
	raise_peaks(t, step, event->seq);
	step->end_bytes = (uint64_t)t->cur[t->total];
}

static int track(struct tracking *t, struct gt_error *err)
{
	struct gt_cursor *cursor =
		gt_xchecked(gt_cursor_new(t->answers->story->trace, t->lane_index));
	const struct gt_event *event;

	err->status = 0;
	while ((event = gt_cursor_next(cursor, err)))
		add_event(t, event);
	gt_cursor_free(cursor);
	return err->status ? -1 : 0;
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* The first step is not usual: it makes state and has none yet. */
static void find_usual(struct gt_steps *steps)
{
	size_t first = steps->count > 1 ? 1 : 0, count = steps->count - first;
	uint64_t *peaks = gt_xcalloc(count, sizeof(*peaks)), median;

	for (size_t i = 0; i < count; i++)
		peaks[i] = steps->steps[first + i].peak;
	qsort(peaks, count, sizeof(*peaks), by_value);
	median = peaks[(count - 1) / 2];
	free(peaks);
	for (size_t i = steps->count; i-- > first;)
		if (steps->steps[i].peak == median)
			steps->usual = i;
	for (size_t i = 1; i < steps->count; i++)
		if (steps->steps[i].peak > steps->steps[steps->worst].peak)
			steps->worst = i;
}

int gt_steps_get(const struct gt_answers *answers, size_t lane_index, enum gt_total total,
		 struct gt_steps *ret, struct gt_error *err)
{
	struct gt_steps steps = {0};
	struct tracking t = {
		.answers = answers,
		.lane = &answers->story->trace->lanes[lane_index],
		.lane_index = lane_index,
		.total = total,
		.steps = &steps,
	};
	int status = 0;

	lay_out(answers, lane_index, &steps);
	if (steps.count) {
		count_lives(answers, lane_index, &steps);
		status = start_totals(&t, err);
		if (!status)
			status = track(&t, err);
		fill_categories(answers, lane_index, &steps);
		find_usual(&steps);
	}
	if (status)
		gt_steps_clear(&steps);
	else
		*ret = steps;
	return status;
}

void gt_steps_clear(struct gt_steps *steps)
{
	free(steps->steps);
	*steps = (struct gt_steps){0};
}

double gt_steps_per_second(const struct gt_steps *steps)
{
	uint64_t us = steps->count > 2
			      ? steps->steps[steps->count - 1].from_us - steps->steps[1].from_us
			      : 0;

	return us ? (double)(steps->count - 2) * 1e6 / (double)us : 0;
}
