/* SPDX-License-Identifier: MIT */
/*
 * See ranks.h; summary asks. Of a thousand ranks nearly all are alike, and which one is not is the
 * question. The median is what "alike" is measured by, because the outliers do not move it.
 */
#include "cmd/ranks.h"

#include <stdlib.h>
#include <string.h>
#include "cmd/refusals.h"
#include "model/xalloc.h"

/* A peak that is off by more than 1/UNLIKE of the median is not like the others. */
#define UNLIKE 8

const char *gt_rank_text(const struct gt_trace *trace)
{
	const struct gt_bytes *rank = gt_trace_info(trace, "env.RANK");

	return rank && rank->length ? rank->text : "-";
}

static uint64_t rank_number(const struct gt_trace *trace)
{
	const char *text = gt_rank_text(trace);
	char *end;
	unsigned long long rank = strtoull(text, &end, 10);

	return end == text || *end ? UINT64_MAX : rank;
}

static uint64_t peak_of(const struct gt_place *place, enum gt_total total)
{
	return place->lane->ctr.peak[total];
}

static int by_number(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static uint64_t median_of(const struct gt_places *places, enum gt_total total)
{
	uint64_t *peaks = gt_xcalloc(places->count, sizeof(*peaks)), median;

	for (size_t i = 0; i < places->count; i++)
		peaks[i] = peak_of(&places->places[i], total);
	qsort(peaks, places->count, sizeof(*peaks), by_number);
	median = peaks[places->count / 2];
	free(peaks);
	return median;
}

static int by_interest(const void *a, const void *b)
{
	const struct gt_ranked *x = a, *y = b;

	if (x->failed != y->failed)
		return x->failed ? -1 : 1;
	if (x->off != y->off)
		return x->off > y->off ? -1 : 1;
	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	return (x->place > y->place) - (x->place < y->place);
}

static struct gt_ranked ranked(const struct gt_place *place, uint64_t peak, uint64_t median)
{
	const struct gt_trace *trace = place->input->trace;
	uint64_t off = peak > median ? peak - median : median - peak;
	bool refused = gt_input_headline(&(struct gt_args){.device = GT_ANY_DEVICE}, place->input);

	return (struct gt_ranked){
		.place = place,
		.state = refused ? "out of memory" : gt_process_state(trace),
		.failed = refused || strncmp(gt_process_state(trace), "killed", 6) == 0,
		.off = off > median / UNLIKE ? off : 0,
		.rank = rank_number(trace),
	};
}

struct gt_ranked *gt_rank_places(const struct gt_places *places, enum gt_total total,
				 uint64_t *ret_median)
{
	struct gt_ranked *rows = gt_xcalloc(places->count, sizeof(*rows));

	*ret_median = median_of(places, total);
	for (size_t i = 0; i < places->count; i++)
		rows[i] =
			ranked(&places->places[i], peak_of(&places->places[i], total), *ret_median);
	qsort(rows, places->count, sizeof(*rows), by_interest);
	return rows;
}
