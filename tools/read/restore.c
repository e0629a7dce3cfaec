/* SPDX-License-Identifier: MIT */
/*
 * See restore.h. The tables go where the reader of trace files puts them, the events into the tail of
 * their lane's history. Everything that refers is checked here, once, by a table of what refers to
 * what: behind gt_open nobody looks again. Called by tools/sqlite, and the first part by tools/export.
 */
#include <stdlib.h>
#include <string.h>
#include "read/reader.h"
#include "read/restore.h"

struct gt_restore {
	struct gt_trace *trace;
	size_t capacity[GT_TRACE_PARTS], lane_capacity, history_capacity;
	const char *bad; /* the first thing that was wrong; NULL = nothing */
};

/* ---- parts ----------------------------------------------------------------------------------- */

#define PART(which, member, first)                                      \
	[GT_PART_##which] = {offsetof(struct gt_trace, member##s),      \
			     offsetof(struct gt_trace, member##_count), \
			     sizeof(*((struct gt_trace *)0)->member##s), first}

static const struct {
	size_t array, count, size, first;
} parts[GT_TRACE_PARTS] = {
	PART(INFO, info, 0),	   PART(STRING, string, 1), PART(MODULE, module, 1),
	PART(NODE, node, 1),	   PART(PYCODE, pycode, 1), PART(PYNODE, pynode, 1),
	PART(THREAD, thread, 1),   PART(STREAM, stream, 1), PART(DEVICE, device, 0),
	PART(CONTEXT, context, 0), PART(NAME, name, 0),	    PART(SOURCE, source, 0),
	PART(POOL, pool, 1),	   PART(REPORT, report, 0),
};

static size_t *count_of(struct gt_trace *trace, enum gt_trace_part part)
{
	return (size_t *)(void *)((char *)trace + parts[part].count);
}

static char **array_of(struct gt_trace *trace, enum gt_trace_part part)
{
	return (char **)(void *)((char *)trace + parts[part].array);
}

size_t gt_part_first(enum gt_trace_part part)
{
	return parts[part].first;
}

size_t gt_part_count(const struct gt_trace *trace, enum gt_trace_part part)
{
	return *(const size_t *)(const void *)((const char *)trace + parts[part].count);
}

const void *gt_part_at(const struct gt_trace *trace, enum gt_trace_part part, size_t index)
{
	const char *const *array =
		(const char *const *)(const void *)((const char *)trace + parts[part].array);

	return *array + index * parts[part].size;
}

/* ---- making ---------------------------------------------------------------------------------- */

struct gt_restore *gt_restore_new(const char *path)
{
	struct gt_restore *restore = calloc(1, sizeof(*restore));

	if (!restore)
		return NULL;
	restore->trace = gt_trace_blank(path);
	if (!restore->trace || gt_defs_begin(restore->trace))
		return gt_restore_free(restore);
	restore->trace->database = true;
	return restore;
}

struct gt_restore *gt_restore_free(struct gt_restore *restore)
{
	if (restore)
		gt_trace_close(restore->trace);
	free(restore);
	return NULL;
}

struct gt_trace *gt_restore_trace(struct gt_restore *restore)
{
	return restore->trace;
}

void *gt_restore_add(struct gt_restore *restore, enum gt_trace_part part)
{
	char **array = array_of(restore->trace, part);
	size_t *count = count_of(restore->trace, part);

	/* What is there already has its capacity in the reader's own table; this one starts behind it. */
	if (!restore->capacity[part])
		restore->capacity[part] = *count;
	if (gt_grow(array, &restore->capacity[part], *count, parts[part].size))
		return NULL;
	return memset(*array + (*count)++ * parts[part].size, 0, parts[part].size);
}

int gt_restore_text(struct gt_restore *restore, const void *text, size_t length,
		    struct gt_bytes *ret)
{
	if (length >= UINT32_MAX)
		return -1;
	return gt_text_keep(restore->trace->reader, length ? text : "", (uint32_t)length, ret);
}

static void fail(struct gt_restore *restore, const char *bad)
{
	if (!restore->bad)
		restore->bad = bad;
}

/* ---- lanes ----------------------------------------------------------------------------------- */

static const char *lane_bad(const struct gt_trace *trace, const struct gt_trace_lane *lane)
{
	if (lane->lane >= GT_MAX_LANES || lane->device < GT_DEVICE_UNKNOWN || lane->device >= 64)
		return "a lane of a number that there is not";
	for (size_t i = 0; i < trace->lane_count; i++)
		if (trace->lanes[i].lane >= lane->lane)
			return "lanes that are not in order";
	if (!lane->site_count || lane->history_first > lane->seq + 1 || !lane->history_first)
		return "a lane without a beginning";
	return NULL;
}

static void set_history(struct gt_trace *trace, struct gt_trace_lane *lane, struct gt_event *events,
			struct gt_history *history)
{
	size_t count = (size_t)(lane->seq + 1 - lane->history_first);

	*history = (struct gt_history){
		.lane = lane->lane,
		.first_seq = lane->history_first,
		.last_seq = lane->seq,
		.tail = events,
		.tail_first = lane->history_first,
		.tail_count = count,
	};
	if (!count)
		return;
	history->first_us = events[0].us;
	history->last_us = events[count - 1].us;
	if (history->last_us > trace->last_us)
		trace->last_us = history->last_us;
}

static void drop_lane(const struct gt_trace_lane *lane, struct gt_event *events)
{
	free(lane->blocks);
	free(lane->sites);
	free(lane->site_defs);
	free(events);
}

int gt_restore_lane(struct gt_restore *restore, const struct gt_trace_lane *lane,
		    struct gt_event *events)
{
	struct gt_trace *trace = restore->trace;
	const char *bad = lane_bad(trace, lane);
	struct gt_lane_sites *sites;

	if (!bad && (gt_grow(&trace->lanes, &restore->lane_capacity, trace->lane_count,
			     sizeof(*trace->lanes)) ||
		     gt_grow(&trace->reader->histories, &restore->history_capacity,
			     trace->lane_count, sizeof(*trace->reader->histories))))
		bad = "no memory left on this machine to read the trace";
	if (bad) {
		fail(restore, bad);
		drop_lane(lane, events);
		return -1;
	}
	sites = &trace->reader->sites[lane->lane];
	free(sites->defs); /* the one that every lane begins with */
	*sites = (struct gt_lane_sites){lane->site_defs, lane->site_count, lane->site_count};
	trace->lanes[trace->lane_count] = *lane;
	set_history(trace, &trace->lanes[trace->lane_count], events,
		    &trace->reader->histories[trace->lane_count]);
	trace->lane_count++;
	return 0;
}

/* ---- what refers to what --------------------------------------------------------------------- */

#define REFERS(from, type, member, to, before)                                      \
	{                                                                           \
		GT_PART_##from, offsetof(struct type, member), GT_PART_##to, before \
	}

static const struct {
	enum gt_trace_part from;
	size_t offset; /* of an id, which has 32 bits */
	enum gt_trace_part to;
	bool before; /* only to elements before its own */
} references[] = {
	REFERS(NODE, gt_node, parent, NODE, true),
	REFERS(NODE, gt_node, module, MODULE, false),
	REFERS(PYCODE, gt_pycode, file, STRING, false),
	REFERS(PYCODE, gt_pycode, name, STRING, false),
	REFERS(PYCODE, gt_pycode, qualname, STRING, false),
	REFERS(PYNODE, gt_pynode, parent, PYNODE, true),
	REFERS(PYNODE, gt_pynode, code, PYCODE, false),
	REFERS(CONTEXT, gt_context_def, native, NODE, false),
	REFERS(CONTEXT, gt_context_def, python, PYNODE, false),
	REFERS(CONTEXT, gt_context_def, thread, THREAD, false),
	REFERS(NAME, gt_name_def, module, MODULE, false),
	REFERS(NAME, gt_name_def, function, STRING, false),
	REFERS(NAME, gt_name_def, file, STRING, false),
	REFERS(SOURCE, gt_source_def, file, STRING, false),
	REFERS(SOURCE, gt_source_def, text, STRING, false),
};

#define REFERENCES (sizeof(references) / sizeof(references[0]))

static void check_references(struct gt_restore *restore, size_t which)
{
	const struct gt_trace *trace = restore->trace;
	const enum gt_trace_part from = references[which].from;
	size_t count = gt_part_count(trace, references[which].to);

	for (size_t i = gt_part_first(from); i < gt_part_count(trace, from); i++) {
		uint32_t id;

		memcpy(&id, (const char *)gt_part_at(trace, from, i) + references[which].offset,
		       sizeof(id));
		if (id >= count || (references[which].before && id >= i))
			fail(restore, "a definition names something that is not defined");
	}
}

static void check_sites(struct gt_restore *restore, const struct gt_trace_lane *lane)
{
	const struct gt_trace *trace = restore->trace;

	for (size_t i = 0; i < lane->site_count; i++)
		if (lane->site_defs[i].native >= trace->node_count ||
		    lane->site_defs[i].python >= trace->pynode_count)
			fail(restore, "a site names a stack that is not defined");
}

static void check_blocks(struct gt_restore *restore, const struct gt_trace_lane *lane)
{
	const struct gt_trace *trace = restore->trace;

	for (size_t i = 0; i < lane->block_count; i++) {
		const struct gt_block *block = &lane->blocks[i], *before = block - 1;

		if (block->site >= lane->site_count || block->thread >= trace->thread_count ||
		    block->stream >= trace->stream_count || block->pool >= trace->pool_count)
			fail(restore, "a block names something that is not defined");
		if (i && GT_KEY(before->addr, before->space) >= GT_KEY(block->addr, block->space))
			fail(restore, "blocks that are not in order");
	}
}

/* The rest of an event is looked at when a cursor comes to it. */
static void check_events(struct gt_restore *restore, size_t index)
{
	const struct gt_history *history = &restore->trace->reader->histories[index];
	struct gt_limits limits;

	gt_limits_of(restore->trace, history->lane, &limits);
	for (size_t i = 0; i < history->tail_count; i++) {
		struct gt_event *event = &history->tail[i];

		if (!event->op)
			fail(restore, "an event of its history is missing");
		else if (event->pool >= restore->trace->pool_count ||
			 !gt_event_within(event, &limits))
			fail(restore, "an event names something that is not defined");
	}
}

static void check(struct gt_restore *restore)
{
	const struct gt_trace *trace = restore->trace;

	if (trace->thread_count > UINT16_MAX + 1u || trace->stream_count > UINT16_MAX + 1u)
		fail(restore, "more threads or streams than there can be");
	for (size_t i = 0; i < REFERENCES; i++)
		check_references(restore, i);
	for (size_t i = 0; i < trace->module_count; i++)
		if (trace->modules[i].build_id_length > sizeof(trace->modules[i].build_id))
			fail(restore, "a build-id that is longer than one can be");
	for (size_t i = 0; i < trace->lane_count; i++) {
		check_sites(restore, &trace->lanes[i]);
		check_blocks(restore, &trace->lanes[i]);
		check_events(restore, i);
	}
	for (size_t i = 0; i < trace->report_count; i++)
		if (gt_report_bad(trace, &trace->reports[i]))
			fail(restore, gt_report_bad(trace, &trace->reports[i]));
}

int gt_restore_end(struct gt_restore *restore, struct gt_trace **ret, struct gt_error *err)
{
	int rc = 0;

	if (!restore->bad)
		check(restore);
	if (restore->bad)
		rc = gt_fail(err, restore->trace->path, "damaged: %s: export it again",
			     restore->bad);
	if (!rc) {
		*ret = restore->trace;
		restore->trace = NULL;
	}
	gt_restore_free(restore);
	return rc;
}
