/* SPDX-License-Identifier: MIT */
/*
 * See build.h. What gives way to the budget, in this order: rows (every second one, and so on; the
 * levels stay), then the stacks of small spots. Nothing that is kept becomes inexact. Called from
 * cmd/html.c.
 */
#include "page/build.h"

#include <stdlib.h>
#include <string.h>
#include "model/xalloc.h"
#include "out/json.h"

#define MOST_SPOTS  6000
#define MOST_GROUP  8 /* rows for 256 slices each: then spots are merged */
#define LEAST_SPOTS 64

static json_t *json_windows(const struct gt_page_history *history)
{
	json_t *windows = json_array();

	for (size_t i = 0; i < history->window_count; i++) {
		const struct gt_window *window = &history->windows[i];

		json_array_append_new(windows, json_pack("[I, I, I]", (json_int_t)window->from_us,
							 (json_int_t)window->to_us,
							 (json_int_t)window->step));
	}
	return windows;
}

/* The row of a peak that lies before the history: all of it, by shown spot. */
static json_t *json_kept_peak(const struct gt_page_history *history)
{
	int64_t *bytes;
	json_t *row;

	if (!history->kept_peak)
		return json_null();
	bytes = gt_xcalloc(history->shown_count + 1, sizeof(*bytes));
	row = json_array();
	for (size_t i = 0; i < history->spot_count; i++)
		bytes[history->spots[i].shown] += history->kept_peak[i];
	for (size_t i = 0; i < history->shown_count; i++)
		if (bytes[i])
			json_array_append_new(
				row, json_pack("[I, I]", (json_int_t)i, (json_int_t)bytes[i]));
	free(bytes);
	return row;
}

static void add_facts(json_t *header, const struct gt_page_history *history, size_t merged)
{
	const struct gt_ctr *ctr = &history->lane->ctr;

	json_object_set_new(header, "schema", json_integer(1));
	json_object_set_new(header, "windows", json_windows(history));
	json_object_set_new(header, "keptPeak", json_kept_peak(history));
	json_object_set_new(header, "peak", json_integer((json_int_t)ctr->peak[GT_TOTAL_IN_USE]));
	json_object_set_new(header, "peakUs",
			    json_integer((json_int_t)ctr->peak_us[GT_TOTAL_IN_USE]));
	json_object_set_new(header, "t0", json_integer((json_int_t)history->from_us));
	json_object_set_new(header, "t1", json_integer((json_int_t)history->trace->last_us));
	json_object_set_new(header, "events", json_integer((json_int_t)history->events));
	json_object_set_new(header, "places", json_integer((json_int_t)history->spot_count));
	json_object_set_new(header, "merged", json_integer((json_int_t)merged));
	json_object_set_new(header, "group", json_integer(1 << history->group));
	json_object_set_new(header, "stepSource",
			    gt_json_name(gt_step_source_name(history->steps.source)));
	json_object_set_new(header, "usual", json_integer((json_int_t)history->steps.usual));
	json_object_set_new(header, "worst", json_integer((json_int_t)history->steps.worst));
}

/* How many times rows must be halved for the blob to fit, judged by what it takes now. */
static unsigned int halvings(uint64_t size, uint64_t budget)
{
	unsigned int count = 1;

	while (size >> count > budget && count < MOST_GROUP)
		count++;
	return count;
}

static int try(struct gt_page_device *device, unsigned int group, struct gt_error *err)
{
	int status = gt_page_rows(&device->history, group, err);

	if (status)
		return status;
	gt_blob_clear(&device->blob);
	add_facts(device->header, &device->history, device->merged);
	device->blob = gt_page_encode(&device->history, device->header);
	return 0;
}

static void name(struct gt_page_device *device, struct gt_symbols *symbols, struct gt_paths *paths,
		 size_t spots)
{
	json_decref(device->header);
	device->header = gt_page_names(&device->history, symbols, paths, spots, &device->merged);
}

int gt_page_build(const struct gt_trace *trace, const struct gt_answers *answers,
		  struct gt_symbols *symbols, size_t lane_index, struct gt_paths *paths,
		  uint64_t budget, struct gt_page_device *ret, struct gt_error *err)
{
	struct gt_page_device device = {0};
	size_t spots = MOST_SPOTS;
	unsigned int group = 0;
	int status = gt_page_scan(trace, answers, lane_index, &device.history, err);

	if (status)
		return status;
	name(&device, symbols, paths, spots);
	for (;;) {
		status = try(&device, group, err);
		if (status < 0 || (!status && device.blob.length <= budget))
			break;
		if (group < MOST_GROUP) {
			group += status ? 1 : halvings(device.blob.length, budget);
			group = group > MOST_GROUP ? MOST_GROUP : group;
		} else if (spots > LEAST_SPOTS) {
			spots = spots > device.history.shown_count ? device.history.shown_count / 2
								   : spots / 2;
			name(&device, symbols, paths, spots);
		} else if (!status) {
			break; /* nothing more to leave out */
		}
	}
	if (status < 0)
		gt_page_device_clear(&device);
	else
		*ret = device;
	return status < 0 ? status : 0;
}

void gt_page_device_clear(struct gt_page_device *device)
{
	gt_page_history_clear(&device->history);
	gt_blob_clear(&device->blob);
	json_decref(device->header);
	*device = (struct gt_page_device){0};
}
