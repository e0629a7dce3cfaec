/* SPDX-License-Identifier: MIT */
/*
 * See torch_table.h. One table per device: bytes first, then numbers, each for both pools of torch
 * and for each. Words are those of torch's own table, for people who know it; JSON has the keys of
 * memory_stats(). Called by cmd/summary.c.
 */
#include "cmd/torch_table.h"

#include <stdlib.h>
#include "model/torch_stats.h"
#include "out/json.h"

static const char *const titles[GT_STATS] = {
	[GT_STAT_ALLOCATED] = "allocated memory",      [GT_STAT_ACTIVE] = "active memory",
	[GT_STAT_REQUESTED] = "requested memory",      [GT_STAT_RESERVED] = "reserved memory",
	[GT_STAT_INACTIVE] = "non-releasable memory",  [GT_STAT_ALLOCATIONS] = "allocations",
	[GT_STAT_ACTIVES] = "active allocations",      [GT_STAT_SEGMENTS] = "reserved segments",
	[GT_STAT_INACTIVES] = "non-releasable pieces",
};

static const char *const pools[GT_POOLS] = {
	[GT_POOL_ALL] = "all",
	[GT_POOL_LARGE] = "large",
	[GT_POOL_SMALL] = "small",
};

static const char *const pool_keys[GT_POOLS] = {
	[GT_POOL_ALL] = "all",
	[GT_POOL_LARGE] = "large_pool",
	[GT_POOL_SMALL] = "small_pool",
};

static bool is_known(const struct gt_torch_stats *stats, enum gt_torch_stat stat)
{
	return stat != GT_STAT_REQUESTED || stats->requested;
}

/* ---- text, csv, md ------------------------------------------------------------------------- */

static void add_rows(struct gt_table *table, const struct gt_torch_stats *stats,
		     enum gt_torch_stat from, enum gt_torch_stat to, int device)
{
	for (enum gt_torch_stat stat = from; stat < to; stat++)
		for (int pool = 0; pool < GT_POOLS; pool++) {
			const struct gt_stat *value = &stats->stats[stat][pool];

			gt_table_row(table, 0, 0, 0);
			gt_table_text(table, titles[stat]);
			gt_table_text(table, pools[pool]);
			if (is_known(stats, stat)) {
				gt_table_number(table, (int64_t)value->current);
				gt_table_number(table, (int64_t)value->peak);
				gt_table_number(table, (int64_t)value->added);
				gt_table_number(table, (int64_t)value->taken);
			} else {
				for (int i = 0; i < 4; i++)
					gt_table_unknown(table);
			}
			gt_table_number(table, device);
		}
}

static void print_rows(struct gt_out *out, const struct gt_torch_stats *stats, int device,
		       bool bytes)
{
	const enum gt_field_kind kind = bytes ? GT_FIELD_BYTES : GT_FIELD_COUNT;
	const struct gt_field fields[] = {
		{"measure", bytes ? "Bytes" : "Numbers", GT_FIELD_TEXT, GT_SHOW_ALWAYS},
		{"pool", NULL, GT_FIELD_TEXT, GT_SHOW_ALWAYS},
		{"current", bytes ? "now MiB" : "now", kind, GT_SHOW_ALWAYS},
		{"peak", stats->whole ? "peak" : "peak >=", kind, GT_SHOW_ALWAYS},
		{"allocated", stats->whole ? "sum of all" : "sum >=", kind, GT_SHOW_ALWAYS},
		{"freed", stats->whole ? "freed" : "freed >=", kind, GT_SHOW_ALWAYS},
		{"device", NULL, GT_FIELD_COUNT, GT_SHOW_DATA},
	};
	struct gt_table *table = gt_table_new(fields, sizeof(fields) / sizeof(fields[0]));

	if (bytes)
		gt_table_unit(table, GT_UNIT_MIB);
	add_rows(table, stats, bytes ? 0 : GT_STATS_BYTES, bytes ? GT_STATS_BYTES : GT_STATS,
		 device);
	gt_table_print(table, out, 0);
	gt_table_free(table);
}

static void print_place(struct gt_out *out, const struct gt_place *place,
			const struct gt_torch_stats *stats)
{
	const struct gt_stat *allocated = &stats->stats[GT_STAT_ALLOCATED][GT_POOL_ALL];
	char device[GT_DEVICE_TEXT], now[GT_SIZE_TEXT], peak[GT_SIZE_TEXT];

	if (out->format == GT_FORMAT_TEXT)
		gt_line(out, GT_BOLD, "%s: torch has allocated %s, at most %s. CUDA OOMs: %llu.",
			gt_device_text(place->lane->device, device),
			gt_size_text(allocated->current, now), gt_size_text(allocated->peak, peak),
			(unsigned long long)stats->ooms);
	print_rows(out, stats, place->lane->device, true);
	print_rows(out, stats, place->lane->device, false);
}

/* ---- JSON ---------------------------------------------------------------------------------- */

static json_t *json_stat(const struct gt_torch_stats *stats, enum gt_torch_stat stat)
{
	json_t *result = json_object();

	for (int pool = 0; pool < GT_POOLS; pool++) {
		const struct gt_stat *value = &stats->stats[stat][pool];
		const bool known = is_known(stats, stat), sums = known && stats->whole;

		json_object_set_new(result, pool_keys[pool],
				    json_pack("{s:o, s:o, s:o, s:o}", "current",
					      gt_json_number(value->current, known), "peak",
					      gt_json_number(value->peak, known), "allocated",
					      gt_json_number(value->added, sums), "freed",
					      gt_json_number(value->taken, sums)));
	}
	return result;
}

static json_t *json_place(const struct gt_place *place, const struct gt_torch_stats *stats)
{
	json_t *result =
		json_pack("{s:o, s:o, s:b, s:o}", "pid", gt_json_pid(place->input->trace),
			  "ordinal", gt_json_ordinal(place->lane->device), "at_least",
			  !stats->whole, "num_ooms", gt_json_number(stats->ooms, stats->whole));

	for (enum gt_torch_stat stat = 0; stat < GT_STATS; stat++)
		json_object_set_new(result, gt_torch_stat_name(stat), json_stat(stats, stat));
	return result;
}

int gt_torch_table(struct gt_out *out, const struct gt_args *args, const struct gt_places *places)
{
	json_t *devices = json_array();
	struct gt_torch_stats stats;
	struct gt_error err = {0};
	int status = 0;

	for (size_t i = 0; !status && i < places->count; i++) {
		const struct gt_place *place = &places->places[i];

		if (gt_torch_stats_get(place->input->trace, place->lane_index, &stats, &err))
			status = gt_message_error(&err);
		else if (out->format == GT_FORMAT_JSON)
			json_array_append_new(devices, json_place(place, &stats));
		else
			print_place(out, place, &stats);
	}
	if (!status && out->format == GT_FORMAT_JSON) {
		json_t *answer = gt_json_answer("summary");

		json_object_set(answer, "torch", devices);
		gt_json_print(out, answer);
	}
	for (size_t i = 0; out->format == GT_FORMAT_TEXT && i < places->session->count; i++)
		gt_print_loss(out, places->session->inputs[i].trace);
	json_decref(devices);
	return status;
}
