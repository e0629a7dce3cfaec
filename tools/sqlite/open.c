/* SPDX-License-Identifier: MIT */
/*
 * See open.h. The state comes from the raw tables, as it was; the history from the rows of block, two
 * events each, and from raw_event, which has every event that is not just the begin or end of a row.
 * The database is hostile, and SQLite is a large machine: it gets the file's bytes and not its name, so
 * no journal beside it is looked at; tables have to be tables, functions are refused and time is
 * limited, so a schema cannot compute; no more rows are taken than the file has bytes, whatever its pages
 * point to. Called from torch/open.c.
 */
#include "sqlite/open.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include "sqlite/rows.h"

#define MAGIC	      "SQLite format 3"
#define LIMIT_SECONDS 300

struct lane {
	struct gt_raw_lane raw;
	struct gt_event *events;
	size_t event_count;
	size_t sites, blocks; /* room for */
	size_t site_count;    /* taken so far */
};

struct reading {
	sqlite3 *db;
	const char *path;
	struct gt_restore *restore;
	int64_t process;
	uint64_t rows, most; /* taken so far, and at most */
	time_t until;
	struct lane lanes[GT_MAX_LANES];
	size_t lane_count;
	const char *bad; /* the first thing that was wrong; NULL = nothing */
};

static const char no_memory[] = "no memory left on this machine to read the trace";
static const char bad_value[] = "a value that cannot be";

bool gt_looks_like_sqlite(const void *head, size_t length)
{
	return length >= sizeof(MAGIC) && !memcmp(head, MAGIC, sizeof(MAGIC));
}

static void fail(struct reading *r, const char *bad)
{
	if (!r->bad)
		r->bad = bad;
}

/* ---- SQLite ---------------------------------------------------------------------------------- */

/* count() is the only function that is needed here. */
static int only_reads(void *ctx, int action, const char *detail, const char *name,
		      const char *database, const char *trigger)
{
	(void)ctx;
	(void)detail;
	(void)database;
	(void)trigger;
	if (action == SQLITE_FUNCTION)
		return strcmp(name, "count") ? SQLITE_DENY : SQLITE_OK;
	return action == SQLITE_SELECT || action == SQLITE_READ ? SQLITE_OK : SQLITE_DENY;
}

static int is_late(void *ctx)
{
	const struct reading *r = ctx;

	return time(NULL) > r->until;
}

static int open_bytes(struct reading *r, const void *bytes, size_t size)
{
	int rc = sqlite3_open_v2(":memory:", &r->db, SQLITE_OPEN_READWRITE, NULL);

	if (!rc)
		rc = sqlite3_deserialize(r->db, "main", (unsigned char *)bytes, (sqlite3_int64)size,
					 (sqlite3_int64)size, SQLITE_DESERIALIZE_READONLY);
	if (rc)
		return rc;
	sqlite3_db_config(r->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	sqlite3_db_config(r->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	rc = sqlite3_exec(r->db, "PRAGMA cell_size_check = ON", NULL, NULL, NULL);
	sqlite3_set_authorizer(r->db, only_reads, NULL);
	r->until = time(NULL) + LIMIT_SECONDS;
	sqlite3_progress_handler(r->db, 10000, is_late, r);
	return rc;
}

/* A statement with the process as its first value; NULL after a failure. */
static sqlite3_stmt *prepare(struct reading *r, const char *sql)
{
	sqlite3_stmt *statement = NULL;

	if (!r->bad && (!sql || sqlite3_prepare_v2(r->db, sql, -1, &statement, NULL)))
		fail(r, sql ? "not one that gputrace exported, or by another version" : no_memory);
	if (statement)
		sqlite3_bind_int64(statement, 1, r->process);
	return statement;
}

static bool next_row(struct reading *r, sqlite3_stmt *statement)
{
	int rc = r->bad || !statement ? SQLITE_DONE : sqlite3_step(statement);

	if (rc == SQLITE_ROW && ++r->rows <= r->most)
		return true;
	if (rc == SQLITE_ROW)
		fail(r, "more rows than a file of its size can hold");
	else if (rc != SQLITE_DONE)
		fail(r, "the database is malformed");
	return false;
}

/* The one number that a statement gives; 0 after a failure. */
static int64_t number_from(struct reading *r, const char *sql)
{
	sqlite3_stmt *statement = prepare(r, sql);
	int64_t number = next_row(r, statement) ? sqlite3_column_int64(statement, 0) : 0;

	sqlite3_finalize(statement);
	return number;
}

/* How many rows there may be: what a count says, if it can be. */
static size_t count_from(struct reading *r, const char *sql)
{
	int64_t count = number_from(r, sql);

	if (count < 0 || (uint64_t)count > r->most) {
		fail(r, "more rows than a file of its size can hold");
		return 0;
	}
	return (size_t)count;
}

/* A view, or a table of a module, computes what it says. */
static void check_table(struct reading *r, const char *name)
{
	char sql[160];

	snprintf(sql, sizeof(sql),
		 "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = '%s' "
		 "AND rootpage > 0 AND ?1",
		 name);
	if (number_from(r, sql) != 1)
		fail(r, "not one that gputrace exported, or by another version");
}

/* ---- definitions ----------------------------------------------------------------------------- */

static void load_all(struct reading *r, unsigned int raw,
		     void (*take)(struct reading *r, sqlite3_stmt *row))
{
	char *sql = gt_raw_select(raw);
	sqlite3_stmt *statement = prepare(r, sql);

	while (next_row(r, statement))
		take(r, statement);
	sqlite3_finalize(statement);
	free(sql);
}

static bool load(struct reading *r, sqlite3_stmt *row, unsigned int raw, void *element)
{
	if (!element)
		fail(r, no_memory);
	else if (gt_raw_load(r->restore, row, raw, element))
		fail(r, bad_value);
	return !r->bad;
}

static void load_part(struct reading *r, enum gt_trace_part part)
{
	char *sql = gt_raw_select(part);
	sqlite3_stmt *statement = prepare(r, sql);

	while (next_row(r, statement))
		load(r, statement, part, gt_restore_add(r->restore, part));
	sqlite3_finalize(statement);
	free(sql);
}

static void take_header(struct reading *r, sqlite3_stmt *row)
{
	struct gt_trace *trace = gt_restore_trace(r->restore);
	struct gt_raw_header raw = {0};

	if (!load(r, row, GT_RAW_HEADER, &raw))
		return;
	trace->header = raw.header;
	trace->last_us = raw.last_us;
	trace->snapshot = raw.snapshot;
	trace->merged = raw.merged;
	trace->partial = raw.partial;
}

static struct gt_report *report_at(struct reading *r, uint32_t index)
{
	const struct gt_trace *trace = gt_restore_trace(r->restore);

	if (index < trace->report_count)
		return &trace->reports[index];
	fail(r, bad_value);
	return NULL;
}

static void take_holder(struct reading *r, sqlite3_stmt *row)
{
	struct gt_raw_holder raw = {0};
	struct gt_report *report =
		load(r, row, GT_RAW_HOLDER, &raw) ? report_at(r, raw.report) : NULL;

	if (report && report->holders < GT_REPORT_HOLDERS)
		report->holder[report->holders++] = raw.holder;
}

static void take_other(struct reading *r, sqlite3_stmt *row)
{
	struct gt_raw_other raw = {0};
	struct gt_report *report =
		load(r, row, GT_RAW_OTHER, &raw) ? report_at(r, raw.report) : NULL;

	if (report && report->others < GT_REPORT_OTHERS)
		report->other[report->others++] = raw.other;
}

/* ---- lanes ----------------------------------------------------------------------------------- */

static struct lane *lane_of(struct reading *r, uint32_t number)
{
	for (size_t i = 0; i < r->lane_count; i++)
		if (r->lanes[i].raw.lane.lane == number)
			return &r->lanes[i];
	fail(r, bad_value);
	return NULL;
}

/* Rows of a lane are looked up by its number: there are as few as GPUs. */
static void take_lane(struct reading *r, sqlite3_stmt *row)
{
	struct lane *lane = &r->lanes[r->lane_count];

	if (r->lane_count == GT_MAX_LANES)
		fail(r, "more lanes than there can be");
	else if (load(r, row, GT_RAW_LANE, &lane->raw))
		r->lane_count++;
}

static size_t rows_of(struct reading *r, const char *table, const char *key, int64_t value)
{
	char sql[128];

	snprintf(sql, sizeof(sql), "SELECT count(*) FROM %s WHERE process = ?1 AND %s = %lld",
		 table, key, (long long)value);
	return count_from(r, sql);
}

/* Room for all that is said to be there; each event has to be in some row. */
static void make_room(struct reading *r, struct lane *lane)
{
	struct gt_trace_lane *made = &lane->raw.lane;
	size_t rows = rows_of(r, "raw_event", "lane", made->lane);
	uint64_t events = made->seq + 1 - made->history_first;

	lane->sites = rows_of(r, "raw_site", "lane", made->lane);
	lane->blocks = rows_of(r, "raw_block", "lane", made->lane);
	if (lane->raw.in_block)
		rows += 2 * rows_of(r, "block", "device", made->device);
	if (!made->history_first || made->history_first > made->seq + 1 || events > rows)
		fail(r, "an event of its history is missing");
	if (r->bad)
		return;
	lane->event_count = (size_t)events;
	lane->events = calloc(lane->event_count + 1, sizeof(*lane->events));
	made->sites = calloc(lane->sites + 1, sizeof(*made->sites));
	made->site_defs = calloc(lane->sites + 1, sizeof(*made->site_defs));
	made->blocks = calloc(lane->blocks + 1, sizeof(*made->blocks));
	made->site_count = lane->sites;
	if (!lane->events || !made->sites || !made->site_defs || !made->blocks)
		fail(r, no_memory);
}

static void take_site(struct reading *r, sqlite3_stmt *row)
{
	struct gt_raw_site raw = {0};
	struct lane *lane = load(r, row, GT_RAW_SITE, &raw) ? lane_of(r, raw.lane) : NULL;

	if (!lane || lane->site_count == lane->sites)
		return;
	lane->raw.lane.site_defs[lane->site_count] = raw.def;
	lane->raw.lane.sites[lane->site_count++] = raw.totals;
}

static void take_block(struct reading *r, sqlite3_stmt *row)
{
	struct gt_raw_block raw = {0};
	struct lane *lane = load(r, row, GT_RAW_BLOCK, &raw) ? lane_of(r, raw.lane) : NULL;

	if (lane && lane->raw.lane.block_count < lane->blocks)
		lane->raw.lane.blocks[lane->raw.lane.block_count++] = raw.block;
}

/* ---- history --------------------------------------------------------------------------------- */

/* Where the event of a number belongs; NULL: not in the history that is kept. */
static struct gt_event *event_at(struct lane *lane, uint64_t seq)
{
	uint64_t first = lane->raw.lane.history_first;

	return seq >= first && seq - first < lane->event_count ? &lane->events[seq - first] : NULL;
}

static void take_event(struct reading *r, sqlite3_stmt *row)
{
	struct gt_event event = {0}, *to;
	struct lane *lane = load(r, row, GT_RAW_EVENT, &event) ? lane_of(r, event.lane) : NULL;

	to = lane ? event_at(lane, event.seq) : NULL;
	if (to)
		*to = event;
}

enum column { /* of the rows of block that are read here */
	      C_SITE,
	      C_ADDRESS,
	      C_BYTES,
	      C_FROM_EVENT,
	      C_TO_EVENT,
	      C_FROM_SECONDS,
	      C_TO_SECONDS,
	      C_STREAM,
	      C_SPACE,
	      C_FROM_THREAD,
	      C_TO_THREAD,
	      C_REQUESTED,
	      C_POOL,
};

#define COLUMNS                                                                                 \
	"site, address, bytes, from_event, to_event, from_seconds, to_seconds, stream, space, " \
	"from_thread, to_thread, requested, pool"

/* A number of at most so many; what is not known is 0. */
static uint64_t column(struct reading *r, sqlite3_stmt *row, enum column which, uint64_t most)
{
	int64_t value = sqlite3_column_int64(row, which);

	if (most != UINT64_MAX && (value < 0 || (uint64_t)value > most))
		fail(r, bad_value);
	return (uint64_t)value;
}

/* Times are seconds for people; a double has the microsecond up to 285 years. */
static uint64_t column_us(struct reading *r, sqlite3_stmt *row, enum column which)
{
	double us = sqlite3_column_double(row, which) * 1e6;

	if (!(us >= 0 && us < 1e15)) {
		fail(r, bad_value);
		return 0;
	}
	return (uint64_t)llround(us);
}

/* What both events of a row say of their block. */
static struct gt_event block_of(struct reading *r, sqlite3_stmt *row, const struct lane *lane)
{
	int64_t site = sqlite3_column_int64(row, C_SITE) - lane->raw.first_site;

	if (site < 0 || (uint64_t)site >= lane->site_count)
		fail(r, bad_value);
	return (struct gt_event){
		.addr = column(r, row, C_ADDRESS, UINT64_MAX),
		.size = column(r, row, C_BYTES, UINT64_MAX),
		.birth_us = column_us(r, row, C_FROM_SECONDS),
		.requested = column(r, row, C_REQUESTED, UINT64_MAX),
		.lane = lane->raw.lane.lane,
		.site = (uint32_t)site,
		.pool = (uint32_t)column(r, row, C_POOL, UINT32_MAX),
		.birth_thread = (uint16_t)column(r, row, C_FROM_THREAD, UINT16_MAX),
		.stream = (uint16_t)column(r, row, C_STREAM, UINT16_MAX),
		.space = (uint8_t)column(r, row, C_SPACE, UINT8_MAX),
	};
}

static void take_life(struct reading *r, sqlite3_stmt *row, struct lane *lane)
{
	struct gt_event event = block_of(r, row, lane);
	uint64_t from = column(r, row, C_FROM_EVENT, INT64_MAX);
	uint64_t to = column(r, row, C_TO_EVENT, INT64_MAX);
	struct gt_event *begin = event_at(lane, from), *end = to ? event_at(lane, to) : NULL;

	event.seq = from;
	event.us = event.birth_us;
	event.thread = event.birth_thread;
	event.op = GT_OP_ALLOC;
	if (begin)
		*begin = event;
	event.seq = to;
	event.us = column_us(r, row, C_TO_SECONDS);
	event.thread = (uint16_t)column(r, row, C_TO_THREAD, UINT16_MAX);
	event.op = GT_OP_FREE;
	if (end)
		*end = event;
}

static void load_lives(struct reading *r, struct lane *lane)
{
	char sql[256];
	sqlite3_stmt *statement;

	snprintf(sql, sizeof(sql),
		 "SELECT " COLUMNS " FROM block WHERE process = ?1 AND device = %d",
		 lane->raw.lane.device);
	statement = prepare(r, sql);
	while (next_row(r, statement))
		take_life(r, statement, lane);
	sqlite3_finalize(statement);
}

/* ---- all of it ------------------------------------------------------------------------------- */

static int by_number(const void *a, const void *b)
{
	const struct lane *x = a, *y = b;

	return x->raw.lane.lane < y->raw.lane.lane ? -1 : x->raw.lane.lane > y->raw.lane.lane;
}

/* What is wrong with a lane the restorer tells at the end. */
static void hand_over(struct reading *r, struct lane *lane)
{
	const struct gt_trace_lane *made = &lane->raw.lane;

	if (!r->bad) {
		gt_restore_lane(r->restore, made, lane->events);
		return;
	}
	free(made->sites);
	free(made->site_defs);
	free(made->blocks);
	free(lane->events);
}

static void load_lanes(struct reading *r)
{
	load_all(r, GT_RAW_LANE, take_lane);
	for (size_t i = 0; !r->bad && i < r->lane_count; i++)
		make_room(r, &r->lanes[i]);
	load_all(r, GT_RAW_SITE, take_site);
	load_all(r, GT_RAW_BLOCK, take_block);
	for (size_t i = 0; !r->bad && i < r->lane_count; i++)
		if (r->lanes[i].raw.in_block)
			load_lives(r, &r->lanes[i]);
	load_all(r, GT_RAW_EVENT, take_event); /* of two, this one is whole */
	if (r->lane_count)
		qsort(r->lanes, r->lane_count, sizeof(*r->lanes), by_number);
	for (size_t i = 0; i < r->lane_count; i++)
		hand_over(r, &r->lanes[i]);
}

static void load_trace(struct reading *r)
{
	for (unsigned int raw = 0; raw < GT_RAWS; raw++)
		check_table(r, gt_raw_name(raw));
	check_table(r, "block");
	load_all(r, GT_RAW_HEADER, take_header);
	for (enum gt_trace_part part = 0; part < GT_TRACE_PARTS; part++)
		load_part(r, part);
	load_all(r, GT_RAW_HOLDER, take_holder);
	load_all(r, GT_RAW_OTHER, take_other);
	load_lanes(r);
}

static int refuse(struct gt_error *err, const char *path, const char *bad)
{
	err->status = 3;
	snprintf(err->text, sizeof(err->text), "%s: an SQLite database that cannot be read: %s",
		 path, bad);
	return -1;
}

static int read_process(struct reading *r, unsigned int *ret_processes, struct gt_trace **ret,
			struct gt_error *err)
{
	r->restore = gt_restore_new(r->path);
	if (!r->restore)
		return refuse(err, r->path, no_memory);
	check_table(r, gt_raw_name(GT_RAW_HEADER));
	*ret_processes = (unsigned int)number_from(r, "SELECT count(*) FROM raw_header WHERE ?1");
	if (!*ret_processes || r->process > *ret_processes)
		fail(r, "there is no process in it");
	load_trace(r);
	if (r->bad) {
		gt_restore_free(r->restore);
		return refuse(err, r->path, r->bad);
	}
	return gt_restore_end(r->restore, ret, err);
}

int gt_sqlite_open(int fd, const char *path, unsigned int process, struct gt_trace **ret,
		   unsigned int *ret_processes, struct gt_error *err)
{
	struct reading *r = calloc(1, sizeof(*r));
	struct stat st;
	void *bytes = MAP_FAILED;
	int rc;

	if (r && !fstat(fd, &st))
		bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (bytes == MAP_FAILED) {
		free(r);
		return refuse(err, path, "it cannot be mapped");
	}
	r->path = path;
	r->process = process;
	r->most = (uint64_t)st.st_size;
	if (open_bytes(r, bytes, (size_t)st.st_size))
		rc = refuse(err, path, sqlite3_errmsg(r->db));
	else
		rc = read_process(r, ret_processes, ret, err);
	sqlite3_close(r->db);
	munmap(bytes, (size_t)st.st_size);
	free(r);
	return rc;
}
