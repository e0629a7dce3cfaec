/* SPDX-License-Identifier: MIT */
/* See swallow.h. Touches every table through every index in it, as consumers do. */
#include <stdio.h>
#include <string.h>
#include "swallow.h"

/* Sums what it sees, so that no read is optimised away, and touches every table by index. */
static uint64_t touch_event(const struct gt_trace *t, const struct gt_trace_lane *l,
			    const struct gt_event *e)
{
	return l->sites[e->site].live + l->site_defs[e->free_site].native +
	       t->threads[e->thread].tid + t->threads[e->birth_thread].tid +
	       t->streams[e->stream].handle + e->addr;
}

static uint64_t touch_tables(const struct gt_trace *t)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < t->string_count; i++)
		sum += strlen(t->strings[i].text) + t->strings[i].length;
	for (size_t i = 0; i < t->node_count; i++)
		sum += t->nodes[t->nodes[i].parent].pc + t->modules[t->nodes[i].module].start;
	for (size_t i = 0; i < t->pynode_count; i++)
		sum += t->pynodes[t->pynodes[i].parent].code +
		       t->strings[t->pycodes[t->pynodes[i].code].qualname].length;
	for (size_t i = 0; i < t->report_count; i++)
		sum += t->reports[i].holder[0].site + t->reports[i].holders;
	for (size_t i = 0; i < t->context_count; i++)
		sum += t->nodes[t->contexts[i].native].pc;
	return sum;
}

static uint64_t touch_lane(const struct gt_trace *t, const struct gt_trace_lane *l)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < l->block_count; i++)
		sum += l->sites[l->blocks[i].site].live + t->threads[l->blocks[i].thread].tid +
		       t->streams[l->blocks[i].stream].handle;
	for (size_t i = 0; i < l->site_count; i++)
		sum += gt_site_at_peak(l, i, GT_TOTAL_IN_USE) +
		       t->nodes[l->site_defs[i].native].pc +
		       t->pynodes[l->site_defs[i].python].code;
	return sum;
}

static uint64_t walk(const struct gt_trace *t, size_t lane, bool forward, struct gt_error *err)
{
	const struct gt_trace_lane *l = &t->lanes[lane];
	struct gt_cursor *cursor = gt_cursor_new(t, lane);
	const struct gt_event *e;
	uint64_t sum = 0, count = 0;

	while ((e = forward ? gt_cursor_next(cursor, err) : gt_cursor_prev(cursor, err))) {
		sum += touch_event(t, l, e);
		count++;
	}
	if (!err->status && count != l->seq + 1 - l->history_first) {
		err->status = -1;
		snprintf(err->text, sizeof(err->text), "%s: walk ended early", t->path);
	}
	gt_cursor_free(cursor);
	return sum;
}

static volatile uint64_t sink;

static void ignore(void *ctx, const char *line)
{
	sink += strlen(line);
}

static enum swallowed judge(const char *path, const struct gt_error *err)
{
	if (!err->status)
		return SWALLOWED_WHOLE;
	if (err->status != 3 || strncmp(err->text, path, strlen(path)) || strchr(err->text, '\n'))
		return SWALLOWED_BAD;
	return SWALLOWED_REFUSED;
}

enum swallowed swallow(const char *path, unsigned int flags, struct gt_error *ret)
{
	struct gt_trace *trace;

	*ret = (struct gt_error){0};
	if (gt_trace_open(path, flags, &trace, ret))
		return ret->status ? judge(path, ret) : SWALLOWED_BAD;
	sink = touch_tables(trace);
	for (size_t i = 0; i < trace->lane_count; i++)
		sink += touch_lane(trace, &trace->lanes[i]);
	for (size_t i = 0; !ret->status && i < trace->lane_count; i++)
		sink += walk(trace, i, true, ret);
	for (size_t i = 0; !ret->status && i < trace->lane_count; i++)
		sink += walk(trace, i, false, ret);
	gt_trace_check(trace, false, ignore, NULL);
	gt_trace_close(trace);
	return judge(path, ret);
}
