/* SPDX-License-Identifier: MIT */
/*
 * See sqlite_raw.h. A definition is written as it is in memory, since ids refer from one to the other.
 * Symbols' names come along, as gputrace pack puts them into a copy, because the reader has the
 * database and not the program; lines of source do not. Called from sqlite.c.
 */
#include "export/sqlite_raw.h"

#include <stdlib.h>
#include <string.h>
#include "symbols/embed.h"

static void note(struct gt_raws *raws, int rc)
{
	if (!raws->rc && rc != SQLITE_OK && rc != SQLITE_DONE)
		raws->rc = rc;
}

static void put(struct gt_raws *raws, unsigned int raw, const void *element)
{
	if (raws->rc)
		return;
	gt_raw_bind(raws->rows[raw], raw, raws->process, element);
	note(raws, sqlite3_step(raws->rows[raw]));
	sqlite3_reset(raws->rows[raw]);
}

void gt_raws_open(struct gt_raws *raws, sqlite3 *db)
{
	*raws = (struct gt_raws){.db = db};
	for (unsigned int raw = 0; raw < GT_RAWS; raw++) {
		char *create = gt_raw_create(raw), *insert = gt_raw_insert(raw);

		if (!create || !insert)
			note(raws, SQLITE_NOMEM);
		if (!raws->rc)
			note(raws, sqlite3_exec(db, create, NULL, NULL, NULL));
		if (!raws->rc)
			note(raws, sqlite3_prepare_v2(db, insert, -1, &raws->rows[raw], NULL));
		free(create);
		free(insert);
	}
}

void gt_raws_close(struct gt_raws *raws)
{
	for (unsigned int raw = 0; raw < GT_RAWS; raw++)
		sqlite3_finalize(raws->rows[raw]);
	gt_numbers_clear(&raws->strings);
}

/* ---- definitions ----------------------------------------------------------------------------- */

static uint32_t string_id(struct gt_raws *raws, const char *text)
{
	bool new;
	uint64_t number;

	if (!text || !*text)
		return 0;
	number = gt_number_of(&raws->strings, text, strlen(text), &new);
	if (new)
		put(raws, GT_PART_STRING, &(struct gt_bytes){text, (uint32_t)strlen(text)});
	return (uint32_t)(raws->first_string + number);
}

static void put_name(void *ctx, const struct gt_pack_name *name)
{
	struct gt_raws *raws = ctx;
	struct gt_name_def def = {
		.pc = name->pc,
		.module = name->module,
		.function = string_id(raws, name->function),
		.file = string_id(raws, name->file),
		.line = name->line,
		.inlined = name->inlined,
	};

	put(raws, GT_PART_NAME, &def);
}

/* In order: a reader numbers them as it meets them. Reports go with their lanes. */
static void put_parts(struct gt_raws *raws, const struct gt_trace *trace)
{
	for (enum gt_trace_part part = 0; part < GT_TRACE_PARTS; part++)
		for (size_t i = gt_part_first(part);
		     part != GT_PART_REPORT && i < gt_part_count(trace, part); i++)
			put(raws, part, gt_part_at(trace, part, i));
}

static void put_header(struct gt_raws *raws, const struct gt_trace *trace)
{
	struct gt_raw_header raw = {
		.header = trace->header,
		.last_us = trace->last_us,
		.snapshot = trace->snapshot,
		.merged = trace->merged,
		.partial = trace->partial,
	};

	put(raws, GT_RAW_HEADER, &raw);
}

/* ---- reports --------------------------------------------------------------------------------- */

static bool is_exported(const struct gt_export *export, const struct gt_trace *trace, uint32_t lane)
{
	for (size_t p = 0; p < export->count; p++)
		if (export->places[p].trace == trace && export->places[p].lane->lane == lane)
			return true;
	return false;
}

static void put_report(struct gt_raws *raws, const struct gt_report *report, uint32_t index)
{
	put(raws, GT_PART_REPORT, report);
	for (uint32_t i = 0; i < report->holders; i++)
		put(raws, GT_RAW_HOLDER, &(struct gt_raw_holder){index, report->holder[i]});
	for (uint32_t i = 0; i < report->others; i++)
		put(raws, GT_RAW_OTHER, &(struct gt_raw_other){index, report->other[i]});
}

static bool is_host(const struct gt_trace *trace, uint32_t lane)
{
	for (size_t i = 0; i < trace->lane_count; i++)
		if (trace->lanes[i].lane == lane)
			return trace->lanes[i].device == GT_DEVICE_HOST;
	return false;
}

/* A report names sites, so it goes with its lane. */
static void put_reports(struct gt_raws *raws, const struct gt_export *export,
			const struct gt_trace *trace)
{
	uint32_t index = 0;

	for (size_t i = 0; i < trace->report_count; i++) {
		const struct gt_report *report = &trace->reports[i];

		if (is_exported(export, trace, report->lane) || is_host(trace, report->lane))
			put_report(raws, report, index++);
	}
}

/* ---- lanes ----------------------------------------------------------------------------------- */

static void put_sites(struct gt_raws *raws, const struct gt_trace_lane *lane)
{
	for (size_t i = 0; i < lane->site_count; i++)
		put(raws, GT_RAW_SITE,
		    &(struct gt_raw_site){lane->lane, lane->site_defs[i], lane->sites[i]});
	for (size_t i = 0; i < lane->block_count; i++)
		put(raws, GT_RAW_BLOCK, &(struct gt_raw_block){lane->lane, lane->blocks[i]});
}

/* Everything in it is in the row of its block. */
static bool is_plain(const struct gt_event *event)
{
	if (event->aux || event->extra || event->free_site)
		return false;
	if (event->op == GT_OP_FREE)
		return true;
	return event->op == GT_OP_ALLOC && event->birth_us == event->us &&
	       event->birth_thread == event->thread;
}

int gt_raws_lane(struct gt_raws *raws, const struct gt_trace *trace, size_t lane_index,
		 int64_t first_site, bool in_block, struct gt_error *err)
{
	const struct gt_trace_lane *lane = &trace->lanes[lane_index];
	struct gt_cursor *cursor = gt_cursor_new(trace, lane_index);
	struct gt_raw_lane raw = {*lane, first_site, in_block};
	const struct gt_event *event;

	err->status = 0;
	put(raws, GT_RAW_LANE, &raw);
	put_sites(raws, lane);
	while (cursor && (event = gt_cursor_next(cursor, err)))
		if (!in_block || !is_plain(event))
			put(raws, GT_RAW_EVENT, event);
	gt_cursor_free(cursor);
	return err->status ? -1 : 0;
}

/*
 * A block that came back by UNFREE has an older birth than the row it begins: the row has no column for
 * that, and so rare a thing needs none.
 */
void gt_raws_life(struct gt_raws *raws, const struct gt_lived *lived)
{
	const struct gt_event *end = lived->end;

	if (end && is_plain(end) && end->birth_us != lived->from_us)
		put(raws, GT_RAW_EVENT, end);
}

int gt_raws_process(struct gt_raws *raws, int64_t process, const struct gt_export *export,
		    const struct gt_trace *trace, struct gt_symbols *symbols, struct gt_error *err)
{
	int rc = 0;

	raws->process = process;
	raws->first_string = trace->string_count;
	gt_numbers_clear(&raws->strings);
	put_header(raws, trace);
	put_parts(raws, trace);
	put_reports(raws, export, trace);
	if (!trace->name_count && symbols)
		gt_symbols_embed(symbols, &(struct gt_embed){put_name, NULL, raws});
	for (size_t i = 0; !rc && i < trace->lane_count; i++)
		if (trace->lanes[i].device == GT_DEVICE_HOST)
			rc = gt_raws_lane(raws, trace, i, 0, false, err);
	return rc;
}
