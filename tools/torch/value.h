/* SPDX-License-Identifier: MIT */
/* Looking things up in unpickled values. Whatever is not as asked is absent. */
#ifndef GT_TORCH_VALUE_H
#define GT_TORCH_VALUE_H

#include "torch/unpickle.h"

/* The texts that snapshots are made of; looked up once per text, whatever holds it. */
#define GT_WORDS(X)             \
	X(segments)             \
	X(device_traces)        \
	X(allocator_settings)   \
	X(device)               \
	X(address)              \
	X(total_size)           \
	X(stream)               \
	X(segment_type)         \
	X(segment_pool_id)      \
	X(pool_id)              \
	X(is_expandable)        \
	X(frames)               \
	X(blocks)               \
	X(size)                 \
	X(requested_size)       \
	X(state)                \
	X(history)              \
	X(real_size)            \
	X(active_allocated)     \
	X(active_pending_free)  \
	X(active_awaiting_free) \
	X(inactive)             \
	X(small)                \
	X(filename)             \
	X(line)                 \
	X(name)                 \
	X(action)               \
	X(addr)                 \
	X(device_free)          \
	X(time_us)              \
	X(alloc)                \
	X(free_requested)       \
	X(free_completed)       \
	X(segment_alloc)        \
	X(segment_free)         \
	X(segment_map)          \
	X(segment_unmap)        \
	X(snapshot)             \
	X(oom)                  \
	X(max_split_size)       \
	X(expandable_segments)  \
	X(roundup_power2_divisions)

enum gt_word {
	GT_WORD_unknown = 1, /* looked up, none of them */
#define X(word) GT_WORD_##word,
	GT_WORDS(X)
#undef X
};

static inline bool gt_is(const struct gt_value *value, enum gt_value_kind kind)
{
	return value && value->kind == kind;
}

static inline bool gt_is_list(const struct gt_value *value)
{
	return gt_is(value, GT_VALUE_LIST) || gt_is(value, GT_VALUE_TUPLE);
}

static inline struct gt_value *gt_item(const struct gt_values *values, const struct gt_value *list,
				       size_t index)
{
	return &values->at[list->items[index]];
}

/* The value of a key, NULL = absent or no dict. Of two with one key the later counts. */
struct gt_value *gt_at(const struct gt_values *values, const struct gt_value *dict,
		       enum gt_word key);

/* A number that is not negative. */
bool gt_number(const struct gt_value *value, uint64_t *ret);
bool gt_number_at(const struct gt_values *values, const struct gt_value *dict, enum gt_word key,
		  uint64_t *ret);
bool gt_true_at(const struct gt_values *values, const struct gt_value *dict, enum gt_word key);
enum gt_word gt_word_at(const struct gt_values *values, const struct gt_value *dict,
			enum gt_word key);

#endif
