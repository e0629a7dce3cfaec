/* SPDX-License-Identifier: MIT */
/*
 * See ledger.h. Blocks say what the processes hold; what a context took is known only where the
 * driver could be asked before it was made. Of the first one of a process it can not, so there the
 * sample taken right afterwards bounds it: all that was gone then and that no row accounts for.
 * Free memory is sampled, not followed: from the last sample to the moment it falls by what the
 * traced processes took since. Called from cmd/.
 */
#include "model/ledger.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "model/walk.h"
#include "model/xalloc.h"

#define CUDA_OUT_OF_MEMORY 2

struct cost { /* of a context */
	const struct gt_context_def *context;
	uint64_t abs; /* when */
	int64_t bytes;
	enum gt_measured measured;
};

struct seat { /* a process at the device */
	const struct gt_ledger_process *process;
	const struct gt_trace_lane *lane;
	struct gt_moment moment;
	bool there;
	struct cost *costs;
	size_t cost_count;
};

struct sample {
	uint64_t abs, seq, free;
	size_t seat;
	bool known;
};

struct making {
	struct seat *seats;
	size_t count;
	uint64_t now; /* as below */
	struct sample sample;
	const struct gt_report *others; /* latest that names other processes */
	const struct seat *told_by;
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

/* ---- times ------------------------------------------------------------------------------------- */

/* Processes of one machine share its monotonic clock. */
static uint64_t absolute(const struct gt_trace *trace, uint64_t us)
{
	return trace->header.mono_us + us;
}

static bool lived(const struct gt_trace *trace, uint64_t abs)
{
	const struct gt_header *header = &trace->header;

	return abs >= header->mono_us &&
	       (!header->exit_us || abs <= absolute(trace, header->exit_us));
}

static int moment_at(const struct seat *seat, uint64_t abs, struct gt_moment *ret,
		     struct gt_error *err)
{
	uint64_t start = seat->process->trace->header.mono_us;

	*ret = (struct gt_moment){0};
	return abs < start ? 0
			   : gt_moment_get(seat->process->trace, seat->process->lane_index,
					   UINT64_MAX, abs - start, ret, err);
}

/* ---- what a process held ------------------------------------------------------------------------ */

static int64_t module_bytes(const struct gt_moment *moment)
{
	int64_t sum = 0;

	for (size_t i = 0; i < moment->block_count; i++)
		if (moment->blocks[i].space == GT_SPACE_MODULE)
			sum += (int64_t)moment->blocks[i].size;
	return sum;
}

static int64_t context_bytes(const struct seat *seat, uint64_t abs)
{
	int64_t sum = 0;

	for (size_t i = 0; i < seat->cost_count; i++)
		if (seat->costs[i].abs <= abs)
			sum += seat->costs[i].bytes;
	return sum;
}

/* All of the traced processes at a time; seat `exactly` after its event seq. -1 = not known. */
static int traced_at(const struct making *making, uint64_t abs, size_t exactly, uint64_t seq,
		     int64_t *ret)
{
	struct gt_error ignored;
	int64_t sum = 0;

	for (size_t i = 0; i < making->count; i++) {
		const struct seat *seat = &making->seats[i];
		struct gt_moment moment;

		if (!lived(seat->process->trace, abs))
			continue;
		if (i == exactly ? gt_moment_get(seat->process->trace, seat->process->lane_index,
						 seq, UINT64_MAX, &moment, &ignored)
				 : moment_at(seat, abs, &moment, &ignored))
			return -1;
		sum += (int64_t)moment.cur[GT_TOTAL_RESERVED] + module_bytes(&moment) +
		       context_bytes(seat, abs);
		gt_moment_clear(&moment);
	}
	*ret = sum;
	return 0;
}

/* ---- samples of the device ----------------------------------------------------------------------- */

static bool is_sample(const struct gt_event *event)
{
	return (event->op == GT_OP_SAMPLE ||
		(event->op == GT_OP_FAILED && event->aux == CUDA_OUT_OF_MEMORY)) &&
	       event->extra != GT_UNKNOWN_BYTES;
}

static struct sample sample_of(const struct making *making, size_t seat,
			       const struct gt_event *event)
{
	return (struct sample){
		.abs = absolute(making->seats[seat].process->trace, event->us),
		.seq = event->seq,
		.free = event->extra,
		.seat = seat,
		.known = true,
	};
}

/* The newest that the seat's moment has behind it. */
static struct sample last_sample(const struct making *making, size_t number)
{
	const struct seat *seat = &making->seats[number];
	struct gt_cursor *cursor = gt_cursor_new(seat->process->trace, seat->process->lane_index);
	struct sample sample = {0};
	const struct gt_event *event;

	gt_cursor_seek(cursor, seat->moment.seq);
	while (!sample.known && (event = gt_cursor_prev(cursor, NULL)))
		if (is_sample(event))
			sample = sample_of(making, number, event);
	gt_cursor_free(cursor);
	return sample;
}

/* A report keeps its sample when the history has gone. */
static void sample_of_reports(const struct making *making, size_t number, struct sample *sample)
{
	const struct seat *seat = &making->seats[number];
	const struct gt_trace *trace = seat->process->trace;

	for (size_t i = 0; !sample->known && i < trace->report_count; i++) {
		const struct gt_report *report = &trace->reports[i];

		if (report->lane != seat->lane->lane || report->seq > seat->moment.seq ||
		    report->device_free == GT_UNKNOWN_BYTES)
			continue;
		*sample = (struct sample){absolute(trace, report->us), report->seq,
					  report->device_free, number, true};
	}
}

static void find_sample(struct making *making)
{
	for (size_t i = 0; i < making->count; i++) {
		struct sample sample;

		if (!making->seats[i].there)
			continue;
		sample = last_sample(making, i);
		sample_of_reports(making, i, &sample);
		if (sample.known && (!making->sample.known || sample.abs > making->sample.abs))
			making->sample = sample;
	}
}

/* The first one after a time: what was left when a context had just been made. */
static struct sample sample_after(const struct making *making, size_t number, uint64_t us)
{
	const struct seat *seat = &making->seats[number];
	struct gt_cursor *cursor = gt_cursor_new(seat->process->trace, seat->process->lane_index);
	struct sample sample = {0};
	const struct gt_event *event;

	if (!seat->lane->history_us || seat->lane->history_us <= us)
		while (!sample.known && (event = gt_cursor_next(cursor, NULL)))
			if (event->us >= us && is_sample(event))
				sample = sample_of(making, number, event);
	gt_cursor_free(cursor);
	return sample;
}

/* ---- other processes ------------------------------------------------------------------------------ */

static const struct seat *seat_of_pid(const struct making *making, uint32_t pid)
{
	for (size_t i = 0; i < making->count; i++)
		if (making->seats[i].process->trace->header.pid == pid)
			return &making->seats[i];
	return NULL;
}

static void find_others(struct making *making)
{
	for (size_t i = 0; i < making->count; i++) {
		const struct seat *seat = &making->seats[i];
		const struct gt_trace *trace = seat->process->trace;

		for (size_t r = 0; seat->there && r < trace->report_count; r++) {
			const struct gt_report *report = &trace->reports[r];

			if (report->lane != seat->lane->lane || !report->others ||
			    absolute(trace, report->us) > making->now)
				continue;
			if (making->others &&
			    absolute(trace, report->us) <
				    absolute(making->told_by->process->trace, making->others->us))
				continue;
			making->others = report;
			making->told_by = seat;
		}
	}
}

/* Of the processes that NVML named, those without a trace. */
static int64_t others_bytes(const struct making *making)
{
	int64_t sum = 0;

	for (uint32_t i = 0; making->others && i < making->others->others; i++)
		if (!seat_of_pid(making, making->others->other[i].pid))
			sum += (int64_t)making->others->other[i].bytes;
	return sum;
}

/* ---- contexts ------------------------------------------------------------------------------------ */

/* NVML has told another process all that this one had then: the context is what is left of it. */
static bool by_nvml(const struct making *making, const struct seat *seat, struct cost *cost)
{
	struct gt_error ignored;
	uint64_t abs;

	if (!making->others || seat->cost_count != 1)
		return false;
	abs = absolute(making->told_by->process->trace, making->others->us);
	for (uint32_t i = 0; i < making->others->others; i++) {
		const struct gt_other *other = &making->others->other[i];
		struct gt_moment moment;

		if (other->pid != seat->process->trace->header.pid || cost->abs > abs ||
		    moment_at(seat, abs, &moment, &ignored))
			continue;
		cost->bytes = (int64_t)other->bytes - (int64_t)moment.cur[GT_TOTAL_RESERVED] -
			      module_bytes(&moment);
		cost->measured = GT_MEASURED_NVML;
		gt_moment_clear(&moment);
		return cost->bytes >= 0;
	}
	return false;
}

/* Contexts made before have their costs already, this one none: what is missing is its. */
static void by_sample(const struct making *making, size_t number, struct cost *cost)
{
	struct sample sample = sample_after(making, number, cost->context->us);
	int64_t traced;

	if (!sample.known || cost->context->flags & GT_CONTEXT_GREEN ||
	    traced_at(making, sample.abs, number, sample.seq, &traced))
		return;
	cost->bytes = (int64_t)making->ledger->total - (int64_t)sample.free - traced -
		      others_bytes(making);
	cost->bytes = cost->bytes > 0 ? cost->bytes : 0;
	cost->measured = GT_MEASURED_AT_MOST;
}

static void add_contexts(struct seat *seat)
{
	const struct gt_trace *trace = seat->process->trace;
	const struct gt_context_def *context;

	for (size_t i = 0; seat->there && i < trace->context_count; i++) {
		context = &trace->contexts[i];
		if (context->device != seat->lane->device || context->us > seat->moment.us)
			continue;
		*GT_PUSH(seat->costs, seat->cost_count) = (struct cost){
			.context = context,
			.abs = absolute(trace, context->us),
			.bytes = context->bytes == INT64_MIN ? 0 : context->bytes,
			.measured = context->bytes == INT64_MIN		? GT_MEASURED_NOT
				    : context->flags & GT_CONTEXT_ALONE ? GT_MEASURED_ALONE
									: GT_MEASURED_MIXED,
		};
	}
}

/* The oldest context of all that has no figure yet. */
static struct cost *next_unmeasured(const struct making *making, const struct cost *after,
				    size_t *ret_seat)
{
	struct cost *oldest = NULL;

	for (size_t i = 0; i < making->count; i++)
		for (size_t c = 0; c < making->seats[i].cost_count; c++) {
			struct cost *cost = &making->seats[i].costs[c];

			if (cost->measured != GT_MEASURED_NOT ||
			    (after && cost->abs <= after->abs) ||
			    (oldest && oldest->abs <= cost->abs))
				continue;
			oldest = cost;
			*ret_seat = i;
		}
	return oldest;
}

static void find_contexts(struct making *making)
{
	struct cost *cost = NULL;
	size_t seat = 0;

	for (size_t i = 0; i < making->count; i++)
		add_contexts(&making->seats[i]);
	while ((cost = next_unmeasured(making, cost, &seat)))
		if (!by_nvml(making, &making->seats[seat], cost) && making->ledger->total)
			by_sample(making, seat, cost);
}

/* ---- rows ------------------------------------------------------------------------------------------ */

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
	row->pid = making->seats[seat].process->trace->header.pid;
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

static void add_share(const struct seat *seat, struct shares *shares, uint32_t site, uint64_t bytes)
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
	struct seat *seat = &making->seats[number];
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
static uint32_t largest_site(const struct seat *seat, unsigned int mask)
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

static struct sums sum_up(const struct seat *seat)
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
	const struct seat *seat = &making->seats[number];
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
	const struct seat *seat = &making->seats[number];

	for (size_t i = 0; i < seat->cost_count; i++) {
		const struct cost *cost = &seat->costs[i];
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
		for (size_t i = 0; i < making->count; i++) {
			const struct seat *seat = &making->seats[i];

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
	uint32_t count = making->others ? making->others->others : 0;

	ledger->names = gt_xcalloc(count, sizeof(*ledger->names));
	for (uint32_t i = 0; i < count; i++) {
		const struct gt_other *other = &making->others->other[i];
		struct gt_ledger_row *row;

		if (seat_of_pid(making, other->pid))
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
	const struct sample *sample = &making->sample;
	int64_t rest = (int64_t)making->ledger->total - sum_of_rows(making->ledger);
	int64_t now, then, free;

	if (!making->ledger->total)
		return;
	if (!sample->known || traced_at(making, sample->abs, sample->seat, sample->seq, &then)) {
		add_row(making, GT_LEDGER_REST, GT_MEASURED_DERIVED, rest);
		return;
	}
	now = sum_of_rows(making->ledger) - others_bytes(making);
	free = (int64_t)sample->free - (now - then);
	add_row(making, GT_LEDGER_UNEXPLAINED, GT_MEASURED_DERIVED, rest - free);
	add_row(making, GT_LEDGER_FREE, now == then ? GT_MEASURED_EXACT : GT_MEASURED_DERIVED,
		free);
	making->ledger->sampled = true;
}

/* ---- host memory ------------------------------------------------------------------------------------ */

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
				.pid = making->seats[number].process->trace->header.pid,
				.name = "",
				.site = lane->site_defs[s],
			};
	free(bytes);
}

static int add_host(struct making *making, size_t number, struct gt_error *err)
{
	const struct gt_trace *trace = making->seats[number].process->trace;
	size_t lane = host_lane(trace);
	struct gt_moment moment;

	if (lane == trace->lane_count || !making->seats[number].there)
		return 0;
	if (gt_moment_get(trace, lane, UINT64_MAX, making->now - trace->header.mono_us, &moment,
			  err))
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

/* ---- all of it ----------------------------------------------------------------------------------------- */

static int find_moments(struct making *making, size_t lead, uint64_t seq, uint64_t us,
			struct gt_error *err)
{
	struct seat *first = &making->seats[lead];

	if (gt_moment_get(first->process->trace, first->process->lane_index, seq, UINT64_MAX,
			  &first->moment, err))
		return -1;
	first->there = true;
	making->ledger->us = us;
	making->now = absolute(first->process->trace, us);
	for (size_t i = 0; i < making->count; i++) {
		struct seat *seat = &making->seats[i];

		if (i == lead || !lived(seat->process->trace, making->now))
			continue;
		if (moment_at(seat, making->now, &seat->moment, err))
			return -1;
		seat->there = true;
	}
	return 0;
}

static int make(struct making *making, size_t lead, uint64_t seq, uint64_t us, struct gt_error *err)
{
	struct gt_ledger *ledger = making->ledger;

	if (find_moments(making, lead, seq, us, err))
		return -1;
	find_others(making);
	find_contexts(making);
	find_sample(making);
	add_processes(making);
	add_others(making);
	add_rest(making);
	for (size_t i = 0; i < making->count; i++)
		if (add_host(making, i, err))
			return -1;
	if (ledger->host_count)
		qsort(ledger->host, ledger->host_count, sizeof(*ledger->host), larger_first);
	ledger->sample_us = (int64_t)ledger->us - (int64_t)(making->now - making->sample.abs);
	return 0;
}

int gt_ledger_make(const struct gt_ledger_process *processes, size_t count, size_t lead,
		   uint64_t seq, uint64_t us, struct gt_ledger *ret, struct gt_error *err)
{
	struct gt_ledger ledger = {0};
	struct making making = {
		.seats = gt_xcalloc(count, sizeof(*making.seats)),
		.count = count,
		.ledger = &ledger,
	};
	int status;

	for (size_t i = 0; i < count; i++) {
		making.seats[i].process = &processes[i];
		making.seats[i].lane = &processes[i].trace->lanes[processes[i].lane_index];
	}
	ledger.total = processes[lead].device_total;
	status = make(&making, lead, seq, us, err);
	for (size_t i = 0; i < count; i++) {
		gt_moment_clear(&making.seats[i].moment);
		free(making.seats[i].costs);
	}
	free(making.seats);
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
