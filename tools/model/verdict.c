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
#include "model/xalloc.h"

struct trial {
	const struct gt_trace *trace;
	const struct gt_answers *answers;
	const struct gt_trace_lane *lane;
	size_t lane_index;
	const struct gt_report *report;
	uint32_t position; /* behind the last event before the refusal */
	struct gt_verdict *v;
};

const char *gt_cause_name(enum gt_cause cause)
{
	static const char *const names[] = {
		[GT_CAUSE_NONE] = "unknown",
		[GT_CAUSE_SINGLE_REQUEST] = "single-request",
		[GT_CAUSE_TOO_LARGE] = "too-large-for-device",
		[GT_CAUSE_FIRST_STEP] = "first-step-too-large",
		[GT_CAUSE_LOAD_PEAK] = "load-peak",
		[GT_CAUSE_DUPLICATE_STATE] = "duplicate-state",
		[GT_CAUSE_GROWTH] = "growth",
		[GT_CAUSE_FRAGMENTATION] = "fragmentation",
		[GT_CAUSE_OTHER_PROCESS] = "other-process",
		[GT_CAUSE_ACTIVATIONS] = "activations",
	};

	return names[cause];
}

/* ---- facts at the moment --------------------------------------------------------------------- */

static uint64_t others(const struct gt_report *report)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < report->others; i++)
		sum += report->other[i].bytes;
	return sum;
}

static bool alive(const struct trial *t, const struct gt_life *life)
{
	return life->lane == t->lane_index && life->born_seq <= t->report->seq &&
	       life->died_seq > t->report->seq;
}

static const struct gt_features *request_features(const struct trial *t)
{
	const struct gt_story *story = t->answers->story;
	uint32_t site = t->report->site < t->lane->site_count ? t->report->site : 0;

	return story->features[story->first_site[t->lane_index] + site];
}

static void find_moment(struct trial *t)
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

static int by_birth(const void *a, const void *b)
{
	const struct gt_block *x = a, *y = b;

	return x->birth_us < y->birth_us ? -1 : x->birth_us > y->birth_us;
}

struct pin { /* a site that keeps pieces from being one */
	uint64_t bytes;
	uint32_t site;
};

/* Cached pieces, and the site that holds most in the segments that have some. */
static void look_at_segments(struct trial *t, const struct gt_segment_list *list)
{
	uint64_t *pins = gt_xcalloc(t->lane->site_count, sizeof(*pins));
	size_t best = 0;

	for (size_t i = 0; i < list->count; i++) {
		const struct gt_segment *segment = &list->segments[i];

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

static void find_pieces(struct trial *t)
{
	struct gt_error err = {0};
	struct gt_moment moment;
	struct gt_segment_list list;
	struct gt_segments *segments;

	if (!gt_history_reaches(t->lane, t->report->seq) ||
	    gt_moment_get(t->trace, t->lane_index, t->report->seq, UINT64_MAX, &moment, &err))
		return;
	qsort(moment.blocks, moment.block_count, sizeof(*moment.blocks), by_birth);
	segments = gt_xchecked(gt_segments_new(t->lane));
	gt_segments_load(segments, moment.blocks, moment.block_count, NULL, NULL);
	gt_segments_list(segments, &list);
	look_at_segments(t, &list);
	t->v->pieces_known = true;
	gt_segments_list_clear(&list);
	gt_segments_free(segments);
	gt_moment_clear(&moment);
}

/* ---- the first step: what was still to come --------------------------------------------------- */

/*
 * How many states an optimizer makes per parameter: it makes those of one parameter one after the
 * other, of one size each.
 */
static unsigned int states_per_parameter(const struct trial *t)
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
static void find_to_come(struct trial *t)
{
	struct gt_verdict *v = t->v;
	uint64_t gradients = v->categories[GT_CATEGORY_GRADIENTS], whole, temporaries = 0, capacity;

	if (v->step > 1 || v->phase != GT_PHASE_OPTIMIZER || !gradients)
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
	capacity = t->report->device_total - others(t->report);
	if (v->to_come_known && t->report->cur[GT_TOTAL_IN_USE] + v->to_come > capacity)
		v->over = t->report->cur[GT_TOTAL_IN_USE] + v->to_come - capacity;
}

static uint64_t state_whole(const struct gt_verdict *v)
{
	return v->categories[GT_CATEGORY_OPTIMIZER] + v->state_to_come;
}

/* ---- margins ----------------------------------------------------------------------------------- */

/* Optimizer state of several births: each set is complete, the older ones are of no use. */
static uint64_t duplicate_state(struct trial *t)
{
	const struct gt_answers *answers = t->answers;
	size_t steps = answers->steps.count + 1, sets = 0;
	uint64_t *born = gt_xcalloc(steps, sizeof(*born)), most = 0, sum = 0;

	for (size_t i = 0; i < answers->story->life_count; i++) {
		const struct gt_life *life = &answers->story->lives[i];

		if (alive(t, life) && life->category == GT_CATEGORY_OPTIMIZER)
			born[gt_boundary_step(&answers->steps, life->born)] += life->size;
	}
	for (size_t i = 0; i < steps; i++)
		most = born[i] > most ? born[i] : most;
	for (size_t i = 0; i < steps; i++) {
		sets += born[i] * 10 >= most * 4 && most;
		sum += born[i];
	}
	free(born);
	return sets > 1 ? sum - most : 0;
}

/* The one long batch: its activations are the cause, whatever else would help this request. */
static bool large_input(const struct trial *t)
{
	const struct gt_answers *answers = t->answers;
	uint64_t *inputs = gt_xcalloc(answers->steps.count + 1, sizeof(*inputs)), most = 0;
	bool large;

	for (size_t i = 0; i < answers->story->life_count; i++) {
		const struct gt_life *life = &answers->story->lives[i];

		if (life->lane == t->lane_index && life->born < t->position &&
		    life->category == GT_CATEGORY_INPUTS)
			inputs[gt_boundary_step(&answers->steps, life->born)] += life->size;
	}
	for (size_t i = 1; i < t->v->step; i++)
		most = inputs[i] > most ? inputs[i] : most;
	large = most && inputs[t->v->step] > most + most / 2;
	free(inputs);
	return large;
}

static uint64_t loaded(const struct trial *t)
{
	const struct gt_story *story = t->answers->story;
	uint64_t sum = 0;

	if (t->v->step || !(request_features(t)->bits & (GT_IN_LOAD | GT_IN_APPLY | GT_IN_COPY)))
		return 0;
	for (size_t i = 0; i < story->life_count; i++)
		if (alive(t, &story->lives[i]) &&
		    gt_story_birth(story, &story->lives[i])->bits & (GT_IN_LOAD | GT_IN_COPY))
			sum += story->lives[i].size;
	return sum;
}

static uint64_t if_enough(const struct trial *t, uint64_t bytes)
{
	return bytes >= t->v->short_by ? bytes : 0;
}

static void find_margins(struct trial *t)
{
	const struct gt_report *report = t->report;
	struct gt_verdict *v = t->v;
	uint64_t *margins = v->margins;
	uint64_t asked = gt_report_asked(report);
	uint64_t fixed = v->categories[GT_CATEGORY_WEIGHTS] + v->categories[GT_CATEGORY_GRADIENTS] +
			 state_whole(v);

	if (report->device_total && asked > report->device_total)
		margins[GT_CAUSE_SINGLE_REQUEST] = asked;
	margins[GT_CAUSE_OTHER_PROCESS] = if_enough(t, others(report));
	if (v->largest_piece < asked)
		margins[GT_CAUSE_FRAGMENTATION] = if_enough(t, v->cached);
	if (!t->answers)
		return;
	if (v->over && fixed > report->device_total)
		margins[GT_CAUSE_TOO_LARGE] = fixed;
	else if (v->over)
		margins[GT_CAUSE_FIRST_STEP] = v->over;
	v->large_input = large_input(t);
	margins[GT_CAUSE_GROWTH] = if_enough(t, v->growth.bytes);
	margins[GT_CAUSE_LOAD_PEAK] = if_enough(t, loaded(t));
	margins[GT_CAUSE_DUPLICATE_STATE] = if_enough(t, duplicate_state(t));
	margins[GT_CAUSE_ACTIVATIONS] = if_enough(
		t, v->categories[GT_CATEGORY_ACTIVATIONS] + v->categories[GT_CATEGORY_TEMPORARIES]);
}

/*
 * What cannot be taken away decides at once; then the largest margin. Activations are there in
 * every training, so they are the cause only when nothing else is.
 */
static enum gt_cause choose(const struct gt_verdict *v)
{
	enum gt_cause best = GT_CAUSE_NONE;

	for (int c = GT_CAUSE_SINGLE_REQUEST; c <= GT_CAUSE_LOAD_PEAK; c++)
		if (v->margins[c])
			return (enum gt_cause)c;
	for (int c = GT_CAUSE_DUPLICATE_STATE; c < GT_CAUSE_ACTIVATIONS; c++)
		if (v->margins[c] > v->margins[best])
			best = (enum gt_cause)c;
	if ((best == GT_CAUSE_NONE || v->large_input) && v->margins[GT_CAUSE_ACTIVATIONS])
		return GT_CAUSE_ACTIVATIONS;
	return best;
}

/* The line to look at; of fragmentation the one that pins, already in site. */
static void find_line(struct trial *t)
{
	struct gt_verdict *v = t->v;

	if (v->cause == GT_CAUSE_GROWTH) {
		v->frame = gt_growth_frame(t->answers, &v->growth, &v->growth.growers[0]);
		v->site = v->growth.growers[0].site;
	} else if (v->cause != GT_CAUSE_FRAGMENTATION) {
		v->site = NULL;
	}
}

/* ---- remedies ----------------------------------------------------------------------------------- */

static void add(struct trial *t, struct gt_remedy remedy)
{
	struct gt_verdict *v = t->v;
	uint64_t needed = v->over ? v->over : v->short_by;

	if (!remedy.bytes || v->remedy_count == GT_REMEDIES)
		return;
	remedy.enough = remedy.bytes >= needed;
	v->remedies[v->remedy_count++] = remedy;
}

/* Steps until growth has eaten what is left of the bytes; -1 without growth. */
static int64_t lasts(const struct gt_verdict *v, uint64_t bytes)
{
	if (v->growth.slope <= 0)
		return -1;
	return bytes > v->short_by ? (int64_t)((double)(bytes - v->short_by) / v->growth.slope) : 0;
}

static void remedies_of_first_step(struct trial *t)
{
	struct gt_verdict *v = t->v;
	uint64_t gradients = v->categories[GT_CATEGORY_GRADIENTS];
	uint64_t weights = v->categories[GT_CATEGORY_WEIGHTS];

	add(t, (struct gt_remedy){.id = "optimizer-on-cpu",
				  .text = "optimizer state and step on the CPU",
				  .bytes = state_whole(v) + gradients,
				  .same_result = true,
				  .steps = -1,
				  .formula = "state + temporaries of its step"});
	add(t, (struct gt_remedy){.id = "shard-two",
				  .text = "two GPUs, sharded (FSDP)",
				  .bytes = (weights + 2 * gradients + state_whole(v)) / 2,
				  .same_result = true,
				  .steps = -1,
				  .formula = "half of weights, gradients, state, temporaries"});
	add(t, (struct gt_remedy){.id = "eight-bit-state",
				  .text = "8-bit optimizer state",
				  .bytes = state_whole(v) / 4 * 3,
				  .steps = -1,
				  .formula = "3/4 of fp32 state"});
	add(t, (struct gt_remedy){.id = "no-foreach",
				  .text = "foreach=False",
				  .bytes = v->temporaries_to_come,
				  .same_result = true,
				  .steps = -1,
				  .formula = "at most the temporaries of its step"});
}

static void find_remedies(struct trial *t)
{
	struct gt_verdict *v = t->v;

	if (v->cause == GT_CAUSE_FIRST_STEP || v->cause == GT_CAUSE_TOO_LARGE)
		remedies_of_first_step(t);
	if (v->cause == GT_CAUSE_GROWTH || v->margins[GT_CAUSE_GROWTH])
		add(t, (struct gt_remedy){.id = "free-kept",
					  .text = "let go of what is kept each step",
					  .bytes = v->growth.bytes,
					  .checked = true,
					  .same_result = true,
					  .steps = -1,
					  .formula = "blocks of old steps that are alive"});
	if (v->margins[GT_CAUSE_DUPLICATE_STATE])
		add(t, (struct gt_remedy){.id = "free-old-state",
					  .text = "let go of the older optimizer",
					  .bytes = v->margins[GT_CAUSE_DUPLICATE_STATE],
					  .checked = true,
					  .same_result = true,
					  .steps = -1,
					  .formula = "state made in earlier steps"});
	if (others(t->report))
		add(t, (struct gt_remedy){.id = "end-other-process",
					  .text = "end or move the other processes",
					  .bytes = others(t->report),
					  .checked = true,
					  .same_result = true,
					  .steps = lasts(v, others(t->report)),
					  .formula = "what NVML said they hold"});
	add(t, (struct gt_remedy){.id = "expandable-segments",
				  .text = "expandable_segments:True",
				  .bytes = v->cached,
				  .checked = v->pieces_known,
				  .same_result = true,
				  .steps = lasts(v, v->cached),
				  .formula = "cached pieces"});
	if (v->categories[GT_CATEGORY_ACTIVATIONS])
		add(t,
		    (struct gt_remedy){
			    .id = "checkpointing",
			    .text = "checkpointing (at most)",
			    .bytes = v->categories[GT_CATEGORY_ACTIVATIONS] -
				     (v->cause == GT_CAUSE_GROWTH &&
						      v->growth.bytes <=
							      v->categories[GT_CATEGORY_ACTIVATIONS]
					      ? v->growth.bytes
					      : 0),
			    .same_result = true,
			    .steps = -1,
			    .formula = "activations, less those that are kept"});
}

struct gt_verdict gt_verdict_of(const struct gt_trace *trace, const struct gt_answers *answers,
				size_t lane_index, const struct gt_report *report)
{
	struct gt_verdict verdict = {0};
	struct trial t = {
		.trace = trace,
		.answers = answers,
		.lane = &trace->lanes[lane_index],
		.lane_index = lane_index,
		.report = report,
		.v = &verdict,
	};

	verdict.cached = report->cur[GT_TOTAL_RESERVED] - report->cur[GT_TOTAL_IN_USE];
	if (report->device_free != GT_UNKNOWN_BYTES && report->requested > report->device_free)
		verdict.short_by = report->requested - report->device_free;
	find_pieces(&t);
	if (answers) {
		find_moment(&t);
		find_to_come(&t);
		verdict.growth = gt_growth_of(answers, lane_index);
	}
	find_margins(&t);
	verdict.cause = choose(&verdict);
	find_line(&t);
	find_remedies(&t);
	return verdict;
}

void gt_verdict_clear(struct gt_verdict *verdict)
{
	gt_growth_clear(&verdict->growth);
}
