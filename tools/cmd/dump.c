/* SPDX-License-Identifier: MIT */
/*
 * gputrace dump: what is in the file, one line each, nothing interpreted. JSON lines have all
 * fields, always, in the order of this file; text is for the eye.
 */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cmd/cmd.h"
#include "cmd/dump.h"
#include "read/trace.h"
#include "torch/open.h"

struct dump {
	const struct gt_trace *trace;
	bool json;
};

static const char usage[] =
	"Usage: gputrace dump [--defs|--lanes|--check] [--partial]\n"
	"                     [--format text|json] TRACE\n"
	"Prints the events of a trace in order; with --defs or --lanes, those instead.\n"
	"  --defs       what numbers of events stand for: modules, frames, sites\n"
	"  --lanes      after the last event: counters, live blocks, totals of sites\n"
	"  --check      compare what is stored with what it can be derived from\n"
	"               (exit 1 if they differ)\n"
	"  --partial    read what is there of a cut or damaged file\n"
	"Examples:\n"
	"  gputrace dump run.gtrace | grep mark\n"
	"  gputrace dump --check run.gtrace\n";

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

static int dump_events(const struct dump *d, struct gt_error *err)
{
	struct gt_merge *merge = gt_merge_new(d->trace);
	const struct gt_event *event;

	err->status = 0;
	while (merge && (event = gt_merge_next(merge, err)))
		if (d->json)
			event_json(event);
		else
			event_text(d->trace, event);
	gt_merge_free(merge);
	return merge && !err->status ? 0 : -1;
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

	fprintf(stderr, "gputrace: %s: %s\n", d->trace->path, line);
}

static int check(struct dump *d)
{
	size_t differences = gt_trace_check(d->trace, true, say_difference, d);

	if (differences) {
		fprintf(stderr, "gputrace: %s: %zu differences\n", d->trace->path, differences);
		return 1;
	}
	printf("%s: sound: %zu lane%s, what can be derived equals what is stored\n", d->trace->path,
	       d->trace->lane_count, d->trace->lane_count == 1 ? "" : "s");
	return 0;
}

enum { OPT_DEFS = 256, OPT_LANES, OPT_CHECK, OPT_PARTIAL, OPT_FORMAT, OPT_HELP };

struct choice {
	bool defs, lanes, check, help;
	unsigned int flags;
};

/* False: usage. */
static bool parse(int argc, char **argv, struct choice *c, struct dump *d)
{
	static const struct option options[] = {
		{"defs", no_argument, NULL, OPT_DEFS},
		{"lanes", no_argument, NULL, OPT_LANES},
		{"check", no_argument, NULL, OPT_CHECK},
		{"partial", no_argument, NULL, OPT_PARTIAL},
		{"format", required_argument, NULL, OPT_FORMAT},
		{"help", no_argument, NULL, OPT_HELP},
		{0},
	};
	int o;

	while ((o = getopt_long(argc, argv, "", options, NULL)) != -1) {
		c->defs |= o == OPT_DEFS;
		c->lanes |= o == OPT_LANES;
		c->check |= o == OPT_CHECK;
		if (o == OPT_PARTIAL)
			c->flags |= GT_OPEN_PARTIAL;
		if (o == OPT_FORMAT)
			d->json = !strcmp(optarg, "json");
		c->help |= o == OPT_HELP;
		if (o == '?' || (o == OPT_FORMAT && !d->json && strcmp(optarg, "text")))
			return false;
	}
	return c->help || optind == argc - 1;
}

static int run(struct dump *d, const struct choice *c, struct gt_error *err)
{
	if (c->check)
		return check(d);
	if (c->defs)
		gt_dump_defs(d->trace, d->json);
	if (c->lanes)
		dump_lanes(d);
	if (!c->defs && !c->lanes && dump_events(d, err)) {
		fprintf(stderr, "gputrace: %s\n", err->status ? err->text : "not enough memory");
		return 3;
	}
	return 0;
}

int gt_cmd_dump(int argc, char **argv)
{
	struct gt_trace *trace = NULL;
	struct gt_error err = {0};
	struct choice choice = {0};
	struct dump d = {0};
	int status;

	if (!parse(argc, argv, &choice, &d)) {
		fputs(usage, stderr);
		return 2;
	}
	if (choice.help)
		return fputs(usage, stdout) < 0;
	if (gt_open(argv[optind], choice.flags, &trace, &err)) {
		fprintf(stderr, "gputrace: %s\n", err.text);
		return err.status;
	}
	d.trace = trace;
	status = run(&d, &choice, &err);
	gt_trace_close(trace);
	return status;
}
