/* SPDX-License-Identifier: MIT */
/* See session.h: words, lines and JSON objects that several commands share. */
#define _GNU_SOURCE
#include "cmd/session.h"

#include <stdlib.h>
#include <string.h>
#include "model/xalloc.h"
#include "out/json.h"
#include "out/number.h"

const char *gt_device_text(int device, char buffer[GT_DEVICE_TEXT])
{
	if (device == GT_DEVICE_HOST)
		return strcpy(buffer, "host");
	if (device < 0)
		return strcpy(buffer, "GPU ?");
	snprintf(buffer, GT_DEVICE_TEXT, "GPU %d", device);
	return buffer;
}

char *gt_of_card(uint64_t bytes, uint64_t device_total)
{
	char size[GT_SIZE_TEXT], card[GT_SIZE_TEXT];
	const char *unit_size, *unit_card;

	gt_size_text(bytes, size);
	if (!device_total)
		return gt_xstrdup(size);
	gt_size_text(device_total, card);
	unit_size = strchr(size, ' ');
	unit_card = strchr(card, ' ');
	if (strcmp(unit_size, unit_card) == 0)
		return gt_xasprintf("%.*s of %s", (int)(unit_size - size), size, card);
	return gt_xasprintf("%s of %s", size, card);
}

/* Arguments, NUL between them; folders are left out where there is no room for them. */
static char *join_arguments(const struct gt_bytes *arguments, bool base_names)
{
	char *text = gt_xcalloc(arguments->length + 1, 1), *to = text;

	for (uint32_t i = 0; i < arguments->length;) {
		const char *argument = arguments->text + i;
		size_t length = strnlen(argument, arguments->length - i);
		const char *slash = base_names ? memrchr(argument, '/', length) : NULL;

		if (to != text)
			*to++ = ' ';
		if (slash && slash + 1 < argument + length)
			to = mempcpy(to, slash + 1, (size_t)(argument + length - slash - 1));
		else
			to = mempcpy(to, argument, length);
		i += (uint32_t)length + 1;
	}
	return text;
}

char *gt_command_line(const struct gt_trace *trace, size_t width)
{
	const struct gt_bytes *info = gt_trace_info(trace, "cmdline");
	const size_t comm = strnlen(trace->header.comm, sizeof(trace->header.comm));
	char *text;

	if (info && info->length)
		text = join_arguments(info, width > 0);
	else
		text = gt_xasprintf("%.*s", (int)comm, trace->header.comm);
	if (width > 4 && strlen(text) > width)
		strcpy(text + width - 3, "...");
	return text;
}

char *gt_where_text(struct gt_input *input, const struct gt_site_def *site)
{
	struct gt_label label;
	char *text;

	gt_label_make(gt_input_symbols(input), input->trace, site, GT_STREAM_UNKNOWN, GT_BY_LINE,
		      &label);
	text = gt_xstrdup(label.text);
	gt_label_clear(&label);
	return text;
}

char *gt_fitting(const struct gt_out *out, const char *text, size_t other_columns)
{
	char *copy = gt_xstrdup(text);

	if (out->terminal && !out->all)
		gt_cut_text(copy,
			    out->width > other_columns + 16 ? out->width - other_columns : 16);
	return copy;
}

char *gt_where_fitting(const struct gt_out *out, struct gt_input *input,
		       const struct gt_site_def *site, size_t other_columns)
{
	struct gt_label label;
	const char *slash;
	char *text;

	gt_label_make(gt_input_symbols(input), input->trace, site, GT_STREAM_UNKNOWN, GT_BY_LINE,
		      &label);
	text = gt_fitting(out, label.text, other_columns);
	slash = strrchr(label.file, '/');
	if (strcmp(text, label.text) != 0 && label.line) {
		free(text);
		text = gt_xasprintf("%s:%d", slash ? slash + 1 : label.file, label.line);
	}
	gt_label_clear(&label);
	return text;
}

const char *gt_pid_text(const struct gt_trace *trace, char buffer[GT_PID_TEXT])
{
	if (!trace->header.pid)
		return "pid ?";
	snprintf(buffer, GT_PID_TEXT, "pid %u", trace->header.pid);
	return buffer;
}

void gt_table_pid(struct gt_table *table, const struct gt_trace *trace)
{
	gt_table_known(table, trace->header.pid, trace->header.pid);
}

json_t *gt_json_pid(const struct gt_trace *trace)
{
	return gt_json_number(trace->header.pid, trace->header.pid);
}

const char *gt_process_state(const struct gt_trace *trace)
{
	if (trace->snapshot)
		return "snapshot";
	if (trace->running)
		return "running";
	return trace->header.exit_us ? "exited" : "killed";
}

const char *gt_level_text(enum gt_total total)
{
	static const char *const names[] = {
		[GT_TOTAL_RESERVED] = "driver",
		[GT_TOTAL_TORCH] = "torch",
		[GT_TOTAL_IN_USE] = "in use",
	};

	return names[total];
}

const char *gt_rows_level(const struct gt_rows *rows)
{
	bool torch = false, driver = false;

	for (size_t i = 0; i < rows->count; i++) {
		torch |= rows->rows[i].torch;
		driver |= !rows->rows[i].torch;
	}
	return torch && driver ? "torch and driver" : torch ? "torch" : "driver";
}

/* ---- what is missing ------------------------------------------------------------------------- */

uint64_t gt_lost_events(const struct gt_trace *trace)
{
	return trace->header.lost[GT_LOST_EVENTS];
}

uint64_t gt_history_starts(const struct gt_trace *trace)
{
	uint64_t starts = 0;

	for (size_t i = 0; i < trace->lane_count; i++)
		if (trace->lanes[i].history_us > starts)
			starts = trace->lanes[i].history_us;
	return starts;
}

struct events {
	uint64_t all, gone;
};

static struct events count_events(const struct gt_trace *trace)
{
	struct events events = {0};

	for (size_t i = 0; i < trace->lane_count; i++) {
		events.all += trace->lanes[i].seq;
		if (trace->lanes[i].history_first > 1)
			events.gone += trace->lanes[i].history_first - 1;
	}
	return events;
}

/* A snapshot's totals are those of its end; what was before its history is nowhere. */
static void print_history(struct gt_out *out, const struct gt_trace *trace)
{
	struct events events = count_events(trace);
	const bool small = trace->header.ring_limit < 1 << 20;

	if (trace->snapshot) {
		gt_line(out, GT_RED,
			"History begins at %.3f of %.3f s, with %llu blocks and segments there.",
			(double)gt_history_starts(trace) / 1e6, (double)trace->last_us / 1e6,
			(unsigned long long)events.gone);
		gt_line(out, GT_PLAIN, "  not known      a higher peak before it");
		return;
	}
	gt_line(out, GT_RED,
		"History starts at %.3f of %.3f s (ring full: %llu of %llu events are gone).",
		(double)gt_history_starts(trace) / 1e6, (double)trace->last_us / 1e6,
		(unsigned long long)events.gone, (unsigned long long)events.all);
	gt_line(out, GT_PLAIN,
		"  exact anyway   in use now, the peak and its holders, all counters");
	gt_line(out, GT_PLAIN, "  to keep more   GPUTRACE_RING=%llu%c (4x this history)",
		(unsigned long long)(4 * trace->header.ring_limit >> (small ? 10 : 20)),
		small ? 'K' : 'M');
}

static const char *const lost_words[GT_LOST_REASONS] = {
	[GT_LOST_EVENTS] = "events not recorded: every figure may be too low",
	[GT_LOST_SITES] = "events without their line: too many different stacks",
	[GT_LOST_STACKS] = "stacks not captured",
	[GT_LOST_STREAMS] = "events on streams beyond the limit",
	[GT_LOST_THREADS] = "events of threads beyond the limit",
	[GT_LOST_REPORTS] = "refused requests without a report of their own",
	[GT_LOST_PYTHON] = "Python stacks not read",
};

static const char *stop_word(const struct gt_trace *trace)
{
	switch (trace->header.stop) {
	case GT_STOP_NO_SPACE:
		return "no space left";
	case GT_STOP_TRUNCATED:
		return "somebody made the file shorter";
	default:
		return "an error";
	}
}

/* Every screen says what is missing; nothing is said when nothing is. */
void gt_print_loss(struct gt_out *out, const struct gt_trace *trace)
{
	if (trace->partial)
		gt_line(out, GT_RED, "Read from a cut file: every total is incomplete.");
	if (trace->header.stop_us)
		gt_line(out, GT_RED, "Recording stopped at %.3f s: %s; nothing after it is known.",
			(double)(trace->header.stop_us - 1) / 1e6, stop_word(trace));
	if (count_events(trace).gone)
		print_history(out, trace);
	for (int i = 0; i < GT_LOST_REASONS; i++)
		if (lost_words[i] && trace->header.lost[i])
			gt_line(out, i == GT_LOST_EVENTS ? GT_RED : GT_PLAIN, "Lost: %llu %s.",
				(unsigned long long)trace->header.lost[i], lost_words[i]);
}

size_t gt_loss_lines(const struct gt_trace *trace)
{
	size_t lines = trace->partial + !!trace->header.stop_us;

	if (count_events(trace).gone)
		lines += 3;
	for (int i = 0; i < GT_LOST_REASONS; i++)
		lines += lost_words[i] && trace->header.lost[i];
	return lines;
}

void gt_print_which(struct gt_out *out, const struct gt_places *places,
		    const struct gt_place *place, bool alone)
{
	char device[GT_DEVICE_TEXT];

	if (places->session->count < 2 || out->format != GT_FORMAT_TEXT)
		return;
	gt_line(out, GT_PLAIN, "%s, %s%s", place->input->trace->path,
		gt_device_text(place->lane->device, device),
		alone ? ", the fullest; the others: --all" : "");
}

const char *gt_no_failure(const struct gt_trace *trace)
{
	return trace->partial ? "Cut file: how it ended is not known." : "No failure.";
}

const char *gt_no_memory(const struct gt_trace *trace)
{
	return trace->partial ? "Cut file: what it knew of GPU memory is gone."
			      : "No failure. No GPU memory was asked for.";
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static json_t *json_frame(const struct gt_frame *frame)
{
	return json_pack("{s:o, s:o, s:o, s:o, s:s}", "function", gt_json_name(frame->function),
			 "file", gt_json_name(frame->file), "line",
			 gt_json_number((uint64_t)frame->line, frame->line > 0), "module",
			 gt_json_name(frame->module), "kind", gt_frame_kind_name(frame->kind));
}

json_t *gt_json_frames(struct gt_stack stack)
{
	json_t *frames = json_array();

	for (size_t i = 0; i < stack.count; i++)
		json_array_append_new(frames, json_frame(&stack.frames[i]));
	return frames;
}

json_t *gt_json_where(const struct gt_label *label)
{
	if (!*label->file && !*label->function)
		return json_null();
	return json_pack("{s:o, s:o, s:o}", "file", gt_json_name(label->file), "line",
			 gt_json_number((uint64_t)label->line, label->line > 0), "function",
			 gt_json_name(label->function));
}

static json_t *json_stream(int32_t stream)
{
	return gt_json_number((uint64_t)(stream < 0 ? 0 : stream), stream >= 0);
}

json_t *gt_json_ordinal(int device)
{
	return gt_json_number((uint64_t)(device < 0 ? 0 : device), device >= 0);
}

/* Grouped rows stand for several stacks: only what their stacks share is given. */
static json_t *holder_frames(struct gt_input *input, const struct gt_site_def *site, enum gt_by by)
{
	const struct gt_frame *user;

	if (by == GT_BY_SITE || by == GT_BY_STACK)
		return gt_json_frames(gt_symbols_frames(gt_input_symbols(input), site->native,
							site->python, input->frames));
	user = gt_symbols_user_frame(gt_input_symbols(input), site->native, site->python);
	if (!user || (by != GT_BY_LINE && by != GT_BY_FUNCTION))
		return json_array();
	return json_pack("[o]", json_frame(user));
}

json_t *gt_json_category(uint8_t category)
{
	return category ? json_string(gt_category_key(category)) : json_null();
}

json_t *gt_json_category_bytes(const uint64_t bytes[GT_CATEGORIES])
{
	json_t *categories = json_object();

	for (int c = GT_CATEGORY_NONE + 1; c < GT_CATEGORIES; c++)
		json_object_set_new(categories, gt_category_key(c),
				    json_integer((json_int_t)bytes[c]));
	return categories;
}

/* What is not of torch has no category: it is unknown here, so that the sum is the state's. */
json_t *gt_json_categories(const struct gt_state *state)
{
	uint64_t bytes[GT_CATEGORIES] = {0}, known = 0;

	for (size_t i = 0; i < state->hold_count; i++) {
		uint8_t category = state->holds[i].category;

		known += category ? state->holds[i].bytes : 0;
		bytes[category ? category : GT_CATEGORY_UNKNOWN] += state->holds[i].bytes;
	}
	return known ? gt_json_category_bytes(bytes) : json_null();
}

/* torch rounds up; the driver's allocations are what was asked for. */
bool gt_row_requested(const struct gt_trace *trace, const struct gt_row *row, uint64_t *ret)
{
	if (!trace->merged && !trace->snapshot)
		return false;
	*ret = row->torch ? row->requested : row->bytes;
	return !row->torch || row->requested_of == row->bytes;
}

const char *gt_private_pool_text(const struct gt_trace *trace, uint32_t pool,
				 char buffer[GT_POOL_TEXT])
{
	snprintf(buffer, GT_POOL_TEXT, "private %llu.%llu",
		 (unsigned long long)trace->pools[pool].first,
		 (unsigned long long)trace->pools[pool].second);
	return buffer;
}

const char *gt_row_pool_text(const struct gt_trace *trace, const struct gt_row *row,
			     char buffer[GT_POOL_TEXT])
{
	if ((!trace->merged && !trace->snapshot) || !row->torch || row->pool == GT_POOL_UNKNOWN)
		return "";
	if (row->pool == GT_POOL_MIXED)
		return "several";
	return row->pool ? gt_private_pool_text(trace, row->pool, buffer) : "default";
}

static json_t *json_pool(const struct gt_trace *trace, const struct gt_row *row)
{
	char buffer[GT_POOL_TEXT];
	const char *pool = gt_row_pool_text(trace, row, buffer);

	return *pool ? gt_json_name(pool) : json_null();
}

json_t *gt_json_holder(struct gt_input *input, const struct gt_trace_lane *lane,
		       const struct gt_row *row, enum gt_by by, bool counted)
{
	uint64_t requested = 0;
	bool asked = gt_row_requested(input->trace, row, &requested);

	return json_pack("{s:I, s:o, s:o, s:o, s:s, s:o, s:o, s:o, s:o, s:o}", "bytes",
			 (json_int_t)row->bytes, "count", gt_json_number(row->count, counted),
			 "requested", gt_json_number(requested, asked), "pool",
			 json_pool(input->trace, row), "level", row->torch ? "torch" : "driver",
			 "owner", gt_json_name(row->label.owner), "category",
			 gt_json_category(row->category), "stream", json_stream(row->stream), "key",
			 gt_json_name(row->label.text), "frames",
			 holder_frames(input, row->named, by));
}
