/* SPDX-License-Identifier: MIT */
/*
 * The reader against files of random event programs (writer.c) whose every event is known: walks in
 * both directions, the state at the end and at cuts in the past, and the files of processes that
 * died between two stores.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <criterion/criterion.h>
#include "model.h"
#include "read/reader.h"
#include "writer.h"

struct opened {
	struct written *written;
	struct gt_trace *trace;
	int fd;
};

static struct opened open_written(const struct writer_options *options)
{
	struct opened o = {.written = writer_make(options)};
	struct gt_error err;
	char path[64];
	int rc;

	o.fd = memfd_create("trace", MFD_CLOEXEC);
	cr_assert(write(o.fd, o.written->bytes, o.written->size) == (ssize_t)o.written->size);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", o.fd);
	rc = gt_trace_open(path, 0, &o.trace, &err);
	cr_assert(rc == 0, "%s", rc ? err.text : "");
	return o;
}

static void close_written(struct opened *o)
{
	gt_trace_close(o->trace);
	writer_free(o->written);
	close(o->fd);
}

static bool same_event(const struct gt_event *a, const struct gt_event *b)
{
	return a->seq == b->seq && a->us == b->us && a->addr == b->addr && a->size == b->size &&
	       a->birth_us == b->birth_us && a->extra == b->extra && a->lane == b->lane &&
	       a->site == b->site && a->free_site == b->free_site && a->aux == b->aux &&
	       a->thread == b->thread && a->birth_thread == b->birth_thread &&
	       a->stream == b->stream && a->op == b->op && a->space == b->space;
}

static void walk_forward(const struct opened *o, size_t lane)
{
	const struct written_lane *log = &o->written->lanes[lane];
	struct gt_cursor *cursor = gt_cursor_new(o->trace, lane);
	uint64_t seq = o->trace->lanes[lane].history_first;
	const struct gt_event *event;
	struct gt_error err;

	while ((event = gt_cursor_next(cursor, &err))) {
		cr_assert(same_event(event, &log->events[seq - 1]), "event %lu differs", seq);
		seq++;
	}
	cr_assert_eq(err.status, 0, "%s", err.text);
	cr_assert_eq(seq, log->count + 1);
	gt_cursor_free(cursor);
}

static void walk_backward(const struct opened *o, size_t lane)
{
	const struct written_lane *log = &o->written->lanes[lane];
	struct gt_cursor *cursor = gt_cursor_new(o->trace, lane);
	const struct gt_event *event;
	uint64_t seq = log->count;
	struct gt_error err;

	while ((event = gt_cursor_prev(cursor, &err))) {
		cr_assert(same_event(event, &log->events[seq - 1]), "event %lu differs", seq);
		seq--;
	}
	cr_assert_eq(err.status, 0, "%s", err.text);
	cr_assert_eq(seq + 1, o->trace->lanes[lane].history_first);
	gt_cursor_free(cursor);
}

/* The state that the log leads to, after so many events. */
static void replay_log(const struct opened *o, size_t lane, uint64_t count, struct model *model)
{
	const struct written_lane *log = &o->written->lanes[lane];
	const struct gt_site_def *defs = o->trace->lanes[lane].site_defs;
	const char *bad;

	for (uint64_t i = 0; i < count; i++) {
		bad = model_apply(model, &log->events[i], defs[log->events[i].site].mask);
		cr_assert_null(bad, "%s", bad);
	}
}

static void compare_state(const struct opened *o, size_t lane)
{
	struct model model = {0};
	const char *bad;

	replay_log(o, lane, o->written->lanes[lane].count, &model);
	bad = model_compare(&model, &o->trace->lanes[lane]);
	cr_assert_null(bad, "%s", bad);
	model_free(&model);
}

/* Walks back from the live set and compares it with the log at some events on the way. */
static void compare_cuts(const struct opened *o, size_t lane, unsigned int cuts)
{
	const struct gt_trace_lane *l = &o->trace->lanes[lane];
	const uint64_t step = (l->seq + 1 - l->history_first) / cuts + 1;
	struct gt_cursor *cursor = gt_cursor_new(o->trace, lane);
	struct model back = {.seq = l->seq}, model = {0};
	const struct gt_event *event;
	const char *bad;

	for (size_t i = 0; i < l->block_count; i++)
		model_add(&back, &l->blocks[i]);
	while ((event = gt_cursor_prev(cursor, NULL))) {
		bad = model_undo(&back, event);
		cr_assert_null(bad, "%s", bad);
		if (back.seq % step && back.seq + 1 != l->history_first)
			continue;
		replay_log(o, lane, back.seq, &model);
		cr_assert(model_same_blocks(&back, &model), "after event %lu", back.seq);
		model_free(&model);
	}
	gt_cursor_free(cursor);
	model_free(&back);
}

static void say_line(void *ctx, const char *line)
{
	cr_assert_fail("%s", line);
}

static void check_all(const struct writer_options *options)
{
	struct opened o = open_written(options);

	cr_assert_eq(o.trace->lane_count, options->lanes);
	for (size_t lane = 0; lane < o.trace->lane_count; lane++) {
		walk_forward(&o, lane);
		walk_backward(&o, lane);
		compare_state(&o, lane);
		compare_cuts(&o, lane, 5);
	}
	gt_trace_check(o.trace, true, say_line, NULL);
	close_written(&o);
}

static const struct writer_options plain = {
	.events = 3000,
	.lanes = 2,
	.cap = 64,
	.extent = 32768,
	.ring = 1000,
	.sites = 40,
	.live = 100,
};

Test(trace, whole_history)
{
	for (uint64_t seed = 0; seed < 20; seed++) {
		struct writer_options o = plain;

		o.seed = seed;
		o.lanes = 1 + seed % 3;
		o.cap = 2u << seed % 7;
		check_all(&o);
	}
}

Test(trace, recycled_ring)
{
	for (uint64_t seed = 100; seed < 110; seed++) {
		struct writer_options o = plain;

		o.seed = seed;
		o.events = 6000;
		o.cap = 32;
		o.extent = 12288;
		o.ring = 3;
		o.lanes = 1;
		check_all(&o);
	}
}

Test(trace, more_live_blocks_than_one_extent)
{
	struct writer_options o = plain;

	o.events = 8000;
	o.live = 2000;
	o.sites = 300;
	check_all(&o);
}

Test(trace, killed_behind_the_commit)
{
	for (uint64_t seed = 200; seed < 240; seed++) {
		struct writer_options o = plain;

		o.seed = seed;
		o.events = 500 + seed;
		o.unapplied = true;
		check_all(&o);
	}
}

Test(trace, killed_inside_a_seal)
{
	for (uint64_t seed = 300; seed < 320; seed++) {
		struct writer_options o = plain;

		o.seed = seed;
		o.events = 700 + seed;
		o.resealed = true;
		check_all(&o);
	}
}

/*
 * The chunk that is lost stands inside an extent, at its end, or right before staging: then some of
 * its events are in their cells still.
 */
Test(trace, history_starts_behind_a_gap)
{
	struct writer_options options = plain;

	options.lanes = 1;
	options.events = 20 * options.cap + 10;
	options.extent = 12288;
	for (options.gap_at = 1; options.gap_at <= 20; options.gap_at++) {
		struct opened o = open_written(&options);

		cr_assert_eq(o.written->lanes[0].lost_until, options.gap_at * options.cap);
		if (options.gap_at < 20)
			cr_assert_eq(o.trace->lanes[0].history_first,
				     o.written->lanes[0].lost_until + 1);
		else
			cr_assert_eq(o.trace->lanes[0].history_first,
				     o.trace->lanes[0].seq + 2 - options.cap);
		cr_assert_gt(o.trace->lanes[0].history_us, 0);
		walk_forward(&o, 0);
		walk_backward(&o, 0);
		compare_state(&o, 0);
		compare_cuts(&o, 0, 5);
		close_written(&o);
	}
}

Test(trace, no_events)
{
	struct writer_options options = plain;
	struct opened o;

	options.events = 0;
	o = open_written(&options);
	cr_assert_eq(o.trace->lane_count, 2);
	cr_assert_eq(o.trace->lanes[0].history_first, 1);
	cr_assert_eq(o.trace->lanes[0].block_count, 0);
	walk_forward(&o, 0);
	walk_backward(&o, 0);
	close_written(&o);
}

Test(trace, merged_by_time)
{
	struct writer_options options = plain;
	uint64_t seen[3] = {0}, count = 0;
	const struct gt_event *e;
	struct gt_merge *merge;
	struct gt_error err;
	struct opened o;

	options.lanes = 3;
	o = open_written(&options);
	merge = gt_merge_new(o.trace);
	while ((e = gt_merge_next(merge, &err))) {
		cr_assert_eq(e->seq, ++seen[e->lane]);
		for (uint32_t i = 0; i < 3; i++) {
			const struct written_lane *log = &o.written->lanes[i];

			if (seen[i] < log->count)
				cr_assert_leq(e->us, log->events[seen[i]].us);
		}
		count++;
	}
	cr_assert_eq(err.status, 0);
	cr_assert_eq(count, seen[0] + seen[1] + seen[2]);
	for (uint32_t i = 0; i < 3; i++)
		cr_assert_eq(seen[i], o.written->lanes[i].count);
	cr_assert_null(gt_merge_next(merge, &err));
	gt_merge_free(merge);
	close_written(&o);
}

Test(trace, directions_can_change)
{
	struct opened o = open_written(&plain);
	struct gt_cursor *cursor = gt_cursor_new(o.trace, 0);
	const struct gt_event *event;
	uint64_t seq = 1;

	for (int i = 0; i < 200; i++) {
		for (int k = 0; k < 20; k++, seq++) {
			event = gt_cursor_next(cursor, NULL);
			if (!event)
				break;
			cr_assert_eq(event->seq, seq);
		}
		for (int k = 0; k < 10; k++, seq--) {
			event = gt_cursor_prev(cursor, NULL);
			cr_assert_eq(event->seq, seq - 1);
		}
	}
	gt_cursor_free(cursor);
	close_written(&o);
}

/* An extent of more events than a reader keeps: events refer to others that it has to find again. */
Test(trace, more_events_in_an_extent_than_are_kept)
{
	const struct writer_options options = {.seed = 12,
					       .events = 200000,
					       .lanes = 1,
					       .cap = 1024,
					       .extent = 8 << 20,
					       .ring = 4,
					       .sites = 20,
					       .live = 300};
	struct opened o = open_written(&options);
	struct gt_cursor *cursor = gt_cursor_new(o.trace, 0);
	const struct written_lane *log = &o.written->lanes[0];
	const struct gt_event *event;

	walk_forward(&o, 0);
	walk_backward(&o, 0);
	for (uint64_t i = 0; i < 40; i++) { /* anywhere */
		const uint64_t seq = 1 + i * 7919 * 7919 % log->count;

		cr_assert_eq(gt_cursor_at(cursor, seq, &event, NULL), 0);
		cr_assert(same_event(event, &log->events[seq - 1]), "event %lu differs", seq);
	}
	gt_cursor_free(cursor);
	close_written(&o);
}

Test(trace, definitions)
{
	struct opened o = open_written(&plain);
	const struct gt_trace *t = o.trace;

	cr_assert_eq(t->string_count, 3);
	cr_assert_str_eq(t->strings[1].text, "train.py");
	cr_assert_eq(t->strings[0].length, 0);
	cr_assert_eq(t->module_count, 2);
	cr_assert_str_eq(t->modules[1].path.text, "/usr/bin/train");
	cr_assert_eq(t->modules[1].unloaded_us, 77);
	cr_assert_eq(t->node_count, 22);
	cr_assert_eq(t->nodes[20].module, 1);
	cr_assert_eq(t->nodes[20].parent, 10);
	cr_assert_eq(t->nodes[21].module, 0, "defined after the module was unloaded");
	cr_assert_eq(t->pynode_count, 6, "an unknown record must be skipped");
	cr_assert_eq(t->pynodes[5].line, 15);
	cr_assert_eq(t->thread_count, 7);
	cr_assert_eq(t->devices[0].total, 8ull << 30);
	cr_assert_eq(t->contexts[0].bytes, INT64_MIN);
	cr_assert_eq(gt_trace_info(t, "cmdline")->length, 12);
	cr_assert_str_eq(gt_trace_info(t, "exe")->text, "/usr/bin/train");
	cr_assert_null(gt_trace_info(t, "ex"));
	cr_assert_eq(t->lanes[1].site_count, 41);
	cr_assert_eq(t->lanes[1].site_defs[2].api, GT_API_TORCH);
	cr_assert_not(t->running);
	close_written(&o);
}
