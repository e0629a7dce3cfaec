/* SPDX-License-Identifier: MIT */
/*
 * See warnings.h. A warning that is wrong once is not read again, so each has a bar that healthy
 * programs do not reach: growth in ten steps or more that is hardly taken back, memory refused that
 * the program caught, and a cache that no request of the run could have used on a card that is
 * full. Called from summary.c.
 */
#include "cmd/warnings.h"

#include <stdlib.h>
#include <string.h>
#include "cmd/growth.h"
#include "model/xalloc.h"
#include "out/number.h"

#define FULL_PERCENT   90 /* of the card, held */
#define UNUSED_PERCENT 25 /* of what is held, cached at the peak of use */

static void add(struct gt_warnings *warnings, const char *id, const char *command, char *text)
{
	if (warnings->count == GT_WARNINGS) {
		free(text);
		return;
	}
	warnings->warnings[warnings->count++] = (struct gt_warning){id, text, command};
}

static void warn_growth(struct gt_warnings *ret, const struct gt_place *place)
{
	const struct gt_answers *answers = gt_input_answers(place->input);
	struct gt_growth growth;
	const struct gt_grower *first;
	char slope[GT_SIZE_TEXT], device[GT_DEVICE_TEXT];

	if (!answers)
		return;
	growth = gt_growth_of(answers, place->lane_index);
	first = gt_first_grower(&growth);
	if (first && first->high) {
		char *where = gt_frame_text(gt_growth_frame(answers, &growth, first));

		add(ret, "growth", "growth",
		    gt_xasprintf("%s grows %s per step, in %u of %u steps, kept from %s",
				 gt_device_text(place->lane->device, device),
				 gt_size_text((uint64_t)growth.slope, slope), first->ups,
				 first->steps, where));
		free(where);
	}
	gt_growth_clear(&growth);
}

static void warn_caught(struct gt_warnings *ret, const struct gt_trace *trace)
{
	size_t caught = 0;

	for (size_t i = 0; i < trace->report_count; i++)
		caught += gt_is_memory(&trace->reports[i]) &&
			  gt_report_end(trace, &trace->reports[i]) == GT_END_CAUGHT;
	if (caught)
		add(ret, "caught", "errors",
		    gt_xasprintf("%zu request%s for memory refused and caught by the program",
				 caught, caught == 1 ? "" : "s"));
}

/* Held at most of the card, and a good part of it for nothing even when most was in use. */
static void warn_unused(struct gt_warnings *ret, const struct gt_place *place)
{
	const struct gt_ctr *ctr = &place->lane->ctr;
	uint64_t held = ctr->peak[GT_TOTAL_RESERVED], used = ctr->peak[GT_TOTAL_IN_USE];
	char unused[GT_SIZE_TEXT], device[GT_DEVICE_TEXT];

	if (!place->device_total || held < place->device_total / 100 * FULL_PERCENT ||
	    held < used || held - used < held / 100 * UNUSED_PERCENT)
		return;
	add(ret, "cached", "segments",
	    gt_xasprintf("%s is all but full, and %s of it were never in use at once",
			 gt_device_text(place->lane->device, device),
			 gt_size_text(held - used, unused)));
}

struct gt_warnings gt_warnings_of(struct gt_input *input, const struct gt_places *places)
{
	struct gt_warnings ret = {0};

	warn_caught(&ret, input->trace);
	for (size_t i = 0; i < places->count; i++) {
		if (places->places[i].input != input)
			continue;
		warn_growth(&ret, &places->places[i]);
		warn_unused(&ret, &places->places[i]);
	}
	return ret;
}

void gt_warnings_clear(struct gt_warnings *warnings)
{
	for (size_t i = 0; i < warnings->count; i++)
		free(warnings->warnings[i].text);
	*warnings = (struct gt_warnings){0};
}
