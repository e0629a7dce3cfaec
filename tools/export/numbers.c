/* SPDX-License-Identifier: MIT */
/* See numbers.h. Called from the formats that share texts: pprof, speedscope, sqlite, csv. */
#include "export/numbers.h"

#include <stdlib.h>
#include <string.h>
#include <uthash.h>
#include "model/xalloc.h"

struct gt_number {
	uint64_t number;
	UT_hash_handle hh;
	char key[];
};

uint64_t gt_number_of(struct gt_numbers *numbers, const void *key, size_t length, bool *ret_new)
{
	struct gt_number *number;

	HASH_FIND(hh, numbers->list, key, length, number);
	*ret_new = !number;
	if (number)
		return number->number;
	number = gt_xcalloc(1, sizeof(*number) + length + 1);
	number->number = numbers->count++;
	memcpy(number->key, key, length);
	HASH_ADD(hh, numbers->list, key, length, number);
	return number->number;
}

uint64_t gt_number_frame(struct gt_numbers *numbers, const struct gt_frame *frame, bool *ret_new)
{
	char *key = gt_xasprintf("%d %d\n%s\n%s\n%s", frame->line, frame->kind, frame->function,
				 frame->file, frame->module);
	uint64_t number = gt_number_of(numbers, key, strlen(key), ret_new);

	free(key);
	return number;
}

void gt_numbers_clear(struct gt_numbers *numbers)
{
	struct gt_number *number, *next;

	HASH_ITER(hh, numbers->list, number, next) {
		HASH_DEL(numbers->list, number);
		free(number);
	}
	*numbers = (struct gt_numbers){0};
}
