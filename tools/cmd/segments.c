/* SPDX-License-Identifier: MIT */
/*
 * gputrace segments: what is cached but useless for a request, and what keeps the pieces apart.
 */
#include <stdlib.h>
#include <string.h>
#include "cmd/segments.h"
#include "model/xalloc.h"
#include "out/json.h"
#include "out/table.h"

#define PICTURE 20 /* characters of a segment's picture */
#define NARROW	16 /* of it where a screen has no more room */

struct view {
	const struct gt_place *place;
	uint64_t us, held, used, wanted;
	bool guessed;		     /* nobody said what is wanted */
	uint64_t largest, private;   /* of the cached ones, and in pools of their own */
	size_t pieces;		     /* cached ones */
	struct gt_segment_list list; /* with cached memory first, most of it first */
};

static int by_cached(const void *a, const void *b)
{
	const struct gt_segment *x = a, *y = b;
	uint64_t p = x->size - x->used, q = y->size - y->used;

	if (p != q)
		return p < q ? 1 : -1;
	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

static uint64_t largest_piece(const struct gt_segment *segment)
{
	uint64_t largest = 0;

	for (size_t i = 0; i < segment->piece_count; i++)
		if (!segment->pieces[i].used && segment->pieces[i].size > largest)
			largest = segment->pieces[i].size;
	return largest;
}

static size_t count_pieces(const struct gt_segment *segment, bool used)
{
	size_t count = 0;

	for (size_t i = 0; i < segment->piece_count; i++)
		count += segment->pieces[i].used == used;
	return count;
}

/* The largest request of the run is the question when none is asked. */
static uint64_t largest_request(const struct gt_trace *trace, const struct gt_state *state)
{
	uint64_t most = 0;

	for (size_t i = 0; i < state->block_count; i++)
		most = state->blocks[i].size > most ? state->blocks[i].size : most;
	for (size_t i = 0; i < trace->report_count; i++)
		if (gt_report_block(&trace->reports[i]) > most)
			most = gt_report_block(&trace->reports[i]);
	return most;
}

/* The segments after event seq of the place's lane. */
static int list_segments(const struct gt_place *place, uint64_t seq, struct gt_segment_list *ret)
{
	struct gt_segments *segments;
	struct gt_error err = {0};
	struct gt_moment moment;

	if (gt_moment_get(place->input->trace, place->lane_index, seq, UINT64_MAX, &moment, &err))
		return gt_message_error(&err);
	segments = gt_xchecked(gt_segments_new(place->lane));
	gt_segments_load(segments, moment.blocks, moment.block_count, NULL, NULL);
	gt_segments_list(segments, ret);
	gt_segments_free(segments);
	gt_moment_clear(&moment);
	return 0;
}

int gt_segments_at(const struct gt_place *place, struct gt_when when, struct gt_segment_list *ret,
		   uint64_t *ret_us)
{
	struct gt_state state;
	int status = gt_input_state(place->input, place->lane_index, GT_TOTAL_IN_USE, when, &state);

	if (status)
		return status;
	status = list_segments(place, state.seq, ret);
	if (!status)
		*ret_us = state.us;
	gt_state_clear(&state);
	return status;
}

/* A graph's pool, or a MemPool: what is cached there is for it alone. */
static void add_up(struct view *view)
{
	for (size_t i = 0; i < view->list.count; i++) {
		const struct gt_segment *segment = &view->list.segments[i];

		view->held += segment->size;
		view->used += segment->used;
		view->pieces += count_pieces(segment, false);
		if (segment->pool_id)
			view->private += segment->size - segment->used;
		else if (largest_piece(segment) > view->largest)
			view->largest = largest_piece(segment);
	}
}

static int open_view(const struct gt_args *args, const struct gt_place *place, struct view *ret)
{
	struct gt_when when = args->at_set ? args->at : (struct gt_when){.kind = GT_WHEN_END};
	const struct gt_trace *trace = place->input->trace;
	struct gt_error err = {0};
	struct gt_state state;
	int status = gt_input_state(place->input, place->lane_index, GT_TOTAL_IN_USE, when, &state);

	if (status)
		return status;
	*ret = (struct view){.place = place, .us = state.us};
	ret->guessed = !args->wanted;
	ret->wanted = args->wanted ? args->wanted : largest_request(trace, &state);
	status = list_segments(place, state.seq, &ret->list);
	if (!status && gt_segments_touch(&ret->list, trace, place->lane_index, state.seq, &err))
		status = gt_message_error(&err);
	gt_state_clear(&state);
	if (status)
		return status;
	add_up(ret);
	if (ret->list.count)
		qsort(ret->list.segments, ret->list.count, sizeof(*ret->list.segments), by_cached);
	return 0;
}

/* ---- text ------------------------------------------------------------------------------------ */

/* "####....": each character an equal part, '#' when any of it is in use. */
static void draw(const struct gt_segment *segment, size_t width, char picture[PICTURE + 1])
{
	memset(picture, '.', width);
	picture[width] = '\0';
	for (size_t i = 0; i < segment->piece_count; i++) {
		const struct gt_piece *piece = &segment->pieces[i];
		double scale = (double)width / (double)segment->size;
		size_t from = (size_t)((double)(piece->addr - segment->addr) * scale);
		size_t to =
			(size_t)((double)(piece->addr + piece->size - 1 - segment->addr) * scale);

		for (size_t c = from; piece->used && c <= to && c < width; c++)
			picture[c] = '#';
	}
}

/* The line that holds most of the segment. To be freed. */
static char *pinned_by(const struct view *view, const struct gt_segment *segment)
{
	const struct gt_piece *most = NULL;

	for (size_t i = 0; i < segment->piece_count; i++)
		if (segment->pieces[i].used && (!most || segment->pieces[i].size > most->size))
			most = &segment->pieces[i];
	if (!most || most->site >= view->place->lane->site_count)
		return gt_xstrdup("");
	return gt_where_text(view->place->input, &view->place->lane->site_defs[most->site]);
}

static void print_answer(struct gt_out *out, const struct view *view)
{
	enum gt_unit unit = gt_unit_for(view->held);
	uint64_t cached = view->held - view->used;
	char wanted[GT_SIZE_TEXT], device[GT_DEVICE_TEXT];

	gt_size_text(view->wanted, wanted);
	if (!cached)
		gt_line(out, GT_BOLD, "Nothing is cached: all that is held is in use.");
	else if (view->largest >= view->wanted)
		gt_line(out, GT_BOLD, "%lld %s cached; %s%s%s would fit: largest piece %lld.",
			gt_in_unit(cached, unit), gt_unit_name(unit),
			view->guessed ? "a block as large as any now (" : "", wanted,
			view->guessed ? ")" : "", gt_in_unit(view->largest, unit));
	else
		gt_line(out, GT_BOLD,
			"%lld %s cached in %zu pieces, none of it fits %s: largest piece %lld.",
			gt_in_unit(cached, unit), gt_unit_name(unit), view->pieces, wanted,
			gt_in_unit(view->largest, unit));
	gt_line(out, GT_PLAIN, "%s   %.3f s   %zu segments, held = in use + cached",
		gt_device_text(view->place->lane->device, device), (double)view->us / 1e6,
		view->list.count);
	if (view->private)
		gt_line(out, GT_PLAIN,
			"%lld %s of it in private pools (of CUDA graphs, MemPool): not for others.",
			gt_in_unit(view->private, unit), gt_unit_name(unit));
}

/* "large", "small": torch's two; "private 0.1": one of its own, known of snapshots; "" = no pool. */
static const char *pool_text(const struct view *view, const struct gt_segment *segment,
			     char buffer[GT_POOL_TEXT])
{
	if (!segment->pool_id)
		return !segment->pool ? "" : segment->small ? "small" : "large";
	return gt_private_pool_text(view->place->input->trace, segment->pool_id, buffer);
}

static void add_idle(struct gt_table *table, const struct view *view,
		     const struct gt_segment *segment)
{
	gt_table_known(table, (int64_t)(view->us - segment->touched_us), segment->touched);
}

static void print_table(struct gt_out *out, const struct view *view)
{
	static const struct gt_field fields[] = {
		{"pinned_by", "Kept in place by", GT_FIELD_TEXT, GT_SHOW_ALWAYS},
		{"size", NULL, GT_FIELD_BYTES, GT_SHOW_ALWAYS},
		{"used", "in use", GT_FIELD_BYTES, GT_SHOW_ALWAYS},
		{"cached", "cached", GT_FIELD_BYTES, GT_SHOW_ALWAYS},
		{"largest", "largest", GT_FIELD_BYTES, GT_SHOW_ALWAYS},
		{"blocks", NULL, GT_FIELD_COUNT, GT_SHOW_ALWAYS},
		{"picture", "#in use  .cached", GT_FIELD_TEXT, GT_SHOW_ALWAYS},
		{"idle_seconds", "idle s", GT_FIELD_SECONDS, GT_SHOW_WIDE},
		{"pool", NULL, GT_FIELD_TEXT, GT_SHOW_WIDE},
		{"stream", NULL, GT_FIELD_COUNT, GT_SHOW_WIDE},
	};
	struct gt_table *table = gt_table_new(fields, sizeof(fields) / sizeof(fields[0]));

	gt_table_unit(table, gt_unit_for(view->held));
	for (size_t i = 0; i < view->list.count; i++) {
		const struct gt_segment *segment = &view->list.segments[i];
		char *pin = pinned_by(view, segment), picture[PICTURE + 1], pool[GT_POOL_TEXT];

		draw(segment, gt_is_wide(out) ? PICTURE : NARROW, picture);
		gt_table_row(table, 1, 0, 0);
		gt_table_text(table, *pin ? pin : "(empty)");
		gt_table_number(table, (int64_t)segment->size);
		gt_table_number(table, (int64_t)segment->used);
		gt_table_number(table, (int64_t)(segment->size - segment->used));
		gt_table_number(table, (int64_t)largest_piece(segment));
		gt_table_number(table, (int64_t)count_pieces(segment, true));
		gt_table_text(table, picture);
		add_idle(table, view, segment);
		if (segment->pool)
			gt_table_text(table, pool_text(view, segment, pool));
		else
			gt_table_unknown(table);
		gt_table_number(table, segment->stream);
		free(pin);
	}
	gt_table_row(table, 0, 1, GT_ROW_SCREEN);
	gt_table_text(table, "in all");
	gt_table_number(table, (int64_t)view->held);
	gt_table_number(table, (int64_t)view->used);
	gt_table_number(table, (int64_t)(view->held - view->used));
	gt_table_print(table, out, gt_screen_rows(out, 4));
	gt_table_free(table);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

/* Null where nothing says: a trace on its own, driver memory. */
static json_t *json_pool(const struct view *view, const struct gt_segment *segment)
{
	const struct gt_trace *trace = view->place->input->trace;
	const struct gt_pool_def *pool = &trace->pools[segment->pool_id];

	if (!segment->pool || (!trace->snapshot && !trace->merged))
		return json_null();
	return json_pack("[I, I]", (json_int_t)pool->first, (json_int_t)pool->second);
}

static json_t *json_view(const struct view *view)
{
	json_t *segments = json_array();

	for (size_t i = 0; i < view->list.count; i++) {
		const struct gt_segment *segment = &view->list.segments[i];
		char *pin = pinned_by(view, segment), pool[GT_POOL_TEXT];

		json_array_append_new(
			segments,
			json_pack("{s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:o, s:I, s:b, s:o}", "size",
				  (json_int_t)segment->size, "used", (json_int_t)segment->used,
				  "cached", (json_int_t)(segment->size - segment->used),
				  "largest_free_block", (json_int_t)largest_piece(segment), "count",
				  (json_int_t)count_pieces(segment, true), "idle_seconds",
				  gt_json_seconds(view->us - segment->touched_us, segment->touched),
				  "pool", gt_json_name(pool_text(view, segment, pool)), "pool_id",
				  json_pool(view, segment), "stream", (json_int_t)segment->stream,
				  "expandable", segment->expandable, "pinned_by",
				  gt_json_name(pin)));
		free(pin);
	}
	return json_pack("{s:o, s:o, s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:b, s:o}", "pid",
			 gt_json_pid(view->place->input->trace), "device",
			 gt_json_ordinal(view->place->lane->device), "seconds",
			 gt_json_seconds(view->us, true), "reserved", (json_int_t)view->held,
			 "allocated", (json_int_t)view->used, "cached",
			 (json_int_t)(view->held - view->used), "cached_private",
			 (json_int_t)view->private, "largest_free_block", (json_int_t)view->largest,
			 "wanted", (json_int_t)view->wanted, "fits", view->largest >= view->wanted,
			 "segments", segments);
}

static int print(struct gt_out *out, const struct gt_args *args, const struct gt_places *places)
{
	bool one = out->terminal && !args->all && out->format == GT_FORMAT_TEXT;
	const struct gt_place *only = one ? gt_tightest(places, GT_TOTAL_RESERVED) : NULL;
	json_t *devices = json_array();
	int status = 0;

	for (size_t i = 0; !status && i < places->count; i++) {
		struct view view;

		if (only && only != &places->places[i])
			continue;
		gt_print_which(out, places, &places->places[i], only);
		status = open_view(args, &places->places[i], &view);
		if (status)
			break;
		if (args->format == GT_FORMAT_JSON)
			json_array_append_new(devices, json_view(&view));
		if (args->format == GT_FORMAT_TEXT)
			print_answer(out, &view);
		if (args->format != GT_FORMAT_JSON && view.list.count)
			print_table(out, &view);
		gt_segments_list_clear(&view.list);
	}
	if (!status && args->format == GT_FORMAT_JSON) {
		json_t *answer = gt_json_answer("segments");

		json_object_set(answer, "devices", devices);
		gt_json_print(out, answer);
	}
	json_decref(devices);
	return status;
}

int gt_cmd_segments(struct gt_args *args)
{
	return gt_run_places(args, print);
}
