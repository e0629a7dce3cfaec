/* SPDX-License-Identifier: MIT */
/*
 * What would have been enough. A remedy that takes blocks away, or lays them out in another way, is
 * tried on the trace's own blocks (replay.h) and marked as checked; one that changes the computation
 * is worked out by a formula and is not. Those that leave the result as it is come first. Called
 * from verdict.c.
 */
#include "model/failure.h"
#include "model/replay.h"
#include "model/trial.h"

static uint64_t needed(const struct gt_verdict *v)
{
	return v->over ? v->over : v->short_by;
}

static void add(struct gt_trial *t, struct gt_remedy remedy)
{
	struct gt_verdict *v = t->v;

	if (v->remedy_count == GT_REMEDIES)
		return;
	if (!remedy.checked)
		remedy.enough = remedy.bytes >= needed(v);
	v->remedies[v->remedy_count++] = remedy;
}

/* Steps, or calls, until growth has eaten what is left of the bytes; -1 without growth. */
static int64_t lasts(const struct gt_verdict *v, uint64_t bytes)
{
	double slope = v->calls.site ? (double)v->calls.per_call : v->growth.slope;

	if (slope <= 0)
		return -1;
	return bytes > v->short_by ? (int64_t)((double)(bytes - v->short_by) / slope) : 0;
}

/* One that takes blocks away. */
static void try_without(struct gt_trial *t, const char *id, const char *text, uint64_t bytes,
			bool (*drop)(const struct gt_trial *t, const struct gt_block *block),
			const char *formula)
{
	enum gt_replayed replayed = gt_replay_without(t, drop);

	add(t, (struct gt_remedy){.id = id,
				  .text = text,
				  .bytes = bytes,
				  .checked = replayed != GT_REPLAY_NOT,
				  .enough = replayed == GT_REPLAY_FITS,
				  .same_result = true,
				  .steps = -1,
				  .formula = formula});
}

/* ---- blocks that need not be there ----------------------------------------------------------- */

static void remedies_of_blocks(struct gt_trial *t)
{
	const struct gt_verdict *v = t->v;

	if (v->margins[GT_CAUSE_HELD_AFTER_OOM])
		try_without(t, "free-caught", "let go of the caught exception",
			    v->margins[GT_CAUSE_HELD_AFTER_OOM], gt_is_held,
			    "blocks of attempts that ran out of memory and are alive");
	if (v->margins[GT_CAUSE_GROWTH] || v->cause == GT_CAUSE_GROWTH)
		try_without(t, "free-kept",
			    v->calls.site ? "let go of what is kept each call"
					  : "let go of what is kept each step",
			    v->calls.site ? v->calls.bytes : v->growth.bytes, gt_was_kept,
			    "blocks of old steps or calls that are alive");
	if (v->margins[GT_CAUSE_DUPLICATE_STATE])
		try_without(t, "free-old-state", "let go of the older optimizer",
			    v->margins[GT_CAUSE_DUPLICATE_STATE], gt_is_old_state,
			    "state made in earlier steps");
	if (v->margins[GT_CAUSE_LOAD_PEAK])
		try_without(t, "load-on-cpu", "load with map_location=\"cpu\"",
			    v->margins[GT_CAUSE_LOAD_PEAK], gt_is_loaded,
			    "loaded tensors beside the model's");
}

/* ---- memory of the device -------------------------------------------------------------------- */

/* More free memory is all that the driver asks for: a comparison is the replay. */
static void add_freed(struct gt_trial *t, const char *id, const char *text, uint64_t bytes,
		      const char *formula)
{
	add(t, (struct gt_remedy){.id = id,
				  .text = text,
				  .bytes = bytes,
				  .checked = t->report->device_free != GT_UNKNOWN_BYTES,
				  .enough = bytes >= needed(t->v),
				  .same_result = true,
				  .steps = lasts(t->v, bytes),
				  .formula = formula});
}

static void remedies_of_device(struct gt_trial *t)
{
	const struct gt_verdict *v = t->v;

	if (v->idle)
		add_freed(t, "end-idle-contexts", "no context in processes that do not use the GPU",
			  v->idle, "contexts without any allocation");
	if (gt_report_others(t->report) > v->idle)
		add_freed(t, "end-other-process", "end or move the other processes",
			  gt_report_others(t->report) - v->idle, "what NVML said they hold");
	if (v->margins[GT_CAUSE_POOL_CACHE] && v->pool == GT_POOL_PRIVATE)
		add_freed(t, "free-graph-pools", "one pool for all graphs, or fewer graphs",
			  v->pool_cached, "cached in segments that only graphs may use (at most)");
	if (v->margins[GT_CAUSE_POOL_CACHE] && v->pool == GT_POOL_DRIVER)
		add(t, (struct gt_remedy){.id = "trim-pools",
					  .text = "cuMemPoolTrimTo, or a lower release threshold",
					  .bytes = v->pool_cached,
					  .same_result = true,
					  .steps = -1,
					  .formula = "held by pools - in use (at most)"});
}

/* ---- torch's cache --------------------------------------------------------------------------- */

static void remedies_of_cache(struct gt_trial *t)
{
	struct gt_verdict *v = t->v;
	uint64_t bytes = v->cached;
	enum gt_replayed replayed = gt_replay_expandable(t, &bytes);

	/* What a graph's pool keeps stays, however it is mapped. */
	if (!v->cached || (v->pool == GT_POOL_PRIVATE && v->pool_cached))
		return;
	if (t->report->torch_requested && !v->expandable)
		add(t, (struct gt_remedy){.id = "expandable-segments",
					  .text = "expandable_segments:True",
					  .bytes = bytes,
					  .checked = replayed != GT_REPLAY_NOT,
					  .enough = replayed == GT_REPLAY_FITS,
					  .same_result = true,
					  .steps = lasts(v, bytes),
					  .formula = "cached - what pages with a block keep"});
	if (v->pieces_known && v->pool != GT_POOL_DRIVER)
		add_freed(t, "empty-cache", "torch.cuda.empty_cache()", v->empty,
			  "segments with nothing in use");
}

/* ---- other ways to compute ------------------------------------------------------------------- */

static void remedies_of_first_step(struct gt_trial *t)
{
	struct gt_verdict *v = t->v;
	uint64_t gradients = v->categories[GT_CATEGORY_GRADIENTS];
	uint64_t weights = v->categories[GT_CATEGORY_WEIGHTS];
	uint64_t state = v->categories[GT_CATEGORY_OPTIMIZER] + v->state_to_come;

	add(t, (struct gt_remedy){.id = "optimizer-on-cpu",
				  .text = "optimizer state and step on the CPU",
				  .bytes = state + gradients,
				  .same_result = true,
				  .steps = -1,
				  .formula = "state + temporaries of its step"});
	add(t, (struct gt_remedy){.id = "shard-two",
				  .text = "two GPUs, sharded (FSDP)",
				  .bytes = (weights + 2 * gradients + state) / 2,
				  .same_result = true,
				  .steps = -1,
				  .formula = "half of weights, gradients, state, temporaries"});
	add(t, (struct gt_remedy){.id = "no-foreach",
				  .text = "foreach=False",
				  .bytes = v->temporaries_to_come,
				  .same_result = true,
				  .steps = -1,
				  .formula = "at most the temporaries of its step"});
	add(t, (struct gt_remedy){.id = "eight-bit-state",
				  .text = "8-bit optimizer state",
				  .bytes = state / 4 * 3,
				  .steps = -1,
				  .formula = "3/4 of fp32 state"});
}

static void remedies_of_activations(struct gt_trial *t)
{
	struct gt_verdict *v = t->v;
	uint64_t activations = v->categories[GT_CATEGORY_ACTIVATIONS];
	uint64_t kept = v->cause == GT_CAUSE_GROWTH
				? (v->calls.site ? v->calls.bytes : v->growth.bytes)
			: v->cause == GT_CAUSE_HELD_AFTER_OOM ? v->margins[v->cause]
							      : 0;

	if (activations)
		add(t, (struct gt_remedy){.id = "checkpointing",
					  .text = "checkpointing",
					  .bytes = activations > kept ? activations - kept : 0,
					  .same_result = true,
					  .steps = -1,
					  .formula = "at most the activations, less those kept"});
}

void gt_find_remedies(struct gt_trial *t)
{
	const struct gt_verdict *v = t->v;

	if (t->lane->device == GT_DEVICE_HOST)
		return;
	remedies_of_blocks(t);
	remedies_of_device(t);
	remedies_of_cache(t);
	if (v->cause == GT_CAUSE_FIRST_STEP || v->cause == GT_CAUSE_TOO_LARGE)
		remedies_of_first_step(t);
	remedies_of_activations(t);
}
