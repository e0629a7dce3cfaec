/* SPDX-License-Identifier: MIT */
/*
 * See nvtx.h. Programs name all sorts of ranges: epochs, layers, each operation. Steps are those of
 * a kind whose name says so ("step 12", "iteration", "train_batch"), that come three times or more
 * and, where there are backward passes, hold most of them whole: an "optimizer step" holds none. Of
 * several such kinds the outermost is taken. Called from boundary.c.
 */
#include "model/nvtx.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include "model/xalloc.h"

#define LEAST_RANGES 3
#define DEEPEST	     64 /* ranges within each other; deeper ones are left out */

struct range {
	char *kind; /* its name without digits and signs, in lower case */
	uint32_t first, end;
	uint32_t depth;
};

struct ranges {
	struct range *ranges;
	size_t count;
};

struct open { /* of one thread and source */
	uint64_t source;
	uint16_t thread;
	size_t stack[DEEPEST], depth;
};

static char *kind_of(const struct gt_trace *trace, uint32_t text)
{
	const char *name = text < trace->string_count ? trace->strings[text].text : NULL;
	char *kind = gt_xstrdup(name ? name : "");
	size_t length = 0;

	for (const char *at = kind; *at; at++)
		if (isalpha((unsigned char)*at))
			kind[length++] = (char)tolower((unsigned char)*at);
	kind[length] = '\0';
	return kind;
}

static bool says_step(const char *kind)
{
	return strstr(kind, "step") || strstr(kind, "iter") || strstr(kind, "batch");
}

static struct open *open_of(struct open **all, size_t *count, const struct gt_tick *tick)
{
	struct open *open;

	for (size_t i = 0; i < *count; i++)
		if ((*all)[i].source == tick->source && (*all)[i].thread == tick->thread)
			return &(*all)[i];
	open = GT_PUSH(*all, *count);
	*open = (struct open){.source = tick->source, .thread = tick->thread};
	return open;
}

static struct ranges find_ranges(const struct gt_story *story)
{
	struct ranges ret = {0};
	struct open *all = NULL;
	size_t count = 0;

	for (size_t i = 0; i < story->tick_count; i++) {
		const struct gt_tick *tick = &story->ticks[i];
		struct open *open;

		if (tick->op != GT_OP_PUSH && tick->op != GT_OP_POP)
			continue;
		open = open_of(&all, &count, tick);
		if (tick->op == GT_OP_POP) {
			if (open->depth && open->depth-- <= DEEPEST)
				ret.ranges[open->stack[open->depth]].end = tick->position + 1;
			continue;
		}
		if (open->depth < DEEPEST) {
			open->stack[open->depth] = ret.count;
			*GT_PUSH(ret.ranges, ret.count) = (struct range){
				.kind = kind_of(story->trace, tick->text),
				.first = tick->position + 1,
				.end = GT_NEVER,
				.depth = (uint32_t)open->depth,
			};
		}
		open->depth++;
	}
	free(all);
	return ret;
}

struct kind { /* ranges whose names are alike */
	const char *name;
	size_t times, passes;
	uint32_t depth;
};

static size_t passes_in(const struct range *range, const struct gt_passes *passes)
{
	size_t first = gt_pass_after(passes, range->first ? range->first - 1 : 0), count = 0;

	while (first + count < passes->count && passes->passes[first + count].last < range->end)
		count++;
	return count;
}

static struct kind sum_up(const struct ranges *ranges, const char *name,
			  const struct gt_passes *passes)
{
	struct kind kind = {.name = name, .depth = UINT32_MAX};

	for (size_t i = 0; i < ranges->count; i++) {
		const struct range *range = &ranges->ranges[i];

		if (strcmp(range->kind, name) != 0)
			continue;
		kind.times++;
		kind.passes += passes_in(range, passes);
		kind.depth = range->depth < kind.depth ? range->depth : kind.depth;
	}
	return kind;
}

static struct kind find_kind(const struct ranges *ranges, const struct gt_passes *passes)
{
	struct kind best = {.depth = UINT32_MAX};

	for (size_t i = 0; i < ranges->count; i++) {
		const char *name = ranges->ranges[i].kind;
		struct kind kind;

		if (!says_step(name) || (best.name && strcmp(name, best.name) == 0))
			continue;
		kind = sum_up(ranges, name, passes);
		if (kind.times >= LEAST_RANGES && kind.depth < best.depth &&
		    2 * kind.passes >= passes->count)
			best = kind;
	}
	return best;
}

void gt_nvtx_steps(const struct gt_story *story, const struct gt_passes *passes,
		   struct gt_boundaries *ret)
{
	struct ranges ranges = find_ranges(story);
	struct kind kind = find_kind(&ranges, passes);

	for (size_t i = 0; kind.name && i < ranges.count; i++)
		if (strcmp(ranges.ranges[i].kind, kind.name) == 0 &&
		    (!ret->count || ranges.ranges[i].first > ret->starts[ret->count - 1]))
			*GT_PUSH(ret->starts, ret->count) = ranges.ranges[i].first;
	if (ret->count)
		ret->source = GT_STEPS_NVTX;
	for (size_t i = 0; i < ranges.count; i++)
		free(ranges.ranges[i].kind);
	free(ranges.ranges);
}
