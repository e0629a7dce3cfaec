/* SPDX-License-Identifier: MIT */
/*
 * See card.h. What a context took is known only where the driver could be asked before it was made. Of the
 * first one of a process it can not, so there the sample taken right afterwards bounds it: all that was
 * gone then and that nothing else accounts for. Called from ledger.c.
 */
#include "model/card.h"

#include <stdlib.h>
#include <string.h>
#include "model/failure.h"
#include "model/xalloc.h"

/* ---- times ----------------------------------------------------------------------------------- */

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

static int moment_at(const struct gt_seat *seat, uint64_t abs, struct gt_moment *ret,
		     struct gt_error *err)
{
	uint64_t start = seat->process->trace->header.mono_us;

	*ret = (struct gt_moment){0};
	return abs < start ? 0
			   : gt_moment_get(seat->process->trace, seat->process->lane_index,
					   UINT64_MAX, abs - start, ret, err);
}

/* ---- what a process held --------------------------------------------------------------------- */

static int64_t module_bytes(const struct gt_moment *moment)
{
	int64_t sum = 0;

	for (size_t i = 0; i < moment->block_count; i++)
		if (moment->blocks[i].space == GT_SPACE_MODULE)
			sum += (int64_t)moment->blocks[i].size;
	return sum;
}

static int64_t context_bytes(const struct gt_seat *seat, uint64_t abs)
{
	int64_t sum = 0;

	for (size_t i = 0; i < seat->cost_count; i++)
		if (seat->costs[i].abs <= abs)
			sum += seat->costs[i].bytes;
	return sum;
}

int gt_card_traced(const struct gt_card *card, uint64_t abs, size_t exactly, uint64_t seq,
		   int64_t *ret)
{
	struct gt_error ignored;
	int64_t sum = 0;

	for (size_t i = 0; i < card->count; i++) {
		const struct gt_seat *seat = &card->seats[i];
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

/* ---- samples of the device ------------------------------------------------------------------- */

static bool is_sample(const struct gt_event *event)
{
	return (event->op == GT_OP_SAMPLE ||
		(event->op == GT_OP_FAILED && event->aux == GT_CUDA_OUT_OF_MEMORY)) &&
	       event->extra != GT_UNKNOWN_BYTES;
}

static struct gt_sample sample_of(const struct gt_card *card, size_t seat,
				  const struct gt_event *event)
{
	return (struct gt_sample){
		.abs = absolute(card->seats[seat].process->trace, event->us),
		.seq = event->seq,
		.free = event->extra,
		.seat = seat,
		.known = true,
	};
}

/* The newest that the seat's moment has behind it. */
static struct gt_sample last_sample(const struct gt_card *card, size_t number)
{
	const struct gt_seat *seat = &card->seats[number];
	struct gt_cursor *cursor = gt_cursor_new(seat->process->trace, seat->process->lane_index);
	struct gt_sample sample = {0};
	const struct gt_event *event;

	gt_cursor_seek(cursor, seat->moment.seq);
	while (!sample.known && (event = gt_cursor_prev(cursor, NULL)))
		if (is_sample(event))
			sample = sample_of(card, number, event);
	gt_cursor_free(cursor);
	return sample;
}

/* A report keeps its sample when the history has gone. */
static void sample_of_reports(const struct gt_card *card, size_t number, struct gt_sample *sample)
{
	const struct gt_seat *seat = &card->seats[number];
	const struct gt_trace *trace = seat->process->trace;

	for (size_t i = 0; !sample->known && i < trace->report_count; i++) {
		const struct gt_report *report = &trace->reports[i];

		if (report->lane != seat->lane->lane || report->seq > seat->moment.seq ||
		    report->device_free == GT_UNKNOWN_BYTES)
			continue;
		*sample = (struct gt_sample){absolute(trace, report->us), report->seq,
					     report->device_free, number, true};
	}
}

static void find_sample(struct gt_card *card)
{
	for (size_t i = 0; i < card->count; i++) {
		struct gt_sample sample;

		if (!card->seats[i].there)
			continue;
		sample = last_sample(card, i);
		sample_of_reports(card, i, &sample);
		if (sample.known && (!card->sample.known || sample.abs > card->sample.abs))
			card->sample = sample;
	}
}

/* The first one after a time: what was left when a context had just been made. */
static struct gt_sample sample_after(const struct gt_card *card, size_t number, uint64_t us)
{
	const struct gt_seat *seat = &card->seats[number];
	struct gt_cursor *cursor = gt_cursor_new(seat->process->trace, seat->process->lane_index);
	struct gt_sample sample = {0};
	const struct gt_event *event;

	if (!seat->lane->history_us || seat->lane->history_us <= us)
		while (!sample.known && (event = gt_cursor_next(cursor, NULL)))
			if (event->us >= us && is_sample(event))
				sample = sample_of(card, number, event);
	gt_cursor_free(cursor);
	return sample;
}

/* ---- other processes ------------------------------------------------------------------------- */

const struct gt_seat *gt_card_process(const struct gt_card *card, uint32_t pid)
{
	for (size_t i = 0; i < card->count; i++)
		if (card->seats[i].process->trace->header.pid == pid)
			return &card->seats[i];
	return NULL;
}

static void find_others(struct gt_card *card)
{
	for (size_t i = 0; i < card->count; i++) {
		const struct gt_seat *seat = &card->seats[i];
		const struct gt_trace *trace = seat->process->trace;

		for (size_t r = 0; seat->there && r < trace->report_count; r++) {
			const struct gt_report *report = &trace->reports[r];

			if (report->lane != seat->lane->lane || !report->others ||
			    absolute(trace, report->us) > card->now)
				continue;
			if (card->others &&
			    absolute(trace, report->us) <
				    absolute(card->told_by->process->trace, card->others->us))
				continue;
			card->others = report;
			card->told_by = seat;
		}
	}
}

int64_t gt_card_others(const struct gt_card *card)
{
	int64_t sum = 0;

	for (uint32_t i = 0; card->others && i < card->others->others; i++)
		if (!gt_card_process(card, card->others->other[i].pid))
			sum += (int64_t)card->others->other[i].bytes;
	return sum;
}

/* ---- contexts -------------------------------------------------------------------------------- */

/* NVML has told another process all that this one had then: the context is what is left of it. */
static bool by_nvml(const struct gt_card *card, const struct gt_seat *seat, struct gt_cost *cost)
{
	struct gt_error ignored;
	uint64_t abs;

	if (!card->others || seat->cost_count != 1)
		return false;
	abs = absolute(card->told_by->process->trace, card->others->us);
	for (uint32_t i = 0; i < card->others->others; i++) {
		const struct gt_other *other = &card->others->other[i];
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
static void by_sample(const struct gt_card *card, size_t number, struct gt_cost *cost)
{
	struct gt_sample sample = sample_after(card, number, cost->context->us);
	int64_t traced;

	if (!sample.known || cost->context->flags & GT_CONTEXT_GREEN ||
	    gt_card_traced(card, sample.abs, number, sample.seq, &traced))
		return;
	cost->bytes = (int64_t)card->total - (int64_t)sample.free - traced - gt_card_others(card);
	cost->bytes = cost->bytes > 0 ? cost->bytes : 0;
	cost->measured = GT_MEASURED_AT_MOST;
}

static void add_contexts(struct gt_seat *seat)
{
	const struct gt_trace *trace = seat->process->trace;
	const struct gt_context_def *context;

	for (size_t i = 0; seat->there && i < trace->context_count; i++) {
		context = &trace->contexts[i];
		if (context->device != seat->lane->device || context->us > seat->moment.us)
			continue;
		*GT_PUSH(seat->costs, seat->cost_count) = (struct gt_cost){
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
static struct gt_cost *next_unmeasured(const struct gt_card *card, const struct gt_cost *after,
				       size_t *ret_seat)
{
	struct gt_cost *oldest = NULL;

	for (size_t i = 0; i < card->count; i++)
		for (size_t c = 0; c < card->seats[i].cost_count; c++) {
			struct gt_cost *cost = &card->seats[i].costs[c];

			if (cost->measured != GT_MEASURED_NOT ||
			    (after && cost->abs <= after->abs) ||
			    (oldest && oldest->abs <= cost->abs))
				continue;
			oldest = cost;
			*ret_seat = i;
		}
	return oldest;
}

static void find_contexts(struct gt_card *card)
{
	struct gt_cost *cost = NULL;
	size_t seat = 0;

	for (size_t i = 0; i < card->count; i++)
		add_contexts(&card->seats[i]);
	while ((cost = next_unmeasured(card, cost, &seat)))
		if (!by_nvml(card, &card->seats[seat], cost) && card->total)
			by_sample(card, seat, cost);
}

/* ---- all of it ------------------------------------------------------------------------------- */

static int find_lead(struct gt_seat *seat, uint64_t seq, struct gt_error *err)
{
	const struct gt_state *state = seat->process->state;

	seat->there = true;
	seat->lent = state && state->blocks_known;
	if (!seat->lent)
		return gt_moment_get(seat->process->trace, seat->process->lane_index, seq,
				     UINT64_MAX, &seat->moment, err);
	seat->moment = (struct gt_moment){
		.seq = state->seq,
		.us = state->us,
		.blocks = state->blocks,
		.block_count = state->all_count,
	};
	memcpy(seat->moment.cur, state->cur, sizeof(state->cur));
	return 0;
}

static int find_moments(struct gt_card *card, size_t lead, uint64_t seq, uint64_t us,
			struct gt_error *err)
{
	struct gt_seat *first = &card->seats[lead];

	if (find_lead(first, seq, err))
		return -1;
	card->now = absolute(first->process->trace, us);
	for (size_t i = 0; i < card->count; i++) {
		struct gt_seat *seat = &card->seats[i];

		if (i == lead || !lived(seat->process->trace, card->now))
			continue;
		if (moment_at(seat, card->now, &seat->moment, err))
			return -1;
		seat->there = true;
	}
	return 0;
}

int gt_card_look(const struct gt_ledger_process *processes, size_t count, size_t lead, uint64_t seq,
		 uint64_t us, struct gt_card *ret, struct gt_error *err)
{
	struct gt_card card = {
		.seats = gt_xcalloc(count, sizeof(*card.seats)),
		.count = count,
		.total = processes[lead].device_total,
	};

	for (size_t i = 0; i < count; i++) {
		card.seats[i].process = &processes[i];
		card.seats[i].lane = &processes[i].trace->lanes[processes[i].lane_index];
	}
	if (find_moments(&card, lead, seq, us, err)) {
		gt_card_clear(&card);
		return -1;
	}
	find_others(&card);
	find_contexts(&card);
	find_sample(&card);
	*ret = card;
	return 0;
}

void gt_card_clear(struct gt_card *card)
{
	for (size_t i = 0; i < card->count; i++) {
		if (!card->seats[i].lent)
			gt_moment_clear(&card->seats[i].moment);
		free(card->seats[i].costs);
	}
	free(card->seats);
	*card = (struct gt_card){0};
}
