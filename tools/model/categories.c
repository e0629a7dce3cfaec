/* SPDX-License-Identifier: MIT */
/*
 * See categories.h. The rules were found by experiment on training programs whose tensors said
 * themselves what they were. Order matters: what only a stack can know comes first, what a life
 * shows next, what sizes suggest last. The table runs in three parts, each over all blocks, because
 * a later part compares with the sizes that the parts before have found: gt_categorize.
 */
#include "model/evidence.h"

#include <stdlib.h>
#include <string.h>
#include "model/keyed.h"
#include "model/xalloc.h"

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

/* ---- what the rules look at ------------------------------------------------------------------ */

static uint32_t pass_start(const struct gt_evidence *ev, size_t pass)
{
	return pass < ev->passes->count ? ev->passes->passes[pass].first : GT_NEVER;
}

static bool is_copy(const struct gt_subject *s)
{
	return s->bits & GT_HAS_TO_COPY;
}

/* Without native stacks a copy looks like anything else that the user's line makes. */
static bool may_be_copy(const struct gt_evidence *ev, const struct gt_subject *s)
{
	return is_copy(s) || !ev->story->native;
}

static bool weight_size(const struct gt_evidence *ev, const struct gt_subject *s)
{
	return gt_sizes_have(&ev->weights, s->life->size);
}

/* A module's forward comes before the next backward pass, which the block sees begin. */
static bool feeds_backward(const struct gt_evidence *ev, const struct gt_subject *s)
{
	uint32_t pass = pass_start(ev, s->next_pass);

	return pass != GT_NEVER && gt_next_of(ev->calls, ev->call_count, s->life->born) < pass &&
	       s->life->died > pass;
}

/* Between a backward pass and the optimizer that follows it, and seen by that optimizer. */
static bool before_optimizer(const struct gt_evidence *ev, const struct gt_subject *s)
{
	uint32_t optimizer = gt_next_of(ev->optimizer, ev->optimizer_count, s->life->born);

	return s->next_pass && !gt_in_pass(ev, s) && optimizer < pass_start(ev, s->next_pass) &&
	       s->life->died > optimizer &&
	       gt_boundary_step(ev->boundaries, s->life->born) ==
		       gt_boundary_step(ev->boundaries, ev->passes->passes[s->next_pass - 1].last);
}

/* ---- the rules, each by its name in the table ------------------------------------------------ */

typedef bool rule_test(const struct gt_evidence *ev, const struct gt_subject *s);

static bool workspace(const struct gt_evidence *ev, const struct gt_subject *s)
{
	return s->bits & GT_HAS_WORKSPACE;
}

static bool moved_module(const struct gt_evidence *ev, const struct gt_subject *s)
{
	return s->bits & GT_IN_APPLY;
}

static bool constructor(const struct gt_evidence *ev, const struct gt_subject *s)
{
	return s->bits & GT_IN_INIT && !(s->bits & GT_HAS_ENGINE);
}

static bool constructed(const struct gt_evidence *ev, const struct gt_subject *s)
{
	uint32_t call = gt_next_of(ev->calls, ev->call_count, s->life->born);

	return constructor(ev, s) &&
	       (call == GT_NEVER ? s->life->died == GT_NEVER : s->life->died > call);
}

static bool loaded(const struct gt_evidence *ev, const struct gt_subject *s)
{
	return s->bits & (GT_IN_LOAD | GT_IN_COPY);
}

static bool in_optimizer(const struct gt_evidence *ev, const struct gt_subject *s)
{
	return s->bits & GT_IN_OPTIMIZER;
}

static bool outlives_optimizer(const struct gt_evidence *ev, const struct gt_subject *s)
{
	return in_optimizer(ev, s) && s->facts & GT_OUTLIVES_RUN;
}

static bool root(const struct gt_evidence *ev, const struct gt_subject *s)
{
	return gt_in_pass(ev, s) && s->bits & GT_IN_ROOT;
}

static bool recomputation(const struct gt_evidence *ev, const struct gt_subject *s)
{
	return gt_in_pass(ev, s) && gt_recomputed(s->bits);
}

static bool outlives_recomputation(const struct gt_evidence *ev, const struct gt_subject *s)
{
	return recomputation(ev, s) && s->facts & GT_OUTLIVES_RUN;
}

static bool zeroed(const struct gt_evidence *ev, const struct gt_subject *s)
{
	return gt_in_pass(ev, s) && s->death->bits & GT_IN_ZERO_GRAD;
}

static bool dies_in_pass(const struct gt_evidence *ev, const struct gt_subject *s)
{
	return gt_in_pass(ev, s) && !gt_outlives_pass(ev, s);
}

static bool kept_graph(const struct gt_evidence *ev, const struct gt_subject *s)
{
	return gt_is_candidate(ev, s) && s->dies_on_engine && s->death_pass < ev->passes->count &&
	       s->death_pass > s->pass && !(s->death->bits & GT_IN_OPTIMIZER);
}

static bool claimed(const struct gt_evidence *ev, const struct gt_subject *s)
{
	return s->facts & GT_CLAIMED;
}

static bool zeros_in_setup(const struct gt_evidence *ev, const struct gt_subject *s)
{
	return gt_in_setup(ev, s) && gt_is_user(s) && gt_is_kept(ev, s) && s->bits & GT_HAS_ZEROS &&
	       weight_size(ev, s);
}

static bool copied_weight(const struct gt_evidence *ev, const struct gt_subject *s)
{
	return gt_is_user(s) && (s->bits & GT_HAS_CLONE || may_be_copy(ev, s)) &&
	       gt_is_kept(ev, s) && weight_size(ev, s);
}

/* Weights of that device that live when the block is born, as one number. */
static bool sum_of_weights(const struct gt_evidence *ev, const struct gt_life *block)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < ev->story->life_count; i++) {
		const struct gt_life *life = &ev->story->lives[i];

		if (life->category == GT_CATEGORY_WEIGHTS && life->lane == block->lane &&
		    life->born < ev->boundaries->setup && life->died > ev->boundaries->setup)
			sum += life->size;
	}
	return sum && (sum > block->size ? sum - block->size : block->size - sum) < GT_SIZE_SLACK &&
	       ev->most_gradients < sum / 2;
}

static bool flat_gradients(const struct gt_evidence *ev, const struct gt_subject *s)
{
	return gt_in_setup(ev, s) && gt_is_user(s) && gt_is_kept(ev, s) &&
	       sum_of_weights(ev, s->life);
}

static bool user_buffer(const struct gt_evidence *ev, const struct gt_subject *s)
{
	return gt_in_setup(ev, s) && gt_is_kept(ev, s) && s->bits & GT_HAS_USER_INIT;
}

static bool resident_data(const struct gt_evidence *ev, const struct gt_subject *s)
{
	return gt_in_setup(ev, s) && gt_is_kept(ev, s) && is_copy(s);
}

static bool kept_from_setup(const struct gt_evidence *ev, const struct gt_subject *s)
{
	return gt_in_setup(ev, s) && gt_is_kept(ev, s);
}

/* Without native stacks workspaces have no name: they are kept from the first forward. */
static bool kept_from_forward(const struct gt_evidence *ev, const struct gt_subject *s)
{
	return !ev->story->native && s->bits & GT_IN_CALL && s->life->died == GT_NEVER &&
	       s->next_pass == 0;
}

static bool kept_without_python(const struct gt_evidence *ev, const struct gt_subject *s)
{
	return !ev->story->python && gt_in_setup(ev, s) && gt_is_kept(ev, s);
}

/* Without Python an optimizer shows only by what it keeps: between passes, for two more of them. */
static bool state_without_python(const struct gt_evidence *ev, const struct gt_subject *s)
{
	return !ev->story->python && s->next_pass && !gt_in_pass(ev, s) &&
	       s->life->died > pass_start(ev, s->next_pass + 1) && weight_size(ev, s);
}

static bool gradient(const struct gt_evidence *ev, const struct gt_subject *s)
{
	return gt_is_candidate(ev, s) && (!ev->has_weights || weight_size(ev, s));
}

static bool like_gradient(const struct gt_evidence *ev, const struct gt_subject *s)
{
	return gt_is_candidate(ev, s) && gt_sizes_have(&ev->zeroed, s->life->size);
}

static bool candidate(const struct gt_evidence *ev, const struct gt_subject *s)
{
	return gt_is_candidate(ev, s);
}

static bool input_copy(const struct gt_evidence *ev, const struct gt_subject *s)
{
	if (!ev->story->python)
		return is_copy(s) && !gt_in_pass(ev, s) &&
		       s->life->died > pass_start(ev, s->next_pass);
	return gt_is_user(s) && may_be_copy(ev, s) && feeds_backward(ev, s);
}

static bool scattered(const struct gt_evidence *ev, const struct gt_subject *s)
{
	return s->bits & GT_HAS_SCATTER;
}

static bool input_made(const struct gt_evidence *ev, const struct gt_subject *s)
{
	return gt_is_user(s) && s->bits & GT_HAS_FACTORY && feeds_backward(ev, s) &&
	       !gt_is_kept(ev, s);
}

static bool flattened_gradients(const struct gt_evidence *ev, const struct gt_subject *s)
{
	uint64_t sum;

	if (!gt_is_user(s) || is_copy(s) || !before_optimizer(ev, s))
		return false;
	sum = ev->gradient_sums[s->next_pass - 1];
	return sum && gt_same_size(sum, s->life->size);
}

static bool copied_gradient(const struct gt_evidence *ev, const struct gt_subject *s)
{
	return gt_is_user(s) && before_optimizer(ev, s) && weight_size(ev, s);
}

static bool freed_by_backward(const struct gt_evidence *ev, const struct gt_subject *s)
{
	return s->dies_on_engine && s->death_pass < ev->passes->count;
}

static bool dropped_graph(const struct gt_evidence *ev, const struct gt_subject *s)
{
	return !s->dies_on_engine && s->death->bits & GT_HAS_SAVED;
}

static bool before_backward(const struct gt_evidence *ev, const struct gt_subject *s)
{
	uint32_t pass = pass_start(ev, s->next_pass);

	return pass != GT_NEVER && s->life->died < pass;
}

static bool no_backward(const struct gt_evidence *ev, const struct gt_subject *s)
{
	return pass_start(ev, s->next_pass) == GT_NEVER;
}

static bool input_without_backward(const struct gt_evidence *ev, const struct gt_subject *s)
{
	return no_backward(ev, s) && gt_is_user(s) && is_copy(s) &&
	       gt_next_of(ev->calls, ev->call_count, s->life->born) < s->life->died;
}

static bool early_in_step(const struct gt_evidence *ev, const struct gt_subject *s)
{
	size_t step = gt_boundary_step(ev->boundaries, s->life->born);
	uint32_t call;

	if (!gt_is_user(s))
		return false;
	if (is_copy(s))
		return true;
	if (!step)
		return false;
	call = gt_first_after(ev->calls, ev->call_count, ev->boundaries->starts[step - 1] - 1);
	return call < ev->call_count && s->life->born < ev->calls[call] &&
	       gt_boundary_step(ev->boundaries, ev->calls[call]) == step;
}

static bool loss(const struct gt_evidence *ev, const struct gt_subject *s)
{
	return s->bits & GT_IS_LOSS;
}

/* One of the next few births, by bits and by size in halves of this one's (2: equal, with slack). */
static bool followed_by(const struct gt_evidence *ev, const struct gt_subject *s,
			unsigned int births, uint32_t bits, bool same)
{
	for (uint32_t p = s->life->born + 1; births && p < ev->story->exit; p++) {
		const struct gt_life *life = gt_story_life(ev->story, p);

		if (gt_story_is_death(ev->story, p))
			continue;
		births--;
		if (!(gt_story_at(ev->story, p)->bits & bits))
			continue;
		if (same ? gt_same_size(life->size, s->life->size)
			 : life->size == 2 * s->life->size || 2 * life->size == s->life->size)
			return true;
	}
	return false;
}

static bool cast_by_loss(const struct gt_evidence *ev, const struct gt_subject *s)
{
	return s->bits & GT_HAS_PYTHON && followed_by(ev, s, 6, GT_HAS_CAST, false);
}

static bool cloned(const struct gt_evidence *ev, const struct gt_subject *s)
{
	return gt_is_user(s) && s->bits & (GT_HAS_TO_COPY | GT_HAS_CLONE) && weight_size(ev, s);
}

static bool read_by_loss(const struct gt_evidence *ev, const struct gt_subject *s)
{
	return s->bits & GT_HAS_PYTHON && followed_by(ev, s, 12, GT_HAS_SOFTMAX, true);
}

/* An output is let go when the next one takes its name: before the next backward pass begins. */
static bool held_over_passes(const struct gt_evidence *ev, const struct gt_subject *s)
{
	return gt_is_user(s) && s->life->died > pass_start(ev, s->next_pass + 1);
}

static bool seen_by_backward(const struct gt_evidence *ev, const struct gt_subject *s)
{
	return (ev->story->python || ev->story->native) &&
	       s->life->died > pass_start(ev, s->next_pass);
}

static bool anything(const struct gt_evidence *ev, const struct gt_subject *s)
{
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
	bool weak;
	rule_test *test;
	const char *text; /* the evidence, in a sentence */
} rules[] = {
	{"workspace", WORKSPACES, false, workspace, "asked for by cuBLAS's handle or workspace"},
	{"moved-module", WEIGHTS, false, moved_module, "made by Module.to(), .cuda() or FSDP"},
	{"constructed", WEIGHTS, false, constructed,
	 "made by a layer's constructor, alive at its use"},
	{"constructor", TEMPORARIES, false, constructor,
	 "made by a layer's constructor, gone before use"},
	{"loaded", WEIGHTS, false, loaded, "loaded from a file, or a copy of a module"},
	{"optimizer-state", OPTIMIZER, false, outlives_optimizer,
	 "made in an optimizer, alive after its step"},
	{"optimizer-temporary", TEMPORARIES, false, in_optimizer,
	 "made in an optimizer, gone before its step ended"},
	{"root-gradient", TEMPORARIES, false, root, "the gradient that backward() starts from"},
	{"recomputed", ACTIVATIONS, true, outlives_recomputation,
	 "computed again by a checkpoint, saved for backward"},
	{"recomputed-temporary", TEMPORARIES, false, recomputation,
	 "computed again by a checkpoint, gone before its end"},
	{"zeroed", GRADIENTS, false, zeroed, "made in backward, freed by zero_grad()"},
	{"backward-temporary", TEMPORARIES, false, dies_in_pass,
	 "made and freed in one backward pass"},
	{"kept-graph", ACTIVATIONS, false, kept_graph,
	 "made in backward, freed by autograd in a later backward"},
	{"kept-without-python", WEIGHTS, true, kept_without_python,
	 "kept from set-up; no Python stacks to tell more"},
	{"matches-gradient", WEIGHTS, true, claimed,
	 "kept from set-up, one for each gradient of its size"},
	{"zeros-of-weight-size", OPTIMIZER, false, zeros_in_setup,
	 "zeros of a weight's size, kept from set-up"},
	{"copied-weight", WEIGHTS, false, copied_weight, "a kept copy of a weight's size"},
	{"flat-gradients", GRADIENTS, false, flat_gradients,
	 "as large as all weights, while backward makes no gradients"},
	{"user-buffer", WEIGHTS, false, user_buffer, "kept from a constructor of yours"},
	{"resident-data", INPUTS, false, resident_data, "copied to the device in set-up, and kept"},
	{"kept-from-setup", UNKNOWN, false, kept_from_setup,
	 "kept from set-up; nothing says what for"},
	{"kept-from-forward", UNKNOWN, false, kept_from_forward,
	 "kept from the first forward: an output or a workspace; no native stacks tell"},
	{"state-without-python", OPTIMIZER, true, state_without_python,
	 "a weight's size, made after backward and kept; no Python stacks to tell more"},
	{"gradient", GRADIENTS, false, gradient,
	 "made in backward, alive at its end, a weight's size"},
	{"like-gradient", GRADIENTS, false, like_gradient,
	 "made in backward, as large as a gradient that zero_grad() freed"},
	{"kept-from-backward", UNKNOWN, false, candidate,
	 "made in backward and kept, but no weight has its size"},
	{"input-copy", INPUTS, false, input_copy,
	 "copied by your own line before a module's forward"},
	{"scattered", INPUTS, false, scattered, "scattered to replicas"},
	{"input-made", INPUTS, false, input_made,
	 "made by your own line before a module's forward"},
	{"flattened-gradients", GRADIENTS, false, flattened_gradients,
	 "as large as all gradients, between backward and optimizer"},
	{"copied-gradient", GRADIENTS, false, copied_gradient,
	 "a weight's size, between backward and optimizer"},
	{"freed-by-backward", ACTIVATIONS, false, freed_by_backward,
	 "freed by autograd in a backward pass"},
	{"dropped-graph", ACTIVATIONS, false, dropped_graph,
	 "saved for a backward that never came"},
	{"before-backward", TEMPORARIES, false, before_backward,
	 "freed before the next backward pass"},
	{"input-no-backward", INPUTS, false, input_without_backward,
	 "copied by your own line for a module; no backward follows"},
	{"no-backward", TEMPORARIES, false, no_backward, "no backward pass follows"},
	{"early-in-step", INPUTS, true, early_in_step,
	 "made by your own line before the step's first forward"},
	{"loss", TEMPORARIES, false, loss, "the value of a loss function"},
	{"cast-by-loss", TEMPORARIES, false, cast_by_loss, "an output that the loss casts"},
	{"cloned", UNKNOWN, false, cloned,
	 "a short-lived copy of a weight's size: weight or gradient"},
	{"read-by-loss", TEMPORARIES, false, read_by_loss,
	 "an output whose softmax the loss keeps instead"},
	{"held-over-passes", UNKNOWN, false, held_over_passes,
	 "made by your own line and held over several backward passes"},
	{"seen-by-backward", ACTIVATIONS, true, seen_by_backward,
	 "alive when backward began, freed by your own code or never"},
	{"nothing", UNKNOWN, false, anything, "no rule fits"},
};

#define RULES (sizeof(rules) / sizeof(rules[0]))

struct gt_why gt_rule_why(uint8_t rule)
{
	if (!rule || rule > RULES)
		return (struct gt_why){"none", "not judged", false};
	return (struct gt_why){rules[rule - 1].name, rules[rule - 1].text, rules[rule - 1].weak};
}

/* Rules [from, to) on all lives that have no category yet. */
static void judge(struct gt_evidence *ev, size_t from, size_t to)
{
	for (size_t i = 0; i < ev->story->life_count; i++) {
		struct gt_life *life = &ev->story->lives[i];
		struct gt_subject s;

		if (life->category)
			continue;
		s = gt_subject_of(ev, life);
		for (size_t r = from; r < to && !life->category; r++) {
			if (!rules[r].test(ev, &s))
				continue;
			life->category = rules[r].category;
			life->rule = (uint8_t)(r + 1);
		}
	}
}

static bool is_of(const struct gt_life *life, enum gt_category category, const char *rule)
{
	return life->category == category &&
	       (!rule || strcmp(rules[life->rule - 1].name, rule) == 0);
}

/* Each once: a training makes the same sizes in every step. */
static struct gt_sizes sizes_of(const struct gt_story *story, enum gt_category category,
				const char *rule)
{
	struct gt_keyed seen = {.size = sizeof(uint64_t)};
	struct gt_sizes sizes = {0};

	for (size_t i = 0; i < story->life_count; i++) {
		const struct gt_life *life = &story->lives[i];

		if (!is_of(life, category, rule) || gt_keyed_find(&seen, life->size))
			continue;
		gt_keyed_put(&seen, life->size);
		*GT_PUSH(sizes.sizes, sizes.count) = life->size;
	}
	gt_keyed_clear(&seen);
	gt_sizes_sort(&sizes);
	return sizes;
}

/* The first rule with the test begins a part of the table. */
static size_t part_from(rule_test *test)
{
	size_t rule = 0;

	while (rules[rule].test != test)
		rule++;
	return rule;
}

void gt_categorize(struct gt_story *story, const struct gt_passes *passes,
		   const struct gt_boundaries *boundaries)
{
	const size_t claims = part_from(kept_without_python), sizes = part_from(zeros_in_setup);
	struct gt_evidence ev;

	gt_evidence_make(&ev, story, passes, boundaries);
	judge(&ev, 0, claims);
	gt_evidence_claim(&ev);
	judge(&ev, claims, sizes);
	ev.weights = sizes_of(story, GT_CATEGORY_WEIGHTS, NULL);
	ev.zeroed = sizes_of(story, GT_CATEGORY_GRADIENTS, "zeroed");
	ev.has_weights = ev.weights.count > 0;
	judge(&ev, sizes, RULES);
	gt_evidence_clear(&ev);
}
