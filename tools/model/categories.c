/* SPDX-License-Identifier: MIT */
/*
 * See categories.h. The rules were found by experiment on training programs whose tensors said
 * themselves what they were. Order matters: what only a stack can know comes first, what a life
 * shows next, what sizes suggest last. Rules before FIRST_OF_SIZES need no sizes; they run over
 * all blocks first, because the others compare with the sizes of the weights that they found.
 */
#include "model/categories.h"

#include <stdlib.h>
#include <string.h>
#include "model/xalloc.h"

#define SLACK ((uint64_t)1 << 20)

const char *gt_category_name(enum gt_category category)
{
	static const char *const names[] = {
		[GT_CATEGORY_NONE] = "",
		[GT_CATEGORY_WEIGHTS] = "weights",
		[GT_CATEGORY_GRADIENTS] = "gradients",
		[GT_CATEGORY_OPTIMIZER] = "optimizer state",
		[GT_CATEGORY_ACTIVATIONS] = "activations",
		[GT_CATEGORY_TEMPORARIES] = "temporaries",
		[GT_CATEGORY_INPUTS] = "inputs",
		[GT_CATEGORY_WORKSPACES] = "workspaces",
		[GT_CATEGORY_UNKNOWN] = "unknown",
	};

	return names[category];
}

const char *gt_category_key(enum gt_category category)
{
	return category == GT_CATEGORY_OPTIMIZER ? "optimizer_state" : gt_category_name(category);
}

bool gt_same_size(uint64_t a, uint64_t b)
{
	uint64_t apart = a > b ? a - b : b - a;

	return !apart || (a > SLACK && b > SLACK && apart < SLACK);
}

/* ---- what the rules look at ------------------------------------------------------------------ */

struct sizes {
	uint64_t *sizes; /* sorted */
	size_t count;
};

/* Facts of a life that need the events around it, found in one sweep. */
#define OUTLIVES_RUN 1u /* alive when its thread's optimizer, or recomputation, was left */
#define NO_RUN_END   2u /* ... but the trace ends before that */
#define CLAIMED	     4u /* R8g */

struct deciding {
	struct gt_story *story;
	const struct gt_passes *passes;
	const struct gt_boundaries *boundaries;
	uint32_t *calls; /* positions of births in a module's forward */
	size_t call_count;
	uint32_t *optimizer; /* positions of births in an optimizer */
	size_t optimizer_count;
	uint8_t *facts; /* by life */
	struct sizes weights;
	struct sizes zeroed;	 /* of gradients that zero_grad freed */
	uint64_t *gradient_sums; /* by pass: candidates alive at its end */
	uint64_t most_gradients;
	bool has_weights;
};

struct subject { /* the life that is being judged */
	const struct gt_life *life;
	const struct gt_features *birth, *death;
	uint32_t bits;
	size_t pass;	   /* that it was born in; passes->count = none */
	size_t next_pass;  /* that begins after its birth */
	size_t death_pass; /* that it died in */
	uint8_t facts;
	bool dies_on_engine;
};

static size_t first_after(const uint32_t *positions, size_t count, uint32_t position)
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (positions[middle] > position)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

static uint32_t next_of(const uint32_t *positions, size_t count, uint32_t position)
{
	size_t i = first_after(positions, count, position);

	return i < count ? positions[i] : GT_NEVER;
}

static bool has_size(const struct sizes *sizes, uint64_t size)
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

static bool in_pass(const struct deciding *d, const struct subject *s)
{
	return s->pass < d->passes->count;
}

static uint32_t pass_start(const struct deciding *d, size_t pass)
{
	return pass < d->passes->count ? d->passes->passes[pass].first : GT_NEVER;
}

static bool is_setup(const struct deciding *d, const struct subject *s)
{
	return s->life->born < d->boundaries->setup;
}

static bool is_user(const struct subject *s)
{
	return s->bits & GT_IS_USER;
}

static bool is_copy(const struct subject *s)
{
	return s->bits & GT_HAS_TO_COPY;
}

/* A forward pass that a checkpoint computes again during backward. */
static bool recomputed(uint32_t bits)
{
	return bits & GT_HAS_CHECKPOINT && bits & GT_IN_CALL;
}

/* Traces of two steps must not turn parameters into activations: set-up has a rule of its own. */
static bool is_kept(const struct deciding *d, const struct subject *s)
{
	const struct gt_passes *passes = d->passes;

	if (s->life->died == GT_NEVER)
		return true;
	if (is_setup(d, s) && passes->count)
		return s->life->died > passes->passes[passes->count - 1].last;
	return gt_boundary_step(d->boundaries, s->life->died) >=
	       gt_boundary_step(d->boundaries, s->life->born) + 3;
}

static bool outlives_pass(const struct deciding *d, const struct subject *s)
{
	return s->life->died > d->passes->passes[s->pass].last;
}

static bool is_candidate(const struct deciding *d, const struct subject *s)
{
	return in_pass(d, s) && outlives_pass(d, s);
}

static bool weight_size(const struct deciding *d, const struct subject *s)
{
	return has_size(&d->weights, s->life->size);
}

/* A module's forward comes before the next backward pass, which the block sees begin. */
static bool feeds_backward(const struct deciding *d, const struct subject *s)
{
	uint32_t pass = pass_start(d, s->next_pass);

	return pass != GT_NEVER && next_of(d->calls, d->call_count, s->life->born) < pass &&
	       s->life->died > pass;
}

/* Between a backward pass and the optimizer that follows it, and seen by that optimizer. */
static bool before_optimizer(const struct deciding *d, const struct subject *s)
{
	uint32_t optimizer = next_of(d->optimizer, d->optimizer_count, s->life->born);

	return s->next_pass && !in_pass(d, s) && optimizer < pass_start(d, s->next_pass) &&
	       s->life->died > optimizer &&
	       gt_boundary_step(d->boundaries, s->life->born) ==
		       gt_boundary_step(d->boundaries,
					d->passes->passes[s->next_pass - 1].last);
}

/* ---- the rules, each by its name in the table ------------------------------------------------ */

typedef bool rule_test(const struct deciding *d, const struct subject *s);

static bool workspace(const struct deciding *d, const struct subject *s)
{
	(void)d;
	return s->bits & GT_HAS_WORKSPACE;
}

static bool moved_module(const struct deciding *d, const struct subject *s)
{
	(void)d;
	return s->bits & GT_IN_APPLY;
}

static bool constructor(const struct deciding *d, const struct subject *s)
{
	(void)d;
	return s->bits & GT_IN_INIT && !(s->bits & GT_HAS_ENGINE);
}

static bool constructed(const struct deciding *d, const struct subject *s)
{
	uint32_t call = next_of(d->calls, d->call_count, s->life->born);

	return constructor(d, s) &&
	       (call == GT_NEVER ? s->life->died == GT_NEVER : s->life->died > call);
}

static bool loaded(const struct deciding *d, const struct subject *s)
{
	(void)d;
	return s->bits & (GT_IN_LOAD | GT_IN_COPY);
}

static bool in_optimizer(const struct deciding *d, const struct subject *s)
{
	(void)d;
	return s->bits & GT_IN_OPTIMIZER;
}

static bool outlives_optimizer(const struct deciding *d, const struct subject *s)
{
	return in_optimizer(d, s) && s->facts & OUTLIVES_RUN;
}

static bool root(const struct deciding *d, const struct subject *s)
{
	return in_pass(d, s) && s->bits & GT_IN_ROOT;
}

static bool recomputation(const struct deciding *d, const struct subject *s)
{
	return in_pass(d, s) && recomputed(s->bits);
}

static bool outlives_recomputation(const struct deciding *d, const struct subject *s)
{
	return recomputation(d, s) && s->facts & OUTLIVES_RUN;
}

static bool zeroed(const struct deciding *d, const struct subject *s)
{
	return in_pass(d, s) && s->death->bits & GT_IN_ZERO_GRAD;
}

static bool dies_in_pass(const struct deciding *d, const struct subject *s)
{
	return in_pass(d, s) && !outlives_pass(d, s);
}

static bool kept_graph(const struct deciding *d, const struct subject *s)
{
	return is_candidate(d, s) && s->dies_on_engine && s->death_pass < d->passes->count &&
	       s->death_pass > s->pass && !(s->death->bits & GT_IN_OPTIMIZER);
}

static bool claimed(const struct deciding *d, const struct subject *s)
{
	(void)d;
	return s->facts & CLAIMED;
}

static bool zeros_in_setup(const struct deciding *d, const struct subject *s)
{
	return is_setup(d, s) && is_user(s) && is_kept(d, s) && s->bits & GT_HAS_ZEROS &&
	       weight_size(d, s);
}

static bool copied_weight(const struct deciding *d, const struct subject *s)
{
	return is_user(s) && s->bits & (GT_HAS_TO_COPY | GT_HAS_CLONE) && is_kept(d, s) &&
	       weight_size(d, s);
}

/* Weights of that device that live when the block is born, as one number. */
static bool sum_of_weights(const struct deciding *d, const struct gt_life *block)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < d->story->life_count; i++) {
		const struct gt_life *life = &d->story->lives[i];

		if (life->category == GT_CATEGORY_WEIGHTS && life->lane == block->lane &&
		    life->born < d->boundaries->setup && life->died > d->boundaries->setup)
			sum += life->size;
	}
	return sum && (sum > block->size ? sum - block->size : block->size - sum) < SLACK &&
	       d->most_gradients < sum / 2;
}

static bool flat_gradients(const struct deciding *d, const struct subject *s)
{
	return is_setup(d, s) && is_user(s) && is_kept(d, s) && sum_of_weights(d, s->life);
}

static bool user_buffer(const struct deciding *d, const struct subject *s)
{
	return is_setup(d, s) && is_kept(d, s) && s->bits & GT_HAS_USER_INIT;
}

static bool resident_data(const struct deciding *d, const struct subject *s)
{
	return is_setup(d, s) && is_kept(d, s) && is_copy(s);
}

static bool kept_from_setup(const struct deciding *d, const struct subject *s)
{
	return is_setup(d, s) && is_kept(d, s);
}

static bool gradient(const struct deciding *d, const struct subject *s)
{
	return is_candidate(d, s) && (!d->has_weights || weight_size(d, s));
}

static bool like_gradient(const struct deciding *d, const struct subject *s)
{
	return is_candidate(d, s) && has_size(&d->zeroed, s->life->size);
}

static bool candidate(const struct deciding *d, const struct subject *s)
{
	return is_candidate(d, s);
}

static bool input_copy(const struct deciding *d, const struct subject *s)
{
	return is_user(s) && is_copy(s) && feeds_backward(d, s);
}

static bool scattered(const struct deciding *d, const struct subject *s)
{
	(void)d;
	return s->bits & GT_HAS_SCATTER;
}

static bool input_made(const struct deciding *d, const struct subject *s)
{
	return is_user(s) && s->bits & GT_HAS_FACTORY && feeds_backward(d, s) && !is_kept(d, s);
}

static bool flattened_gradients(const struct deciding *d, const struct subject *s)
{
	uint64_t sum;

	if (!is_user(s) || is_copy(s) || !before_optimizer(d, s))
		return false;
	sum = d->gradient_sums[s->next_pass - 1];
	return sum && gt_same_size(sum, s->life->size);
}

static bool copied_gradient(const struct deciding *d, const struct subject *s)
{
	return is_user(s) && before_optimizer(d, s) && weight_size(d, s);
}

static bool freed_by_backward(const struct deciding *d, const struct subject *s)
{
	return s->dies_on_engine && s->death_pass < d->passes->count;
}

static bool dropped_graph(const struct deciding *d, const struct subject *s)
{
	(void)d;
	return !s->dies_on_engine && s->death->bits & GT_HAS_SAVED;
}

static bool before_backward(const struct deciding *d, const struct subject *s)
{
	uint32_t pass = pass_start(d, s->next_pass);

	return pass != GT_NEVER && s->life->died < pass;
}

static bool no_backward(const struct deciding *d, const struct subject *s)
{
	return pass_start(d, s->next_pass) == GT_NEVER;
}

static bool input_without_backward(const struct deciding *d, const struct subject *s)
{
	return no_backward(d, s) && is_user(s) && is_copy(s) &&
	       next_of(d->calls, d->call_count, s->life->born) < s->life->died;
}

static bool early_in_step(const struct deciding *d, const struct subject *s)
{
	size_t step = gt_boundary_step(d->boundaries, s->life->born);
	uint32_t call;

	if (!is_user(s))
		return false;
	if (is_copy(s))
		return true;
	if (!step)
		return false;
	call = first_after(d->calls, d->call_count, d->boundaries->starts[step - 1] - 1);
	return call < d->call_count && s->life->born < d->calls[call] &&
	       gt_boundary_step(d->boundaries, d->calls[call]) == step;
}

static bool loss(const struct deciding *d, const struct subject *s)
{
	(void)d;
	return s->bits & GT_IS_LOSS;
}

/* One of the next few births, by bits and by size in halves of this one's (2: equal, with slack). */
static bool followed_by(const struct deciding *d, const struct subject *s, unsigned int births,
			uint32_t bits, bool same)
{
	for (uint32_t p = s->life->born + 1; births && p < d->story->exit; p++) {
		const struct gt_life *life = gt_story_life(d->story, p);

		if (gt_story_is_death(d->story, p))
			continue;
		births--;
		if (!(gt_story_at(d->story, p)->bits & bits))
			continue;
		if (same ? gt_same_size(life->size, s->life->size)
			 : life->size == 2 * s->life->size || 2 * life->size == s->life->size)
			return true;
	}
	return false;
}

static bool cast_by_loss(const struct deciding *d, const struct subject *s)
{
	return s->bits & GT_HAS_PYTHON && followed_by(d, s, 6, GT_HAS_CAST, false);
}

static bool cloned(const struct deciding *d, const struct subject *s)
{
	return is_user(s) && s->bits & (GT_HAS_TO_COPY | GT_HAS_CLONE) && weight_size(d, s);
}

static bool read_by_loss(const struct deciding *d, const struct subject *s)
{
	return s->bits & GT_HAS_PYTHON && followed_by(d, s, 12, GT_HAS_SOFTMAX, true);
}

static bool seen_by_backward(const struct deciding *d, const struct subject *s)
{
	return s->life->died > pass_start(d, s->next_pass);
}

static bool anything(const struct deciding *d, const struct subject *s)
{
	(void)d;
	(void)s;
	return true;
}

/* ---- the table ------------------------------------------------------------------------------- */

#define WEIGHTS	    GT_CATEGORY_WEIGHTS
#define GRADIENTS   GT_CATEGORY_GRADIENTS
#define OPTIMIZER   GT_CATEGORY_OPTIMIZER
#define ACTIVATIONS GT_CATEGORY_ACTIVATIONS
#define TEMPORARIES GT_CATEGORY_TEMPORARIES
#define INPUTS	    GT_CATEGORY_INPUTS
#define WORKSPACES  GT_CATEGORY_WORKSPACES
#define UNKNOWN	    GT_CATEGORY_UNKNOWN

static const struct rule {
	const char *name;
	enum gt_category category;
	rule_test *test;
	const char *text; /* the evidence, in a sentence */
	bool weak;
} rules[] = {
	{"workspace", WORKSPACES, workspace, "asked for by cuBLAS's handle or workspace", false},
	{"moved-module", WEIGHTS, moved_module, "made by Module.to() or .cuda()", false},
	{"constructed", WEIGHTS, constructed, "made by a layer's constructor, alive at its use",
	 false},
	{"constructor", TEMPORARIES, constructor, "made by a layer's constructor, gone before use",
	 false},
	{"loaded", WEIGHTS, loaded, "loaded from a file, or a copy of a module", false},
	{"optimizer-state", OPTIMIZER, outlives_optimizer,
	 "made in an optimizer, alive after its step", false},
	{"optimizer-temporary", TEMPORARIES, in_optimizer,
	 "made in an optimizer, gone before its step ended", false},
	{"root-gradient", TEMPORARIES, root, "the gradient that backward() starts from", false},
	{"recomputed", ACTIVATIONS, outlives_recomputation,
	 "computed again by a checkpoint, saved for backward", true},
	{"recomputed-temporary", TEMPORARIES, recomputation,
	 "computed again by a checkpoint, gone before its end", false},
	{"zeroed", GRADIENTS, zeroed, "made in backward, freed by zero_grad()", false},
	{"backward-temporary", TEMPORARIES, dies_in_pass, "made and freed in one backward pass",
	 false},
	{"kept-graph", ACTIVATIONS, kept_graph,
	 "made in backward, freed by autograd in a later backward", false},
#define FIRST_OF_SIZES 13
	{"matches-gradient", WEIGHTS, claimed,
	 "kept from set-up, one for each gradient of its size", true},
	{"zeros-of-weight-size", OPTIMIZER, zeros_in_setup,
	 "zeros of a weight's size, kept from set-up", false},
	{"copied-weight", WEIGHTS, copied_weight, "a kept copy of a weight's size", false},
	{"flat-gradients", GRADIENTS, flat_gradients,
	 "as large as all weights, while backward makes no gradients", false},
	{"user-buffer", WEIGHTS, user_buffer, "kept from a constructor of yours", false},
	{"resident-data", INPUTS, resident_data, "copied to the device in set-up, and kept",
	 false},
	{"kept-from-setup", UNKNOWN, kept_from_setup, "kept from set-up; nothing says what for",
	 false},
	{"gradient", GRADIENTS, gradient, "made in backward, alive at its end, a weight's size",
	 false},
	{"like-gradient", GRADIENTS, like_gradient,
	 "made in backward, as large as a gradient that zero_grad() freed", false},
	{"kept-from-backward", UNKNOWN, candidate,
	 "made in backward and kept, but no weight has its size", false},
	{"input-copy", INPUTS, input_copy, "copied by your own line before a module's forward",
	 false},
	{"scattered", INPUTS, scattered, "scattered to replicas", false},
	{"input-made", INPUTS, input_made, "made by your own line before a module's forward",
	 false},
	{"flattened-gradients", GRADIENTS, flattened_gradients,
	 "as large as all gradients, between backward and optimizer", false},
	{"copied-gradient", GRADIENTS, copied_gradient,
	 "a weight's size, between backward and optimizer", false},
	{"freed-by-backward", ACTIVATIONS, freed_by_backward, "freed by autograd in a backward pass",
	 false},
	{"dropped-graph", ACTIVATIONS, dropped_graph, "saved for a backward that never came", false},
	{"before-backward", TEMPORARIES, before_backward, "freed before the next backward pass",
	 false},
	{"input-no-backward", INPUTS, input_without_backward,
	 "copied by your own line for a module; no backward follows", false},
	{"no-backward", TEMPORARIES, no_backward, "no backward pass follows", false},
	{"early-in-step", INPUTS, early_in_step,
	 "made by your own line before the step's first forward", true},
	{"loss", TEMPORARIES, loss, "the value of a loss function", false},
	{"cast-by-loss", TEMPORARIES, cast_by_loss, "an output that the loss casts", false},
	{"cloned", UNKNOWN, cloned, "a short-lived copy of a weight's size: weight or gradient",
	 false},
	{"read-by-loss", TEMPORARIES, read_by_loss,
	 "an output whose softmax the loss keeps instead", false},
	{"seen-by-backward", ACTIVATIONS, seen_by_backward,
	 "alive when backward began, freed by your own code or never", true},
	{"nothing", UNKNOWN, anything, "no rule fits", false},
};

#define RULES (sizeof(rules) / sizeof(rules[0]))

struct gt_why gt_rule_why(uint8_t rule)
{
	if (!rule || rule > RULES)
		return (struct gt_why){"none", "not judged", false};
	return (struct gt_why){rules[rule - 1].name, rules[rule - 1].text, rules[rule - 1].weak};
}

static struct subject subject_of(const struct deciding *d, const struct gt_life *life)
{
	struct subject s = {
		.life = life,
		.birth = gt_story_birth(d->story, life),
		.death = gt_story_death(d->story, life),
		.pass = d->passes->count,
		.death_pass = d->passes->count,
		.next_pass = gt_pass_after(d->passes, life->born),
		.facts = d->facts[life - d->story->lives],
	};

	s.bits = s.birth->bits;
	if (life->born)
		s.pass = gt_pass_at(d->passes, life->born);
	if (life->died != GT_NEVER) {
		s.death_pass = gt_pass_at(d->passes, life->died);
		s.dies_on_engine = s.death->bits & GT_HAS_ENGINE ||
				   d->story->engine[gt_story_thread(d->story, life->died)];
	}
	return s;
}

/* Rules [from, to) on all lives that have no category yet. */
static void judge(struct deciding *d, size_t from, size_t to)
{
	for (size_t i = 0; i < d->story->life_count; i++) {
		struct gt_life *life = &d->story->lives[i];
		struct subject s;

		if (life->category)
			continue;
		s = subject_of(d, life);
		for (size_t r = from; r < to && !life->category; r++) {
			if (!rules[r].test(d, &s))
				continue;
			life->category = rules[r].category;
			life->rule = (uint8_t)(r + 1);
		}
	}
}

/* ---- facts found in a sweep ------------------------------------------------------------------ */

static void list_positions(struct deciding *d)
{
	for (uint32_t p = 1; p < d->story->exit; p++) {
		uint32_t bits = gt_story_at(d->story, p)->bits;

		if (gt_story_is_death(d->story, p))
			continue;
		if (bits & GT_IN_CALL)
			*GT_PUSH(d->calls, d->call_count) = p;
		if (bits & GT_IN_OPTIMIZER)
			*GT_PUSH(d->optimizer, d->optimizer_count) = p;
	}
}

struct run_end { /* of each thread, going backwards: where what it is doing now ends */
	uint32_t optimizer, recomputed;
};

/* The pass ends every recomputation in it. */
static uint32_t recomputation_end(const struct deciding *d, uint32_t position, uint32_t next)
{
	size_t pass = gt_pass_at(d->passes, position);

	return pass < d->passes->count && d->passes->passes[pass].last < next
		       ? d->passes->passes[pass].last
		       : next;
}

/*
 * A death without a stack may be the run's own doing, so it ends a run only if deaths have stacks.
 */
static void sweep(struct deciding *d)
{
	struct gt_story *story = d->story;
	struct run_end *ends = gt_xcalloc(story->thread_count, sizeof(*ends));

	for (size_t i = 0; i < story->thread_count; i++)
		ends[i] = (struct run_end){GT_NEVER, GT_NEVER};
	for (uint32_t p = story->exit; p-- > 1;) {
		struct gt_life *life = gt_story_life(story, p);
		uint8_t *facts = &d->facts[life - story->lives];
		uint32_t bits = gt_story_at(story, p)->bits, end;
		struct run_end *mine = &ends[gt_story_thread(story, p)];

		if (gt_story_is_death(story, p) && !story->free_stacks)
			continue;
		if (!(bits & GT_IN_OPTIMIZER))
			mine->optimizer = p;
		if (!recomputed(bits) && !gt_story_is_death(story, p))
			mine->recomputed = p;
		if (gt_story_is_death(story, p))
			continue;
		if (bits & GT_IN_OPTIMIZER)
			end = mine->optimizer;
		else if (recomputed(bits))
			end = recomputation_end(d, p, mine->recomputed);
		else
			continue;
		*facts |= end == GT_NEVER ? NO_RUN_END : life->died > end ? OUTLIVES_RUN : 0;
	}
	free(ends);
}

/*
 * The last step of an optimizer has no event after it. Blocks of the same stack and size in steps
 * before tell; in the first step those that outlive the step's last birth stay.
 */
static void settle_last_run(struct deciding *d)
{
	struct gt_story *story = d->story;
	uint32_t last = d->optimizer_count ? d->optimizer[d->optimizer_count - 1] : 0;

	for (size_t i = 0; i < story->life_count; i++) {
		struct gt_life *life = &story->lives[i];
		uint32_t id = gt_story_birth(story, life)->id;
		bool outlives = life->died > last;

		if (!(d->facts[i] & NO_RUN_END))
			continue;
		for (size_t j = i; j-- > 0;) {
			const struct gt_life *before = &story->lives[j];

			if (d->facts[j] & NO_RUN_END || before->size != life->size ||
			    gt_story_birth(story, before)->id != id)
				continue;
			outlives = d->facts[j] & OUTLIVES_RUN;
			break;
		}
		d->facts[i] |= outlives ? OUTLIVES_RUN : 0;
	}
}

/* ---- sizes ------------------------------------------------------------------------------------ */

static int by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static bool is_of(const struct gt_life *life, enum gt_category category, const char *rule)
{
	return life->category == category &&
	       (!rule || strcmp(rules[life->rule - 1].name, rule) == 0);
}

static struct sizes sizes_of(const struct gt_story *story, enum gt_category category,
			     const char *rule)
{
	struct sizes sizes = {0};

	for (size_t i = 0; i < story->life_count; i++)
		if (is_of(&story->lives[i], category, rule))
			*GT_PUSH(sizes.sizes, sizes.count) = story->lives[i].size;
	if (sizes.count)
		qsort(sizes.sizes, sizes.count, sizeof(*sizes.sizes), by_size);
	return sizes;
}

/* What backward passes leave behind: gradients, most likely, before sizes are known. */
static void sum_gradients(struct deciding *d)
{
	size_t count = d->passes->count;
	int64_t *change = gt_xcalloc(count + 1, sizeof(*change)), sum = 0;

	d->gradient_sums = gt_xcalloc(count, sizeof(*d->gradient_sums));
	for (size_t i = 0; i < d->story->life_count; i++) {
		const struct gt_life *life = &d->story->lives[i];
		struct subject s = subject_of(d, life);

		if (!is_candidate(d, &s) ||
		    (life->category && life->category != GT_CATEGORY_GRADIENTS))
			continue;
		change[s.pass] += (int64_t)life->size;
		change[s.death_pass < count ? s.death_pass : gt_pass_after(d->passes, life->died)] -=
			(int64_t)life->size;
	}
	for (size_t i = 0; i < count; i++) {
		sum += change[i];
		d->gradient_sums[i] = (uint64_t)sum;
		if ((uint64_t)sum > d->most_gradients)
			d->most_gradients = (uint64_t)sum;
	}
	free(change);
}

struct tally { /* blocks of one size */
	uint64_t size;
	size_t gradients, weights;
};

static struct tally *tally_of(struct tally *tallies, size_t count, uint64_t size)
{
	for (size_t i = 0; i < count; i++)
		if (gt_same_size(tallies[i].size, size))
			return &tallies[i];
	return NULL;
}

/* Gradients of each size, of the pass that left most of that size. */
static struct tally *tally_gradients(const struct deciding *d, size_t *ret_count)
{
	struct tally *tallies = NULL;
	size_t count = 0, *now = NULL, room = 0, pass = d->passes->count;

	for (size_t i = 0; i < d->story->life_count; i++) {
		const struct gt_life *life = &d->story->lives[i];
		struct subject s = subject_of(d, life);
		struct tally *tally;

		if (!is_candidate(d, &s) ||
		    (life->category && life->category != GT_CATEGORY_GRADIENTS))
			continue;
		if (s.pass != pass && now)
			memset(now, 0, room * sizeof(*now));
		pass = s.pass;
		tally = tally_of(tallies, count, life->size);
		if (!tally) {
			tally = GT_PUSH(tallies, count);
			tally->size = life->size;
			*GT_PUSH(now, room) = 0;
		}
		if (++now[tally - tallies] > tally->gradients)
			tally->gradients = now[tally - tallies];
	}
	free(now);
	*ret_count = count;
	return tallies;
}

/* A training without modules: its parameters are what its gradients look like. */
static void claim(struct deciding *d)
{
	size_t count;
	struct tally *tallies = tally_gradients(d, &count);

	for (size_t i = 0; i < d->story->life_count; i++) {
		const struct gt_life *life = &d->story->lives[i];
		struct tally *tally = tally_of(tallies, count, life->size);

		if (tally && life->category == GT_CATEGORY_WEIGHTS)
			tally->weights++;
	}
	for (size_t i = 0; i < d->story->life_count; i++) {
		const struct gt_life *life = &d->story->lives[i];
		struct subject s = subject_of(d, life);
		struct tally *tally;

		if (life->category || !is_setup(d, &s) || !is_user(&s) || !is_kept(d, &s))
			continue;
		tally = tally_of(tallies, count, life->size);
		if (tally && tally->weights < tally->gradients) {
			tally->weights++;
			d->facts[i] |= CLAIMED;
		}
	}
	free(tallies);
}

void gt_categorize(struct gt_story *story, const struct gt_passes *passes,
		   const struct gt_boundaries *boundaries)
{
	struct deciding d = {.story = story, .passes = passes, .boundaries = boundaries};

	d.facts = gt_xcalloc(story->life_count, sizeof(*d.facts));
	list_positions(&d);
	sweep(&d);
	settle_last_run(&d);
	judge(&d, 0, FIRST_OF_SIZES);
	sum_gradients(&d);
	claim(&d);
	judge(&d, FIRST_OF_SIZES, FIRST_OF_SIZES + 1);
	d.weights = sizes_of(story, GT_CATEGORY_WEIGHTS, NULL);
	d.zeroed = sizes_of(story, GT_CATEGORY_GRADIENTS, "zeroed");
	d.has_weights = d.weights.count > 0;
	judge(&d, FIRST_OF_SIZES + 1, RULES);
	free(d.weights.sizes);
	free(d.zeroed.sizes);
	free(d.gradient_sums);
	free(d.calls);
	free(d.optimizer);
	free(d.facts);
}
