/* SPDX-License-Identifier: MIT */
/*
 * See callers.h. The thread that calls backward() allocates the gradient of the loss first, with
 * its own Python stack. If the whole trace has one such place, everything is tied to it; else the
 * history is walked: what autograd's threads allocate up to the next such call is for this one. A
 * stack that served several places is tied to none of them.
 */
#include "model/callers.h"

#include <stdlib.h>
#include "model/xalloc.h"
#include "symbols/features.h"

#define SEVERAL UINT32_MAX

struct linking {
	const struct gt_trace *trace;
	struct gt_feature_table *features;
	uint32_t *links; /* of each stack, by gt_symbols_place; SEVERAL */
	uint32_t current;
};

static void meet(uint32_t *link, uint32_t call)
{
	if (!*link || *link == call)
		*link = call;
	else
		*link = SEVERAL;
}

static const struct gt_site_def *site_of(const struct gt_trace *trace, const struct gt_event *event)
{
	for (size_t i = 0; i < trace->lane_count; i++)
		if (trace->lanes[i].lane == event->lane)
			return event->site < trace->lanes[i].site_count
				       ? &trace->lanes[i].site_defs[event->site]
				       : NULL;
	return NULL;
}

static uint32_t *link_of(const struct linking *linking, const struct gt_site_def *site)
{
	return &linking->links[gt_symbols_place(linking->trace, site->native, site->python)];
}

/* Is the site's thread one of autograd's? */
static bool is_worker(const struct linking *linking, const struct gt_site_def *site)
{
	return gt_features_of(linking->features, site->native, site->python)->bits & GT_HAS_MAIN;
}

static uint32_t parent_of(const struct gt_trace *trace, uint32_t python)
{
	return trace->pynodes[python].parent;
}

/* The Python node with that many frames outside it. */
static uint32_t node_inside(const struct gt_trace *trace, uint32_t python, uint32_t outside)
{
	uint32_t depth = 0;

	for (uint32_t id = python; id; id = parent_of(trace, id))
		depth += trace->pynodes[id].code != 0;
	for (; python && depth > outside + 1; python = parent_of(trace, python))
		depth -= trace->pynodes[python].code != 0;
	return python;
}

/* The frame of PyTorch's backward() that a line called; 0 = it called none, or on a worker. */
static uint32_t call_of(const struct linking *linking, const struct gt_site_def *site)
{
	const struct gt_features *features =
		gt_features_of(linking->features, site->native, site->python);

	if (features->bits & GT_HAS_MAIN || !(features->bits & (GT_IN_BACKWARD | GT_IN_ROOT)))
		return 0;
	return node_inside(linking->trace, site->python, features->to_backward);
}

static void take_event(struct linking *linking, const struct gt_event *event)
{
	const struct gt_site_def *site = site_of(linking->trace, event);
	uint32_t call;

	if (event->op != GT_OP_ALLOC || !site || site->space != GT_SPACE_TORCH)
		return;
	if (is_worker(linking, site)) {
		if (linking->current)
			meet(link_of(linking, site), linking->current);
		return;
	}
	call = call_of(linking, site);
	if (call)
		linking->current = call;
}

static void walk_history(struct linking *linking)
{
	struct gt_merge *merge = gt_merge_new(linking->trace);
	const struct gt_event *event;

	linking->current = 0;
	while (merge && (event = gt_merge_next(merge, NULL)))
		take_event(linking, event);
	gt_merge_free(merge);
}

/* Calls for each site, worker or not: fn's business. */
static void each_site(struct linking *linking,
		      void (*fn)(struct linking *linking, const struct gt_site_def *site))
{
	for (size_t l = 0; l < linking->trace->lane_count; l++)
		for (size_t s = 1; s < linking->trace->lanes[l].site_count; s++)
			fn(linking, &linking->trace->lanes[l].site_defs[s]);
}

/* The only line of the trace that calls backward(), or SEVERAL, in current. */
static void meet_site(struct linking *linking, const struct gt_site_def *site)
{
	uint32_t call = call_of(linking, site);

	if (call)
		meet(&linking->current, call);
}

static void fill_site(struct linking *linking, const struct gt_site_def *site)
{
	uint32_t *link = link_of(linking, site);

	if (!*link && is_worker(linking, site))
		*link = linking->current;
}

static void tell(struct gt_symbols *symbols, const struct linking *linking)
{
	const struct gt_trace *trace = linking->trace;

	for (size_t l = 0; l < trace->lane_count; l++)
		for (size_t s = 1; s < trace->lanes[l].site_count; s++) {
			const struct gt_site_def *site = &trace->lanes[l].site_defs[s];
			const uint32_t link = *link_of(linking, site);

			if (link && link != SEVERAL)
				gt_symbols_link(symbols, site, link);
		}
}

void gt_callers_link(struct gt_symbols *symbols, const struct gt_trace *trace)
{
	struct linking linking = {.trace = trace};

	if (trace->pynode_count <= 1)
		return;
	linking.features = gt_feature_table_new(symbols);
	linking.links = gt_xcalloc(gt_symbols_places(trace), sizeof(*linking.links));
	if (linking.features) {
		each_site(&linking, meet_site);
		if (linking.current == SEVERAL)
			walk_history(&linking);
		else if (linking.current)
			each_site(&linking, fill_site);
		tell(symbols, &linking);
	}
	free(linking.links);
	gt_feature_table_free(linking.features);
}
