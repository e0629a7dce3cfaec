/* SPDX-License-Identifier: MIT */
/*
 * See ledger.h. What the processes hold is known block by block; the rest of the card, and what follows
 * from it, is worked out in card.c. Free memory is sampled, not followed: from the last sample to the
 * moment it falls by what the traced processes took since. Called from cmd/.
 */
#include "model/ledger.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "model/card.h"
#include "model/xalloc.h"

struct making {
	struct gt_card card;
	struct gt_ledger *ledger;
};

const char *gt_ledger_kind_name(enum gt_ledger_kind kind)
{
	static const char *const names[] = {
		[GT_LEDGER_TORCH] = "torch-allocated",
		[GT_LEDGER_CACHED] = "torch-cached",
		[GT_LEDGER_LIBRARY] = "library",
		[GT_LEDGER_POOLS] = "pool-cached",
		[GT_LEDGER_CONTEXT] = "context",
		[GT_LEDGER_MODULES] = "modules",
		[GT_LEDGER_OTHER] = "other-process",
		[GT_LEDGER_UNEXPLAINED] = "unexplained",
		[GT_LEDGER_FREE] = "free",
		[GT_LEDGER_REST] = "free-and-unexplained",
	};

	return names[kind];
}

const char *gt_measured_name(enum gt_measured measured)
{
	static const char *const names[] = {
		[GT_MEASURED_EXACT] = "exact",	    [GT_MEASURED_ALONE] = "alone",
		[GT_MEASURED_MIXED] = "not alone",  [GT_MEASURED_AT_MOST] = "at most",
		[GT_MEASURED_SAMPLED] = "sampled",  [GT_MEASURED_NVML] = "NVML",
		[GT_MEASURED_DERIVED] = "the rest", [GT_MEASURED_NOT] = "not measured",
	};

	return names[measured];
}

/* ---- rows ------------------------------------------------------------------------------------ */

static struct gt_ledger_row *add_row(struct making *making, enum gt_ledger_kind kind,
				     enum gt_measured measured, int64_t bytes)
{
	struct gt_ledger *ledger = making->ledger;
	struct gt_ledger_row *row = GT_PUSH(ledger->rows, ledger->row_count);

	*row = (struct gt_ledger_row){
		.kind = kind,
		.measured = measured,
		.bytes = bytes,
		.process = GT_LEDGER_NOBODY,
		.name = "",
	};
	return row;
}

static struct gt_ledger_row *add_own(struct making *making, size_t seat, enum gt_ledger_kind kind,
				     enum gt_measured measured, int64_t bytes)
{
	struct gt_ledger_row *row = add_row(making, kind, measured, bytes);

	row->process = seat;
	row->pid = making->card.seats[seat].process->trace->header.pid;
	return row;
}

struct share { /* of what one library asked for */
	const char *owner;
	int64_t bytes;
	uint64_t most; /* of one of its sites */
	uint32_t site;
};

struct shares {
	struct share *items;
	size_t count;
};

static void add_share(const struct gt_seat *seat, struct shares *shares, uint32_t site,
		      uint64_t bytes)
{
	const char *owner =
		gt_symbols_owner(seat->process->symbols, seat->lane->site_defs[site].native);
	struct share *share = NULL;

	for (size_t i = 0; !share && i < shares->count; i++)
		if (strcmp(shares->items[i].owner, owner) == 0)
			share = &shares->items[i];
	if (!share) {
		share = GT_PUSH(shares->items, shares->count);
		share->owner = owner;
	}
	share->bytes += (int64_t)bytes;
	if (bytes > share->most) {
		share->most = bytes;
		share->site = site;
	}
}

static int by_bytes(const void *a, const void *b)
{
	const struct share *x = a, *y = b;

	return x->bytes > y->bytes ? -1 : x->bytes < y->bytes;
}

/* Bytes per site of the blocks that a test takes, one row per library, largest first. */
static void add_libraries(struct making *making, size_t number, enum gt_ledger_kind kind,
			  bool (*is)(const struct gt_trace_lane *lane,
				     const struct gt_block *block))
{
	struct gt_seat *seat = &making->card.seats[number];
	uint64_t *bytes = gt_xcalloc(seat->lane->site_count + 1, sizeof(*bytes));
	struct shares shares = {0};

	for (size_t i = 0; i < seat->moment.block_count; i++) {
		const struct gt_block *block = &seat->moment.blocks[i];

		if (block->site < seat->lane->site_count && is(seat->lane, block))
			bytes[block->site] += block->size;
	}
	for (uint32_t s = 0; s < seat->lane->site_count; s++)
		if (bytes[s])
			add_share(seat, &shares, s, bytes[s]);
	if (shares.count)
		qsort(shares.items, shares.count, sizeof(*shares.items), by_bytes);
	for (size_t i = 0; i < shares.count; i++) {
		const struct share *share = &shares.items[i];
		struct gt_ledger_row *row =
			add_own(making, number, kind,
				kind == GT_LEDGER_MODULES ? GT_MEASURED_MIXED : GT_MEASURED_EXACT,
				share->bytes);

		row->name = share->owner;
		row->site = seat->lane->site_defs[share->site];
	}
	free(shares.items);
	free(bytes);
}

static bool is_library(const struct gt_trace_lane *lane, const struct gt_block *block)
{
	return block->space != GT_SPACE_TORCH && gt_site_mask(lane, block->site) & GT_MASK_IN_USE;
}

static bool is_module(const struct gt_trace_lane *lane, const struct gt_block *block)
{
	(void)lane;
	return block->space == GT_SPACE_MODULE;
}

struct sums {				 /* of a moment's blocks */
	int64_t segments, pools, inside; /* inside: in use, out of a pool */
	uint32_t torch_site, pool_site;	 /* with most of torch's blocks, and inside */
};

/* The site with most bytes of the blocks that add to just these totals. */
static uint32_t largest_site(const struct gt_seat *seat, unsigned int mask)
{
	uint64_t *bytes = gt_xcalloc(seat->lane->site_count + 1, sizeof(*bytes));
	uint32_t largest = 0;

	for (size_t i = 0; i < seat->moment.block_count; i++)
		if (gt_site_mask(seat->lane, seat->moment.blocks[i].site) == mask)
			bytes[seat->moment.blocks[i].site] += seat->moment.blocks[i].size;
	for (uint32_t s = 1; s < seat->lane->site_count; s++)
		largest = bytes[s] > bytes[largest] ? s : largest;
	free(bytes);
	return largest;
}

static struct sums sum_up(const struct gt_seat *seat)
{
	struct sums sums = {0};

	for (size_t i = 0; i < seat->moment.block_count; i++) {
		const struct gt_block *block = &seat->moment.blocks[i];
		unsigned int mask = gt_site_mask(seat->lane, block->site);
		bool pool = block->space == GT_SPACE_POOL || block->space == GT_SPACE_GRAPH;

		if (mask == GT_MASK_RESERVED)
			*(pool ? &sums.pools : &sums.segments) += (int64_t)block->size;
		else if (mask == GT_MASK_IN_USE)
			sums.inside += (int64_t)block->size;
	}
	sums.torch_site = largest_site(seat, GT_MASK_TORCH | GT_MASK_IN_USE);
	sums.pool_site = largest_site(seat, GT_MASK_IN_USE);
	return sums;
}

static void add_process(struct making *making, size_t number)
{
	const struct gt_seat *seat = &making->card.seats[number];
	int64_t torch = (int64_t)seat->moment.cur[GT_TOTAL_TORCH];
	struct sums sums = sum_up(seat);

	if (torch || sums.segments) {
		add_own(making, number, GT_LEDGER_TORCH, GT_MEASURED_EXACT, torch)->site =
			seat->lane->site_defs[sums.torch_site];
		add_own(making, number, GT_LEDGER_CACHED, GT_MEASURED_EXACT, sums.segments - torch);
	}
	add_libraries(making, number, GT_LEDGER_LIBRARY, is_library);
	if (sums.pools || sums.inside)
		add_own(making, number, GT_LEDGER_POOLS, GT_MEASURED_SAMPLED,
			sums.pools - sums.inside)
			->site = seat->lane->site_defs[sums.pool_site];
}

static void add_context_rows(struct making *making, size_t number, bool idle)
{
	const struct gt_seat *seat = &making->card.seats[number];

	for (size_t i = 0; i < seat->cost_count; i++) {
		const struct gt_cost *cost = &seat->costs[i];
		struct gt_ledger_row *row =
			add_own(making, number, GT_LEDGER_CONTEXT, cost->measured, cost->bytes);

		row->site.native = cost->context->native;
		row->site.python = cost->context->python;
		row->idle = idle;
	}
}

/* Contexts of processes that asked this device for nothing come first: they are what to act on. */
static void add_processes(struct making *making)
{
	for (int idle = 1; idle >= 0; idle--)
		for (size_t i = 0; i < making->card.count; i++) {
			const struct gt_seat *seat = &making->card.seats[i];

			if (!seat->there || idle != !seat->lane->ctr.peak[GT_TOTAL_RESERVED])
				continue;
			add_process(making, i);
			add_context_rows(making, i, idle);
			add_libraries(making, i, GT_LEDGER_MODULES, is_module);
		}
}

static void add_others(struct making *making)
{
	struct gt_ledger *ledger = making->ledger;
	uint32_t count = making->card.others ? making->card.others->others : 0;

	ledger->names = gt_xcalloc(count, sizeof(*ledger->names));
	for (uint32_t i = 0; i < count; i++) {
		const struct gt_other *other = &making->card.others->other[i];
		struct gt_ledger_row *row;

		if (gt_card_process(&making->card, other->pid))
			continue;
		snprintf(ledger->names[i], sizeof(*ledger->names), "%.*s", (int)sizeof(other->name),
			 other->name);
		row = add_row(making, GT_LEDGER_OTHER, GT_MEASURED_NVML, (int64_t)other->bytes);
		row->pid = other->pid;
		row->name = ledger->names[i];
	}
}

static int64_t sum_of_rows(const struct gt_ledger *ledger)
{
	int64_t sum = 0;

	for (size_t i = 0; i < ledger->row_count; i++)
		sum += ledger->rows[i].bytes;
	return sum;
}

/* What the processes took since the sample is not free any more. */
static void add_rest(struct making *making)
{
	const struct gt_sample *sample = &making->card.sample;
	int64_t rest = (int64_t)making->card.total - sum_of_rows(making->ledger);
	int64_t now, then, free;

	if (!making->card.total)
		return;
	if (!sample->known ||
	    gt_card_traced(&making->card, sample->abs, sample->seat, sample->seq, &then)) {
		add_row(making, GT_LEDGER_REST, GT_MEASURED_DERIVED, rest);
		return;
	}
	now = sum_of_rows(making->ledger) - gt_card_others(&making->card);
	free = (int64_t)sample->free - (now - then);
	add_row(making, GT_LEDGER_UNEXPLAINED, GT_MEASURED_DERIVED, rest - free);
	add_row(making, GT_LEDGER_FREE, now == then ? GT_MEASURED_EXACT : GT_MEASURED_DERIVED,
		free);
	making->ledger->sampled = true;
}

/* ---- host memory ----------------------------------------------------------------------------- */

static size_t host_lane(const struct gt_trace *trace)
{
	size_t i = 0;

	while (i < trace->lane_count && trace->lanes[i].device != GT_DEVICE_HOST)
		i++;
	return i;
}

static void add_host_rows(struct making *making, size_t number, const struct gt_trace_lane *lane,
			  const struct gt_moment *moment)
{
	uint64_t *bytes = gt_xcalloc(lane->site_count + 1, sizeof(*bytes));
	struct gt_ledger *ledger = making->ledger;

	for (size_t i = 0; i < moment->block_count; i++)
		if (moment->blocks[i].space == GT_SPACE_HOST &&
		    moment->blocks[i].site < lane->site_count)
			bytes[moment->blocks[i].site] += moment->blocks[i].size;
	for (size_t s = 0; s < lane->site_count; s++)
		if (bytes[s])
			*GT_PUSH(ledger->host, ledger->host_count) = (struct gt_ledger_row){
				.bytes = (int64_t)bytes[s],
				.process = number,
				.pid = making->card.seats[number].process->trace->header.pid,
				.name = "",
				.site = lane->site_defs[s],
			};
	free(bytes);
}

static int add_host(struct making *making, size_t number, struct gt_error *err)
{
	const struct gt_trace *trace = making->card.seats[number].process->trace;
	size_t lane = host_lane(trace);
	struct gt_moment moment;

	if (lane == trace->lane_count || !making->card.seats[number].there)
		return 0;
	if (gt_moment_get(trace, lane, UINT64_MAX, making->card.now - trace->header.mono_us,
			  &moment, err))
		return -1;
	add_host_rows(making, number, &trace->lanes[lane], &moment);
	gt_moment_clear(&moment);
	return 0;
}

static int larger_first(const void *a, const void *b)
{
	const struct gt_ledger_row *x = a, *y = b;

	return x->bytes > y->bytes ? -1 : x->bytes < y->bytes;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static int make(struct making *making, struct gt_error *err)
{
	struct gt_ledger *ledger = making->ledger;

	add_processes(making);
	add_others(making);
	add_rest(making);
	for (size_t i = 0; i < making->card.count; i++)
		if (add_host(making, i, err))
			return -1;
	if (ledger->host_count)
		qsort(ledger->host, ledger->host_count, sizeof(*ledger->host), larger_first);
	ledger->sample_us =
		(int64_t)ledger->us - (int64_t)(making->card.now - making->card.sample.abs);
	return 0;
}

int gt_ledger_make(const struct gt_ledger_process *processes, size_t count, size_t lead,
		   uint64_t seq, uint64_t us, struct gt_ledger *ret, struct gt_error *err)
{
	struct gt_ledger ledger = {.us = us, .total = processes[lead].device_total};
	struct making making = {.ledger = &ledger};
	int status = gt_card_look(processes, count, lead, seq, us, &making.card, err);

	if (status)
		return status;
	status = make(&making, err);
	gt_card_clear(&making.card);
	if (status)
		gt_ledger_clear(&ledger);
	else
		*ret = ledger;
	return status;
}

void gt_ledger_clear(struct gt_ledger *ledger)
{
	free(ledger->rows);
	free(ledger->host);
	free(ledger->names);
	*ledger = (struct gt_ledger){0};
}

int64_t gt_ledger_of(const struct gt_ledger *ledger, size_t process)
{
	int64_t sum = 0;

	for (size_t i = 0; i < ledger->row_count; i++)
		if (ledger->rows[i].process == process)
			sum += ledger->rows[i].bytes;
	return sum;
}
