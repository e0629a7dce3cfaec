/* SPDX-License-Identifier: MIT */
/*
 * Prints what the model makes of a trace, block by block, for tests that know what each block is:
 *
 *	step FIRST FORWARD BACKWARD END          positions; END is that of the next step, or of training
 *	pass FIRST LAST
 *	life DEVICE BORN DIED SIZE ADDRESS CATEGORY RULE     torch's blocks, by birth; DIED -1 = never
 *
 * usage: lives TRACE
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include "model/steps.h"

static int fail(const struct gt_error *err)
{
	fprintf(stderr, "lives: %s\n", err->text);
	return 1;
}

static void print_steps(const struct gt_answers *answers)
{
	const struct gt_boundaries *steps = &answers->steps;

	printf("source %s %.3f\n", gt_step_source_name(steps->source), steps->confidence);
	for (size_t i = 1; steps->source && i <= steps->count; i++)
		printf("step %u %u %u %u\n", steps->starts[i - 1],
		       gt_step_moment(answers, i, GT_PHASE_FORWARD),
		       gt_step_moment(answers, i, GT_PHASE_BACKWARD),
		       gt_step_moment(answers, i, GT_PHASE_NONE));
	for (size_t i = 0; i < answers->passes.count; i++)
		printf("pass %u %u\n", answers->passes.passes[i].first,
		       answers->passes.passes[i].last);
}

static void print_lives(const struct gt_answers *answers)
{
	const struct gt_story *story = answers->story;

	for (size_t i = 0; i < story->life_count; i++) {
		const struct gt_life *life = &story->lives[i];

		if (life->space != GT_SPACE_TORCH)
			continue;
		printf("life %d %u %d %" PRIu64 " %" PRIx64 " %s %s\n",
		       story->trace->lanes[life->lane].device, life->born, (int)life->died,
		       life->size, life->addr, gt_category_key(life->category),
		       gt_rule_why(life->rule).name);
	}
}

int main(int argc, char **argv)
{
	struct gt_trace *trace = NULL;
	struct gt_answers *answers = NULL;
	struct gt_symbols *symbols;
	struct gt_error err = {0};

	if (argc != 2 || gt_trace_open(argv[1], 0, &trace, &err))
		return fail(&err);
	symbols = gt_symbols_new(trace);
	if (!symbols || gt_answers_make(trace, symbols, &answers, &err))
		return fail(&err);
	print_steps(answers);
	print_lives(answers);
	gt_answers_free(answers);
	gt_symbols_free(symbols);
	gt_trace_close(trace);
	return 0;
}
