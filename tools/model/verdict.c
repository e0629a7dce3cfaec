/* SPDX-License-Identifier: MIT */
/*
 * See verdict.h. Margins come from the trace's own blocks: what growth keeps, what lies cached in
 * pieces, what other processes hold. Figures that are worked out instead (state that an optimizer
 * was still to make) carry their formula. Called from cmd/.
 */
#include "model/verdict.h"

#include <stdlib.h>
#include <string.h>
#include "model/failure.h"
#include "model/segments.h"
#include "model/trial.h"
#include "model/xalloc.h"

#define MUCH_MORE 4

const char *gt_cause_name(enum gt_cause cause)
{
	static const char *const names[] = {
		[GT_CAUSE_NONE] = "unknown",
		[GT_CAUSE_HOST_MEMORY] = "host-memory",
		[GT_CAUSE_SINGLE_REQUEST] = "single-request",
		[GT_CAUSE_TOO_LARGE] = "too-large-for-device",
		[GT_CAUSE_FIRST_STEP] = "first-step-too-large",
		[GT_CAUSE_LOAD_PEAK] = "load-peak",
		[GT_CAUSE_DUPLICATE_STATE] = "duplicate-state",
		[GT_CAUSE_HELD_AFTER_OOM] = "held-after-oom",
		[GT_CAUSE_GROWTH] = "growth",
		[GT_CAUSE_POOL_CACHE] = "pool-cache",
		[GT_CAUSE_IDLE_CONTEXTS] = "idle-contexts",
		[GT_CAUSE_FRAGMENTATION] = "fragmentation",
		[GT_CAUSE_OTHER_PROCESS] = "other-process",
		[GT_CAUSE_ACTIVATIONS] = "activations",
	};

	return names[cause];
}

/* ---- facts at the moment --------------------------------------------------------------------- */

static bool alive(const struct gt_trial *t, const struct gt_life *life)
{
	return life->lane == t->lane_index && life->born_seq <= t->report->seq &&
	       life->died_seq > t->report->seq;
}

static const struct gt_features *request_features(const struct gt_trial *t)
{
	return gt_story_features(t->answers->story, t->lane_index, t->report->site);
}

/* Training has begun, whether its steps are known or not. */
static bool in_training(const struct gt_trial *t)
{
	return t->v->step || gt_pass_after(&t->answers->passes, t->position) > 0;
}

static void find_moment(struct gt_trial *t)
{
	const struct gt_answers *answers = t->answers;
	uint32_t bits = request_features(t)->bits;

	t->position = gt_story_position(answers->story, t->lane_index, t->report->seq) + 1;
	t->v->steps_known = answers->steps.count > 0;
	t->v->step = gt_boundary_step(&answers->steps, t->position - 1);
	t->v->phase = bits & GT_HAS_ENGINE     ? GT_PHASE_BACKWARD
		      : bits & GT_IN_OPTIMIZER ? GT_PHASE_OPTIMIZER
		      : bits & GT_IN_CALL      ? GT_PHASE_FORWARD
					       : gt_answers_phase(answers, t->position - 1);
	for (size_t i = 0; i < answers->story->life_count; i++)
		if (alive(t, &answers->story->lives[i]))
			t->v->categories[answers->story->lives[i].category] +=
				answers->story->lives[i].size;
	t->v->categories_known = true;
}

/* Cached pieces, and the site that holds most in the segments that have some. */
static void look_at_segments(struct gt_trial *t, const struct gt_segment_list *list)
{
	uint64_t *pins = gt_xcalloc(t->lane->site_count, sizeof(*pins));
	size_t best = 0;

	for (size_t i = 0; i < list->count; i++) {
		const struct gt_segment *segment = &list->segments[i];

		t->v->expandable |= segment->expandable;
		if (!segment->pool || segment->used == segment->size)
			continue;
		for (size_t p = 0; p < segment->piece_count; p++) {
			const struct gt_piece *piece = &segment->pieces[p];

			if (piece->used && piece->site < t->lane->site_count)
				pins[piece->site] += piece->size;
			t->v->pieces += !piece->used;
			if (!piece->used && piece->size > t->v->largest_piece)
				t->v->largest_piece = piece->size;
		}
	}
	for (size_t s = 1; s < t->lane->site_count; s++)
		if (pins[s] > pins[best])
			best = s;
	if (best)
		t->v->site = &t->lane->site_defs[best];
	free(pins);
}

static bool is_empty(const struct gt_segment *segment)
{
	return segment->pool && !segment->used && !segment->pending && !segment->expandable;
}

/* Before it gives up torch returns every empty segment, except those of graphs' private pools. */
static bool in_private_pool(const struct gt_segment_list *list, const struct gt_segment *segment)
{
	for (size_t i = 0; i < list->count; i++)
		if (is_empty(&list->segments[i]) && list->segments[i].stream == segment->stream)
			return segment->pool && !segment->expandable;
	return false;
}

/* What a pool keeps that this request can not have, whatever its size. */
static void look_at_pools(struct gt_trial *t, const struct gt_segment_list *list)
{
	bool torch = t->report->torch_requested;
	uint64_t most = 0, sum = 0;

	for (size_t i = 0; i < list->count && (!torch || t->report->tries > 1); i++) {
		const struct gt_segment *segment = &list->segments[i];
		uint64_t cached = segment->size - segment->used;

		t->v->empty += is_empty(segment) ? segment->size : 0;
		if (torch ? !in_private_pool(list, segment) : !is_empty(segment))
			continue;
		sum += cached;
		if (cached <= most || segment->site >= t->lane->site_count)
			continue;
		most = cached;
		t->v->pool_site = &t->lane->site_defs[segment->site];
	}
	t->v->pool_cached = sum;
	t->v->pool = torch ? GT_POOL_PRIVATE : GT_POOL_TORCH;
}

static void find_pieces(struct gt_trial *t)
{
	struct gt_error err = {0};
	struct gt_segment_list list;
	struct gt_segments *segments;

	if (!gt_history_reaches(t->lane, t->report->seq) ||
	    gt_moment_get(t->trace, t->lane_index, t->report->seq, UINT64_MAX, &t->moment, &err))
		return;
	segments = gt_xchecked(gt_segments_new(t->lane));
	gt_segments_load(segments, t->moment.blocks, t->moment.block_count, NULL, NULL);
	gt_segments_list(segments, &list);
	look_at_segments(t, &list);
	look_at_pools(t, &list);
	t->moment_known = t->v->pieces_known = true;
	gt_segments_list_clear(&list);
	gt_segments_free(segments);
}

/* What the ledger knows of the driver's pools, and of contexts that nobody uses. */
static void look_at_ledger(struct gt_trial *t)
{
	for (size_t i = 0; t->ledger && i < t->ledger->row_count; i++) {
		const struct gt_ledger_row *row = &t->ledger->rows[i];

		if (row->kind == GT_LEDGER_CONTEXT && row->idle) {
			t->v->idle += (uint64_t)row->bytes;
			t->v->idle_count++;
			t->v->idle_row = t->v->idle_row ? t->v->idle_row : row;
		}
		if (row->kind != GT_LEDGER_POOLS || row->pid != t->trace->header.pid ||
		    row->bytes <= (int64_t)t->v->pool_cached)
			continue;
		t->v->pool_cached = (uint64_t)row->bytes;
		t->v->pool_site = &row->site;
		t->v->pool = GT_POOL_DRIVER;
	}
}

/* ---- the first step: what was still to come -------------------------------------------------- */

/*
 * How many states an optimizer makes per parameter: it makes those of one parameter one after the
 * other, of one size each.
 */
static unsigned int states_per_parameter(const struct gt_trial *t)
{
	const struct gt_story *story = t->answers->story;
	uint64_t before = 0;
	unsigned int run = 0, shortest = 0;

	for (size_t i = 0; i < story->life_count; i++) {
		const struct gt_life *life = &story->lives[i];

		if (!alive(t, life) || life->category != GT_CATEGORY_OPTIMIZER)
			continue;
		if (life->size == before) {
			run++;
			continue;
		}
		/* The newest run may be cut by the refusal. */
		if (before && (!shortest || run < shortest))
			shortest = run;
		before = life->size;
		run = 1;
	}
	return shortest ? shortest : run;
}

/* Only inside the first optimizer step is there evidence of what follows. */
static void find_to_come(struct gt_trial *t)
{
	struct gt_verdict *v = t->v;
	uint64_t gradients = v->categories[GT_CATEGORY_GRADIENTS], whole, temporaries = 0, capacity;

	if (!v->steps_known || v->step > 1 || v->phase != GT_PHASE_OPTIMIZER || !gradients)
		return;
	for (size_t i = 0; i < t->answers->story->life_count; i++) {
		const struct gt_life *life = &t->answers->story->lives[i];

		if (alive(t, life) && life->category == GT_CATEGORY_TEMPORARIES &&
		    gt_story_birth(t->answers->story, life)->bits & GT_IN_OPTIMIZER)
			temporaries += life->size;
	}
	whole = states_per_parameter(t) * gradients;
	if (whole > v->categories[GT_CATEGORY_OPTIMIZER])
		v->state_to_come = whole - v->categories[GT_CATEGORY_OPTIMIZER];
	v->temporaries_to_come = gradients > temporaries ? gradients - temporaries : 0;
	v->to_come = v->state_to_come + v->temporaries_to_come;
	v->to_come_known = v->to_come > 0;
	capacity = t->report->device_total - gt_report_others(t->report);
	if (v->to_come_known && t->report->cur[GT_TOTAL_IN_USE] + v->to_come > capacity)
		v->over = t->report->cur[GT_TOTAL_IN_USE] + v->to_come - capacity;
}

/* ---- margins --------------------------------------------------------------------------------- */

static const struct gt_life *life_of(const struct gt_trial *t, const struct gt_block *block)
{
	return t->answers && block->space != GT_SPACE_MODULE
		       ? gt_answers_life(t->answers, t->lane_index, block->addr, t->report->seq)
		       : NULL;
}

static size_t step_of(const struct gt_trial *t, const struct gt_life *life)
{
	return gt_boundary_step(&t->answers->steps, life->born);
}

/* In which step most of the optimizer state was born: that set is the one in use. */
static size_t largest_set(const struct gt_trial *t, uint64_t **ret_born)
{
	const struct gt_answers *answers = t->answers;
	size_t steps = answers->steps.count + 1, largest = 0;
	uint64_t *born = gt_xcalloc(steps, sizeof(*born));

	for (size_t i = 0; i < answers->story->life_count; i++) {
		const struct gt_life *life = &answers->story->lives[i];

		if (alive(t, life) && life->category == GT_CATEGORY_OPTIMIZER)
			born[step_of(t, life)] += life->size;
	}
	for (size_t i = 0; i < steps; i++)
		largest = born[i] > born[largest] ? i : largest;
	*ret_born = born;
	return largest;
}

/* Optimizer state of several births: each set is complete, the older ones are of no use. */
static uint64_t duplicate_state(struct gt_trial *t)
{
	size_t steps = t->answers->steps.count + 1, sets = 0;
	uint64_t *born, most, sum = 0;

	t->v->state_step = largest_set(t, &born);
	most = born[t->v->state_step];
	for (size_t i = 0; i < steps; i++) {
		sets += born[i] * 10 >= most * 4 && most;
		sum += born[i];
	}
	free(born);
	return sets > 1 ? sum - most : 0;
}

bool gt_is_old_state(const struct gt_trial *t, const struct gt_block *block)
{
	const struct gt_life *life = life_of(t, block);

	return life && life->category == GT_CATEGORY_OPTIMIZER &&
	       step_of(t, life) != t->v->state_step;
}

bool gt_is_loaded(const struct gt_trial *t, const struct gt_block *block)
{
	const struct gt_life *life = life_of(t, block);

	return life && gt_story_birth(t->answers->story, life)->bits & (GT_IN_LOAD | GT_IN_COPY);
}

static bool is_static(const struct gt_life *life)
{
	return life->category == GT_CATEGORY_WEIGHTS || life->category == GT_CATEGORY_GRADIENTS ||
	       life->category == GT_CATEGORY_OPTIMIZER || life->category == GT_CATEGORY_WORKSPACES;
}

/* Where the attempt began that a caught refusal ended: with its step, or behind the pass before it. */
static uint32_t attempt_of(const struct gt_trial *t, const struct gt_report *caught)
{
	const struct gt_boundaries *steps = &t->answers->steps;
	const struct gt_passes *passes = &t->answers->passes;
	uint32_t at = gt_story_position(t->answers->story, t->lane_index, caught->seq);
	size_t step = gt_boundary_step(steps, at), pass = gt_pass_after(passes, at);

	if (step > steps->count)
		step = steps->count;
	if (step)
		return steps->starts[step - 1];
	while (pass && passes->passes[pass - 1].last >= at)
		pass--;
	return pass && !steps->count ? passes->passes[pass - 1].last : 0;
}

/* Born in an attempt that ran out of memory, and still there although the program went on. */
static bool is_held(const struct gt_trial *t, const struct gt_life *life)
{
	for (size_t i = 0; i < t->trace->report_count; i++) {
		const struct gt_report *caught = &t->trace->reports[i];

		if (gt_report_end(t->trace, caught) != GT_END_CAUGHT ||
		    caught->lane != t->report->lane || !gt_is_memory(caught) ||
		    caught->seq >= t->report->seq)
			continue;
		if (life->born_seq < caught->seq && life->born >= attempt_of(t, caught))
			return !is_static(life);
	}
	return false;
}

bool gt_is_held(const struct gt_trial *t, const struct gt_block *block)
{
	const struct gt_life *life = life_of(t, block);

	return life && is_held(t, life);
}

/* By step: what a growing stack made before this one; by call: all that the loop has made. */
bool gt_was_kept(const struct gt_trial *t, const struct gt_block *block)
{
	const struct gt_growth *growth = &t->v->growth;
	const struct gt_life *life;

	if (t->v->calls.site)
		return t->v->calls.sites[block->site];
	life = life_of(t, block);
	for (size_t i = 0; life && i < growth->count; i++)
		if (growth->growers[i].kind != GT_GROWTH_CACHE &&
		    growth->growers[i].features->place ==
			    gt_story_birth(t->answers->story, life)->place)
			return step_of(t, life) < t->v->step &&
			       life->category != GT_CATEGORY_WORKSPACES;
	return false;
}

static uint64_t held(struct gt_trial *t)
{
	const struct gt_story *story = t->answers->story;
	uint64_t sum = 0, most = 0;

	for (size_t i = 0; i < story->life_count; i++) {
		const struct gt_life *life = &story->lives[i];

		if (!alive(t, life) || !is_held(t, life))
			continue;
		sum += life->size;
		if (life->size <= most)
			continue;
		most = life->size;
		t->v->held_site = &t->lane->site_defs[life->site];
	}
	return sum;
}

/* Backward passes that begin in the step: each had a batch of its own. At least 1. */
static size_t passes_of(const struct gt_trial *t, size_t step)
{
	const struct gt_boundaries *steps = &t->answers->steps;
	const struct gt_passes *passes = &t->answers->passes;
	uint32_t from = step ? steps->starts[step - 1] : 0;
	uint32_t to = step < steps->count ? steps->starts[step] : t->position;
	size_t before = gt_pass_after(passes, from), behind = gt_pass_after(passes, to);

	return behind > before ? behind - before : 1;
}

/* The one long batch: its activations are the cause, whatever else would help this request. */
static bool large_input(struct gt_trial *t)
{
	const struct gt_answers *answers = t->answers;
	uint64_t *inputs = gt_xcalloc(answers->steps.count + 1, sizeof(*inputs)), most = 0;
	uint64_t largest = 0;
	bool large;

	for (size_t i = 0; i < answers->story->life_count; i++) {
		const struct gt_life *life = &answers->story->lives[i];
		size_t step = step_of(t, life);

		if (life->lane != t->lane_index || life->born >= t->position ||
		    life->category != GT_CATEGORY_INPUTS)
			continue;
		inputs[step] += life->size;
		if (step != t->v->step || life->size <= largest)
			continue;
		largest = life->size;
		t->v->input_site = &t->lane->site_defs[life->site];
	}
	for (size_t i = 1; i <= t->v->step; i++)
		inputs[i] /= passes_of(t, i);
	for (size_t i = 1; i < t->v->step; i++)
		most = inputs[i] > most ? inputs[i] : most;
	large = most && inputs[t->v->step] > most + most / 2;
	free(inputs);
	return large;
}

static uint64_t loaded(const struct gt_trial *t)
{
	const struct gt_story *story = t->answers->story;
	uint64_t sum = 0;

	if (in_training(t) ||
	    !(request_features(t)->bits & (GT_IN_LOAD | GT_IN_APPLY | GT_IN_COPY)))
		return 0;
	for (size_t i = 0; i < story->life_count; i++)
		if (alive(t, &story->lives[i]) &&
		    gt_story_birth(story, &story->lives[i])->bits & (GT_IN_LOAD | GT_IN_COPY))
			sum += story->lives[i].size;
	return sum;
}

static uint64_t if_enough(const struct gt_trial *t, uint64_t bytes)
{
	return bytes >= t->v->short_by ? bytes : 0;
}

/* After the training, and where there is none, calls are counted instead of steps. */
static void find_calls(struct gt_trial *t)
{
	const struct gt_boundaries *steps = t->answers ? &t->answers->steps : NULL;
	uint64_t from = 0;

	if (t->v->growth.count || t->lane->device == GT_DEVICE_HOST)
		return;
	if (steps && steps->count)
		from = gt_seq_before(t->answers, t->lane_index, steps->starts[steps->count - 1]);
	t->v->calls = gt_calls_of(t->trace, t->answers, t->lane_index, from, t->report);
}

static void find_margins_of_torch(struct gt_trial *t)
{
	struct gt_verdict *v = t->v;
	uint64_t *margins = v->margins;
	uint64_t fixed = v->categories[GT_CATEGORY_WEIGHTS] + v->categories[GT_CATEGORY_GRADIENTS] +
			 v->categories[GT_CATEGORY_OPTIMIZER] + v->state_to_come;

	if (v->over && fixed > t->report->device_total)
		margins[GT_CAUSE_TOO_LARGE] = fixed;
	else if (v->over)
		margins[GT_CAUSE_FIRST_STEP] = v->over;
	v->large_input = large_input(t) && !v->calls.site;
	margins[GT_CAUSE_HELD_AFTER_OOM] = if_enough(t, held(t));
	margins[GT_CAUSE_LOAD_PEAK] = if_enough(t, loaded(t));
	margins[GT_CAUSE_DUPLICATE_STATE] = if_enough(t, duplicate_state(t));
	margins[GT_CAUSE_ACTIVATIONS] = if_enough(
		t, v->categories[GT_CATEGORY_ACTIVATIONS] + v->categories[GT_CATEGORY_TEMPORARIES]);
}

static void find_margins(struct gt_trial *t)
{
	const struct gt_report *report = t->report;
	struct gt_verdict *v = t->v;
	uint64_t *margins = v->margins;
	uint64_t asked = gt_report_block(report), torch_cached = v->cached;

	if (t->lane->device == GT_DEVICE_HOST) {
		margins[GT_CAUSE_HOST_MEMORY] = asked;
		return;
	}
	if (report->device_total && asked > report->device_total)
		margins[GT_CAUSE_SINGLE_REQUEST] = asked;
	if (!if_enough(t, v->calls.bytes))
		v->calls.site = 0;
	margins[GT_CAUSE_GROWTH] = if_enough(t, v->calls.site ? v->calls.bytes : v->growth.bytes);
	margins[GT_CAUSE_POOL_CACHE] = if_enough(t, v->pool_cached);
	margins[GT_CAUSE_IDLE_CONTEXTS] = if_enough(t, v->idle);
	margins[GT_CAUSE_OTHER_PROCESS] = if_enough(
		t, v->idle < gt_report_others(report) ? gt_report_others(report) - v->idle : 0);
	torch_cached -= v->pool_cached < torch_cached ? v->pool_cached : torch_cached;
	if (v->largest_piece < asked)
		margins[GT_CAUSE_FRAGMENTATION] = if_enough(t, torch_cached);
	if (t->answers)
		find_margins_of_torch(t);
}

/*
 * What cannot be taken away decides at once; then the largest margin. Activations are there in
 * every training, so they are the cause only when nothing else is.
 */
static enum gt_cause choose(const struct gt_verdict *v)
{
	enum gt_cause best = GT_CAUSE_NONE;

	for (int c = GT_CAUSE_HOST_MEMORY; c <= GT_CAUSE_LOAD_PEAK; c++)
		if (v->margins[c])
			return (enum gt_cause)c;
	for (int c = GT_CAUSE_DUPLICATE_STATE; c < GT_CAUSE_ACTIVATIONS; c++)
		if (v->margins[c] > v->margins[best])
			best = (enum gt_cause)c;
	/* Pieces are a fact, that calls grow without steps is an inference: it needs much more of them. */
	if (best == GT_CAUSE_GROWTH && v->calls.site && v->margins[GT_CAUSE_FRAGMENTATION] &&
	    v->calls.bytes / MUCH_MORE < v->margins[GT_CAUSE_FRAGMENTATION])
		best = GT_CAUSE_FRAGMENTATION;
	if ((best == GT_CAUSE_NONE || (v->large_input && best != GT_CAUSE_HELD_AFTER_OOM)) &&
	    v->margins[GT_CAUSE_ACTIVATIONS])
		return GT_CAUSE_ACTIVATIONS;
	return best;
}

/* The line to look at; of fragmentation the one that pins, already in site. */
static void find_line(struct gt_trial *t)
{
	struct gt_verdict *v = t->v;

	if (v->cause == GT_CAUSE_GROWTH && v->calls.site) {
		v->site = &t->lane->site_defs[v->calls.site];
	} else if (v->cause == GT_CAUSE_GROWTH) {
		v->frame = gt_growth_frame(t->answers, &v->growth, &v->growth.growers[0]);
		v->result = gt_growth_result(t->answers, &v->growth);
		v->site = v->growth.growers[0].site;
	} else if (v->cause == GT_CAUSE_HELD_AFTER_OOM) {
		v->site = v->held_site;
	} else if (v->cause == GT_CAUSE_POOL_CACHE) {
		v->site = v->pool_site;
	} else if (v->cause == GT_CAUSE_ACTIVATIONS && v->large_input) {
		v->site = v->input_site;
	} else if (v->cause != GT_CAUSE_FRAGMENTATION) {
		v->site = NULL;
	}
}

struct gt_verdict gt_verdict_of(const struct gt_trace *trace, const struct gt_answers *answers,
				size_t lane_index, const struct gt_report *report,
				const struct gt_ledger *ledger)
{
	struct gt_verdict verdict = {.pid = trace->header.pid};
	struct gt_trial t = {
		.trace = trace,
		.answers = answers,
		.ledger = ledger,
		.lane = &trace->lanes[lane_index],
		.lane_index = lane_index,
		.report = report,
		.v = &verdict,
	};

	verdict.cached = report->cur[GT_TOTAL_RESERVED] - report->cur[GT_TOTAL_IN_USE];
	verdict.short_by = gt_report_short(report);
	find_pieces(&t);
	look_at_ledger(&t);
	if (answers) {
		find_moment(&t);
		find_to_come(&t);
		verdict.growth = gt_growth_of(answers, lane_index);
	}
	find_calls(&t);
	find_margins(&t);
	verdict.cause = choose(&verdict);
	find_line(&t);
	gt_find_remedies(&t);
	gt_moment_clear(&t.moment);
	return verdict;
}

void gt_verdict_clear(struct gt_verdict *verdict)
{
	gt_growth_clear(&verdict->growth);
	gt_calls_clear(&verdict->calls);
}
