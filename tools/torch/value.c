/* SPDX-License-Identifier: MIT */
/*
 * See value.h. Dicts of snapshots have about ten keys: a walk over them that compares small numbers
 * is faster than any table. Called by shape.c and frames.c.
 */
#include <string.h>

#include "torch/value.h"

static const char *const words[] = {
#define X(word) #word,
	GT_WORDS(X)
#undef X
};

static enum gt_word word_of(struct gt_value *value)
{
	if (!gt_is(value, GT_VALUE_TEXT))
		return 0;
	if (value->word)
		return (enum gt_word)value->word;
	value->word = GT_WORD_unknown;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strlen(words[i]) == value->count &&
		    !memcmp(words[i], value->text, value->count))
			value->word = (uint8_t)(GT_WORD_unknown + 1 + i);
	return (enum gt_word)value->word;
}

struct gt_value *gt_at(const struct gt_values *values, const struct gt_value *dict,
		       enum gt_word key)
{
	if (!gt_is(dict, GT_VALUE_DICT))
		return NULL;
	for (size_t i = dict->count; i >= 2; i -= 2)
		if (word_of(gt_item(values, dict, i - 2)) == key)
			return gt_item(values, dict, i - 1);
	return NULL;
}

bool gt_number(const struct gt_value *value, uint64_t *ret)
{
	if (!gt_is(value, GT_VALUE_INT) || value->negative)
		return false;
	*ret = value->integer;
	return true;
}

bool gt_number_at(const struct gt_values *values, const struct gt_value *dict, enum gt_word key,
		  uint64_t *ret)
{
	return gt_number(gt_at(values, dict, key), ret);
}

bool gt_true_at(const struct gt_values *values, const struct gt_value *dict, enum gt_word key)
{
	const struct gt_value *value = gt_at(values, dict, key);

	return value && (value->kind == GT_VALUE_BOOL || value->kind == GT_VALUE_INT) &&
	       value->integer;
}

enum gt_word gt_word_at(const struct gt_values *values, const struct gt_value *dict,
			enum gt_word key)
{
	return word_of(gt_at(values, dict, key));
}
