/* SPDX-License-Identifier: MIT */
/*
 * gputrace merge: a copy of a trace with what a torch snapshot of the same run knows beside it. The
 * trace stays what it was, byte for byte; the snapshot fills the fields that no hook can see: what
 * was asked of torch before it rounded up, and whose pool a segment is of.
 */
#include <stdlib.h>
#include <string.h>

#include "cmd/session.h"
#include "model/join.h"
#include "model/xalloc.h"
#include "read/torch.h"
#include "symbols/library.h"

struct sums {
	uint64_t matched, trace, snapshot, older, held, earlier, all_earlier;
};

static bool in_pairs(const struct gt_trace *snapshot, size_t l, int device)
{
	return snapshot->lanes[l].device == device && snapshot->lanes[l].seq;
}

static int by_which(const void *a, const void *b)
{
	const struct gt_added *x = a, *y = b;

	return x->which < y->which ? -1 : x->which > y->which;
}

static void add(struct gt_added **list, size_t *count, uint64_t which, const struct gt_joined *life)
{
	*GT_PUSH(*list, *count) = (struct gt_added){
		.which = which,
		.requested_pool = life->requested | (uint64_t)life->pool << 48,
	};
}

static void append(struct gt_append *to, uint32_t lane, bool alive, struct gt_added *list,
		   size_t count)
{
	if (count)
		qsort(list, count, sizeof(*list), by_which);
	gt_torch_append(to, lane, alive, list, count);
	free(list);
}

/* The events that begin and end a life repeat the same, as they do everything else of a block. */
static void append_lane(struct gt_append *to, uint32_t lane, const struct gt_join *join)
{
	struct gt_added *events = NULL, *blocks = NULL;
	size_t event_count = 0, block_count = 0;

	for (size_t i = 0; i < join->count; i++) {
		const struct gt_joined *life = &join->lives[i];

		if (!life->matched || (!life->requested && !life->pool))
			continue;
		if (life->born)
			add(&events, &event_count, life->born, life);
		if (life->died)
			add(&events, &event_count, life->died, life);
		else
			add(&blocks, &block_count, life->key, life);
	}
	append(to, lane, false, events, event_count);
	append(to, lane, true, blocks, block_count);
}

/* Every device that both have. What one has alone counts as its alone. */
static int join_all(const struct gt_trace *trace, const struct gt_trace *snapshot,
		    struct gt_append *to, struct sums *sums)
{
	for (size_t i = 0; i < trace->lane_count; i++) {
		const struct gt_trace_lane *lane = &trace->lanes[i];
		struct gt_error err = {0};
		struct gt_join join;
		size_t l = 0;

		while (l < snapshot->lane_count && !in_pairs(snapshot, l, lane->device))
			l++;
		if (l == snapshot->lane_count || lane->device < 0)
			continue;
		if (gt_join_lanes(trace, i, snapshot, l, &join, &err))
			return gt_message_error(&err);
		sums->matched += join.matched;
		sums->trace += join.trace;
		sums->snapshot += join.snapshot;
		sums->older += join.older;
		sums->held += join.held;
		sums->earlier += join.earlier;
		sums->all_earlier += join.all_earlier;
		append_lane(to, lane->lane, &join);
		gt_join_clear(&join);
	}
	return 0;
}

/* Of the shorter side, for each may have a part of the run; without a history the blocks have to do. */
static bool is_one_run(const struct sums *sums)
{
	const uint64_t most = sums->trace < sums->snapshot ? sums->trace : sums->snapshot;

	if (!sums->snapshot)
		return sums->older && 2 * sums->older >= sums->held;
	return sums->matched && 2 * sums->matched >= most;
}

static int refuse(const struct gt_session *session, const struct sums *sums)
{
	if (!sums->snapshot)
		return gt_message(GT_EXIT_USAGE,
				  "merge: %s is not of the run of %s: only %llu of its %llu blocks "
				  "and segments are where that had any",
				  session->paths[1], session->paths[0],
				  (unsigned long long)sums->older, (unsigned long long)sums->held);
	return gt_message(GT_EXIT_USAGE,
			  "merge: %s is not of the run of %s: only %llu of its %llu events are "
			  "among the %llu of the trace, by address, size, order and time",
			  session->paths[1], session->paths[0], (unsigned long long)sums->matched,
			  (unsigned long long)sums->snapshot, (unsigned long long)sums->trace);
}

static void report(const char *path, const struct sums *sums)
{
	printf("%s: %llu of the snapshot's %llu events matched, and %llu of %llu blocks "
	       "and segments older than them\n",
	       path, (unsigned long long)sums->matched, (unsigned long long)sums->snapshot,
	       (unsigned long long)sums->older, (unsigned long long)sums->held);
	printf("alone: %llu events of the snapshot, %llu of the trace's %llu\n",
	       (unsigned long long)(sums->snapshot - sums->matched),
	       (unsigned long long)(sums->trace - sums->matched), (unsigned long long)sums->trace);
	if (sums->all_earlier)
		printf("older than the trace's history: %llu of its %llu blocks and segments "
		       "matched\n",
		       (unsigned long long)sums->earlier, (unsigned long long)sums->all_earlier);
}

static int merge(const struct gt_session *session, const char *path)
{
	const struct gt_trace *trace = session->inputs[0].trace;
	const struct gt_trace *snapshot = session->inputs[1].trace;
	struct gt_append *to = gt_xchecked(gt_append_new(trace));
	struct gt_error err = {0};
	struct sums sums = {0};
	int status;

	gt_torch_append_name(to, gt_base_name(session->paths[1]));
	gt_torch_append_pools(to, snapshot->pools, snapshot->pool_count);
	status = join_all(trace, snapshot, to, &sums);
	if (!status && !is_one_run(&sums))
		status = refuse(session, &sums);
	if (!status && gt_append_write(to, path, &err))
		status = gt_message_error(&err);
	if (!status)
		report(path, &sums);
	gt_append_free(to);
	return status;
}

static int check(const struct gt_session *session)
{
	const struct gt_trace *trace = session->inputs[0].trace;

	if (session->count != 2 || trace->snapshot || trace->database ||
	    !session->inputs[1].trace->snapshot)
		return gt_message(
			GT_EXIT_USAGE,
			"merge: needs a trace and a torch snapshot of the same run, in this "
			"order");
	if (trace->running)
		return gt_message(GT_EXIT_UNREADABLE,
				  "%s: its process is running: merge it when that has ended",
				  trace->path);
	if (trace->merged)
		return gt_message(
			GT_EXIT_USAGE,
			"merge: %s: has a snapshot merged into it already: merge into the "
			"trace itself",
			trace->path);
	if (session->inputs[1].trace->pool_count > UINT16_MAX)
		return gt_message(GT_EXIT_USAGE, "merge: %s: too many pools", session->paths[1]);
	return 0;
}

int gt_cmd_merge(struct gt_args *args)
{
	struct gt_session session;
	int status;

	if (!args->output)
		return gt_message(GT_EXIT_USAGE, "merge: -o OUT is needed: where to write");
	status = gt_session_open(args, &session);
	if (status)
		return status;
	status = check(&session);
	if (!status)
		status = merge(&session, args->output);
	gt_session_close(&session);
	return status;
}
