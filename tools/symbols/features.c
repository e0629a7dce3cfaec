/* SPDX-License-Identifier: MIT */
/*
 * See features.h. Two tables of names decide: files and functions of Python, functions of
 * libtorch. Files are compared from their end, whole components, because wheels, source trees and
 * containers put torch in different places.
 */
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "symbols/features.h"
#include "symbols/library.h"

struct rule {
	uint32_t bit;
	const char *file;      /* end of the path; with a slash at its end: a folder in it */
	const char *functions; /* separated by blanks; NULL = any */
};

/* The marker: rows are tried from the top for each frame, frames from the innermost. */
static const struct rule markers[] = {
	{GT_IN_CHECKPOINT, "torch/utils/checkpoint.py", "recompute_fn unpack_hook backward"},
	{GT_IN_CALL, "torch/nn/modules/module.py", "_call_impl _wrapped_call_impl"},
	{GT_IN_ROOT, "torch/autograd/__init__.py", "_make_grads"},
	{GT_IN_BACKWARD, "torch/_tensor.py", "backward"},
	{GT_IN_BACKWARD, "torch/autograd/__init__.py", "backward grad"},
	{GT_IN_ZERO_GRAD, NULL, "zero_grad"},
	{0, "torch/optim/lr_scheduler.py", NULL},
	{GT_IN_OPTIMIZER, "torch/optim/", NULL},
	{GT_IN_APPLY, "torch/nn/modules/module.py", "_apply"},
	{GT_IN_APPLY, "torch/distributed/fsdp/_fully_shard/_fsdp_param.py", "_init_sharded_param"},
	{GT_IN_APPLY, "torch/distributed/_composable/fsdp/_fsdp_param.py", "_init_sharded_param"},
	{GT_IN_APPLY, "torch/distributed/fsdp/_flat_param.py",
	 "_init_flat_param_and_metadata flatten_tensors shard"},
	{GT_IN_LOAD, "torch/serialization.py", NULL},
	{GT_IN_LOAD, "safetensors/", NULL},
	{GT_IN_COPY, "copy.py", "deepcopy __deepcopy__"},
	{GT_IN_COPY, "torch/nn/parallel/comm.py",
	 "broadcast broadcast_coalesced _broadcast_coalesced_reshape"},
	{GT_IN_INIT, "torch/nn/modules/", "__init__ reset_parameters"},
};

/* Not the user's although outside torch's own code, and the other way round. */
static const struct rule loaders[] = {
	{GT_IS_USER, "torch/utils/data/", NULL},
	{GT_IS_USER, "accelerate/utils/operations.py", NULL},
};

static const struct rule losses[] = {
	{GT_IS_LOSS, "torch/nn/functional.py",
	 "mse_loss l1_loss smooth_l1_loss huber_loss nll_loss binary_cross_entropy "
	 "binary_cross_entropy_with_logits"},
};

static const struct rule anywhere[] = {
	{GT_HAS_CHECKPOINT, "torch/utils/checkpoint.py", "recompute_fn unpack_hook backward"},
	{GT_HAS_SCATTER, "torch/nn/parallel/comm.py", "scatter"},
};

struct symbol {
	uint32_t bit;
	const char *name; /* whole, but for a template's arguments; or with '*': part of it */
};

static const struct symbol symbols_of_torch[] = {
	{GT_HAS_ENGINE, "*torch::autograd::Engine::"},
	{GT_HAS_MAIN, "torch::autograd::Engine::thread_main"},
	{GT_HAS_MAIN, "torch::autograd::Engine::thread_init"},
	{GT_HAS_WORKSPACE, "*getCurrentCUDABlasHandle"},
	{GT_HAS_WORKSPACE, "*getCUDABlasLtWorkspace"},
	{GT_HAS_WORKSPACE, "*allocateCUDABlasWorkspace"},
	{GT_HAS_TO_COPY, "at::native::_to_copy"},
	{GT_HAS_CLONE, "at::native::clone"},
	{GT_HAS_ZEROS | GT_HAS_FACTORY, "at::native::zeros"},
	{GT_HAS_ZEROS | GT_HAS_FACTORY, "at::native::zeros_symint"},
	{GT_HAS_ZEROS | GT_HAS_FACTORY, "at::native::zeros_like"},
	{GT_HAS_FACTORY, "at::native::randn"},
	{GT_HAS_FACTORY, "at::native::rand"},
	{GT_HAS_FACTORY, "at::native::randint"},
	{GT_HAS_FACTORY, "at::native::ones"},
	{GT_HAS_FACTORY, "at::native::ones_like"},
	{GT_HAS_FACTORY, "at::native::full"},
	{GT_HAS_FACTORY, "at::native::arange"},
	{GT_HAS_CAST, "*cached_cast"},
	{GT_HAS_SOFTMAX, "*log_softmax"},
	{GT_HAS_SOFTMAX, "*cross_entropy"},
	{GT_HAS_SAVED, "*SavedVariable"},
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

struct key {
	uint32_t native, python;
};

struct entry {
	struct key key;
	UT_hash_handle hh;
	struct gt_features features;
	const struct gt_frame *frames[];
};

/*
 * A position of the program: a line of Python within the one that called it, or a native stack where
 * there is no Python. How the interpreter went from line to line is no part of it: from 3.11 on it
 * replaces instructions that have run before by quicker ones, which call from other addresses and
 * enter some functions without C in between, so that a loop's first turn has other stacks than the rest.
 */
struct place {
	struct place_key {
		const struct place *caller;
		const char *file, *function; /* NULL: native */
		uint64_t line;		     /* or the native node */
	} key;
	UT_hash_handle hh;
	uint32_t number; /* 0: no stack ends here */
};

struct gt_feature_table {
	struct gt_symbols *symbols;
	struct entry *entries;
	struct place *places;
	uint32_t count, place_count;
};

static const struct gt_features no_features;

struct gt_feature_table *gt_feature_table_new(struct gt_symbols *symbols)
{
	struct gt_feature_table *table = calloc(1, sizeof(*table));

	if (table)
		table->symbols = symbols;
	return table;
}

struct gt_feature_table *gt_feature_table_free(struct gt_feature_table *table)
{
	struct entry *entry, *next;
	struct place *place, *next_place;

	if (!table)
		return NULL;
	HASH_ITER(hh, table->entries, entry, next) {
		HASH_DEL(table->entries, entry);
		free(entry);
	}
	HASH_ITER(hh, table->places, place, next_place) {
		HASH_DEL(table->places, place);
		free(place);
	}
	free(table);
	return NULL;
}

/* ---- names --------------------------------------------------------------------------------- */

/* "step" of "Adam.step", "closure" of "main.<locals>.closure". */
static const char *last_name(const char *qualified)
{
	const char *dot = strrchr(qualified, '.');

	return dot ? dot + 1 : qualified;
}

static bool file_is(const char *path, const char *end)
{
	size_t length = strlen(path), wanted = strlen(end);

	if (end[wanted - 1] == '/') {
		const char *at = strstr(path, end);

		return at && (at == path || at[-1] == '/');
	}
	return length >= wanted && strcmp(path + length - wanted, end) == 0 &&
	       (length == wanted || path[length - wanted - 1] == '/');
}

static bool one_of(const char *words, const char *name)
{
	size_t length;

	for (; *words; words += length + (words[length] == ' ')) {
		length = strcspn(words, " ");
		if (strlen(name) == length && strncmp(words, name, length) == 0)
			return true;
	}
	return false;
}

static const struct rule *match(const struct rule *rules, size_t count,
				const struct gt_frame *frame)
{
	const char *name = last_name(frame->function);

	for (size_t i = 0; i < count; i++)
		if ((!rules[i].file || file_is(frame->file, rules[i].file)) &&
		    (!rules[i].functions || one_of(rules[i].functions, name)))
			return &rules[i];
	return NULL;
}

static bool is_torch(const struct gt_frame *frame)
{
	return gt_library_of_python(frame->file) == GT_LIBRARY_TORCH;
}

/* "at::native::clone" is the whole name, whatever the compiler put behind it. */
static bool symbol_is(const char *function, const struct symbol *symbol)
{
	size_t length = strlen(symbol->name);

	if (symbol->name[0] == '*')
		return strstr(function, symbol->name + 1) != NULL;
	return strncmp(function, symbol->name, length) == 0 && strchr("(<[ ", function[length]);
}

/* ---- one stack ----------------------------------------------------------------------------- */

static uint32_t native_bits(struct gt_stack stack)
{
	uint32_t bits = 0;

	for (size_t i = 0; i < stack.count; i++) {
		const struct gt_frame *frame = &stack.frames[i];

		if (frame->kind != GT_FRAME_NATIVE && frame->kind != GT_FRAME_INLINE)
			continue;
		for (size_t s = 0; s < COUNT(symbols_of_torch); s++)
			if (symbol_is(frame->function, &symbols_of_torch[s]))
				bits |= symbols_of_torch[s].bit;
	}
	return bits;
}

/* A closure that an optimizer calls is the user's: what is outside it is not looked at. */
static uint32_t marker_of(const struct gt_features *features)
{
	bool closure = false;

	for (uint32_t i = features->frame_count; i-- > 0;) {
		const struct gt_frame *frame = features->frames[i];
		const struct rule *rule = match(markers, COUNT(markers), frame);

		closure |= strcmp(last_name(frame->function), "closure") == 0;
		if (rule && rule->bit && !(closure && rule->bit == GT_IN_OPTIMIZER))
			return rule->bit;
	}
	return 0;
}

static uint32_t python_bits(const struct gt_features *features)
{
	const struct gt_frame *innermost;
	uint32_t bits = marker_of(features);

	if (!features->frame_count)
		return 0;
	innermost = features->frames[features->frame_count - 1];
	if (!bits && (!is_torch(innermost) || match(loaders, COUNT(loaders), innermost)))
		bits |= GT_IS_USER;
	if (match(losses, COUNT(losses), innermost))
		bits |= GT_IS_LOSS;
	for (uint32_t i = 0; i < features->frame_count; i++) {
		const struct gt_frame *frame = features->frames[i];
		const struct rule *rule = match(anywhere, COUNT(anywhere), frame);

		bits |= rule ? rule->bit : 0;
		if (!is_torch(frame) && strcmp(last_name(frame->function), "__init__") == 0)
			bits |= GT_HAS_USER_INIT;
	}
	return bits | GT_HAS_PYTHON;
}

/* How many frames lie outside the first (of backward: the last) frame with one of the bits. */
static uint32_t frames_before(const struct gt_features *features, uint32_t bits, bool last)
{
	uint32_t before = features->frame_count;

	for (uint32_t i = 0; i < features->frame_count; i++) {
		const struct rule *rule = match(markers, COUNT(markers), features->frames[i]);

		if (!rule || !(rule->bit & bits))
			continue;
		before = i;
		if (!last)
			break;
	}
	/* Tensor.backward calls autograd.backward: the outer of the two is the call. */
	while (last && before && before < features->frame_count) {
		const struct rule *rule =
			match(markers, COUNT(markers), features->frames[before - 1]);

		if (!rule || !(rule->bit & bits))
			break;
		before--;
	}
	return before;
}

static void fill(struct entry *entry, struct gt_stack stack)
{
	struct gt_features *features = &entry->features;

	features->frames = entry->frames;
	for (size_t i = stack.count; i-- > 0;)
		if (stack.frames[i].kind == GT_FRAME_PYTHON)
			entry->frames[features->frame_count++] = &stack.frames[i];
	features->bits = native_bits(stack) | python_bits(features);
	features->to_backward = frames_before(features, GT_IN_BACKWARD | GT_IN_ROOT, true);
	features->to_call = frames_before(features, GT_IN_CALL, false);
}

/* NULL: no memory. */
static struct place *find_place(struct gt_feature_table *table, struct place_key key)
{
	struct place *place;

	HASH_FIND(hh, table->places, &key, sizeof(key), place);
	if (place)
		return place;
	place = calloc(1, sizeof(*place));
	if (!place)
		return NULL;
	place->key = key;
	HASH_ADD(hh, table->places, key, sizeof(key), place);
	return place;
}

/* Texts of symbols are equal when their pointers are. */
static uint32_t number_place(struct gt_feature_table *table, const struct entry *entry)
{
	const struct gt_features *features = &entry->features;
	struct place *place = NULL;

	if (!features->frame_count)
		place = find_place(table, (struct place_key){.line = entry->key.native});
	for (uint32_t i = 0; i < features->frame_count; i++) {
		const struct gt_frame *frame = features->frames[i];

		place = find_place(table, (struct place_key){place, frame->file, frame->function,
							     (uint64_t)frame->line});
		if (!place)
			break;
	}
	if (place && !place->number)
		place->number = ++table->place_count;
	return place ? place->number : 0;
}

const struct gt_features *gt_features_of(struct gt_feature_table *table, uint32_t native,
					 uint32_t python)
{
	struct key key = {native, python};
	struct gt_stack stack;
	struct entry *entry;

	if (!native && !python)
		return &no_features;
	HASH_FIND(hh, table->entries, &key, sizeof(key), entry);
	if (entry)
		return &entry->features;
	stack = gt_symbols_frames(table->symbols, native, python, GT_FRAMES_THREAD);
	entry = calloc(1, sizeof(*entry) + stack.count * sizeof(entry->frames[0]));
	if (!entry)
		return &no_features;
	entry->key = key;
	entry->features.id = ++table->count;
	fill(entry, stack);
	entry->features.place = number_place(table, entry);
	HASH_ADD(hh, table->entries, key, sizeof(key), entry);
	return &entry->features;
}
