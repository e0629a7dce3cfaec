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

#define MOST_SHIFTS  4000000 /* of the highest instants: a browser decodes them in half a second */
#define MOST_SLICES  65536
#define LEAST_SLICES 1024
#define MOST_SPOTS   6000
#define LEAST_SPOTS  64

static json_t *json_windows(const struct gt_page_history *history)
{
	json_t *windows = json_array();

	for (size_t i = 0; i < history->window_count; i++) {
		const struct gt_page_window *window = &history->windows[i];

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
	json_object_set_new(header, "stepEvery", json_integer((json_int_t)history->step_every));
	json_object_set_new(header, "firstStep", json_integer((json_int_t)history->first_step));
	json_object_set_new(header, "usual",
			    json_integer((json_int_t)(history->steps.usual - history->first_step)));
	json_object_set_new(header, "worst",
			    json_integer((json_int_t)(history->steps.worst - history->first_step)));
}

static void try(struct gt_page_device *device, unsigned int group)
{
	gt_page_rows(&device->history, group);
	gt_blob_clear(&device->blob);
	add_facts(device->header, &device->history, device->merged);
	device->blob = gt_page_encode(&device->history, device->header, 1);
}

static void name(struct gt_page_device *device, struct gt_symbols *symbols, struct gt_paths *paths,
		 size_t spots)
{
	json_decref(device->header);
	device->header = gt_page_names(&device->history, symbols, paths, spots, &device->merged);
}

/* The smallest group with so many changes at most. */
static unsigned int group_for(const struct gt_page_history *history, uint64_t shifts)
{
	unsigned int group = 0;

	while (group + 1 < GT_PAGE_GROUPS && history->shifts[group] > shifts)
		group++;
	return group;
}

/* Packed more tightly than in a quick try; level 9 would take thrice as long for 2 % less. */
static bool pack(struct gt_page_device *device, uint64_t budget)
{
	if (device->blob.length * 9 / 10 > budget)
		return false;
	gt_blob_clear(&device->blob);
	device->blob = gt_page_encode(&device->history, device->header, 6);
	return device->blob.length <= budget;
}

static size_t step_shifts(const struct gt_page_history *history)
{
	return history->chains[GT_CHAIN_ENDS].shift_count +
	       history->chains[GT_CHAIN_PEAKS].shift_count;
}

/* Of what takes most, of steps or of slices, half the rows. False: there is nothing left to halve. */
static bool halve(struct gt_page_history *history, unsigned int *group, uint64_t *steps)
{
	bool most = *steps > history->shifts[*group] / 2;

	if (history->step_every < history->steps.count && (most || *group + 1 >= GT_PAGE_GROUPS)) {
		history->step_every *= 2;
		*steps /= 2;
		return true;
	}
	return ++*group < GT_PAGE_GROUPS;
}

/*
 * Fewer rows, until as many changes are left as there should be room for: nearly all of a blob that
 * is too large is theirs. A try goes over all events once more, so there had better be few.
 */
static bool thin_out(struct gt_page_device *device, unsigned int *group, uint64_t budget)
{
	struct gt_page_history *history = &device->history;
	uint64_t steps = step_shifts(history), all = steps + history->shifts[*group];
	double room = 0.95 * (double)all * (double)budget / (double)(device->blob.length + 1);

	do {
		if (!halve(history, group, &steps))
			return false;
	} while ((double)(steps + history->shifts[*group]) > room);
	return true;
}

/* False: not even with the fewest rows. */
static bool fit_rows(struct gt_page_device *device, unsigned int group, uint64_t budget)
{
	do {
		try(device, group);
		if (pack(device, budget))
			return true;
	} while (thin_out(device, &group, budget));
	return false;
}

static void fit(struct gt_page_device *device, struct gt_symbols *symbols, struct gt_paths *paths,
		uint64_t budget)
{
	size_t spots = MOST_SPOTS;
	bool fits;

	name(device, symbols, paths, spots);
	fits = fit_rows(device, group_for(&device->history, MOST_SHIFTS), budget);
	while (!fits && spots > LEAST_SPOTS) {
		if (device->history.shown_count < spots)
			spots = device->history.shown_count;
		spots /= 2;
		name(device, symbols, paths, spots);
		fits = fit_rows(device, GT_PAGE_GROUPS - 1, budget);
	}
}

/* They take some 16 bytes each in a page: half of a small budget. */
static size_t slices_for(uint64_t budget)
{
	size_t slices = MOST_SLICES;

	while (slices > LEAST_SLICES && slices > budget / 32)
		slices /= 2;
	return slices;
}

int gt_page_build(const struct gt_trace *trace, const struct gt_answers *answers,
		  struct gt_symbols *symbols, size_t lane_index, struct gt_paths *paths,
		  uint64_t budget, struct gt_page_device *ret, struct gt_error *err)
{
	struct gt_page_device device = {0};
	int status =
		gt_page_scan(trace, answers, lane_index, slices_for(budget), &device.history, err);

	if (status)
		return status;
	fit(&device, symbols, paths, budget);
	*ret = device;
	return 0;
}

void gt_page_device_clear(struct gt_page_device *device)
{
	gt_page_history_clear(&device->history);
	gt_blob_clear(&device->blob);
	json_decref(device->header);
	*device = (struct gt_page_device){0};
}
