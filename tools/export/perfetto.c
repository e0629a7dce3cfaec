/* SPDX-License-Identifier: MIT */
/*
 * Perfetto's own format, a stream of protobuf packets: what Chrome's says, with counters that know they
 * are bytes, a track for each window and step, and flows, the arrows from where memory was taken to where it
 * was given back. Arrows of all blocks would be a black page and a file of gigabytes, so only the
 * largest have one, and the trace says of how many. Packets are not in the order of time, which no reader
 * asks for. The numbers of the fields are those of perfetto_trace.proto. Called from the table.
 */
#include <stdlib.h>
#include <string.h>
#include "export/lives.h"
#include "export/moments.h"
#include "export/wire.h"
#include "model/xalloc.h"

#define FLOWS	 1000 /* of a device */
#define SEQUENCE 1    /* everything is of one writer */
#define CLEARED	 1    /* flag of its first packet: nothing before is referred to */

enum field { /* Numbers of fields. */
	     TRACE_PACKET = 1,
	     PACKET_TIMESTAMP = 8,
	     PACKET_SEQUENCE = 10,
	     PACKET_EVENT = 11,
	     PACKET_FLAGS = 13,
	     PACKET_TRACK = 60,
	     EVENT_ANNOTATION = 4,
	     EVENT_TYPE = 9,
	     EVENT_TRACK = 11,
	     EVENT_CATEGORY = 22,
	     EVENT_NAME = 23,
	     EVENT_COUNTER = 30,
	     EVENT_FLOW = 47,
	     EVENT_FLOW_END = 48,
	     ANNOTATION_UINT = 3,
	     ANNOTATION_TEXT = 6,
	     ANNOTATION_NAME = 10,
	     TRACK_UUID = 1,
	     TRACK_NAME = 2,
	     TRACK_PROCESS = 3,
	     TRACK_THREAD = 4,
	     TRACK_PARENT = 5,
	     TRACK_COUNTER = 8,
	     PROCESS_PID = 1,
	     PROCESS_NAME = 6,
	     THREAD_PID = 1,
	     THREAD_TID = 2,
	     THREAD_NAME = 5,
	     COUNTER_UNIT = 3,
};

enum {
	UNIT_BYTES = 3,
	TYPE_BEGIN = 1,
	TYPE_END = 2,
	TYPE_INSTANT = 3,
	TYPE_COUNTER = 4,
};

/* What a track is of; with a number and its process it is the track's own. */
enum track {
	OF_PROCESS,
	OF_THREAD,
	OF_IN_USE,
	OF_CACHED,
	OF_STRETCH,
};

struct flow {
	struct gt_lived lived;
	uint16_t to_thread;
};

struct perfetto {
	FILE *file;
	bool begun;
	uint64_t process; /* number of the one being written: pids may recur on other hosts */
	uint64_t next_flow;
	struct flow *flows; /* of a device: a heap, the smallest first */
	size_t flow_count, block_count;
	struct gt_lines lines;
	int rc;
	struct gt_error *err;
};

/* Never 0, which is the track of nothing: processes count from 1. */
static uint64_t uuid_of(const struct perfetto *to, enum track track, uint64_t number)
{
	return to->process << 40 | (uint64_t)track << 36 | (number & 0xfffffffffull);
}

/* ---- packets --------------------------------------------------------------------------------- */

/* Takes the message. */
static void put_packet(struct perfetto *to, enum field field, struct gt_wire *message, uint64_t us)
{
	struct gt_wire packet = {0}, outer = {0};

	if (field == PACKET_EVENT)
		gt_wire_number(&packet, PACKET_TIMESTAMP, us * 1000);
	gt_wire_number(&packet, PACKET_SEQUENCE, SEQUENCE);
	if (!to->begun)
		gt_wire_number(&packet, PACKET_FLAGS, CLEARED);
	to->begun = true;
	gt_wire_message(&packet, field, message);
	gt_wire_message(&outer, TRACE_PACKET, &packet);
	fwrite(outer.data, 1, outer.length, to->file);
	gt_wire_clear(&outer);
}

/* The track of a process is the parent of all others. Takes the part, which says what it is; NULL = none. */
static void put_track(struct perfetto *to, enum track track, uint64_t number, const char *name,
		      enum field field, struct gt_wire *part)
{
	struct gt_wire message = {0};

	gt_wire_number(&message, TRACK_UUID, uuid_of(to, track, number));
	if (name)
		gt_wire_text(&message, TRACK_NAME, name);
	if (track != OF_PROCESS)
		gt_wire_number(&message, TRACK_PARENT, uuid_of(to, OF_PROCESS, 0));
	if (part)
		gt_wire_message(&message, field, part);
	put_packet(to, PACKET_TRACK, &message, 0);
}

static struct gt_wire event_of(const struct perfetto *to, unsigned int type, enum track track,
			       uint64_t number)
{
	struct gt_wire event = {0};

	gt_wire_number(&event, EVENT_TYPE, type);
	gt_wire_number(&event, EVENT_TRACK, uuid_of(to, track, number));
	return event;
}

static void annotate(struct gt_wire *event, const char *name, uint64_t number, const char *text)
{
	struct gt_wire annotation = {0};

	gt_wire_text(&annotation, ANNOTATION_NAME, name);
	if (text)
		gt_wire_text(&annotation, ANNOTATION_TEXT, text);
	else
		gt_wire_number(&annotation, ANNOTATION_UINT, number);
	gt_wire_message(event, EVENT_ANNOTATION, &annotation);
}

/* ---- processes and what happens in them ------------------------------------------------------ */

/* Ids of threads recur in other processes, and viewers merge what has the same: a number of our own, the
 * real one is in the name. */
static void put_thread(struct perfetto *to, const struct gt_trace *trace, uint16_t thread)
{
	char *name = gt_export_thread(trace, thread);
	struct gt_wire part = {0};

	gt_wire_number(&part, THREAD_PID, to->process);
	gt_wire_number(&part, THREAD_TID, to->process << 16 | thread);
	gt_wire_text(&part, THREAD_NAME, name);
	put_track(to, OF_THREAD, thread, NULL, TRACK_THREAD, &part);
	free(name);
}

static void put_process(void *ctx, const struct gt_trace *trace)
{
	struct perfetto *to = ctx;
	char *name = gt_xasprintf("%s (pid %u)", trace->header.comm, trace->header.pid);
	struct gt_wire part = {0};

	to->process++;
	gt_wire_number(&part, PROCESS_PID, to->process);
	gt_wire_text(&part, PROCESS_NAME, name);
	put_track(to, OF_PROCESS, 0, NULL, TRACK_PROCESS, &part);
	free(name);
	for (size_t i = 1; i < trace->thread_count; i++)
		put_thread(to, trace, (uint16_t)i);
}

static void put_counter_track(struct perfetto *to, enum track track, int device, const char *what)
{
	char *name = gt_xasprintf("GPU %d %s", device, what);
	struct gt_wire part = {0};

	gt_wire_number(&part, COUNTER_UNIT, UNIT_BYTES);
	put_track(to, track, (uint64_t)device, name, TRACK_COUNTER, &part);
	free(name);
}

static void put_counter(struct perfetto *to, enum track track, int device, uint64_t us,
			uint64_t value)
{
	struct gt_wire event = event_of(to, TYPE_COUNTER, track, (uint64_t)device);

	gt_wire_number(&event, EVENT_COUNTER, value);
	put_packet(to, PACKET_EVENT, &event, us);
}

static void put_point(void *ctx, const struct gt_export_place *place, const struct gt_point *point)
{
	uint64_t used = point->max[GT_TOTAL_IN_USE], held = point->max[GT_TOTAL_RESERVED];
	int device = place->lane->device;

	put_counter(ctx, OF_IN_USE, device, point->us, used);
	/* Both are the highest of their slice, so held may be the smaller. */
	put_counter(ctx, OF_CACHED, device, point->us, held > used ? held - used : 0);
}

/* The track of a thread, or of the process where it is no thread's. */
static struct gt_wire thread_event(const struct perfetto *to, unsigned int type, uint16_t thread)
{
	return event_of(to, type, thread == GT_NO_THREAD ? OF_PROCESS : OF_THREAD, thread);
}

static void put_instant(void *ctx, const struct gt_instant *instant)
{
	struct perfetto *to = ctx;
	struct gt_wire event = thread_event(to, TYPE_INSTANT, instant->thread);

	gt_wire_text(&event, EVENT_NAME, instant->name);
	if (instant->key)
		annotate(&event, instant->key, instant->bytes, NULL);
	if (instant->ended)
		annotate(&event, "ended", 0, instant->ended);
	put_packet(to, PACKET_EVENT, &event, instant->us);
}

static void put_slice(void *ctx, const struct gt_slice *slice)
{
	struct perfetto *to = ctx;
	bool own = slice->thread == GT_NO_THREAD; /* it overlaps with others: a track of its own */
	enum track track = own ? OF_STRETCH : OF_THREAD;
	uint64_t number = own ? slice->id : slice->thread;
	struct gt_wire event;

	if (own)
		put_track(to, track, number, slice->kind, 0, NULL);
	event = event_of(to, TYPE_BEGIN, track, number);
	gt_wire_text(&event, EVENT_CATEGORY, slice->kind);
	gt_wire_text(&event, EVENT_NAME, slice->name);
	put_packet(to, PACKET_EVENT, &event, slice->from_us);
	event = event_of(to, TYPE_END, track, number);
	put_packet(to, PACKET_EVENT, &event, slice->to_us);
}

/* ---- flows ----------------------------------------------------------------------------------- */

/* The smallest on top, since it is what a larger block replaces: a block costs one compare as a rule. */
static bool is_smaller(const struct perfetto *to, size_t a, size_t b)
{
	return to->flows[a].lived.block.size < to->flows[b].lived.block.size;
}

static void swap(struct perfetto *to, size_t a, size_t b)
{
	struct flow kept = to->flows[a];

	to->flows[a] = to->flows[b];
	to->flows[b] = kept;
}

static void sink(struct perfetto *to)
{
	for (size_t at = 0, least;; at = least) {
		least = at;
		for (size_t child = 2 * at + 1; child <= 2 * at + 2; child++)
			if (child < to->flow_count && is_smaller(to, child, least))
				least = child;
		if (least == at)
			return;
		swap(to, at, least);
	}
}

static void rise(struct perfetto *to)
{
	for (size_t at = to->flow_count - 1; at && is_smaller(to, at, (at - 1) / 2);
	     at = (at - 1) / 2)
		swap(to, at, (at - 1) / 2);
}

/* Blocks that have both ends in the history. */
static void take_life(void *ctx, const struct gt_export_place *place, const struct gt_lived *lived)
{
	struct perfetto *to = ctx;
	struct flow flow = {*lived, lived->end ? lived->end->thread : 0};

	if (!lived->from || !lived->end ||
	    !(gt_site_mask(place->lane, lived->block.site) & GT_MASK_IN_USE))
		return;
	to->block_count++;
	if (to->flow_count < FLOWS) {
		to->flows[to->flow_count++] = flow;
		rise(to);
	} else if (lived->block.size > to->flows[0].lived.block.size) {
		to->flows[0] = flow;
		sink(to);
	}
}

static void put_end(struct perfetto *to, const struct gt_export_place *place,
		    const struct flow *flow, bool begins)
{
	const struct gt_lived *lived = &flow->lived;
	struct gt_wire event =
		thread_event(to, TYPE_INSTANT, begins ? lived->block.thread : flow->to_thread);
	char *name = gt_xasprintf("%s %s", begins ? "allocated" : "freed",
				  gt_line_of(&to->lines, place, lived->named));

	gt_wire_text(&event, EVENT_NAME, name);
	annotate(&event, "bytes", lived->block.size, NULL);
	annotate(&event, "device", (uint64_t)place->lane->device, NULL);
	if (lived->life && lived->life->category)
		annotate(&event, "category", 0, gt_category_name(lived->life->category));
	gt_wire_fixed(&event, begins ? EVENT_FLOW : EVENT_FLOW_END, to->next_flow);
	put_packet(to, PACKET_EVENT, &event, begins ? lived->from_us : lived->to_us);
	free(name);
}

static void put_flows(struct perfetto *to, const struct gt_export_place *place)
{
	char *said;

	to->flow_count = to->block_count = 0;
	to->rc |= gt_lives(place, take_life, to, to->err);
	for (size_t i = 0; i < to->flow_count; i++) {
		to->next_flow++;
		put_end(to, place, &to->flows[i], true);
		put_end(to, place, &to->flows[i], false);
	}
	said = gt_xasprintf("GPU %d: flows of the %zu largest of %zu blocks that were freed",
			    place->lane->device, to->flow_count, to->block_count);
	put_instant(to, &(struct gt_instant){.us = place->lane->history_us, .name = said});
	free(said);
}

static void put_device(void *ctx, const struct gt_export_place *place)
{
	put_counter_track(ctx, OF_IN_USE, place->lane->device, "in use");
	put_counter_track(ctx, OF_CACHED, place->lane->device, "cached");
	put_flows(ctx, place);
}

int gt_export_perfetto(const struct gt_export *export, struct gt_error *err)
{
	struct perfetto to = {
		.file = export->file,
		.flows = gt_xcalloc(FLOWS, sizeof(*to.flows)),
		.err = err,
	};
	struct gt_moments how = {put_process, put_device, put_point, put_instant, put_slice, &to};
	int rc = gt_moments_tell(export, &how, err);

	gt_lines_clear(&to.lines);
	free(to.flows);
	return rc | to.rc ? -1 : 0;
}
