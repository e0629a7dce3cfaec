/* SPDX-License-Identifier: MIT */
/*
 * See samples.h. Stacks are told apart by their nodes, not by their text: two builds of a text would
 * cost what naming every stack twice costs, and readers of these files add equal stacks up anyway.
 * Called from folded.c, pprof.c, speedscope.c.
 */
#include "export/samples.h"

#include <stdlib.h>
#include <string.h>
#include "model/xalloc.h"

static struct gt_sample *push(struct gt_samples *list, const struct gt_site_def *site,
			      uint8_t category, bool fine)
{
	struct gt_sample *sample = GT_PUSH(list->samples, list->count);

	sample->native = site->native;
	sample->python = site->python;
	sample->category = fine ? category : 0;
	sample->space = fine ? site->space : 0;
	return sample;
}

static int order(const void *a, const void *b)
{
	const struct gt_sample *x = a, *y = b;

	if (x->native != y->native)
		return x->native < y->native ? -1 : 1;
	if (x->python != y->python)
		return x->python < y->python ? -1 : 1;
	if (x->category != y->category)
		return x->category < y->category ? -1 : 1;
	return x->space < y->space ? -1 : x->space > y->space;
}

/* Equal ones, which are neighbours now, into one. */
static void merge(struct gt_samples *list)
{
	size_t kept = 0;

	for (size_t i = 0; i < list->count; i++) {
		const struct gt_sample *from = &list->samples[i];

		if (!kept || order(&list->samples[kept - 1], from)) {
			list->samples[kept++] = *from;
			continue;
		}
		list->samples[kept - 1].bytes += from->bytes;
		list->samples[kept - 1].count += from->count;
		list->samples[kept - 1].ever += from->ever;
		list->samples[kept - 1].ever_count += from->ever_count;
	}
	list->count = kept;
}

struct gt_samples gt_samples_of(const struct gt_export_place *place, enum gt_total total, bool fine)
{
	const struct gt_trace_lane *lane = place->lane;
	const struct gt_state *state = &place->state;
	struct gt_samples list = {0};

	for (size_t i = 0; i < state->hold_count; i++) {
		const struct gt_hold *hold = &state->holds[i];
		struct gt_sample *sample =
			push(&list, &lane->site_defs[hold->site], hold->category, fine);

		sample->bytes = hold->bytes;
		sample->count = hold->count;
	}
	for (size_t i = 0; i < lane->site_count; i++) {
		struct gt_sample *sample;

		if (!(lane->site_defs[i].mask >> total & 1) || !lane->sites[i].ever_count)
			continue;
		sample = push(&list, &lane->site_defs[i], 0, fine);
		sample->ever = lane->sites[i].ever;
		sample->ever_count = lane->sites[i].ever_count;
	}
	if (list.count)
		qsort(list.samples, list.count, sizeof(*list.samples), order);
	merge(&list);
	return list;
}

void gt_samples_clear(struct gt_samples *samples)
{
	free(samples->samples);
	*samples = (struct gt_samples){0};
}
