/* SPDX-License-Identifier: MIT */
/*
 * gputrace snapshot: a memory_viz pickle of a moment, with the history that leads to it. Blocks
 * that are older than the history held are put before it as the allocations that made them, at
 * their own times: the viewer then knows a stack for everything and never meets a free without its
 * alloc.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/part.h"
#include "model/coarse.h"
#include "model/segments.h"
#include "model/steps.h"
#include "model/xalloc.h"
#include "out/memory_viz.h"

#define OLDER	    "older than the history here: only what outlived its start is shown"
#define MAX_TRIES   8			 /* to meet a budget; then the history is left out */
#define EVENT_BYTES 200			 /* what an event takes at most, nearly always */
#define BUDGET	    (UINT64_C(50) << 20) /* the viewer is slow above some 100 MB */

struct device {				  /* of the snapshot, by ordinal */
	const struct gt_trace_lane *lane; /* NULL: not asked for, or it saw no event */
	size_t lane_index;
	uint64_t seq, us; /* the moment */
	uint64_t from;	  /* the first event asked for */
	struct gt_segment_list list;
};

struct shot {
	const struct gt_args *args;
	struct gt_input *input;
	const struct gt_trace *trace;
	const struct gt_answers *answers; /* for a step; else NULL */
	struct gt_when when;
	struct device devices[GT_MAX_LANES];
	size_t count; /* highest ordinal + 1 */
	struct gt_viz *viz;
	uint64_t segments, blocks, events;
	double share;	       /* of the history held that is told: its end */
	bool cut;	       /* some history is not told */
	bool over;	       /* larger than asked all the same */
	unsigned int level;    /* of coarse.h: of blocks that are told without a history */
	uint64_t fine, coarse; /* blocks before and after that */
};

static const char *when_name(struct gt_when when)
{
	static const char *const names[] = {[GT_WHEN_PEAK] = "peak",
					    [GT_WHEN_OOM] = "oom",
					    [GT_WHEN_END] = "end",
					    [GT_WHEN_STEP] = "step"};

	return when.kind == GT_WHEN_TIME ? "time" : names[when.kind];
}

/* ---- moments ------------------------------------------------------------------------------- */

static int peak_is_gone(const struct shot *shot, const struct gt_state *state, struct gt_error *err)
{
	err->status = GT_EXIT_USAGE;
	snprintf(err->text, sizeof(err->text),
		 "%s: the history of the peak, at %.3f s, is gone (the ring was full): "
		 "gputrace peak has its holders by line; to keep more, record with a larger "
		 "GPUTRACE_RING",
		 shot->trace->path, (double)state->us / 1e6);
	return -1;
}

/* --from and --to, on the device. 0, or the exit status after saying why. */
static int find_part(struct shot *shot, struct device *device, struct gt_when *when)
{
	const struct gt_place place = {
		.input = shot->input,
		.lane = device->lane,
		.lane_index = device->lane_index,
	};
	struct gt_span span;
	int status;

	if (!shot->args->from && !shot->args->to)
		return 0;
	status = gt_part_span(shot->args, &place, &span);
	if (status)
		return status;
	device->from = span.from + 1;
	if (shot->args->to)
		*when = (struct gt_when){.kind = GT_WHEN_EVENT, .seq = span.to};
	return 0;
}

static int find_moment(struct shot *shot, struct device *device, struct gt_when when,
		       struct gt_error *err)
{
	struct gt_state state;
	int rc = gt_steps_resolve(shot->answers, device->lane_index, &when, err);

	if (!rc)
		rc = gt_state_get(shot->trace, device->lane_index, GT_TOTAL_IN_USE, when, &state,
				  err);
	if (rc)
		return rc;
	device->seq = state.seq;
	device->us = state.us;
	if (!state.blocks_known)
		rc = peak_is_gone(shot, &state, err);
	gt_state_clear(&state);
	return rc;
}

/* 0, or the exit status after saying why. */
static int find_devices(struct shot *shot, int wanted)
{
	struct gt_error err;
	size_t i;

	for (i = 0; i < shot->trace->lane_count; i++) {
		const struct gt_trace_lane *lane = &shot->trace->lanes[i];
		struct gt_when when = shot->when;
		struct device *device;
		int status;

		if (lane->device < 0 || lane->device >= (int)GT_MAX_LANES ||
		    (wanted != GT_ANY_DEVICE && lane->device != wanted))
			continue;
		device = &shot->devices[lane->device];
		device->lane = lane;
		device->lane_index = i;
		status = find_part(shot, device, &when);
		if (status)
			return status;
		if (find_moment(shot, device, when, &err))
			return gt_message_error(&err);
		if ((size_t)lane->device >= shot->count)
			shot->count = (size_t)lane->device + 1;
	}
	return 0;
}

/* ---- history ------------------------------------------------------------------------------- */

/* The first event to tell. */
static uint64_t first_event(const struct shot *shot, const struct device *device)
{
	uint64_t held = device->lane->history_first, behind = device->seq + 1;

	if (device->from > held)
		held = device->from < behind ? device->from : behind;
	if (behind < held || shot->share >= 1)
		return held;
	return behind - (uint64_t)(shot->share * (double)(behind - held));
}

/*
 * Put what lived before the first event told into the segments. torch leaves it to the viewer to find
 * that out, and so do we of a snapshot of torch's.
 */
static int load_start(struct shot *shot, const struct device *device, struct gt_segments *segments,
		      struct gt_error *err)
{
	uint64_t first = first_event(shot, device);
	struct gt_moment moment;

	const gt_watch watch = shot->trace->snapshot ? NULL : gt_viz_change;

	if (first <= 1)
		return 0;
	shot->cut = true;
	if (gt_moment_get(shot->trace, device->lane_index, first - 1, UINT64_MAX, &moment, err))
		return -1;
	shot->fine += moment.block_count;
	moment.block_count = gt_coarse_blocks(moment.blocks, moment.block_count, shot->level);
	shot->coarse += moment.block_count;
	gt_viz_remark(shot->viz, OLDER);
	gt_segments_load(segments, moment.blocks, moment.block_count, watch, shot->viz);
	gt_viz_remark(shot->viz, NULL);
	gt_moment_clear(&moment);
	return 0;
}

static const struct gt_report *report_of(const struct gt_trace *trace, uint32_t lane, uint64_t seq)
{
	size_t i;

	for (i = 0; i < trace->report_count; i++)
		if (trace->reports[i].lane == lane && trace->reports[i].seq == seq)
			return &trace->reports[i];
	return NULL;
}

/* torch's own error, or a refusal that no allocator above the driver dealt with. */
static void tell_refusal(struct shot *shot, const struct gt_event *event)
{
	const struct gt_report *report = report_of(shot->trace, event->lane, event->seq);
	uint64_t device_free = report ? report->device_free : event->extra;
	bool final = report && report->space == GT_SPACE_DRIVER &&
		     report->outcome != GT_OUTCOME_RECOVERED;

	if (event->op == GT_OP_OOM || (event->op == GT_OP_FAILED && final))
		gt_viz_oom(shot->viz, event, device_free == GT_UNKNOWN_BYTES ? 0 : device_free);
}

static int tell_history(struct shot *shot, const struct device *device,
			struct gt_segments *segments, struct gt_error *err)
{
	struct gt_cursor *cursor = gt_cursor_new(shot->trace, device->lane_index);
	uint64_t first = first_event(shot, device);
	const struct gt_event *event = NULL;

	err->status = 0;
	while (cursor && (event = gt_cursor_next(cursor, err)) && event->seq <= device->seq) {
		if (event->seq < first)
			continue;
		gt_segments_apply(segments, event, gt_viz_change, shot->viz);
		tell_refusal(shot, event);
		if (shot->trace->snapshot && event->op == GT_OP_MARK)
			gt_viz_taken(shot->viz, event->us, event->size);
	}
	gt_cursor_free(cursor);
	return err->status ? -1 : 0;
}

static uint64_t used(const struct gt_segment_list *list)
{
	uint64_t sum = 0;
	size_t i;

	for (i = 0; i < list->count; i++)
		sum += list->segments[i].used;
	return sum;
}

/* The device's list of events, and its segments at the end of it. */
static int tell_device(struct shot *shot, struct device *device, struct gt_error *err)
{
	struct gt_segments *segments;
	int rc;

	gt_viz_device(shot->viz, device->lane);
	if (!device->lane)
		return 0;
	segments = gt_segments_new(device->lane);
	rc = load_start(shot, device, segments, err);
	if (!rc)
		rc = tell_history(shot, device, segments, err);
	gt_segments_list(segments, &device->list);
	if (!shot->trace->snapshot) /* torch does not tell the one that is being taken */
		gt_viz_taken(shot->viz, device->us, used(&device->list));
	gt_segments_free(segments);
	return rc;
}

/* ---- the file ------------------------------------------------------------------------------ */

static void count(struct shot *shot, const struct gt_segment_list *list)
{
	size_t i, k;

	shot->segments += list->count;
	for (i = 0; i < list->count; i++)
		for (k = 0; k < list->segments[i].piece_count; k++)
			shot->blocks += list->segments[i].pieces[k].used;
}

static void set(struct shot *shot, const char *key, const char *text)
{
	gt_viz_setting(shot->viz, key, text, strlen(text));
}

/* Why some frames are "module+0x12f". */
static void tell_missing(struct shot *shot, const struct gt_symbols *symbols)
{
	size_t i, count;
	const struct gt_missing *missing = gt_symbols_missing(symbols, &count);
	char key[32];

	for (i = 0; i < count; i++) {
		char *text = gt_xasprintf("%s: %s", missing[i].path,
					  missing[i].changed ? "is another build now"
							     : "not on this machine");

		snprintf(key, sizeof(key), "no_names_%zu", i + 1);
		set(shot, key, text);
		free(text);
	}
}

/* What gave way to the budget. */
static void tell_budget(struct shot *shot)
{
	const uint64_t below = gt_coarse_below(shot->level);
	char size[GT_SIZE_TEXT];
	char *text = gt_xasprintf(
		"%llu blocks that touch are told as %llu: those of one line%s%s%s; the bytes "
		"are as they were",
		(unsigned long long)shot->fine, (unsigned long long)shot->coarse,
		below == UINT64_MAX ? "" : " below ",
		below == UINT64_MAX ? "" : gt_size_text(below, size),
		shot->level == GT_COARSE_LEVELS ? ", then all, by the first one's line" : "");

	if (shot->share < 1)
		set(shot, "budget", "only the end of the history is told: see user_metadata");
	if (shot->level)
		set(shot, "merged", text);
	free(text);
}

/* The viewer shows these as they are: the place for what its format cannot say. */
static void tell_settings(struct shot *shot, const struct gt_symbols *symbols)
{
	const struct gt_bytes *conf = gt_trace_info(shot->trace, "env.PYTORCH_CUDA_ALLOC_CONF");

	set(shot, "recorded_by", "gputrace");
	set(shot, "moment", shot->args->to ? shot->args->to : when_name(shot->when));
	if (shot->args->from)
		set(shot, "from", shot->args->from);
	if (shot->trace->merged)
		set(shot, "requested_size",
		    "of the snapshot merged into the trace; else that of the block, rounded up");
	else if (!shot->trace->snapshot)
		set(shot, "requested_size",
		    "not recorded: sizes are those of the blocks, rounded up");
	if (shot->trace->snapshot)
		set(shot, "history", shot->cut ? "its beginning was not recorded" : "complete");
	else
		set(shot, "history",
		    shot->cut ? "the beginning is gone: see user_metadata" : "complete");
	tell_budget(shot);
	if (conf)
		gt_viz_setting(shot->viz, "PYTORCH_CUDA_ALLOC_CONF", conf->text, conf->length);
	tell_missing(shot, symbols);
}

/* 0, or -1 with err. A device without a lane still has its place in the lists. */
static int tell_all(struct shot *shot, FILE *file, struct gt_symbols *symbols, struct gt_error *err)
{
	size_t i, devices = shot->count ? shot->count : 1;
	int rc = 0;

	shot->segments = shot->blocks = shot->fine = shot->coarse = 0;
	shot->cut = false;
	shot->viz = gt_viz_new(file, shot->trace, symbols);
	for (i = 0; i < devices && !rc; i++)
		rc = tell_device(shot, &shot->devices[i], err);
	if (!shot->count)
		gt_viz_taken(shot->viz, shot->trace->last_us, 0); /* the viewer needs an event */
	for (i = 0; i < shot->count; i++) {
		struct device *device = &shot->devices[i];

		if (!rc && device->lane)
			gt_viz_segments(shot->viz, device->lane, &device->list);
		count(shot, &device->list);
		gt_segments_list_clear(&device->list);
	}
	tell_settings(shot, symbols);
	shot->events = gt_viz_events(shot->viz);
	errno = -gt_viz_end(shot->viz);
	if (!rc && errno) {
		err->status = GT_EXIT_UNREADABLE;
		snprintf(err->text, sizeof(err->text), "the snapshot could not be written: %s",
			 strerror(errno));
		rc = -1;
	}
	return rc;
}

/* TRACE without its suffix, with the moment: beside the trace. */
static char *default_name(const struct shot *shot)
{
	const char *path = shot->trace->path;
	size_t length = strlen(path), suffix = strlen(GT_SUFFIX);

	if (length > suffix && !strcmp(path + length - suffix, GT_SUFFIX))
		length -= suffix;
	return gt_xasprintf("%.*s.%s.pickle", (int)length, path,
			    shot->args->from || shot->args->to ? "part" : when_name(shot->when));
}

static const char *cut_note(const struct shot *shot)
{
	if (shot->over)
		return " (nothing more can be left out)";
	if (shot->level)
		return " (no history, and blocks that touch as one, to fit the budget)";
	return shot->share < 1 ? " (the latest)" : "";
}

static void report(const struct shot *shot, FILE *to, const char *path)
{
	fprintf(to,
		"%s: %llu segments, %llu blocks, %llu events%s: open it at "
		"https://pytorch.org/memory_viz (it stays in your browser)\n",
		path, (unsigned long long)shot->segments, (unsigned long long)shot->blocks,
		(unsigned long long)shot->events, cut_note(shot));
}

static uint64_t history_length(const struct shot *shot)
{
	uint64_t sum = 0;
	size_t i;

	for (i = 0; i < shot->count; i++) {
		const struct device *device = &shot->devices[i];

		if (device->lane && device->seq >= device->lane->history_first)
			sum += device->seq + 1 - device->lane->history_first;
	}
	return sum;
}

/*
 * The share of the history to try next, given what the last try made; the same share again: it
 * fits. The first try is too small on purpose, for what it costs is its size.
 */
static double next_share(const struct shot *shot, unsigned int tries, uint64_t size,
			 uint64_t budget)
{
	double fits = size ? 0.95 * shot->share * (double)budget / (double)size : 0;

	if (size > budget)
		return tries < MAX_TRIES && fits * (double)history_length(shot) >= 1 ? fits : 0;
	if (shot->share >= 1 || tries >= MAX_TRIES || size > budget / 10 * 8)
		return shot->share;
	return fits < 1 ? fits : 1;
}

static int start_again(FILE *file, struct gt_error *err)
{
	rewind(file);
	if (!ftruncate(fileno(file), 0))
		return 0;
	err->status = GT_EXIT_USAGE;
	snprintf(err->text, sizeof(err->text), "--budget needs a file to write to");
	return -1;
}

/* When even what lives is too much, the smallest blocks give way first. */
static bool coarser(struct shot *shot)
{
	if (!shot->over || shot->share > 0 || shot->level == GT_COARSE_LEVELS)
		return false;
	shot->level++;
	return true;
}

/* A limit that was asked for is kept; the default's purpose is the viewer's speed only. */
static int no_room(const struct shot *shot, uint64_t size, struct gt_error *err)
{
	char asked[GT_SIZE_TEXT], needed[GT_SIZE_TEXT];

	if (!shot->over || !shot->args->budget)
		return 0;
	err->status = GT_EXIT_USAGE;
	snprintf(err->text, sizeof(err->text), "--budget %s: the smallest snapshot of this is %s",
		 gt_size_text(shot->args->budget, asked), gt_size_text(size, needed));
	return -1;
}

/* Tell as much of the end of the history as the budget (0 = none) has room for. */
static int tell_within(struct shot *shot, FILE *file, struct gt_symbols *symbols, uint64_t budget,
		       struct gt_error *err)
{
	double share = 1, events = (double)history_length(shot);
	unsigned int tries = 0;
	uint64_t size;
	int rc;

	if (budget && events * EVENT_BYTES > (double)budget)
		share = (double)budget / (events * EVENT_BYTES);
	do {
		shot->share = share;
		rc = tries ? start_again(file, err) : 0;
		if (!rc)
			rc = tell_all(shot, file, symbols, err);
		size = budget ? (uint64_t)ftello(file) : 0;
		share = budget ? next_share(shot, tries++, size, budget) : 1;
		shot->over = budget && size > budget;
	} while (!rc && (share != shot->share || coarser(shot)));
	return rc ? rc : no_room(shot, size, err);
}

/* path NULL: standard output */
static int write_file(struct shot *shot, struct gt_symbols *symbols, const char *path,
		      uint64_t budget)
{
	const char *name = path ? path : "standard output";
	struct gt_file file;
	struct gt_error err;
	int rc, bad;

	if (gt_file_create(&file, path, GT_MODE_OURS))
		return gt_message(GT_EXIT_UNREADABLE, "%s: %s", name, strerror(errno));
	rc = tell_within(shot, file.file, symbols, budget, &err);
	bad = gt_file_finish(&file, !rc);
	if (rc)
		return gt_message_error(&err);
	if (bad)
		return gt_message(GT_EXIT_UNREADABLE, "%s: %s", name, strerror(errno));
	report(shot, path ? stdout : stderr, name);
	return GT_EXIT_FINE;
}

/* Where the snapshot goes. A trace is never taken for an old snapshot to replace. */
static int write_where(const struct gt_args *args, struct shot *shot, struct gt_symbols *symbols)
{
	char *name = args->output ? gt_xstrdup(args->output) : default_name(shot);
	size_t length = strlen(name), suffix = strlen(GT_SUFFIX);
	int status;

	if (!strcmp(name, "-"))
		status = write_file(shot, symbols, NULL, args->budget);
	else if (length >= suffix && !strcmp(name + length - suffix, GT_SUFFIX))
		status = gt_message(GT_EXIT_USAGE, "%s: would replace a trace", name);
	else
		status = write_file(shot, symbols, name, args->budget ? args->budget : BUDGET);
	free(name);
	return status;
}

static int snapshot(const struct gt_args *args, struct gt_input *input)
{
	struct shot *shot = gt_xcalloc(1, sizeof(*shot));
	struct gt_when when = {.kind = GT_WHEN_END};
	int status = args->at_set ? gt_when_time(args, input, &when) : 0;

	if (status) {
		free(shot);
		return status;
	}
	shot->args = args;
	shot->input = input;
	shot->trace = input->trace;
	shot->when = when;
	if (shot->when.kind == GT_WHEN_STEP)
		shot->answers = gt_input_answers(input);
	shot->share = 1;
	status = find_devices(shot, args->device);
	if (!status && args->device != GT_ANY_DEVICE && !shot->count)
		status = gt_message(GT_EXIT_USAGE, "%s: no event of device %d", input->trace->path,
				    args->device);
	else if (!status)
		status = write_where(args, shot, gt_input_symbols(input));
	free(shot);
	return status;
}

int gt_cmd_snapshot(struct gt_args *args)
{
	struct gt_session session;
	int status = gt_session_open(args, &session);
	size_t i;

	if (status)
		return status;
	if (args->range || (args->to && args->at_set))
		status = gt_message(GT_EXIT_USAGE,
				    "snapshot: one moment: --at or --to, and no --range");
	if (!status && args->output && session.count > 1)
		status = gt_message(GT_EXIT_USAGE, "-o names one file, but there are %zu traces",
				    session.count);
	for (i = 0; i < session.count && !status; i++)
		status = snapshot(args, &session.inputs[i]);
	gt_session_close(&session);
	return status;
}
