/* SPDX-License-Identifier: MIT */
/*
 * SQLite: the trace as tables, with views for the common questions; docs/exports.md describes them.
 * Rows stream into one transaction without a journal, since a file that failed is deleted anyway;
 * indexes come last, when all rows are there. A block has one, for "alive at": to sort half a million
 * rows by site or size takes longer than the few scans that this would save. Blocks have no order of
 * time finer than events, so "alive at" is asked by event: from_event <= E and (to_event is null or
 * to_event > E). Called from the table.
 */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sqlite3.h>
#include "export/lives.h"
#include "export/numbers.h"
#include "export/sqlite_raw.h"
#include "model/failure.h"
#include "model/marks.h"
#include "model/steps.h"
#include "model/xalloc.h"
#include "out/out.h"

#define DEFAULT_POINTS 10000

enum table {
	T_PROCESS,
	T_DEVICE,
	T_FRAME,
	T_STACK,
	T_SITE,
	T_BLOCK,
	T_HOLDER,
	T_USAGE,
	T_STEP,
	T_RANGE,
	T_REFUSED,
	TABLES,
};

/* The values of a row, in the order of its columns: i number, r seconds from microseconds, t text. */
static const struct {
	const char *name, *values, *columns;
} tables[TABLES] = {
	[T_PROCESS] = {"process", "iitttr",
		       "process INTEGER PRIMARY KEY, pid INTEGER, command TEXT, host TEXT, "
		       "rank TEXT, seconds REAL)"},
	[T_DEVICE] = {"device", "iiiiiiiiiiirr",
		      "process INTEGER, device INTEGER, total INTEGER, allocated INTEGER, "
		      "reserved INTEGER, torch_allocated INTEGER, peak_allocated INTEGER, "
		      "peak_reserved INTEGER, peak_torch_allocated INTEGER, "
		      "peak_event INTEGER, events INTEGER, peak_seconds REAL, "
		      "history_from_seconds REAL, PRIMARY KEY (process, device))"},
	[T_FRAME] = {"frame", "itttit",
		     "frame INTEGER PRIMARY KEY, function TEXT, file TEXT, module TEXT, "
		     "line INTEGER, kind TEXT)"},
	[T_STACK] = {"stack", "iii", "stack INTEGER, depth INTEGER, frame INTEGER)"},
	[T_SITE] = {"site", "iiiittttiiiiiiii",
		    "site INTEGER PRIMARY KEY, process INTEGER, device INTEGER, stack INTEGER, "
		    "level TEXT, call TEXT, owner TEXT, line TEXT, in_use INTEGER, "
		    "reserved INTEGER, torch INTEGER, peak_bytes INTEGER, live_bytes INTEGER, "
		    "live_blocks INTEGER, ever_bytes INTEGER, ever_blocks INTEGER)"},
	[T_BLOCK] = {"block", "iiiiiiirriittiiiii",
		     "process INTEGER, device INTEGER, site INTEGER, address INTEGER, "
		     "bytes INTEGER, from_event INTEGER, to_event INTEGER, from_seconds REAL, "
		     "to_seconds REAL, stream INTEGER, in_use INTEGER, category TEXT, line TEXT, "
		     "space INTEGER, from_thread INTEGER, to_thread INTEGER, "
		     "requested INTEGER, pool INTEGER)"},
	[T_HOLDER] = {"holder", "tiiitiit",
		      "moment TEXT, process INTEGER, device INTEGER, site INTEGER, "
		      "category TEXT, bytes INTEGER, blocks INTEGER, line TEXT)"},
	[T_USAGE] = {"usage", "iiriii",
		     "process INTEGER, device INTEGER, seconds REAL, allocated INTEGER, "
		     "reserved INTEGER, torch_allocated INTEGER)"},
	[T_STEP] = {"step", "iiirriiiii",
		    "process INTEGER, device INTEGER, step INTEGER, from_seconds REAL, "
		    "to_seconds REAL, peak_allocated INTEGER, peak_event INTEGER, "
		    "peak_reserved INTEGER, end_allocated INTEGER, end_event INTEGER, "
		    "PRIMARY KEY (process, device, step))"},
	[T_RANGE] = {"range", "itttirr",
		     "process INTEGER, kind TEXT, name TEXT, thread TEXT, depth INTEGER, "
		     "from_seconds REAL, to_seconds REAL)"},
	[T_REFUSED] = {"refused", "iiiriiti",
		       "process INTEGER, device INTEGER, event INTEGER, seconds REAL, "
		       "bytes INTEGER, device_free INTEGER, outcome TEXT, site INTEGER)"},
};

static const char finish[] =
	"CREATE INDEX block_events ON block(process, device, from_event, to_event);"
	"CREATE INDEX site_stack ON site(stack);"
	"CREATE INDEX stack_depth ON stack(stack, depth);"
	"CREATE INDEX holder_moment ON holder(moment, process, device);"
	"CREATE INDEX usage_seconds ON usage(process, device, seconds);"
	"CREATE VIEW peak_by_line AS SELECT process, device, line, category, sum(bytes) AS bytes,"
	" sum(blocks) AS blocks FROM holder WHERE moment = 'peak'"
	" GROUP BY process, device, line, category ORDER BY bytes DESC;"
	"CREATE VIEW end_by_line AS SELECT process, device, line, category, sum(bytes) AS bytes,"
	" sum(blocks) AS blocks FROM holder WHERE moment = 'end'"
	" GROUP BY process, device, line, category ORDER BY bytes DESC;"
	"CREATE VIEW peak_by_category AS SELECT process, device, category, sum(bytes) AS bytes"
	" FROM holder WHERE moment = 'peak' GROUP BY process, device, category"
	" ORDER BY bytes DESC;"
	"CREATE VIEW never_freed AS SELECT process, device, line, category, count(*) AS blocks,"
	" sum(bytes) AS bytes, min(from_seconds) AS oldest_seconds FROM block"
	" WHERE to_event IS NULL AND in_use GROUP BY process, device, line, category"
	" ORDER BY bytes DESC;"
	"CREATE VIEW traffic_by_line AS SELECT process, device, line, sum(ever_bytes) AS bytes,"
	" sum(ever_blocks) AS blocks FROM site WHERE in_use GROUP BY process, device, line"
	" ORDER BY bytes DESC;"
	"CREATE VIEW stack_text AS SELECT stack, group_concat(function || CASE WHEN line > 0"
	" THEN ' ' || file || ':' || line ELSE '' END, '\n') AS text FROM"
	" (SELECT * FROM stack NATURAL JOIN frame ORDER BY stack, depth) GROUP BY stack;"
	"COMMIT;";

struct db {
	sqlite3 *handle;
	sqlite3_stmt *rows[TABLES];
	int rc; /* the first that went wrong */
	struct gt_raws raws;
	struct gt_numbers frames, stacks;
	struct gt_lines lines;
	int64_t process;    /* number of the one being written */
	int64_t first_site; /* number of the lane's site 0 */
	int64_t next_site;
};

#define NONE INT64_MIN /* of a number or time: NULL */

static int64_t known(uint64_t number, bool is_known)
{
	return is_known ? (int64_t)number : NONE;
}

static void check(struct db *db, int rc)
{
	if (!db->rc && rc != SQLITE_OK && rc != SQLITE_DONE && rc != SQLITE_ROW)
		db->rc = rc;
}

static void run(struct db *db, const char *sql)
{
	if (!db->rc)
		check(db, sqlite3_exec(db->handle, sql, NULL, NULL, NULL));
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* Not copied: the row is written before anybody frees it. */
static void bind_text(sqlite3_stmt *row, int column, const char *text)
{
	if (text && *text)
		sqlite3_bind_text(row, column, text, -1, SQLITE_STATIC);
	else
		sqlite3_bind_null(row, column);
}

static void bind_number(sqlite3_stmt *row, int column, char kind, int64_t number)
{
	if (number == NONE)
		sqlite3_bind_null(row, column);
	else if (kind == 'r')
		sqlite3_bind_double(row, column, (double)number / 1e6);
	else
		sqlite3_bind_int64(row, column, number);
}

/* Texts are const char *, NULL and "" alike for NULL; everything else is int64_t. */
static void insert(struct db *db, enum table table, ...)
{
	const char *values = tables[table].values;
	va_list arguments;

	if (db->rc)
		return;
	va_start(arguments, table);
	for (int i = 0; values[i]; i++)
		if (values[i] == 't')
			bind_text(db->rows[table], i + 1, va_arg(arguments, const char *));
		else
			bind_number(db->rows[table], i + 1, values[i], va_arg(arguments, int64_t));
	va_end(arguments);
	check(db, sqlite3_step(db->rows[table]));
	sqlite3_reset(db->rows[table]);
}

static void create(struct db *db, enum table table)
{
	size_t count = strlen(tables[table].values);
	char marks[64] = "?";
	char *sql = gt_xasprintf("CREATE TABLE %s (%s;", tables[table].name, tables[table].columns);

	run(db, sql);
	free(sql);
	for (size_t i = 1; i < count; i++)
		strcat(marks, ",?");
	sql = gt_xasprintf("INSERT INTO %s VALUES (%s)", tables[table].name, marks);
	if (!db->rc)
		check(db, sqlite3_prepare_v2(db->handle, sql, -1, &db->rows[table], NULL));
	free(sql);
}

/* ---- processes, devices, sites ---------------------------------------------------------------- */

static const char *info(const struct gt_trace *trace, const char *key)
{
	const struct gt_bytes *text = gt_trace_info(trace, key);

	return text ? text->text : NULL;
}

/* Arguments are separated by NULs in the trace. To be freed. */
static char *command_of(const struct gt_trace *trace)
{
	const struct gt_bytes *text = gt_trace_info(trace, "cmdline");
	char *copy = text ? gt_xcalloc(text->length + 1, 1) : gt_xstrdup(trace->header.comm), *safe;

	for (uint32_t i = 0; text && i < text->length; i++)
		copy[i] = text->text[i] ? text->text[i] : ' ';
	for (size_t end = strlen(copy); end && copy[end - 1] == ' ';)
		copy[--end] = 0;
	safe = gt_escape(copy);
	free(copy);
	return safe;
}

static int64_t stack_number(struct db *db, const struct gt_export_place *place,
			    const struct gt_site_def *site)
{
	int64_t key[3] = {db->process, site->native, site->python};
	struct gt_stack stack;
	bool new;
	int64_t number = (int64_t)gt_number_of(&db->stacks, key, sizeof(key), &new);

	if (!new)
		return number;
	stack = gt_symbols_stack(place->symbols, site->native, site->python);
	for (size_t i = 0; i < stack.count; i++) {
		const struct gt_frame *frame = &stack.frames[i];
		int64_t id = (int64_t)gt_number_frame(&db->frames, frame, &new);

		if (new)
			insert(db, T_FRAME, id, frame->function, frame->file, frame->module,
			       known((uint64_t)frame->line, frame->line > 0),
			       gt_frame_kind_name(frame->kind));
		insert(db, T_STACK, number, (int64_t)i, id);
	}
	return number;
}

static void put_site(struct db *db, const struct gt_export_place *place, size_t index)
{
	const struct gt_site_def *site = &place->lane->site_defs[index];
	const struct gt_site *line = &place->lane->sites[index];

	insert(db, T_SITE, db->first_site + (int64_t)index, db->process,
	       (int64_t)place->lane->device, stack_number(db, place, site),
	       gt_space_name(site->space), gt_api_name(site->api),
	       gt_symbols_owner(place->symbols, site->native), gt_line_of(&db->lines, place, site),
	       (int64_t)(site->mask >> GT_TOTAL_IN_USE & 1),
	       (int64_t)(site->mask >> GT_TOTAL_RESERVED & 1),
	       (int64_t)(site->mask >> GT_TOTAL_TORCH & 1),
	       (int64_t)gt_site_at_peak(place->lane, index, GT_TOTAL_IN_USE), (int64_t)line->live,
	       (int64_t)line->live_count, (int64_t)line->ever, (int64_t)line->ever_count);
}

static void put_device(struct db *db, const struct gt_export_place *place)
{
	const struct gt_ctr *ctr = &place->lane->ctr;

	insert(db, T_DEVICE, db->process, (int64_t)place->lane->device,
	       known(place->device_total, place->device_total), (int64_t)ctr->cur[GT_TOTAL_IN_USE],
	       (int64_t)ctr->cur[GT_TOTAL_RESERVED], (int64_t)ctr->cur[GT_TOTAL_TORCH],
	       (int64_t)ctr->peak[GT_TOTAL_IN_USE], (int64_t)ctr->peak[GT_TOTAL_RESERVED],
	       (int64_t)ctr->peak[GT_TOTAL_TORCH], (int64_t)ctr->peak_seq[GT_TOTAL_IN_USE],
	       (int64_t)place->lane->seq, (int64_t)ctr->peak_us[GT_TOTAL_IN_USE],
	       (int64_t)place->lane->history_us);
}

static void put_process(struct db *db, const struct gt_trace *trace)
{
	char *command = command_of(trace), *host = gt_escape(trace->header.host);

	insert(db, T_PROCESS, db->process, known(trace->header.pid, trace->header.pid), command,
	       host, info(trace, "env.RANK"), (int64_t)trace->last_us);
	free(host);
	free(command);
}

/* ---- history ----------------------------------------------------------------------------------- */

static const char *category_of(uint8_t category)
{
	return category ? gt_category_name(category) : NULL;
}

static void put_block(void *ctx, const struct gt_export_place *place, const struct gt_lived *lived)
{
	const struct gt_block *block = &lived->block;
	struct db *db = ctx;

	insert(db, T_BLOCK, db->process, (int64_t)place->lane->device,
	       db->first_site + (int64_t)block->site, (int64_t)block->addr, (int64_t)block->size,
	       known(lived->from, true), known(lived->to, lived->to), (int64_t)lived->from_us,
	       known(lived->to_us, lived->to), (int64_t)block->stream,
	       (int64_t) !!(gt_site_mask(place->lane, block->site) & GT_MASK_IN_USE),
	       category_of(lived->life ? lived->life->category : 0),
	       gt_line_of(&db->lines, place, lived->named), (int64_t)block->space,
	       (int64_t)block->thread, known(lived->end ? lived->end->thread : 0, lived->end),
	       known(block->requested, block->requested), known(block->pool, block->pool));
	gt_raws_life(&db->raws, lived);
}

/* No row where the moment is not there: no failure, history gone. */
static void put_holders(struct db *db, const struct gt_export_place *place, const char *moment,
			enum gt_when_kind kind)
{
	struct gt_when when = {.kind = kind};
	struct gt_state state;
	struct gt_error err;

	if (gt_state_get(place->trace, place->lane_index, GT_TOTAL_IN_USE, when, &state, &err))
		return;
	if (place->answers)
		gt_answers_split(place->answers, &state);
	for (size_t i = 0; i < state.hold_count; i++) {
		const struct gt_hold *hold = &state.holds[i];
		const struct gt_site_def *site = &place->lane->site_defs[hold->site];

		insert(db, T_HOLDER, moment, db->process, (int64_t)place->lane->device,
		       db->first_site + (int64_t)hold->site, category_of(hold->category),
		       (int64_t)hold->bytes, known(hold->count, state.blocks_known),
		       gt_line_of(&db->lines, place, hold->call ? hold->call : site));
	}
	gt_state_clear(&state);
}

static int put_usage(struct db *db, const struct gt_export *export,
		     const struct gt_export_place *place, struct gt_error *err)
{
	struct gt_series series;

	if (gt_export_series(export, place, DEFAULT_POINTS, &series, err))
		return -1;
	for (size_t i = 0; i < series.count; i++)
		insert(db, T_USAGE, db->process, (int64_t)place->lane->device,
		       (int64_t)series.points[i].us, (int64_t)series.points[i].max[GT_TOTAL_IN_USE],
		       (int64_t)series.points[i].max[GT_TOTAL_RESERVED],
		       (int64_t)series.points[i].max[GT_TOTAL_TORCH]);
	gt_series_clear(&series);
	return 0;
}

static int put_steps(struct db *db, const struct gt_export_place *place, struct gt_error *err)
{
	struct gt_steps steps;

	if (!place->answers)
		return 0;
	if (gt_steps_get(place->answers, place->lane_index, GT_TOTAL_IN_USE, &steps, err))
		return -1;
	for (size_t i = 0; i < steps.count; i++) {
		const struct gt_step *step = &steps.steps[i];

		insert(db, T_STEP, db->process, (int64_t)place->lane->device, (int64_t)i + 1,
		       (int64_t)step->from_us, (int64_t)step->to_us, (int64_t)step->peak,
		       (int64_t)step->peak_seq, (int64_t)step->peak_reserved,
		       known(step->end_bytes, !step->cut), (int64_t)step->seq_end);
	}
	gt_steps_clear(&steps);
	return 0;
}

static void put_refused(struct db *db, const struct gt_export_place *place)
{
	const struct gt_trace *trace = place->trace;

	for (size_t i = 0; i < trace->report_count; i++) {
		const struct gt_report *report = &trace->reports[i];

		if (gt_report_lane(trace, report) != place->lane_index)
			continue;
		insert(db, T_REFUSED, db->process, (int64_t)place->lane->device,
		       (int64_t)report->seq, (int64_t)report->us, (int64_t)gt_report_asked(report),
		       known(report->device_free, report->device_free != GT_UNKNOWN_BYTES),
		       gt_end_name(gt_report_end(trace, report)),
		       db->first_site + (int64_t)report->site);
	}
}

static int put_ranges(struct db *db, const struct gt_trace *trace, struct gt_error *err)
{
	struct gt_marks marks;

	if (gt_marks_get(trace, &marks, err))
		return -1;
	for (size_t i = 0; i < marks.named_count; i++) {
		const struct gt_named *named = &marks.named[i];
		const struct gt_noted *begin = &marks.notes[named->begin];
		bool closed = named->end != GT_NO_NOTE;
		char *name = gt_escape(named->name), *thread;

		thread = gt_export_thread(trace, begin->thread);
		insert(db, T_RANGE, db->process, gt_stretch_name(named->kind), name, thread,
		       (int64_t)named->depth, (int64_t)begin->us,
		       known(closed ? marks.notes[named->end].us : 0, closed));
		free(thread);
		free(name);
	}
	gt_marks_clear(&marks);
	return 0;
}

/* ---- all of it --------------------------------------------------------------------------------- */

static int put_place(struct db *db, const struct gt_export *export,
		     const struct gt_export_place *place, struct gt_error *err)
{
	db->first_site = db->next_site;
	db->next_site += (int64_t)place->lane->site_count;
	put_device(db, place);
	for (size_t i = 0; i < place->lane->site_count; i++)
		put_site(db, place, i);
	put_holders(db, place, "peak", GT_WHEN_PEAK);
	put_holders(db, place, "oom", GT_WHEN_OOM);
	put_holders(db, place, "end", GT_WHEN_END);
	put_refused(db, place);
	if (put_usage(db, export, place, err) || put_steps(db, place, err) ||
	    gt_raws_lane(&db->raws, place->trace, place->lane_index, db->first_site, true, err))
		return -1;
	return gt_lives(place, put_block, db, err);
}

static int put_all(struct db *db, const struct gt_export *export, struct gt_error *err)
{
	int rc = 0;

	for (size_t p = 0; !rc && !db->rc && p < export->count; p++) {
		const struct gt_export_place *place = &export->places[p];

		if (!p || place->trace != place[-1].trace) {
			db->process++;
			put_process(db, place->trace);
			rc = put_ranges(db, place->trace, err);
			if (!rc)
				rc = gt_raws_process(&db->raws, db->process, export, place->trace,
						     place->symbols, err);
		}
		if (!rc)
			rc = put_place(db, export, place, err);
	}
	return rc;
}

static void open_db(struct db *db, const char *path)
{
	db->rc = sqlite3_open_v2(path, &db->handle,
				 SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOFOLLOW | SQLITE_OPEN_NOMUTEX,
				 NULL);
	run(db, "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; "
		"PRAGMA locking_mode = EXCLUSIVE; PRAGMA temp_store = MEMORY; PRAGMA cache_size = "
		"-65536; BEGIN;");
	for (enum table table = 0; table < TABLES; table++)
		create(db, table);
	if (!db->rc)
		gt_raws_open(&db->raws, db->handle);
}

static void close_db(struct db *db)
{
	for (enum table table = 0; table < TABLES; table++)
		sqlite3_finalize(db->rows[table]);
	gt_raws_close(&db->raws);
	sqlite3_close(db->handle);
	gt_numbers_clear(&db->frames);
	gt_numbers_clear(&db->stacks);
	gt_lines_clear(&db->lines);
}

int gt_export_sqlite(const struct gt_export *export, struct gt_error *err)
{
	struct db db = {0};
	int rc;

	open_db(&db, export->now);
	rc = put_all(&db, export, err);
	check(&db, db.raws.rc);
	run(&db, finish);
	if (!rc && db.rc) {
		err->status = 3;
		snprintf(err->text, sizeof(err->text), "%s: %s", export->path,
			 sqlite3_errstr(db.rc));
		rc = -1;
	}
	close_db(&db);
	return rc;
}
