/* SPDX-License-Identifier: MIT */
/*
 * The model against brute force: random event programs with their full list of events, also such
 * whose beginning the ring has dropped. Whatever the model says of an earlier moment must be what
 * applying all events up to it gives.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "../read/writer.h"
#include "model/diff.h"
#include "model/failure.h"
#include "model/group.h"
#include "model/series.h"
#include "model/state.h"
#include "model/walk.h"
#include "model/window.h"

#define MIB (1ull << 20)

#define PROGRAMS 60

struct program {
	struct written *written;
	struct gt_trace *trace;
	char path[64];
};

static void open_program(struct program *program, uint64_t seed, size_t ring)
{
	struct writer_options options = {
		.seed = seed * 7919 + 1,
		.events = 3000,
		.lanes = 2,
		.cap = 64,
		.extent = 16384,
		.ring = ring,
		.sites = 23,
		.live = 40,
	};
	struct gt_error err = {0};

	snprintf(program->path, sizeof(program->path), "/tmp/gt-model-%d.gtrace", (int)getpid());
	program->written = writer_make(&options);
	cr_assert_eq(writer_save(program->written, program->path, program->written->size), 0);
	cr_assert_eq(gt_trace_open(program->path, 0, &program->trace, &err), 0, "%s", err.text);
}

static void close_program(struct program *program)
{
	gt_trace_close(program->trace);
	writer_free(program->written);
	unlink(program->path);
}

/* ---- brute force ----------------------------------------------------------------------------- */

struct world {
	struct gt_block blocks[4096];
	size_t count;
	int64_t cur[GT_TOTALS];
	int64_t peak[GT_TOTALS];
	uint64_t peak_seq[GT_TOTALS];
};

static bool is_block(const struct gt_block *block, const struct gt_event *event)
{
	return block->addr == event->addr && block->space == event->space;
}

static void begin_block(struct world *world, const struct gt_event *event)
{
	cr_assert_lt(world->count, sizeof(world->blocks) / sizeof(world->blocks[0]));
	world->blocks[world->count++] = (struct gt_block){
		.addr = event->addr,
		.size = event->size,
		.birth_us = event->birth_us,
		.site = event->site,
		.stream = event->stream,
		.thread = event->birth_thread,
		.space = event->space,
	};
}

static void end_block(struct world *world, const struct gt_event *event)
{
	for (size_t i = 0; i < world->count; i++)
		if (is_block(&world->blocks[i], event)) {
			world->blocks[i] = world->blocks[--world->count];
			return;
		}
	cr_assert_fail("a free of a block that is not there");
}

static void apply(struct world *world, const struct gt_trace_lane *lane,
		  const struct gt_event *event)
{
	int sign = event->op == GT_OP_ALLOC || event->op == GT_OP_UNFREE	 ? 1
		   : event->op == GT_OP_FREE || event->op == GT_OP_IMPLICIT_FREE ? -1
										 : 0;

	if (sign > 0)
		begin_block(world, event);
	else if (sign < 0)
		end_block(world, event);
	for (int k = 0; k < GT_TOTALS; k++) {
		if (!(lane->site_defs[event->site].mask & 1u << k))
			continue;
		world->cur[k] += sign * (int64_t)event->size;
		if (world->cur[k] > world->peak[k]) {
			world->peak[k] = world->cur[k];
			world->peak_seq[k] = event->seq;
		}
	}
}

static struct world *world_at(const struct program *program, size_t lane_index, uint64_t seq)
{
	const struct gt_trace_lane *lane = &program->trace->lanes[lane_index];
	const struct written_lane *all = &program->written->lanes[lane->lane];
	struct world *world = calloc(1, sizeof(*world));

	for (size_t i = 0; i < all->count && all->events[i].seq <= seq; i++)
		apply(world, lane, &all->events[i]);
	return world;
}

static int by_key(const void *a, const void *b)
{
	const struct gt_block *x = a, *y = b;

	if (x->addr != y->addr)
		return x->addr < y->addr ? -1 : 1;
	return (int)x->space - (int)y->space;
}

static void same_blocks(struct gt_block *a, size_t count_a, struct gt_block *b, size_t count_b)
{
	cr_assert_eq(count_a, count_b);
	qsort(a, count_a, sizeof(*a), by_key);
	qsort(b, count_b, sizeof(*b), by_key);
	for (size_t i = 0; i < count_a; i++) {
		cr_assert_eq(a[i].addr, b[i].addr);
		cr_assert_eq(a[i].space, b[i].space);
		cr_assert_eq(a[i].size, b[i].size);
		cr_assert_eq(a[i].site, b[i].site);
		cr_assert_eq(a[i].stream, b[i].stream);
		cr_assert_eq(a[i].birth_us, b[i].birth_us);
	}
}

static uint64_t site_bytes(const struct world *world, uint32_t site)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < world->count; i++)
		if (world->blocks[i].site == site)
			sum += world->blocks[i].size;
	return sum;
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void check_moment(const struct program *program, size_t lane_index, uint64_t seq)
{
	struct world *world = world_at(program, lane_index, seq);
	struct gt_moment moment;
	struct gt_error err = {0};

	cr_assert_eq(gt_moment_get(program->trace, lane_index, seq, UINT64_MAX, &moment, &err), 0,
		     "%s", err.text);
	cr_assert_eq(moment.seq, seq);
	same_blocks(moment.blocks, moment.block_count, world->blocks, world->count);
	for (int k = 0; k < GT_TOTALS; k++)
		cr_assert_eq((int64_t)moment.cur[k], world->cur[k]);
	gt_moment_clear(&moment);
	free(world);
}

Test(walk, equals_brute_force_at_every_reach)
{
	size_t dropped = 0;

	for (uint64_t seed = 0; seed < PROGRAMS; seed++) {
		struct program program;

		open_program(&program, seed, seed % 2 ? 6 : 1000);
		for (size_t l = 0; l < program.trace->lane_count; l++) {
			const struct gt_trace_lane *lane = &program.trace->lanes[l];
			uint64_t first = lane->history_first - 1;

			dropped += first > 0;
			check_moment(&program, l, lane->seq);
			check_moment(&program, l, first);
			for (uint64_t i = 0; i < 5; i++)
				check_moment(&program, l,
					     first + (lane->seq - first) * (i * 37 % 101) / 101);
		}
		close_program(&program);
	}
	cr_assert_gt(dropped, 20);
}

Test(walk, says_since_when_there_is_history)
{
	struct program program;
	struct gt_moment moment;
	struct gt_error err = {0};

	open_program(&program, 5, 6);
	cr_assert_gt(program.trace->lanes[0].history_first, 1);
	cr_assert_eq(gt_moment_get(program.trace, 0, 1, UINT64_MAX, &moment, &err), -1);
	cr_assert_eq(err.status, 2);
	cr_assert_not_null(strstr(err.text, "history starts at"));
	close_program(&program);
}

static void check_peak(const struct program *program, size_t l, enum gt_total total)
{
	const struct gt_trace_lane *lane = &program->trace->lanes[l];
	struct world *all = world_at(program, l, lane->seq);
	struct world *then = world_at(program, l, all->peak_seq[total]);
	struct gt_when when = {.kind = GT_WHEN_PEAK};
	struct gt_state state;
	struct gt_error err = {0};
	uint64_t sum = 0;

	cr_assert_eq(gt_state_get(program->trace, l, total, when, &state, &err), 0);
	cr_assert_eq((int64_t)state.bytes, all->peak[total]);
	cr_assert_eq(state.seq, all->peak_seq[total]);
	for (size_t i = 0; i < state.hold_count; i++) {
		cr_assert_eq(state.holds[i].bytes, site_bytes(then, state.holds[i].site));
		cr_assert(!i || state.holds[i].bytes <= state.holds[i - 1].bytes);
		sum += state.holds[i].bytes;
	}
	cr_assert_eq(sum, state.bytes);
	/* The rule for site lines alone, also where the history would do. */
	for (size_t i = 0; i < lane->site_count; i++) {
		bool counts = lane->site_defs[i].mask & 1u << total;

		cr_assert_eq(gt_site_at_peak(lane, i, (int)total),
			     counts ? site_bytes(then, (uint32_t)i) : 0);
	}
	gt_state_clear(&state);
	free(then);
	free(all);
}

Test(peak, holders_equal_brute_force_with_and_without_history)
{
	size_t without = 0;

	for (uint64_t seed = 0; seed < PROGRAMS; seed++) {
		struct program program;

		open_program(&program, seed, seed % 2 ? 6 : 1000);
		for (size_t l = 0; l < program.trace->lane_count; l++)
			for (int k = 0; k < GT_TOTALS; k++) {
				const struct gt_trace_lane *lane = &program.trace->lanes[l];

				without += !gt_history_reaches(lane, lane->ctr.peak_seq[k]);
				check_peak(&program, l, (enum gt_total)k);
			}
		close_program(&program);
	}
	cr_assert_gt(without, 20);
}

Test(walk, what_torch_holds_is_not_what_pools_and_graphs_hold)
{
	struct gt_site_def defs[] = {
		{0},
		{.space = GT_SPACE_DRIVER, .mask = GT_MASK_RESERVED},
		{.space = GT_SPACE_MAPPING, .mask = GT_MASK_RESERVED},
		{.space = GT_SPACE_POOL, .mask = GT_MASK_RESERVED},
		{.space = GT_SPACE_GRAPH, .mask = GT_MASK_RESERVED},
		{.space = GT_SPACE_DRIVER, .mask = GT_MASK_RESERVED | GT_MASK_IN_USE},
		{.space = GT_SPACE_TORCH, .mask = GT_MASK_TORCH | GT_MASK_IN_USE},
	};
	struct gt_site sites[] = {{.live = 0}, {.live = 1},  {.live = 2}, {.live = 4},
				  {.live = 8}, {.live = 16}, {.live = 32}};
	struct gt_trace_lane lane = {.site_defs = defs, .sites = sites, .site_count = 7};

	cr_assert_eq(gt_torch_reserved(&lane), 3);
}

/* The number of the last event before the microsecond. */
static uint64_t last_before(const struct program *program, size_t l, uint64_t us)
{
	const struct gt_trace_lane *lane = &program->trace->lanes[l];
	const struct written_lane *all = &program->written->lanes[lane->lane];
	uint64_t seq = 0;

	for (size_t i = 0; i < all->count && all->events[i].seq <= lane->seq; i++)
		if (all->events[i].us < us)
			seq = all->events[i].seq;
	return seq;
}

/* As if exit() had begun then: true if the history reaches so far back. */
static bool check_end(struct program *program, size_t l, uint64_t exit_us)
{
	const struct gt_trace_lane *lane = &program->trace->lanes[l];
	const bool reaches = lane->history_first == 1 || lane->history_us < exit_us;
	const uint64_t seq = reaches ? last_before(program, l, exit_us) : lane->seq;
	struct world *world = world_at(program, l, seq);
	struct gt_when when = {.kind = GT_WHEN_END};
	struct gt_error err = {0};
	struct gt_state state;

	program->trace->header.exit_us = exit_us;
	cr_assert_eq(gt_state_get(program->trace, l, GT_TOTAL_IN_USE, when, &state, &err), 0, "%s",
		     err.text);
	cr_assert_eq((int64_t)state.bytes, world->cur[GT_TOTAL_IN_USE]);
	cr_assert_eq(state.seq, seq);
	cr_assert_eq(state.teardown, !reaches);
	gt_state_clear(&state);
	free(world);
	return reaches;
}

Test(end, is_before_the_microsecond_in_which_exit_began)
{
	size_t reached = 0, missed = 0;

	for (uint64_t seed = 0; seed < 12; seed++) {
		struct program program;

		open_program(&program, seed, seed % 2 ? 6 : 1000);
		for (size_t l = 0; l < program.trace->lane_count; l++) {
			const struct gt_trace_lane *lane = &program.trace->lanes[l];
			const struct written_lane *all = &program.written->lanes[lane->lane];

			for (size_t i = 1; i < all->count && all->events[i].seq <= lane->seq;
			     i += 97)
				*(check_end(&program, l, all->events[i].us) ? &reached : &missed) +=
					1;
		}
		close_program(&program);
	}
	cr_assert_gt(reached, 50);
	cr_assert_gt(missed, 5);
}

Test(hold, is_of_all_its_blocks_and_says_where_they_differ)
{
	const struct gt_block blocks[] = {
		{.size = 512, .requested = 500, .birth_us = 7, .stream = 1, .pool = 2},
		{.size = 1024, .birth_us = 3, .stream = 1, .pool = 3},
		{.size = 512, .requested = 1, .birth_us = 5, .stream = 4, .pool = 2},
	};
	struct gt_hold hold = {0};

	gt_hold_add(&hold, &blocks[0]);
	cr_assert_eq(hold.stream, 1);
	cr_assert_eq(hold.pool, 2);
	cr_assert_eq(hold.requested_of, hold.bytes);
	gt_hold_add(&hold, &blocks[1]);
	cr_assert_eq(hold.stream, 1);
	cr_assert_eq(hold.pool, GT_POOL_MIXED);
	gt_hold_add(&hold, &blocks[2]);
	cr_assert_eq(hold.stream, GT_STREAM_MIXED);
	cr_assert_eq(hold.pool, GT_POOL_MIXED);
	cr_assert_eq(hold.requested, 501);
	cr_assert_eq(hold.requested_of, 1024, "bytes of those that tell");
	cr_assert_eq(hold.bytes, 2048);
	cr_assert_eq(hold.count, 3);
	cr_assert_eq(hold.largest, 1024);
	cr_assert_eq(hold.oldest_us, 3);
}

static void check_points(const struct program *program, size_t l)
{
	const struct gt_trace_lane *lane = &program->trace->lanes[l];
	const struct written_lane *all = &program->written->lanes[lane->lane];
	struct world *world = calloc(1, sizeof(*world));
	struct gt_series series;
	struct gt_error err = {0};
	size_t at = 0;

	cr_assert_eq(gt_series_get(program->trace, l, 0, UINT64_MAX, 0, &series, &err), 0);
	for (size_t i = 0; i < all->count && all->events[i].seq <= lane->seq; i++) {
		apply(world, lane, &all->events[i]);
		if (all->events[i].seq < lane->history_first || !gt_op_effect(all->events[i].op))
			continue;
		cr_assert_lt(at, series.count);
		cr_assert_eq(series.points[at].us, all->events[i].us);
		for (int k = 0; k < GT_TOTALS; k++)
			cr_assert_eq((int64_t)series.points[at].max[k], world->cur[k]);
		at++;
	}
	cr_assert_eq(at, series.count);
	gt_series_clear(&series);
	free(world);
}

/* The largest value that a total has at any instant of [from, to). */
static int64_t largest_in(const struct program *program, size_t l, int k, uint64_t from,
			  uint64_t to)
{
	const struct gt_trace_lane *lane = &program->trace->lanes[l];
	const struct written_lane *all = &program->written->lanes[lane->lane];
	struct world *world = calloc(1, sizeof(*world));
	int64_t most = -1;

	for (size_t i = 0; i < all->count && all->events[i].us < to; i++) {
		if (all->events[i].us >= from && gt_op_effect(all->events[i].op) &&
		    world->cur[k] > most)
			most = world->cur[k];
		apply(world, lane, &all->events[i]);
		if (all->events[i].us >= from && world->cur[k] > most)
			most = world->cur[k];
	}
	if (world->cur[k] > most)
		most = world->cur[k];
	free(world);
	return most;
}

static void check_slices(const struct program *program, size_t l, size_t slices)
{
	const struct gt_trace_lane *lane = &program->trace->lanes[l];
	uint64_t from = lane->history_us, to = program->trace->last_us;
	struct gt_series series;
	struct gt_error err = {0};

	cr_assert_eq(gt_series_get(program->trace, l, from, to, slices, &series, &err), 0);
	cr_assert_eq(series.count, slices);
	for (size_t i = 0; i < slices; i++) {
		/* us belongs to slice (us - from) * slices / (to - from + 1). */
		uint64_t begin = from + ((to - from + 1) * i + slices - 1) / slices;
		uint64_t end = from + ((to - from + 1) * (i + 1) + slices - 1) / slices;

		for (int k = 0; k < GT_TOTALS; k++)
			cr_assert_eq((int64_t)series.points[i].max[k],
				     largest_in(program, l, k, begin, end));
	}
	gt_series_clear(&series);
}

Test(series, equals_brute_force)
{
	for (uint64_t seed = 0; seed < 12; seed++) {
		struct program program;

		open_program(&program, seed, seed % 2 ? 6 : 1000);
		for (size_t l = 0; l < program.trace->lane_count; l++) {
			check_points(&program, l);
			check_slices(&program, l, 7);
			check_slices(&program, l, 100);
		}
		close_program(&program);
	}
}

/* The largest state of a span of numbers, the first of equals. */
static struct gt_top top_of(const struct program *program, size_t l, const struct gt_span *span)
{
	const struct gt_trace_lane *lane = &program->trace->lanes[l];
	const struct written_lane *all = &program->written->lanes[lane->lane];
	struct world *world = world_at(program, l, span->from);
	struct gt_top top = {0};

	for (int k = 0; k < GT_TOTALS; k++) {
		top.bytes[k] = (uint64_t)world->cur[k];
		top.seq[k] = span->from;
	}
	for (size_t i = 0; i < all->count && all->events[i].seq <= span->to; i++) {
		if (all->events[i].seq <= span->from)
			continue;
		apply(world, lane, &all->events[i]);
		for (int k = 0; k < GT_TOTALS; k++) {
			if (world->cur[k] <= (int64_t)top.bytes[k])
				continue;
			top.bytes[k] = (uint64_t)world->cur[k];
			top.seq[k] = all->events[i].seq;
		}
	}
	free(world);
	return top;
}

Test(window, tops_of_nested_spans_equal_brute_force)
{
	struct gt_span spans[20];
	struct gt_top tops[20];
	struct gt_error err = {0};

	for (uint64_t seed = 0; seed < 12; seed++) {
		struct program program;

		open_program(&program, seed, seed % 2 ? 6 : 1000);
		for (size_t l = 0; l < program.trace->lane_count; l++) {
			const struct gt_trace_lane *lane = &program.trace->lanes[l];
			const uint64_t first = lane->history_first - 1;

			for (uint64_t i = 0; i < 20; i++) {
				spans[i] = (struct gt_span){
					.from = first + (lane->seq - first) * (i * 37 % 41) / 41};
				spans[i].to =
					spans[i].from + (lane->seq - spans[i].from) * (i % 7) / 6;
			}
			cr_assert_eq(gt_tops_get(program.trace, l, spans, 20, tops, &err), 0);
			for (size_t i = 0; i < 20; i++) {
				struct gt_top wanted = top_of(&program, l, &spans[i]);

				cr_assert_arr_eq(tops[i].bytes, wanted.bytes, sizeof(wanted.bytes));
				cr_assert_arr_eq(tops[i].seq, wanted.seq, sizeof(wanted.seq));
			}
		}
		close_program(&program);
	}
}

/* Of a span that began before the history: what was the peak of all is known, whatever else was. */
Test(window, a_span_cut_by_the_ring_knows_a_peak_up_to_its_last_event)
{
	struct program program;
	struct gt_error err = {0};

	open_program(&program, 5, 6);
	for (size_t l = 0; l < program.trace->lane_count; l++)
		for (int k = 0; k < GT_TOTALS; k++) {
			const struct gt_trace_lane *lane = &program.trace->lanes[l];
			const uint64_t peak = lane->ctr.peak_seq[k];
			struct gt_span spans[2] = {{.to = peak, .cut = true},
						   {.to = peak - 1, .cut = true}};
			struct gt_top tops[2];

			spans[0].from = spans[1].from = lane->history_first - 1;
			cr_assert_eq(gt_tops_get(program.trace, l, spans, 2, tops, &err), 0);
			cr_assert(!tops[0].at_least[k]);
			cr_assert_eq(tops[0].bytes[k], lane->ctr.peak[k]);
			cr_assert_eq(tops[0].seq[k], peak);
			cr_assert(tops[1].at_least[k]);
		}
	close_program(&program);
}

/* autograd's threads hand the error on: who asks for more on another thread has outlived it. */
/* Pieces of 20 MiB: with 38 free one was given and the second was not; asked is what torch's message has. */
Test(failure, of_a_piece_is_short_by_what_lacked_at_least)
{
	struct gt_report report = {
		.requested = 20 * MIB, .torch_requested = 32 * MIB, .device_free = 38 * MIB};

	report.cur[GT_TOTAL_RESERVED] = 41 * MIB;
	cr_assert_eq(gt_report_short(&report), 2 * MIB);
	cr_assert_eq(gt_report_asked(&report), 32 * MIB);
	report.torch_requested = 99 * MIB;
	cr_assert_eq(gt_report_short(&report), 20 * MIB);
	report.torch_requested = 4 * MIB;
	cr_assert_eq(gt_report_short(&report), 0);
	report.device_free = 12 * MIB;
	cr_assert_eq(gt_report_short(&report), 8 * MIB);
	cr_assert_eq(gt_report_asked(&report), 20 * MIB);
	cr_assert_eq(gt_report_block(&report), 4 * MIB);
	report.requested = 0;
	cr_assert_eq(gt_report_short(&report), 0);
	report.device_free = GT_UNKNOWN_BYTES;
	cr_assert_eq(gt_report_short(&report), 0);
}

Test(failure, is_caught_if_another_thread_asks_before_exit)
{
	static struct gt_report reports[2];
	struct gt_trace trace = {.reports = reports, .report_count = 2};
	struct gt_report *first = &reports[0], *later = &reports[1];

	*first = (struct gt_report){.result = 2, .thread = 1, .us = 10};
	*later = (struct gt_report){.result = 2, .thread = 2, .us = 20};
	cr_assert_eq(gt_report_end(&trace, first), GT_END_CAUGHT);
	cr_assert_eq(gt_report_end(&trace, later), GT_END_OPEN);
	trace.header.exit_us = 30;
	cr_assert_eq(gt_report_end(&trace, first), GT_END_CAUGHT);
	cr_assert_eq(gt_report_end(&trace, later), GT_END_FATAL);
	trace.header.exit_us = 15;
	cr_assert_eq(gt_report_end(&trace, first), GT_END_FATAL, "it asked in an exit handler");
	trace.header.exit_us = 0;
	later->thread = 1;
	cr_assert_eq(gt_report_end(&trace, first), GT_END_OPEN,
		     "the recorder knows of its own thread");
	later->thread = 2;
	later->lane = 1;
	cr_assert_eq(gt_report_end(&trace, first), GT_END_OPEN, "another device");
	later->lane = 0;
	later->result = 1;
	cr_assert_eq(gt_report_end(&trace, first), GT_END_OPEN, "not for want of memory");
}

static const char *key_of(const struct gt_diff_row *row)
{
	return row->b ? row->b->label.key : row->a->label.key;
}

/* What both sides hold under one key is one row. */
static void check_joined(const struct gt_diff *diff)
{
	for (size_t i = 0; i < diff->count; i++)
		for (size_t j = 0; j < i; j++) {
			const struct gt_row *a =
				diff->rows[i].b ? diff->rows[i].b : diff->rows[i].a;
			const struct gt_row *b =
				diff->rows[j].b ? diff->rows[j].b : diff->rows[j].a;

			cr_assert(a->torch != b->torch ||
				  strcmp(key_of(&diff->rows[i]), key_of(&diff->rows[j])));
		}
}

static struct gt_rows rows_at_peak(struct program *program, struct gt_symbols *symbols,
				   enum gt_by by, uint64_t *ret_bytes)
{
	struct gt_when when = {.kind = GT_WHEN_PEAK};
	struct gt_state state;
	struct gt_error err = {0};
	struct gt_rows rows;

	cr_assert_eq(gt_state_get(program->trace, 0, GT_TOTAL_IN_USE, when, &state, &err), 0);
	rows = gt_rows_of(&state, symbols, by);
	*ret_bytes = state.bytes;
	gt_state_clear(&state);
	return rows;
}

Test(diff, rows_add_up_for_every_grouping_of_random_pairs)
{
	for (uint64_t seed = 0; seed < 50; seed++) {
		struct program a, b;
		struct gt_symbols *symbols_a, *symbols_b;

		open_program(&a, seed * 2, 1000);
		unlink(a.path);
		open_program(&b, seed * 2 + 1, 6);
		symbols_a = gt_symbols_new(a.trace);
		symbols_b = gt_symbols_new(b.trace);
		for (enum gt_by by = GT_BY_LINE; by < GT_BYS; by++) {
			uint64_t bytes_a, bytes_b;
			int64_t sum = 0;
			struct gt_rows rows_a = rows_at_peak(&a, symbols_a, by, &bytes_a);
			struct gt_rows rows_b = rows_at_peak(&b, symbols_b, by, &bytes_b);
			struct gt_diff_side sides[] = {{&rows_a, a.trace, symbols_a},
						       {&rows_b, b.trace, symbols_b}};
			struct gt_diff diff = gt_diff_rows(&sides[0], &sides[1], by);

			for (size_t i = 0; i < diff.count; i++)
				sum += (int64_t)diff.rows[i].bytes_b -
				       (int64_t)diff.rows[i].bytes_a;
			cr_assert_eq(sum, (int64_t)bytes_b - (int64_t)bytes_a);
			check_joined(&diff);
			cr_assert_eq(diff.bytes_a, bytes_a);
			cr_assert_eq(diff.bytes_b, bytes_b);
			gt_diff_clear(&diff);
			gt_rows_clear(&rows_a);
			gt_rows_clear(&rows_b);
		}
		gt_symbols_free(symbols_a);
		gt_symbols_free(symbols_b);
		close_program(&a);
		close_program(&b);
	}
}
