/* SPDX-License-Identifier: MIT */
/*
 * gputrace dump: what is in the file, one line each, nothing interpreted. JSON lines have all
 * fields, always, in the order of this file; text is for the eye.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include "cmd/dump.h"
#include "cmd/session.h"
#include "model/xalloc.h"

struct dump {
	const struct gt_trace *trace;
	bool json;
};

/* ---- events --------------------------------------------------------------------------------- */

static void event_json(const struct gt_event *e)
{
	printf("{\"type\":\"event\",\"lane\":%u,\"seq\":%" PRIu64 ",\"us\":%" PRIu64
	       ",\"op\":\"%s\",\"space\":\"%s\",\"addr\":%" PRIu64 ",\"size\":%" PRIu64
	       ",\"stream\":%u,\"thread\":%u,\"birth_us\":%" PRIu64 ",\"birth_thread\":%u"
	       ",\"site\":%u,\"free_site\":%u,\"aux\":%u,\"extra\":%" PRIu64
	       ",\"requested\":%" PRIu64 ",\"pool\":%u}\n",
	       e->lane, e->seq, e->us, gt_op_name(e->op), gt_space_name(e->space), e->addr, e->size,
	       e->stream, e->thread, e->birth_us, e->birth_thread, e->site, e->free_site, e->aux,
	       e->extra, e->requested, e->pool);
}

/* The name that the program gave a mark or range, in quotes. */
static void print_name(const struct gt_trace *trace, const struct gt_event *e)
{
	bool named = e->op == GT_OP_MARK || e->op == GT_OP_PUSH || e->op == GT_OP_BEGIN;
	char *safe;

	if (!named || !e->aux || e->aux >= trace->string_count)
		return;
	safe = gt_escape(trace->strings[e->aux].text);
	printf("  \"%s\"", safe);
	free(safe);
}

static void event_text(const struct gt_trace *trace, const struct gt_event *e)
{
	printf("%14.6f  lane %-2u %10" PRIu64 "  %-13s %-7s %#14" PRIx64 " %14" PRIu64
	       "  site %-6u thread %-3u stream %u",
	       (double)e->us / 1e6, e->lane, e->seq, gt_op_name(e->op), gt_space_name(e->space),
	       e->addr, e->size, e->site, e->thread, e->stream);
	if (e->op == GT_OP_FREE || e->op == GT_OP_IMPLICIT_FREE || e->op == GT_OP_UNFREE)
		printf("  born %.6f", (double)e->birth_us / 1e6);
	if (e->aux || e->extra)
		printf("  aux %u extra %" PRIu64, e->aux, e->extra);
	if (e->requested || e->pool)
		printf("  asked %" PRIu64 " pool %u", e->requested, e->pool);
	print_name(trace, e);
	putchar('\n');
}

static int dump_events(const struct dump *d)
{
	struct gt_merge *merge = gt_xchecked(gt_merge_new(d->trace));
	const struct gt_event *event;
	struct gt_error err = {0};

	while ((event = gt_merge_next(merge, &err)))
		if (d->json)
			event_json(event);
		else
			event_text(d->trace, event);
	gt_merge_free(merge);
	return err.status ? gt_message_error(&err) : GT_EXIT_FINE;
}

/* ---- lanes ---------------------------------------------------------------------------------- */

static void print_array(const char *name, const uint64_t *values, size_t count)
{
	printf(",\"%s\":[", name);
	for (size_t i = 0; i < count; i++)
		printf("%s%" PRIu64, i ? "," : "", values[i]);
	putchar(']');
}

static void lane_json(const struct gt_trace_lane *l)
{
	const struct gt_ctr *c = &l->ctr;

	printf("{\"type\":\"lane\",\"lane\":%u,\"device\":%d,\"seq\":%" PRIu64
	       ",\"history_first\":%" PRIu64 ",\"history_us\":%" PRIu64
	       ",\"incomplete_seq\":%" PRIu64 ",\"lost\":%" PRIu64,
	       l->lane, l->device, l->seq, l->history_first, l->history_us, l->incomplete_seq,
	       l->lost);
	print_array("cur", c->cur, GT_TOTALS);
	print_array("peak", c->peak, GT_TOTALS);
	print_array("peak_seq", c->peak_seq, GT_TOTALS);
	print_array("peak_us", c->peak_us, GT_TOTALS);
	printf(",\"allocs\":%" PRIu64 ",\"frees\":%" PRIu64 ",\"alloc_bytes\":%" PRIu64
	       ",\"free_bytes\":%" PRIu64 ",\"live_count\":%" PRIu64 ",\"unknown_frees\":%" PRIu64
	       ",\"implicit_frees\":%" PRIu64 ",\"failed\":%" PRIu64 ",\"torch_allocs\":%" PRIu64
	       "}\n",
	       c->allocs, c->frees, c->alloc_bytes, c->free_bytes, c->live_count, c->unknown_frees,
	       c->implicit_frees, c->failed, c->torch_allocs);
}

static void lane_text(const struct gt_trace_lane *l)
{
	static const char *const names[GT_TOTALS] = {"reserved", "torch", "in use"};

	printf("lane %u: device %d, %" PRIu64 " events, history from event %" PRIu64
	       " (%.6f s), %zu live blocks, %zu sites, %" PRIu64 " lost\n",
	       l->lane, l->device, l->seq, l->history_first, (double)l->history_us / 1e6,
	       l->block_count, l->site_count - 1, l->lost);
	for (int k = 0; k < GT_TOTALS; k++)
		printf("  %-9s %14" PRIu64 "  peak %14" PRIu64 " at event %" PRIu64 " (%.6f s)\n",
		       names[k], l->ctr.cur[k], l->ctr.peak[k], l->ctr.peak_seq[k],
		       (double)l->ctr.peak_us[k] / 1e6);
}

static void block_line(const struct dump *d, const struct gt_trace_lane *l,
		       const struct gt_block *b)
{
	printf(d->json ? "{\"type\":\"block\",\"lane\":%u,\"addr\":%" PRIu64 ",\"space\":\"%s\""
			 ",\"size\":%" PRIu64 ",\"birth_us\":%" PRIu64
			 ",\"site\":%u,\"stream\":%u,\"thread\":%u,\"requested\":%" PRIu64
			 ",\"pool\":%u}\n"
		       : "  lane %u block %#" PRIx64 " %s, %" PRIu64 " bytes, born at %" PRIu64
			 " us, site %u, stream %u, thread %u, asked %" PRIu64 ", pool %u\n",
	       l->lane, b->addr, gt_space_name(b->space), b->size, b->birth_us, b->site, b->stream,
	       b->thread, b->requested, b->pool);
}

static void site_line(const struct dump *d, const struct gt_trace_lane *l, size_t i)
{
	const struct gt_site *s = &l->sites[i];
	uint64_t at[GT_TOTALS];

	for (int k = 0; k < GT_TOTALS; k++)
		at[k] = gt_site_at_peak(l, i, k);
	if (!d->json) {
		printf("  lane %u site %zu: %" PRIu64 " bytes in %" PRIu64 " blocks, ever %" PRIu64
		       " in %" PRIu64 ", at peaks %" PRIu64 " %" PRIu64 " %" PRIu64 "\n",
		       l->lane, i, s->live, s->live_count, s->ever, s->ever_count, at[0], at[1],
		       at[2]);
		return;
	}
	printf("{\"type\":\"totals\",\"lane\":%u,\"site\":%zu,\"last_seq\":%" PRIu64
	       ",\"live\":%" PRIu64 ",\"live_count\":%" PRIu64 ",\"ever\":%" PRIu64
	       ",\"ever_count\":%" PRIu64,
	       l->lane, i, s->last_seq, s->live, s->live_count, s->ever, s->ever_count);
	print_array("at_peak", at, GT_TOTALS);
	puts("}");
}

static void dump_lanes(const struct dump *d)
{
	for (size_t i = 0; i < d->trace->lane_count; i++) {
		const struct gt_trace_lane *lane = &d->trace->lanes[i];

		(d->json ? lane_json : lane_text)(lane);
		for (size_t k = 0; k < lane->block_count; k++)
			block_line(d, lane, &lane->blocks[k]);
		for (size_t k = 0; k < lane->site_count; k++)
			site_line(d, lane, k);
	}
}

/* ---- the command ---------------------------------------------------------------------------- */

static void say_difference(void *ctx, const char *line)
{
	const struct dump *d = ctx;

	gt_message(GT_EXIT_CHECK, "%s: %s", d->trace->path, line);
}

static int check(struct dump *d)
{
	size_t differences = gt_trace_check(d->trace, true, say_difference, d);

	if (differences)
		return gt_message(GT_EXIT_CHECK, "%s: %zu differences", d->trace->path,
				  differences);
	printf("%s: sound: %zu lane%s, what can be derived equals what is stored\n", d->trace->path,
	       d->trace->lane_count, d->trace->lane_count == 1 ? "" : "s");
	return 0;
}

static int run(struct dump *d, const struct gt_args *args)
{
	if (args->check)
		return check(d);
	if (args->defs)
		gt_dump_defs(d->trace, d->json);
	if (args->lanes)
		dump_lanes(d);
	return args->defs || args->lanes ? GT_EXIT_FINE : dump_events(d);
}

/* Lines do not say of which trace they are: more than one at a time can only be checked. */
static int run_all(const struct gt_args *args, const struct gt_session *session)
{
	int status = GT_EXIT_FINE;

	if (session->count > 1 && !args->check)
		return gt_message(GT_EXIT_USAGE,
				  "dump: %zu traces given: name one, or --check them all",
				  session->count);
	for (size_t i = 0; i < session->count; i++) {
		struct dump d = {session->inputs[i].trace, args->format == GT_FORMAT_JSON};
		int one = run(&d, args);

		status = one ? one : status;
	}
	return status;
}

int gt_cmd_dump(struct gt_args *args)
{
	struct gt_session session;
	int status;

	if (args->format != GT_FORMAT_TEXT && args->format != GT_FORMAT_JSON)
		return gt_message(GT_EXIT_USAGE, "dump: there is text and json");
	status = gt_session_open(args, &session);
	if (status)
		return status;
	status = run_all(args, &session);
	gt_session_close(&session);
	return status;
}
